//! SIGINT and SIGTERM.

use k1s_env::Env;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancelled by SIGINT or SIGTERM; a second one ends the process with exit code 1.
///
/// It must be called in a tokio runtime. If signals cannot be listened to, the token is never cancelled, and the log says
/// why.
#[must_use]
pub fn shutdown_on_signals(env: &Env) -> CancellationToken {
    let token = CancellationToken::new();
    match Signals::listen() {
        Ok(mut signals) => {
            let told = token.clone();
            drop(env.spawn("signals", async move {
                signals.next().await;
                told.cancel();
                signals.next().await;
                tracing::error!("a second signal: not waiting any longer");
                std::process::exit(1);
            }));
        }
        Err(error) => tracing::error!(%error, "signals cannot be listened to"),
    }
    token
}

/// SIGINT and SIGTERM, one after the other.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
