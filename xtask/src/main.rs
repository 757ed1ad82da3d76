//! Development tasks of the workspace; `cargo xtask help` lists them.

mod ci;
mod r#gen;
mod guides;
mod interop;
mod modules;
mod oracle;
mod program;
mod tidy;

use std::{path::Path, process::ExitCode};

const HELP: &str = "\
Development tasks of the workspace.

Usage: cargo xtask <COMMAND>

Commands:
  ci [--no-tests]  all checks that a change must pass: format, tidy, lints, tests and documentation
                   (--no-tests: all but the tests, for a script that has already run them)
  gen [--check]    write the table of built-in kinds from Kubernetes' published Go packages; needs Go
                   (--check: only report whether the committed files are up to date)
  guides           clone the repository, and play README.md and docs/getting-started.md in the clone, with the ports that
                   they name, 6443 and 3000; `cargo run --release --` runs the program that `cargo test` builds
  interop          kubectl, client-go, the Python client and kopf against `k1s serve`, over HTTPS; needs Go and
                   Python 3.11 or later, and the network the first time
  oracle FOLDER    replace the recordings of kube-apiserver in oracle/ by those of a folder; `cargo test --test oracle`
                   replays them
  tidy             rules about crates and files that the compiler does not enforce
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::run(true),
        ["ci", "--no-tests"] => ci::run(false),
        ["gen"] => r#gen::run(false),
        ["gen", "--check"] => r#gen::run(true),
        ["guides"] => guides::run(),
        ["interop"] => interop::run(),
        ["oracle", folder] => oracle::take(Path::new(folder)),
        ["tidy"] => tidy::run(),
        ["help" | "--help" | "-h"] => {
            print(HELP);
            Ok(())
        }
        _ => Err(format!("unknown arguments: {}\n\n{HELP}", arguments.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&message);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command-line program speaks to its user")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a command-line program speaks to its user")]
fn complain(text: &str) {
    eprintln!("xtask: {text}");
}
