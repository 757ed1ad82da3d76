//! The store's key space in etcd.

use bytes::{Bytes, BytesMut};
use k1s_store::{KeyValue, Revision, prefix_end};

use crate::proto;

/// The part of an etcd that belongs to one store.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    /// `{root}/`: all keys of the store.
    root: Bytes,
    /// `{root}/kv/`: the users' keys.
    data: Bytes,
    /// Written to cause an event: see [`sync`](crate::sync).
    pub(crate) fence: Bytes,
    /// Written by the replica that compacts.
    pub(crate) compaction: Bytes,
}

impl Keyspace {
    pub(crate) fn new(root: &str) -> Self {
        Self {
            root: format!("{root}/").into(),
            data: format!("{root}/kv/").into(),
            fence: format!("{root}/fence").into(),
            compaction: format!("{root}/compaction").into(),
        }
    }

    /// The etcd key of a user's key.
    pub(crate) fn outer(&self, key: &[u8]) -> Bytes {
        let mut outer = BytesMut::with_capacity(self.data.len() + key.len());
        outer.extend_from_slice(&self.data);
        outer.extend_from_slice(key);
        outer.freeze()
    }

    /// The etcd key that follows all keys with a user's prefix.
    pub(crate) fn outer_end(&self, prefix: &[u8]) -> Bytes {
        // There always is one: the root begins with a "/".
        prefix_end(&self.outer(prefix)).unwrap_or_default()
    }

    /// All keys of the store, as etcd's key and range end.
    pub(crate) fn everything(&self) -> (Bytes, Bytes) {
        (self.root.clone(), prefix_end(&self.root).unwrap_or_default())
    }

    /// A user's key, if this is one.
    pub(crate) fn inner<'a>(&self, outer: &'a [u8]) -> Option<&'a [u8]> {
        outer.strip_prefix(&self.data[..])
    }

    /// An entry in the user's terms, if it is one of theirs.
    ///
    /// It owns its memory: a slice of the response would keep the whole response alive.
    pub(crate) fn entry(&self, kv: &proto::KeyValue) -> Option<KeyValue> {
        let key = self.inner(&kv.key)?;
        Some(KeyValue::detached(key, &kv.value, revision(kv.mod_revision)))
    }
}

/// A revision from etcd's number, which is never negative.
pub(crate) fn revision(number: i64) -> Revision {
    Revision::new(u64::try_from(number).unwrap_or(0))
}

/// etcd's number for a revision; saturates, as a revision that large is in the future anyway.
pub(crate) fn number(revision: Revision) -> i64 {
    i64::try_from(revision.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_keys_are_under_the_root_and_come_back_without_it() {
        let keys = Keyspace::new("/k1s");
        assert_eq!(keys.outer(b"/pods/a"), "/k1s/kv//pods/a");
        assert_eq!(keys.outer_end(b""), "/k1s/kv0");
        assert_eq!(keys.outer_end(b"a\xff"), "/k1s/kv/b");
        assert_eq!(keys.inner(b"/k1s/kv/x"), Some(&b"x"[..]));
        assert_eq!(keys.inner(b"/k1s/fence"), None);
        assert_eq!(keys.inner(b"/k1sx/kv/x"), None);

        let kv = proto::KeyValue {
            key: "/k1s/kv/x".into(),
            value: "v".into(),
            mod_revision: 7,
            ..proto::KeyValue::default()
        };
        let entry = KeyValue { key: "x".into(), value: "v".into(), revision: Revision::new(7) };
        assert_eq!(keys.entry(&kv), Some(entry));
    }
}
