//! One watch of etcd's that can feed the store: everything under the root behind a revision, once, in order.

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
    /// What comes next is gone, or cannot be trusted: go on from now.
    LostTrack(String),
    /// There is no going on.
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

/// A watch that begins right behind a revision.
pub(crate) struct Source {
    stream: WatchStream,
    pieces: Pieces,
    start: Revision,
    /// What etcd had at `start`.
    landmark: Option<Landmark>,
    /// What it brings up to here is known already.
    known: Revision,
    /// Whether it is known that nothing after `start` was, or will be, compacted before it is sent.
    trusted: bool,
    /// Whether events have previous values.
    pub(crate) previous: bool,
}

impl Source {
    /// Opens a watch right behind `start`, and waits until it is there.
    pub(crate) async fn open(shared: &Shared, start: Revision, previous: bool) -> Result<Self, End> {
        let landmark = shared.last_put.get();
        let mut stream = shared.upstream.watch(shared.watch_everything(start.next(), previous)).await?;
        let timeout = shared.options.request_timeout;
        let created = match shared.env.timeout(timeout, stream.next()).await {
            Ok(created) => created?,
            Err(_) => return Err(End::Broken(format!("etcd did not create the watch within {timeout:?}"))),
        };
        // Requests have connections of their own, and may be with another member.
        if created.header.is_some_and(|header| shared.check_cluster(header).is_err()) {
            return Err(End::Over);
        }
        if created.canceled {
            return Err(End::Broken(format!("etcd refused the watch: {}", created.cancel_reason)));
        }
        if !created.created {
            return Err(End::Broken("etcd did not create the watch".into()));
        }
        let pieces = Pieces::default();
        Ok(Self { stream, pieces, start, landmark, known: start, trusted: false, previous })
    }

    /// Whether this is the etcd that was where the watch begins, and everything after that is still there. The revision
    /// that etcd has reached.
    pub(crate) async fn check(&mut self, shared: &Shared) -> Result<Revision, End> {
        let request = self.landmark.as_ref().map_or_else(|| glance(&shared.keys), Landmark::request);
        let (newest, response) = match shared.range_once(request, Some(self.start)).await {
            Ok(answer) => answer,
            Err(Error::Compacted { oldest, .. }) => return Err(compacted(shared, oldest)),
            Err(Error::Closed) => return Err(End::Over),
            // Not for good if it is etcd that says so: it may be mended.
            Err(Error::Corrupt { .. }) if shared.check_fault().is_err() => return Err(End::Over),
            Err(error) => return Err(End::Broken(error.to_string())),
        };
        if let Some(landmark) = self.landmark.as_ref().filter(|landmark| !landmark.is_in(&response)) {
            shared.fail(is_another(landmark.revision()));
            return Err(End::Over);
        }
        // The watch was there before anything it is about.
        self.trusted |= newest <= self.start;
        Ok(newest)
    }

    /// Whether what comes is sure to be complete, and comes as soon as it happens.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Says that everything up to `known` came from another watch.
    pub(crate) fn take_over(&mut self, known: Revision) {
        self.known = self.known.max(known);
    }

    /// Whether what happened at `revision` came from another watch.
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
            match self.pieces.add(response) {
                Some(events) if !events.is_empty() => return Ok(events),
                _ => {}
            }
        }
    }

    /// Makes sure that nothing is missing from what came.
    ///
    /// The first events may be old ones, read from history. If that was compacted to the very revision the watch
    /// starts at, etcd delivers it without its deletions, and without a word.
    pub(crate) async fn confirm(&mut self, shared: &Shared) -> Result<(), End> {
        if !self.trusted {
            self.check(shared).await?;
            self.trusted = true;
        }
        Ok(())
    }
}

fn compacted(shared: &Shared, oldest: Revision) -> End {
    shared.forget_before(oldest);
    End::LostTrack(format!("etcd was compacted to revision {oldest}"))
}
