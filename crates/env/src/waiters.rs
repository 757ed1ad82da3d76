//! Those who wait for a count to reach zero.

use tokio::sync::oneshot;

/// The futures that wait for a count to reach zero, kept beside the count under the same lock.
///
/// Whoever brings the count to zero takes them all out under that lock, and wakes them once it is
/// released. So a waiter that came after the zero is not among them and can't be told of a zero that was
/// over before it asked; and one that came before cannot miss it.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: Vec<oneshot::Sender<()>>,
}

impl Waiters {
    /// Adds a waiter, who awaits the receiver after releasing the lock.
    pub(crate) fn join(&mut self) -> oneshot::Receiver<()> {
        // Those who gave up (a deadline, a dropped future) are swept here, so they can't pile up.
        self.waiting.retain(|waiter| !waiter.is_closed());
        let (tell, told) = oneshot::channel();
        self.waiting.push(tell);
        told
    }

    /// Takes all waiters out. It costs nothing when there are none.
    pub(crate) fn take(&mut self) -> Released {
        Released { waiting: std::mem::take(&mut self.waiting) }
    }
}

/// Waiters taken out, to be woken once the lock is released: a waker runs foreign code, which may come
/// back for the same lock.
#[derive(Debug, Default)]
#[must_use = "waiters wait until they are woken"]
pub(crate) struct Released {
    waiting: Vec<oneshot::Sender<()>>,
}

impl Released {
    /// Puts others to these.
    pub(crate) fn add(&mut self, others: Released) {
        if self.waiting.is_empty() {
            self.waiting = others.waiting;
        } else {
            self.waiting.extend(others.waiting);
        }
    }

    pub(crate) fn wake(self) {
        for waiter in self.waiting {
            // The receiver may be gone: nobody waits any more.
            let _ = waiter.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_that_gave_up_do_not_pile_up() {
        let mut waiters = Waiters::default();
        for _ in 0..100 {
            drop(waiters.join());
        }
        let kept = waiters.join();
        assert_eq!(waiters.waiting.len(), 1);
        drop(kept);
    }
}
