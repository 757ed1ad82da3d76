//! Turns for large work, which flows share fairly.

use std::{sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use k1s_object::Status;

use super::{
    Fairness, Membership,
    gate::{Entered, LevelLimits, Place},
    queues::Queuing,
};
use crate::errors;

/// A fixed number of turns, and one more for the reserved part.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    membership: Arc<Membership>,
}

/// How flows wait for a turn.
const TURN_QUEUING: Queuing = Queuing { queues: 64, hand_size: 6, length: 50 };

/// A turn, given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    membership: Arc<Membership>,
    level: usize,
    queue: Option<(u32, Instant)>,
}

impl Turns {
    /// This many turns, of which one more is left to the reserved part.
    pub(crate) fn new(env: &Env, most: usize, patience: Duration) -> Turns {
        let fairness = Fairness::new(env, most + 1, 0, patience);
        let member = fairness.seats.lock().join();
        let limits = |guaranteed: usize, most: usize| LevelLimits {
            nominal: most,
            guaranteed,
            most,
            queuing: Some(TURN_QUEUING),
            exempt: false,
        };
        fairness.seats.lock().configure(member, &[limits(0, most), limits(1, most + 1)]);
        Turns { membership: Arc::new(Membership { fairness, member }) }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// 429.
    pub(crate) async fn take(&self, flow: u64, is_reserved: bool) -> Result<Turn, Status> {
        let Membership { fairness, member } = &*self.membership;
        let level = usize::from(is_reserved);
        let turn = |queue| Turn { membership: self.membership.clone(), level, queue };
        let entered = fairness.seats.lock().enter(*member, level, flow);
        match entered {
            Entered::Seat => Ok(turn(None)),
            Entered::Rejected(_) => Err(errors::busy()),
            Entered::Wait(place, granted) => {
                let mut waiting = WaitingForTurn { membership: &self.membership, level, place: Some(place) };
                match fairness.env.timeout(fairness.patience, granted).await {
                    Ok(Ok(())) => {
                        waiting.place = None;
                        Ok(turn(Some((place.queue, fairness.env.now()))))
                    }
                    _ => Err(errors::busy()),
                }
            }
        }
    }
}

struct WaitingForTurn<'a> {
    membership: &'a Membership,
    level: usize,
    place: Option<Place>,
}

impl Drop for WaitingForTurn<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.membership.fairness.seats.lock().abandon(self.membership.member, self.level, place);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let fairness = &self.membership.fairness;
        let queue = self.queue.map(|(queue, since)| (queue, fairness.env.now() - since));
        fairness.seats.lock().give_back(self.membership.member, self.level, queue);
    }
}
