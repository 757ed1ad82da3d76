//! What a server asks of its process: signals, and file descriptors for its connections.

use std::io;

use k1s::env::{Env, Task};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// Allows as many open files as the system lets this process have: each connection is one.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, ?current, ?maximum, "the limit of open files stays as it is");
    }
}

/// Ends with the first SIGINT or SIGTERM.
pub(crate) struct Stop(oneshot::Receiver<()>);

impl Stop {
    /// Listens to signals from now on. A second one ends the process without waiting for requests under way, which is no
    /// error: what was acknowledged is stored.
    pub(crate) fn on_signals(env: &Env, at_once: fn()) -> io::Result<Stop> {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (told, stop) = oneshot::channel();
        let task: Task<()> = env.spawn("signals", async move {
            let mut told = Some(told);
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                match told.take() {
                    Some(told) => drop(told.send(())),
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

    /// Waits for it.
    pub(crate) async fn asked(self) {
        // One that cannot come any more never comes.
        if self.0.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
