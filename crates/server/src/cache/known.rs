//! Facts about keys that admission relies on without reading the store.
//!
//! Nothing keeps them current. A write that relies on a fact makes it a precondition of its transaction; if it no longer
//! holds, the transaction fails, the fact is corrected, and the write is retried. So only facts that allow a write are
//! kept: a missing or terminating namespace is looked up each time.

use std::collections::HashMap;

use bytes::Bytes;
use k1s_store::Revision;
use parking_lot::Mutex;

/// Maximum number of facts in each of two generations.
const MAX_FACTS: usize = 4096;

/// The keys that facts are about, without the tenant's prefix.
const NAMESPACES: &[u8] = b"core/namespaces/";
const QUOTA_MARKS: &[u8] = b"k1s/quotas/";

/// A key without its tenant's prefix.
fn without_tenant(key: &[u8]) -> &[u8] {
    let rest = key.strip_prefix(b"/").unwrap_or_default();
    memchr::memchr(b'/', rest).and_then(|end| rest.get(end + 1..)).unwrap_or_default()
}

/// A fact about a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact {
    /// The revision of its value.
    pub(crate) revision: Revision,
    /// Whether more than the revision matters to some writes, which then read the value.
    pub(crate) is_read: bool,
}

/// The facts of a server, in two generations: a fact that is not used while [`MAX_FACTS`] others are added is dropped.
#[derive(Default)]
pub(crate) struct Known(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Bytes, Fact>,
    old: HashMap<Bytes, Fact>,
}

impl Generations {
    fn insert(&mut self, key: Bytes, fact: Fact) {
        if self.young.len() == MAX_FACTS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, fact);
    }
}

impl Known {
    pub(crate) fn get(&self, key: &[u8]) -> Option<Fact> {
        let mut known = self.0.lock();
        if let Some(fact) = known.young.get(key) {
            return Some(*fact);
        }
        let (key, fact) = known.old.remove_entry(key)?;
        known.insert(key, fact);
        Some(fact)
    }

    /// Adds a fact, unless a newer one is known.
    pub(crate) fn learn(&self, key: Bytes, fact: Fact) {
        let mut known = self.0.lock();
        let before = known.young.get(&key).or_else(|| known.old.get(&key));
        if before.is_none_or(|before| before.revision <= fact.revision) {
            known.old.remove(&key);
            known.insert(key, fact);
        }
    }

    /// Whether a change of this key may invalidate a fact.
    pub(crate) fn is_about(key: &[u8]) -> bool {
        let rest = without_tenant(key);
        rest.starts_with(NAMESPACES) || rest.starts_with(QUOTA_MARKS)
    }

    /// Corrects the fact about a key that was written or has another revision than assumed. `revision` is `None` for an
    /// absent key. The fact about a namespace is dropped, because its value has to be read again.
    pub(crate) fn correct(&self, key: &Bytes, revision: Option<Revision>) {
        match revision {
            Some(revision) if without_tenant(key).starts_with(QUOTA_MARKS) => {
                self.learn(key.clone(), Fact { revision, is_read: false });
            }
            _ => self.forget(key),
        }
    }

    fn forget(&self, key: &[u8]) {
        let mut known = self.0.lock();
        known.young.remove(key);
        known.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(revision: u64) -> Fact {
        Fact { revision: Revision::new(revision), is_read: false }
    }

    #[test]
    fn the_newest_revision_is_kept_and_unused_facts_are_dropped() {
        let known = Known::default();
        let revision = |key: &str| known.get(key.as_bytes()).map(|fact| fact.revision.get());
        known.learn("a".into(), fact(5));
        known.learn("a".into(), fact(3));
        assert_eq!(revision("a"), Some(5));
        known.learn("b".into(), fact(1));
        known.forget(b"b");
        assert_eq!(revision("b"), None);
        known.learn("unused".into(), fact(1));
        for number in 0..3 * MAX_FACTS {
            known.learn(number.to_string().into(), fact(1));
            assert_eq!(revision("a"), Some(5));
        }
        assert_eq!(revision("unused"), None);
        known.correct(&"/t/k1s/quotas/a".into(), Some(Revision::new(7)));
        known.learn("/t/core/namespaces/a".into(), fact(7));
        known.correct(&"/t/core/namespaces/a".into(), Some(Revision::new(8)));
        assert_eq!((revision("/t/k1s/quotas/a"), revision("/t/core/namespaces/a")), (Some(7), None));
        known.correct(&"/t/k1s/quotas/a".into(), None);
        assert_eq!(revision("/t/k1s/quotas/a"), None);
        let about = ["/t/core/namespaces/a", "/t/k1s/quotas/a", "/t/core/pods/a/b", "/t/x", "t"];
        assert_eq!(about.map(|key| Known::is_about(key.as_bytes())), [true, true, false, false, false]);
        let generations = known.0.lock();
        assert!(generations.young.len() <= MAX_FACTS && generations.old.len() <= MAX_FACTS);
    }
}
