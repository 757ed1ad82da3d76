//! Process-wide settings of a server: signals, and the limit of open files.

use std::io;

use k1s::env::{Env, Task};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// Raises the limit of open files to the maximum: each connection needs one.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, ?current, ?maximum, "could not raise the limit of open files");
    }
}

/// Completes at the first SIGINT or SIGTERM.
pub(crate) struct Stop(oneshot::Receiver<()>);

impl Stop {
    /// Installs signal handlers. A second signal ends the process without waiting for requests in flight,
    /// with exit code 0: acknowledged writes are stored.
    pub(crate) fn on_signals(env: &Env, at_once: fn()) -> io::Result<Stop> {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (sender, stop) = oneshot::channel();
        let task: Task<()> = env.spawn("signals", async move {
            let mut sender = Some(sender);
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                match sender.take() {
                    Some(sender) => drop(sender.send(())),
                    None => {
                        at_once();
                        std::process::exit(0);
                    }
                }
            }
        });
        drop(task);
        Ok(Stop(stop))
    }

    /// Waits for the signal.
    pub(crate) async fn requested(self) {
        // The signal task has ended, so no signal will arrive.
        if self.0.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
