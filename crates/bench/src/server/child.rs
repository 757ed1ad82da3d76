//! The server that is measured: `k1s serve` as a process of its own.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use clap::ValueEnum;
use http::Method;
use k1s_env::Env;
use k1s_store_etcd::testing::{EtcdServer, ServerOptions};
use tempfile::TempDir;

use super::{
    client::{Client, Content, Target},
    process::Process,
};
use crate::Failure;

/// Where a server keeps its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kept {
    Memory,
    Disk,
    Etcd,
}

impl Kept {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kept::Memory => "memory",
            Kept::Disk => "disk",
            Kept::Etcd => "etcd",
        }
    }
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

const TOKEN: &str = "bench";
/// The token of a user without any rights of their own.
pub(crate) const NOBODY: &str = "nobody";
/// The token of a user whose rights are those of roles, where there are any.
pub(super) const READER: &str = "reader";
/// A server that is not ready by then never will be.
const READY: Duration = Duration::from_secs(30);

/// The program `k1s` of the same build as this one, built if cargo runs us.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let built =
            Command::new(cargo).args(["build", "--quiet", "-p", "k1s-cli", "--profile", profile]).status()?;
        if !built.success() {
            return Err(Failure(format!("k1s could not be built: {built}")));
        }
    }
    let program = std::env::current_exe()?.with_file_name("k1s");
    match program.exists() {
        true => Ok(program),
        false => Err(Failure(format!("there is no {}; build it or say --k1s FILE", program.display()))),
    }
}

/// A running `k1s serve`.
pub(crate) struct Child {
    pub(crate) process: Process,
    pub(crate) target: Target,
    /// From the start of the process until it said that it is ready.
    pub(crate) ready: Duration,
    folder: TempDir,
    _etcd: Option<EtcdServer>,
}

impl Child {
    pub(crate) async fn start(
        env: &Env,
        program: &Path,
        kept: Kept,
        tls: bool,
        folder: &Path,
    ) -> Result<Child, Failure> {
        Child::start_with(env, program, kept, tls, folder, &[]).await
    }

    /// The same with further flags.
    pub(super) async fn start_with(
        env: &Env,
        program: &Path,
        kept: Kept,
        tls: bool,
        folder: &Path,
        flags: &[String],
    ) -> Result<Child, Failure> {
        let folder = TempDir::with_prefix_in("k1s-server-", folder)?;
        let users = folder.path().join("users");
        std::fs::write(
            &users,
            format!(
                "{TOKEN},bench,1,\"system:masters\"\n{NOBODY},mallory,2\n{READER},user-7,3,\"devs,qa\"\n"
            ),
        )?;
        // A port that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(program);
        command
            .args(["serve", "--port", &port.to_string(), "--kubeconfig"])
            .arg(folder.path().join("kubeconfig"))
            .args(flags);
        command.arg("--token-auth-file").arg(&users).stdout(Stdio::null());
        if !tls {
            command.arg("--http");
        }
        let mut etcd = None;
        match kept {
            Kept::Memory => {}
            Kept::Disk => drop(command.arg("--data-dir").arg(folder.path().join("data"))),
            Kept::Etcd => {
                let args = vec![format!("--quota-backend-bytes={}", 8_u64 << 30)];
                let options = ServerOptions { args, ..ServerOptions::default() };
                let server = EtcdServer::start_with(env, options).await?;
                let server = server.ok_or_else(|| Failure("there is no etcd on the PATH".to_owned()))?;
                command.arg("--etcd").arg(server.endpoint());
                etcd = Some(server);
            }
        }
        let target =
            Target { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), tls, token: TOKEN.to_owned() };
        let began = env.now();
        let process = command.spawn().map_err(|error| Failure(format!("{}: {error}", program.display())))?;
        let process = Process::new(process);
        let mut child = Child { process, target, ready: Duration::ZERO, folder, _etcd: etcd };
        loop {
            if let Ok(mut client) = Client::connect(env, &child.target).await
                && let Ok(_) = client.call(Method::GET, "/readyz", Content::none()).await
            {
                break;
            }
            if let Some(status) = child.process.ended()? {
                return Err(Failure(format!("k1s ended by itself: {status}")));
            }
            if env.now() - began > READY {
                return Err(Failure("k1s does not become ready".to_owned()));
            }
            env.sleep(Duration::from_micros(500)).await;
        }
        child.ready = env.now() - began;
        Ok(child)
    }

    /// The file that tells clients how to reach it as an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}
