//! Catch-up requests: waits until the feed has delivered everything that existed at the time of the request.

use tokio::sync::watch;

/// Requests are numbered; an answer is for all requests up to its number.
pub(super) struct Progress {
    asked: watch::Sender<u64>,
    answered: watch::Sender<u64>,
}

/// All requests made so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Requests(u64);

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { asked: watch::Sender::new(0), answered: watch::Sender::new(0) }
    }

    /// Makes a request, and waits for the answer.
    pub(super) async fn reach(&self) {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        // The sender lives as long as `self`.
        let _ = self.answered.subscribe().wait_for(|answered| *answered >= number).await;
    }

    /// The requests made so far. Everything observed from now on answers them.
    pub(super) fn asked(&self) -> Requests {
        Requests(*self.asked.borrow())
    }

    /// Waits for a later request.
    pub(super) async fn more_than(&self, requests: Requests) {
        let _ = self.asked.subscribe().wait_for(|asked| *asked > requests.0).await;
    }

    /// Whether these have been answered.
    pub(super) fn is_answered(&self, requests: Requests) -> bool {
        *self.answered.borrow() >= requests.0
    }

    /// Reports that everything that existed at the time of these requests has been delivered.
    pub(super) fn answer(&self, requests: Requests) {
        self.answered.send_if_modified(|answered| {
            let new = *answered < requests.0;
            *answered = (*answered).max(requests.0);
            new
        });
    }
}
