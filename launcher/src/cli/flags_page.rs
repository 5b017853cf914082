//! The reference page of all flags, made from the command itself so that it cannot go stale.

use std::fmt::Write as _;

use clap::{Arg, Command};

const HEAD: &str = "\
# Flags of `text-generation-launcher`

Made by `text-generation-launcher print-flags --markdown`; do not edit. The command line wins over the variable, the
variable over the default. Switches need no value on the command line; their variable is `true`, `false`, `1` or `0`.
";

/// The page in Markdown.
pub fn markdown(command: &Command) -> String {
    let mut page = HEAD.to_owned();
    let mut heading = None;
    for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
        let current = argument.get_help_heading();
        if current.is_some() && current != heading {
            heading = current;
            let title = current.unwrap_or_default();
            page.push_str(&format!("\n## {title}\n\n| Flag | Variable | Default | Meaning |\n|---|---|---|---|\n"));
        }
        page.push_str(&row(argument));
    }
    page
}

/// The names of all flags, one a line.
pub fn names(command: &Command) -> String {
    let longs = command.get_arguments().filter_map(Arg::get_long);
    longs.fold(String::new(), |mut names, long| {
        // Writing to a String cannot fail.
        let _infallible = writeln!(names, "--{long}");
        names
    })
}

fn row(argument: &Arg) -> String {
    let variable = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if defaults.is_empty() { String::new() } else { format!("`{}`", defaults.join(",")) };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    format!("| {} | {variable} | {default} | {help}{} |\n", spellings(argument), choices(argument))
}

fn spellings(argument: &Arg) -> String {
    let mut names = vec![format!("`--{}`", argument.get_long().unwrap_or_default())];
    names.extend(argument.get_short().map(|short| format!("`-{short}`")));
    names.extend(argument.get_visible_aliases().into_iter().flatten().map(|alias| format!("`--{alias}`")));
    names.join(", ")
}

fn choices(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    let takes_bool = values.iter().any(|value| value.get_name() == "true");
    if values.is_empty() || takes_bool {
        return String::new();
    }
    let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    format!(" ({})", names.join(", "))
}
