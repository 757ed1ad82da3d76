//! How far the feed has come: somebody asks, and is told when all that was there by then has been told of.

use tokio::sync::watch;

/// Questions are numbered; an answer is for all of them up to its number.
pub(super) struct Progress {
    asked: watch::Sender<u64>,
    answered: watch::Sender<u64>,
}

/// All questions that had been asked at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Questions(u64);

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { asked: watch::Sender::new(0), answered: watch::Sender::new(0) }
    }

    /// Asks, and waits for the answer.
    pub(super) async fn reach(&self) {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        // It ends with the feed, and that is here.
        let _ = self.answered.subscribe().wait_for(|answered| *answered >= number).await;
    }

    /// What was asked up to now. What is found out from here on answers it.
    pub(super) fn asked(&self) -> Questions {
        Questions(*self.asked.borrow())
    }

    /// Waits for a question behind these.
    pub(super) async fn more_than(&self, questions: Questions) {
        let _ = self.asked.subscribe().wait_for(|asked| *asked > questions.0).await;
    }

    /// Whether these have been answered.
    pub(super) fn is_answered(&self, questions: Questions) -> bool {
        *self.answered.borrow() >= questions.0
    }

    /// Everything has been told of that was there when these had been asked.
    pub(super) fn answer(&self, questions: Questions) {
        self.answered.send_if_modified(|answered| {
            let new = *answered < questions.0;
            *answered = (*answered).max(questions.0);
            new
        });
    }
}
