//! The process of a measured operator, driven by commands line by line.

use std::{path::Path, process::Stdio, time::Duration};

use k1s_env::Env;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
};

use super::operator::Said;
use crate::{Failure, server::process::cpu_seconds};

/// Maximum time for a command.
const PATIENCE: Duration = Duration::from_secs(600);

/// Another process of this program.
pub(crate) fn this_program() -> Result<Command, Failure> {
    Ok(Command::new(std::env::current_exe()?))
}

/// Runs a process to its end and returns its last line of output.
pub(crate) async fn ask<T: DeserializeOwned>(env: &Env, mut command: Command) -> Result<T, Failure> {
    let shown = format!("{:?}", command.as_std());
    let child =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).stdout(Stdio::piped()).kill_on_drop(true);
    let output = env.timeout(PATIENCE, child.spawn()?.wait_with_output()).await;
    let output = output.map_err(|_| Failure(format!("{shown} does not end")))??;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(line) if output.status.success() => Ok(serde_json::from_str(line)?),
        _ => Err(Failure(format!("{shown}: {}", output.status))),
    }
}

/// A running operator.
pub(crate) struct Child {
    env: Env,
    process: tokio::process::Child,
    says: Lines<BufReader<ChildStdout>>,
    tell: ChildStdin,
    /// Its report once every object had been reconciled.
    pub(crate) started: Said,
}

impl Child {
    pub(crate) async fn start(env: &Env, mut command: Command) -> Result<Child, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| Failure(format!("{command:?}: {error}")))?;
        let missing = || Failure("an operator has no input or output".to_owned());
        let says = BufReader::new(process.stdout.take().ok_or_else(missing)?).lines();
        let tell = process.stdin.take().ok_or_else(missing)?;
        let mut child = Child { env: env.clone(), process, says, tell, started: Said::default() };
        child.started = child.hear().await?;
        Ok(child)
    }

    pub(crate) async fn hear(&mut self) -> Result<Said, Failure> {
        let line = self.env.timeout(PATIENCE, self.says.next_line()).await;
        let line = line.map_err(|_| Failure("an operator says nothing any more".to_owned()))??;
        let line = line.ok_or_else(|| Failure("an operator ended before it was told to".to_owned()))?;
        serde_json::from_str(&line).map_err(|error| Failure(format!("an operator says {line:?}: {error}")))
    }

    pub(crate) async fn tell(&mut self, what: &str) -> Result<Said, Failure> {
        self.tell.write_all(format!("{what}\n").as_bytes()).await?;
        self.tell.flush().await?;
        self.hear().await
    }

    /// The CPU time that it has used.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        let process = self.process.id().ok_or_else(|| Failure("the operator has ended".to_owned()))?;
        cpu_seconds(process)
    }

    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        self.tell.write_all(b"end\n").await?;
        drop(self.tell);
        let ended = self.env.timeout(Duration::from_secs(30), self.process.wait()).await;
        let ended = ended.map_err(|_| Failure("an operator does not end".to_owned()))??;
        if ended.success() { Ok(()) } else { Err(Failure(format!("an operator ended with {ended}"))) }
    }
}

/// The Go operator; built if it is not there.
pub(crate) async fn go_operator(folder: &Path) -> Result<Option<std::path::PathBuf>, Failure> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/operator-go");
    let program = folder.join("operator-go");
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(&program).arg(".").current_dir(sources);
    match go.status().await {
        Ok(built) if built.success() => Ok(Some(program)),
        Ok(built) => Err(Failure(format!("the operator of Go cannot be built: {built}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
