//! The `text-generation-router` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = text_generation_router::app::main_from(std::env::args().collect());
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
