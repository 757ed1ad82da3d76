//! Futures that wait for a count to reach zero.

use tokio::sync::oneshot;

/// The futures that wait for a count to reach zero, kept beside the count under the same lock.
///
/// The call that brings the count to zero takes them all out under that lock and wakes them after releasing
/// it. So a waiter added after the zero is not woken by it, and one added before cannot miss it.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: Vec<oneshot::Sender<()>>,
}

impl Waiters {
    /// Adds a waiter, which awaits the receiver after releasing the lock.
    pub(crate) fn join(&mut self) -> oneshot::Receiver<()> {
        // Remove waiters that gave up (a deadline, a dropped future), so that they do not accumulate.
        self.waiting.retain(|waiter| !waiter.is_closed());
        let (sender, receiver) = oneshot::channel();
        self.waiting.push(sender);
        receiver
    }

    /// Takes all waiters out, without an allocation.
    pub(crate) fn take(&mut self) -> Released {
        Released { waiting: std::mem::take(&mut self.waiting) }
    }
}

/// Waiters taken out, to be woken after releasing the lock: a waker runs foreign code, which may acquire the same lock.
#[derive(Debug, Default)]
#[must_use = "waiters wait until they are woken"]
pub(crate) struct Released {
    waiting: Vec<oneshot::Sender<()>>,
}

impl Released {
    /// Appends other waiters to these.
    pub(crate) fn add(&mut self, others: Released) {
        if self.waiting.is_empty() {
            self.waiting = others.waiting;
        } else {
            self.waiting.extend(others.waiting);
        }
    }

    pub(crate) fn wake(self) {
        for waiter in self.waiting {
            // Fails if the waiter gave up.
            let _ = waiter.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_that_gave_up_do_not_accumulate() {
        let mut waiters = Waiters::default();
        for _ in 0..100 {
            drop(waiters.join());
        }
        let kept = waiters.join();
        assert_eq!(waiters.waiting.len(), 1);
        drop(kept);
    }
}
