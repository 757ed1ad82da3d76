//! Shows how far a long command is, on a terminal.

use std::{
    future::Future,
    io::{self, IsTerminal as _},
    pin::pin,
    time::Duration,
};

use k1s::env::{Env, Instant};

use crate::say;

/// Minimum interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Says how far a long command is, on a terminal.
pub(crate) struct Progress {
    env: Env,
    said: Instant,
    done: usize,
    /// `None`: nobody knows how many there are.
    of: Option<usize>,
    wanted: bool,
}

impl Progress {
    pub(crate) fn new(env: &Env, of: usize) -> Progress {
        Progress { of: Some(of), ..Progress::counting(env) }
    }

    pub(crate) fn counting(env: &Env) -> Progress {
        Progress { env: env.clone(), said: env.now(), done: 0, of: None, wanted: io::stderr().is_terminal() }
    }

    pub(crate) fn step(&mut self, what: &str) {
        self.steps(1, what);
    }

    pub(crate) fn steps(&mut self, count: usize, what: &str) {
        self.done += count;
        let left = self.of.is_none_or(|of| self.done < of);
        if self.wanted && left && self.env.now() - self.said > PROGRESS_INTERVAL {
            self.said = self.env.now();
            let of = self.of.map(|of| format!(" of {of}")).unwrap_or_default();
            say::note(&format!("{}{of} {what}", self.done));
        }
    }
}

/// Does something that cannot count its progress; if it takes long, a terminal shows what is waited for.
pub(crate) async fn noticed<T>(env: &Env, what: impl FnOnce() -> String, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    match env.timeout(PROGRESS_INTERVAL, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            if io::stderr().is_terminal() {
                say::note(&what());
            }
            work.await
        }
    }
}
