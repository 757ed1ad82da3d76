//! The command line on a data folder: from the start of the process to its end, beside a process that only reads the bytes of the folder, and
//! `k1s` when it opens nothing.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use clap::Args;
use k1s_env::Env;
use tokio::process::Command;

use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit},
};

/// Options of `commands`.
#[derive(Args)]
pub(crate) struct Options {
    /// The program
    #[arg(long, value_name = "FILE", default_value = "target/release/k1s")]
    program: PathBuf,
    /// Objects in the folder
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How often each command is run
    #[arg(long, default_value_t = 40)]
    runs: usize,
    /// Prints a line of JSON per measurement
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let program = options.program.canonicalize().map_err(|error| {
        let file = options.program.display();
        Failure(format!("{file}: {error}; build it with `cargo build --release`, or name it with --program"))
    })?;
    let folder = tempfile::tempdir()?;
    report::progress(&format!("creating {} objects", options.objects));
    let objects = (0..options.objects).fold(String::new(), |mut text, number| {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\ndata: {{number: '{number}'}}\n"
        );
        text
    });
    std::fs::write(folder.path().join("objects.yaml"), objects)?;
    time(&program, folder.path(), &["apply", "-f", "objects.yaml", "--data-dir", "db"]).await?;

    let rows: [(&str, &[&str], Option<f64>); 4] = [
        ("get", &["get", "configmap", "c1", "--data-dir", "db"], Some(30.0)),
        ("get-all", &["get", "configmaps", "--data-dir", "db"], None),
        ("patch", &["label", "configmap", "c1", "a=b", "--overwrite", "--data-dir", "db"], None),
        // What any command takes: the program is loaded, and prints a line.
        ("version", &["version", "--client"], None),
    ];
    // Nothing that reads the folder takes less.
    let (reader, read) = (Path::new("sh"), ["-c", "exec cat db/store/log/* db/store/checkpoint"]);
    let mut measurements = Vec::new();
    for (name, command, expected) in rows {
        report::progress(&format!("{name}: {} runs", options.runs));
        let (mut times, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            times.push(time(&program, folder.path(), command).await?);
            if name != "version" {
                floor.push(time(reader, folder.path(), &read).await?);
            }
        }
        for (subject, mut times, expected) in [("folder", times, expected), ("floor", floor, None)] {
            if times.is_empty() {
                continue;
            }
            for (part, quantile) in [("p50", 0.5), ("p95", 0.95)] {
                let value = report::quantile(&mut times, quantile);
                let name = format!("{subject}.{name}.{part}");
                measurements
                    .push(Measurement { expected, ..Measurement::new(name, value, Unit::Milliseconds) });
            }
        }
    }
    report::show(&measurements, Beside { peer: "", floors: &[("folder", "floor")] }, options.json);
    Ok(())
}

/// How long a command takes, in milliseconds.
async fn time(program: &Path, folder: &Path, arguments: &[&str]) -> Result<f64, Failure> {
    let env = Env::system();
    let begun = env.now();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("HOME", folder).env_remove("KUBECONFIG");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().await?;
    if !status.success() {
        return Err(Failure(format!("{} {} failed", program.display(), arguments.join(" "))));
    }
    Ok((env.now() - begun).as_secs_f64() * 1000.0)
}
