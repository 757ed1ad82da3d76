//! Output: stdout for results, stderr for everything else. A closed pipe ends the process quietly, as with other tools.

use std::io::{self, Write as _};

/// Prints a result, at once: what was printed has happened, even if the process is killed next.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a line of results.
pub(crate) fn line(text: &str) {
    print(&format!("{text}\n"));
}

/// Prints a line to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a table; on a terminal, with its first line in bold.
pub(crate) fn table(text: &str, headers: bool) {
    match text.split_once('\n') {
        Some((first, rest)) if headers && colours(&io::stdout()) => {
            print(&format!("\u{1b}[1m{first}\u{1b}[0m\n{rest}"))
        }
        _ => print(text),
    }
}

/// Prints an error, or a warning, to stderr; on a terminal, with its first words in a colour.
pub(crate) fn complain(text: &str, is_error: bool) {
    match text.split_once(':') {
        Some((first, rest)) if colours(&io::stderr()) && !first.contains('\n') => {
            let colour = if is_error { 31 } else { 33 };
            note(&format!("\u{1b}[{colour}m{first}:\u{1b}[0m{rest}"));
        }
        _ => note(text),
    }
}

/// Whether there may be colours: on a terminal, unless `NO_COLOR` is set.
fn colours(stream: &impl io::IsTerminal) -> bool {
    stream.is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
