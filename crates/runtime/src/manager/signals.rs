//! SIGINT and SIGTERM.

use k1s_env::Env;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGINT or SIGTERM; a second signal exits the process with code 1.
///
/// Must be called in a tokio runtime. If the signal handlers cannot be installed, the token is never cancelled and the
/// error is logged.
#[must_use]
pub fn shutdown_on_signals(env: &Env) -> CancellationToken {
    let token = CancellationToken::new();
    match Signals::listen() {
        Ok(mut signals) => {
            let cancel = token.clone();
            drop(env.spawn("signals", async move {
                signals.next().await;
                cancel.cancel();
                signals.next().await;
                tracing::error!("received a second signal, exiting immediately");
                std::process::exit(1);
            }));
        }
        Err(error) => tracing::error!(%error, "cannot listen for signals"),
    }
    token
}

/// A stream of SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the signal handlers cannot be installed.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
