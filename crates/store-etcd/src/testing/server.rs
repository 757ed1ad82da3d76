//! An etcd server with its own directory.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Once,
    time::Duration,
};

use k1s_env::Env;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use super::RawClient;
use crate::{ConnectError, EtcdOptions, TlsOptions};

/// Maximum time until a server answers.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Interval of polling whether a server answers.
const POLL: Duration = Duration::from_millis(10);

/// Maximum attempts to find free ports.
const PORT_ATTEMPTS: u32 = 10;

/// Ports below those that the system hands out to clients. From one of these, a client could be connected to
/// itself while it tries to reach a server that is down.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Further arguments of the command line.
    pub args: Vec<String>,
    /// What clients need if the arguments make it a server with TLS.
    pub tls: Option<TlsOptions>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no `etcd`, and `K1S_REQUIRE_ETCD=1` says that there must be.
    #[error("there is no etcd on the PATH, and K1S_REQUIRE_ETCD asks for one")]
    NotInstalled,

    /// It ended at once.
    #[error("etcd ended with {status}; it said:\n{log}")]
    Ended {
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of its log.
        log: String,
    },

    /// It does not answer.
    #[error("etcd does not answer; it said:\n{log}")]
    Silent {
        /// The end of its log.
        log: String,
    },

    /// A client cannot be made.
    #[error(transparent)]
    Client(#[from] ConnectError),

    /// The operating system failed.
    #[error("etcd cannot be started: {0}")]
    Io(#[from] io::Error),
}

/// A server that answers, on ports of its own; killed when dropped, and its data removed.
#[derive(Debug)]
pub struct EtcdServer {
    env: Env,
    options: ServerOptions,
    dir: TempDir,
    client_port: u16,
    peer_port: u16,
    child: Option<Child>,
}

impl EtcdServer {
    /// Whether there is an `etcd` on the `PATH`. If there is none, says so on standard error, or fails if the
    /// environment variable `K1S_REQUIRE_ETCD` is `1`.
    ///
    /// # Errors
    /// [`StartError::NotInstalled`].
    pub fn is_installed() -> Result<bool, StartError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(|dir| dir.join("etcd").is_file()) {
            return Ok(true);
        }
        if std::env::var_os("K1S_REQUIRE_ETCD").is_some_and(|value| value == "1") {
            return Err(StartError::NotInstalled);
        }
        // Once, and not by `eprintln!`, which is hidden for a test that passes: it must be visible that some tests were
        // skipped.
        static TOLD: Once = Once::new();
        TOLD.call_once(|| {
            let text = b"SKIPPED: there is no etcd on the PATH, so what runs on etcd was not run\n";
            let _ = io::stderr().lock().write_all(text);
        });
        Ok(false)
    }

    /// Starts the `etcd` that is on the `PATH`. Gives `None` if there is none, unless there must be one:
    /// see [`is_installed`](Self::is_installed).
    ///
    /// # Errors
    /// [`StartError`] if it does not come up.
    pub async fn start(env: &Env) -> Result<Option<Self>, StartError> {
        Self::start_with(env, ServerOptions::default()).await
    }

    /// [`start`](Self::start), with options.
    ///
    /// # Errors
    /// [`StartError`] if it does not come up.
    pub async fn start_with(env: &Env, options: ServerOptions) -> Result<Option<Self>, StartError> {
        if !Self::is_installed()? {
            return Ok(None);
        }
        let mut attempt = 1;
        loop {
            let mut server = Self {
                env: env.clone(),
                options: options.clone(),
                dir: tempfile::Builder::new().prefix("k1s-etcd-").tempdir()?,
                client_port: free_port(env)?,
                peer_port: free_port(env)?,
                child: None,
            };
            match server.restart().await {
                Ok(()) => return Ok(Some(server)),
                // Another process has taken one of its ports.
                Err(StartError::Ended { log, .. })
                    if attempt < PORT_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme(), self.client_port)
    }

    /// The options of a store on it. Nothing is compacted unless that is asked for, and requests may take long: the
    /// disks of test machines stall.
    pub fn options(&self) -> EtcdOptions {
        EtcdOptions {
            tls: self.options.tls.clone(),
            compaction: None,
            request_timeout: READY_WITHIN,
            ..EtcdOptions::new([self.endpoint()])
        }
    }

    /// Another client.
    ///
    /// # Errors
    /// [`ConnectError`] if the TLS options cannot be used.
    pub fn client(&self) -> Result<RawClient, ConnectError> {
        RawClient::new(&self.env, &self.options())
    }

    /// Its process, if it runs.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it (SIGKILL).
    ///
    /// # Errors
    /// The system's.
    pub fn kill(&mut self) -> io::Result<()> {
        self.end_by(Signal::KILL)
    }

    /// Terminates it (SIGTERM), and waits until it has ended.
    ///
    /// # Errors
    /// The system's.
    pub fn terminate(&mut self) -> io::Result<()> {
        self.end_by(Signal::TERM)
    }

    /// Pauses it (SIGSTOP): its connections stay open, and nothing answers.
    ///
    /// # Errors
    /// The system's.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        if let Some(pid) = self.pid() {
            // The signal takes a while to reach all of its threads.
            waitpid(Some(pid), WaitOptions::UNTRACED)?;
        }
        Ok(())
    }

    /// Lets it go on after a [`pause`](Self::pause).
    ///
    /// # Errors
    /// The system's.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Starts it again on the same ports with the same data; kills it first if it runs.
    ///
    /// # Errors
    /// [`StartError`] if it does not come up.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        self.kill()?;
        self.spawn()?;
        let client = RawClient::new(
            &self.env,
            &EtcdOptions { request_timeout: Duration::from_millis(500), ..self.options() },
        )?;
        let deadline = self.env.now() + READY_WITHIN;
        while client.revision().await.is_err() {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                self.child = None;
                return Err(StartError::Ended { status, log: self.log() });
            }
            if self.env.now() > deadline {
                return Err(StartError::Silent { log: self.log() });
            }
            self.env.sleep(POLL).await;
        }
        Ok(())
    }

    /// Starts it again on the same ports, without its data.
    ///
    /// # Errors
    /// [`StartError`] if it does not come up.
    pub async fn restart_empty(&mut self) -> Result<(), StartError> {
        self.kill()?;
        fs::remove_dir_all(self.data_dir())?;
        self.restart().await
    }

    /// The end of what it logged.
    pub fn log(&self) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4096)..]).into_owned()
    }

    fn spawn(&mut self) -> Result<(), StartError> {
        let client_url = self.endpoint();
        let peer_url = format!("http://127.0.0.1:{}", self.peer_port);
        let log = File::options().create(true).append(true).open(self.log_file())?;
        let child = Command::new("etcd")
            .arg("--name=test")
            .arg(format!("--data-dir={}", self.data_dir().display()))
            .arg(format!("--listen-client-urls={client_url}"))
            .arg(format!("--advertise-client-urls={client_url}"))
            .arg(format!("--listen-peer-urls={peer_url}"))
            .arg(format!("--initial-advertise-peer-urls={peer_url}"))
            .arg(format!("--initial-cluster=test={peer_url}"))
            // A single member needs no votes, but waits for the election timeout before it becomes the leader.
            .args(["--heartbeat-interval=10", "--election-timeout=100"])
            .args(["--logger=zap", "--log-outputs=stderr"])
            .args(&self.options.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    fn scheme(&self) -> &'static str {
        if self.options.tls.is_some() { "https" } else { "http" }
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.process()?).ok()?)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.pid() {
            Some(pid) => Ok(kill_process(pid, signal)?),
            None => Ok(()),
        }
    }

    fn end_by(&mut self, signal: Signal) -> io::Result<()> {
        self.signal(signal)?;
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        // Errors cannot be reported from a destructor.
        let _ = self.kill();
    }
}

/// A port on which nothing listens now.
fn free_port(env: &Env) -> io::Result<u16> {
    let mut last = None;
    for _ in 0..100 {
        let offset = env.random_below(u64::from(PORTS.end - PORTS.start));
        let port = PORTS.start + u16::try_from(offset).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no port is free")))
}
