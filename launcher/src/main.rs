//! The `text-generation-launcher` binary.

fn main() {
    let argv = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    std::process::exit(text_generation_launcher::main_from(argv));
}
