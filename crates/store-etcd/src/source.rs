//! An upstream watch that can feed the store: everything under the root after a revision, once, in order.

use k1s_store::{Error, Result, Revision};

use crate::{
    client::WatchStream,
    events::Pieces,
    failure::Failure,
    keys::{number, revision},
    landmark::Landmark,
    proto::{Event, WatchCreateRequest},
    shared::{Shared, glance, is_another},
};

/// Why a watch ended.
pub(crate) enum End {
    /// It can be resumed where it was.
    Broken(String),
    /// What comes next is compacted, or cannot be trusted: continue from the newest revision.
    LostTrack(String),
    /// The store is closed or has failed permanently.
    Over,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Closed => Self::Over,
            failure => Self::Broken(failure.of_read().to_string()),
        }
    }
}

impl Shared {
    /// A request for a watch of everything the store has, beginning with `start`.
    pub(crate) fn watch_everything(&self, start: Revision, previous: bool) -> WatchCreateRequest {
        let (key, range_end) = self.keys.everything();
        WatchCreateRequest {
            key,
            range_end,
            start_revision: number(start),
            prev_kv: previous,
            fragment: true,
        }
    }
}

/// A watch that begins right after a revision.
pub(crate) struct Source {
    stream: WatchStream,
    pieces: Pieces,
    start: Revision,
    /// What etcd had at `start`.
    landmark: Option<Landmark>,
    /// Events up to here have been received from another watch.
    known: Revision,
    /// Whether it is known that nothing after `start` was compacted before the first events were sent.
    trusted: bool,
    /// Everything up to here was received and is confirmed.
    through: Revision,
    /// The events that are not confirmed yet.
    came: Came,
    /// Whether events have previous values.
    pub(crate) previous: bool,
}

/// What is known of some events.
#[derive(Clone, Copy, Default)]
struct Came {
    through: Revision,
    /// Whether etcd may have read them from its history: it sends new events revision by revision.
    old: bool,
    /// Whether etcd was at a later revision when it sent them.
    behind: bool,
}

impl Came {
    /// They follow `before`; `newest` is etcd's revision.
    fn new(events: &[Event], newest: i64, before: Self) -> Self {
        let at = |event: Option<&Event>| {
            event.and_then(|event| Some(event.kv.as_ref()?.mod_revision)).unwrap_or(0)
        };
        let (first, last) = (at(events.first()), at(events.last()));
        let behind = newest > last;
        Self { through: revision(last), old: first < last || behind || before.behind, behind }
    }
}

impl Source {
    /// Opens a watch right after `start`, and waits until it is created.
    pub(crate) async fn open(shared: &Shared, start: Revision, previous: bool) -> Result<Self, End> {
        let landmark = shared.last_put.get();
        let mut stream = shared.upstream.watch(shared.watch_everything(start.next(), previous)).await?;
        let timeout = shared.options.request_timeout;
        let created = match shared.env.timeout(timeout, stream.next()).await {
            Ok(created) => created?,
            Err(_) => return Err(End::Broken(format!("etcd did not create the watch within {timeout:?}"))),
        };
        // Requests have their own connections, and may go to another member.
        if created.header.is_some_and(|header| shared.check_cluster(header).is_err()) {
            return Err(End::Over);
        }
        if created.canceled {
            return Err(End::Broken(format!("etcd refused the watch: {}", created.cancel_reason)));
        }
        if !created.created {
            return Err(End::Broken("etcd did not create the watch".into()));
        }
        let (pieces, came) = (Pieces::default(), Came::default());
        let trusted = false;
        Ok(Self { stream, pieces, start, landmark, known: start, trusted, through: start, came, previous })
    }

    /// Checks that this etcd has the history at which the watch begins, and everything after it. Returns etcd's revision.
    pub(crate) async fn check(&mut self, shared: &Shared) -> Result<Revision, End> {
        let request = self.landmark.as_ref().map_or_else(|| glance(&shared.keys), Landmark::request);
        let (newest, response) = match shared.range_once(request, Some(self.start)).await {
            Ok(answer) => answer,
            Err(error) => return Err(ended_by(shared, error)),
        };
        if let Some(landmark) = self.landmark.as_ref().filter(|landmark| !landmark.is_in(&response)) {
            shared.fail(is_another(landmark.revision()));
            return Err(End::Over);
        }
        // The watch was created before any of its events.
        self.trusted |= newest <= self.start;
        Ok(newest)
    }

    /// Whether its events are certain to be complete, and arrive as soon as they happen.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Records that everything up to `known` was received from another watch.
    pub(crate) fn take_over(&mut self, known: Revision) {
        self.known = self.known.max(known);
    }

    /// Whether `revision` was received from another watch.
    pub(crate) fn is_known(&self, revision: Revision) -> bool {
        revision <= self.known
    }

    /// The next events, of whole revisions. They must be [confirmed](Self::confirm) before they are believed.
    ///
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self, shared: &Shared) -> Result<Vec<Event>, End> {
        loop {
            let response = self.stream.next().await?;
            if response.canceled {
                return Err(match response.compact_revision {
                    0 => End::Broken(format!("etcd cancelled the watch: {}", response.cancel_reason)),
                    oldest => compacted(shared, revision(oldest)),
                });
            }
            let newest = response.header.map_or(0, |header| header.revision);
            match self.pieces.add(response) {
                Some(events) if !events.is_empty() => {
                    self.came = Came::new(&events, newest, self.came);
                    return Ok(events);
                }
                _ => {}
            }
        }
    }

    /// Makes sure that nothing is missing from the received events.
    ///
    /// Events may be old ones, which etcd reads from its history, a thousand revisions at a time. If that was compacted to
    /// the very revision at which it goes on reading, it delivers that without its deletions, and without an error.
    pub(crate) async fn confirm(&mut self, shared: &Shared) -> Result<(), End> {
        if !self.trusted {
            self.check(shared).await?;
            self.trusted = true;
        } else if self.came.old {
            let readable = shared.range_once(glance(&shared.keys), Some(self.through)).await;
            readable.map_err(|error| ended_by(shared, error))?;
        }
        self.through = self.came.through;
        Ok(())
    }
}

/// How a watch ends if a revision cannot be read.
fn ended_by(shared: &Shared, error: Error) -> End {
    match error {
        Error::Compacted { oldest, .. } => compacted(shared, oldest),
        Error::Closed => End::Over,
        // Not permanent if etcd reports it: it may be repaired.
        Error::Corrupt { .. } if shared.check_fault().is_err() => End::Over,
        error => End::Broken(error.to_string()),
    }
}

fn compacted(shared: &Shared, oldest: Revision) -> End {
    shared.forget_before(oldest);
    End::LostTrack(format!("etcd was compacted to revision {oldest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::KeyValue;

    #[test]
    fn events_from_history_are_distinguished_from_current_ones() {
        let mut came = Came::default();
        let mut next = |revisions: &[i64], newest| {
            let event = |at: &i64| Event {
                kv: Some(KeyValue { mod_revision: *at, ..KeyValue::default() }),
                ..Event::default()
            };
            came = Came::new(&revisions.iter().map(event).collect::<Vec<_>>(), newest, came);
            (came.through.get(), came.old)
        };
        assert_eq!(next(&[5, 5], 5), (5, false));
        assert_eq!(next(&[6, 7], 7), (7, true), "several revisions at once");
        assert_eq!(next(&[8], 8), (8, false));
        assert_eq!(next(&[9], 20), (9, true), "etcd was further");
        assert_eq!(next(&[20], 20), (20, true), "the rest of that");
        assert_eq!(next(&[21], 21), (21, false));
    }
}
