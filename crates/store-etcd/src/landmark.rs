//! A put by which etcd's history is recognized after a reconnect.
//!
//! The revision of an etcd that was replaced, or restored from a backup, may have passed the one at which this store
//! lost contact with the old one, with other contents.

use bytes::Bytes;
use k1s_store::Revision;
use parking_lot::Mutex;

use crate::{
    keys::revision,
    proto::{self, RangeRequest, RangeResponse},
};

/// The last put that the feed has received, unless that key was deleted since.
#[derive(Debug, Default)]
pub(crate) struct LastPut(Mutex<Option<Landmark>>);

/// A key whose value was written by this revision, as of the feed's revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Landmark {
    key: Bytes,
    revision: Revision,
}

impl LastPut {
    pub(crate) fn get(&self) -> Option<Landmark> {
        self.0.lock().clone()
    }

    /// Forgets it: changes may have been missed.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }

    /// Updates it with new events.
    pub(crate) fn set(&self, events: &Landmarks) {
        match events {
            Landmarks::Put(landmark) => *self.0.lock() = landmark.clone(),
            Landmarks::Deleted(keys) => {
                let mut last = self.0.lock();
                if last.as_ref().is_some_and(|last| keys.contains(&last.key)) {
                    *last = None;
                }
            }
        }
    }
}

/// What some events mean for the [`LastPut`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Landmarks {
    /// There was a put; a landmark, unless the key was deleted after it.
    Put(Option<Landmark>),
    /// There were only deletions.
    Deleted(Vec<Bytes>),
}

impl Landmarks {
    pub(crate) fn of(events: &[proto::Event]) -> Self {
        let key = |event: &proto::Event| event.kv.as_ref().map(|kv| kv.key.clone()).unwrap_or_default();
        let last = events.iter().rposition(|event| event.r#type() == proto::EventType::Put);
        let Some(last) = last else { return Self::Deleted(events.iter().map(key).collect()) };
        let (put, later) = (&events[last], &events[last + 1..]);
        let deleted = later.iter().any(|event| key(event) == key(put));
        Self::Put(put.kv.as_ref().filter(|_| !deleted).map(|kv| Landmark {
            // A copy: the key is a slice of a message that may be large.
            key: Bytes::copy_from_slice(&kv.key),
            revision: revision(kv.mod_revision),
        }))
    }
}

impl Landmark {
    /// The revision that wrote it.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The request that looks for it.
    pub(crate) fn request(&self) -> RangeRequest {
        RangeRequest { key: self.key.clone(), keys_only: true, ..RangeRequest::default() }
    }

    /// Whether it was found.
    pub(crate) fn is_in(&self, response: &RangeResponse) -> bool {
        response.kvs.iter().any(|kv| revision(kv.mod_revision) == self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: proto::EventType, key: &'static str, at: i64) -> proto::Event {
        let kv = proto::KeyValue { key: key.into(), mod_revision: at, ..proto::KeyValue::default() };
        proto::Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
    }

    #[test]
    fn a_landmark_is_the_last_put_until_its_key_is_deleted() {
        let put = |key, at| event(proto::EventType::Put, key, at);
        let delete = |key, at| event(proto::EventType::Delete, key, at);
        let last = LastPut::default();
        let after = |events: &[proto::Event]| {
            last.set(&Landmarks::of(events));
            last.get().map(|landmark| landmark.revision().get())
        };
        assert_eq!(after(&[delete("a", 2)]), None);
        assert_eq!(after(&[put("a", 3), put("b", 4), delete("a", 5)]), Some(4));
        assert_eq!(after(&[delete("a", 6)]), Some(4));
        assert_eq!(after(&[delete("b", 7)]), None);
        assert_eq!(after(&[put("b", 8)]), Some(8));
        assert_eq!(after(&[put("c", 9), delete("c", 10)]), None);
    }
}
