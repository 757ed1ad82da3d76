//! A cache of OpenAPI and discovery documents.
//!
//! A document's key is a hash of the definitions in it, so tenants with the same definitions share it, and a changed definition
//! needs no invalidation. The bytes of the most recently used are kept; of others only the hash, which is enough for
//! a client that has the document already.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

/// A hash of definitions.
pub(crate) type Fingerprint = [u8; 32];

/// The key of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The definitions in it; zeros for the built-in kinds alone.
    pub(crate) of: Fingerprint,
    /// Its path and encoding.
    pub(crate) name: String,
}

/// An encoded document.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The hash of its bytes.
    pub(crate) hash: Arc<str>,
    pub(crate) body: Bytes,
}

struct Entry {
    hash: Arc<str>,
    body: Option<Bytes>,
    /// The value of [`Kept::uses`] when it was last used.
    used: u64,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    /// Bytes of all bodies.
    bytes: usize,
    uses: u64,
}

/// The documents of a server.
pub(crate) struct Documents {
    kept: Mutex<Kept>,
    /// Documents are built one at a time.
    pub(crate) builder: Arc<Semaphore>,
    /// Number of documents built.
    built: std::sync::atomic::AtomicU64,
}

/// Maximum bytes of documents; the newest one is kept regardless of its size.
const MAX_BYTES: usize = 32 << 20;

/// Maximum number of documents whose hashes are kept.
const MAX_ENTRIES: usize = 16 << 10;

impl Default for Documents {
    fn default() -> Documents {
        Documents { kept: Mutex::default(), builder: Arc::new(Semaphore::new(1)), built: 0.into() }
    }
}

impl Documents {
    /// A cached document.
    pub(crate) fn find(&self, key: &Key) -> Option<Document> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.entries.get_mut(key)?;
        entry.used = uses;
        Some(Document { hash: entry.hash.clone(), body: entry.body.clone()? })
    }

    /// The hash of a document that was built before.
    pub(crate) fn hash(&self, key: &Key) -> Option<Arc<str>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.entries.get_mut(key)?;
        entry.used = uses;
        Some(entry.hash.clone())
    }

    /// Caches a document.
    pub(crate) fn keep(&self, key: Key, body: Bytes) -> Document {
        let hash = hash(&body);
        self.kept.lock().insert(key, hash.clone(), Some(body.clone()));
        Document { hash, body }
    }

    /// Caches only the hash of a document.
    pub(crate) fn keep_hash(&self, key: Key, body: &[u8]) -> Arc<str> {
        let hash = hash(body);
        self.kept.lock().insert(key, hash.clone(), None);
        hash
    }

    /// Caches a document that was just built, and counts it.
    pub(crate) fn keep_built(&self, key: Key, body: Bytes) -> Document {
        self.built.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.keep(key, body)
    }

    /// Number of documents built so far.
    pub(crate) fn built(&self) -> u64 {
        self.built.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Kept {
    fn insert(&mut self, key: Key, hash: Arc<str>, body: Option<Bytes>) {
        self.uses += 1;
        self.bytes += body.as_ref().map_or(0, Bytes::len);
        let entry = Entry { hash, body, used: self.uses };
        if let Some(old) = self.entries.insert(key, entry) {
            self.bytes -= old.body.map_or(0, |body| body.len());
        }
        while self.bytes > MAX_BYTES {
            let with_body =
                self.entries.values_mut().filter(|entry| entry.body.is_some() && entry.used < self.uses);
            let Some(oldest) = with_body.min_by_key(|entry| entry.used) else { break };
            self.bytes -= oldest.body.take().map_or(0, |body| body.len());
        }
        if self.entries.len() > MAX_ENTRIES {
            // Drops half of them at a time, because this visits all.
            let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
            let (_, middle, _) = uses.select_nth_unstable(MAX_ENTRIES / 2);
            let middle = *middle;
            self.entries.retain(|_, entry| entry.used >= middle);
            self.bytes = self.entries.values().filter_map(|entry| entry.body.as_ref()).map(Bytes::len).sum();
        }
    }
}

fn hash(body: &[u8]) -> Arc<str> {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(body) {
        let _ = write!(text, "{byte:02X}");
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key { of: [0; 32], name: number.to_string() }
    }

    #[test]
    fn the_bytes_of_recently_used_documents_are_kept_and_the_hashes_of_others() {
        let documents = Documents::default();
        let body = Bytes::from(vec![7; MAX_BYTES / 4]);
        for number in 0..4 {
            documents.keep(key(number), body.clone());
        }
        assert!(documents.find(&key(0)).is_some());
        documents.keep(key(4), body.clone());
        assert!(documents.find(&key(1)).is_none() && documents.find(&key(0)).is_some());
        assert_eq!(documents.hash(&key(1)), Some(hash(&body)));
        // One larger than the maximum stays until the next is added.
        documents.keep(key(5), vec![1; 2 * MAX_BYTES].into());
        assert!(documents.find(&key(5)).is_some() && documents.find(&key(0)).is_none());
        documents.keep(key(6), "small".into());
        assert!(documents.find(&key(5)).is_none() && documents.find(&key(6)).is_some());
        assert_eq!(documents.kept.lock().bytes, 5);
    }

    #[test]
    fn the_number_of_hashes_is_bounded() {
        let documents = Documents::default();
        for number in 0..3 * MAX_ENTRIES {
            documents.keep(key(number), "x".into());
        }
        let kept = documents.kept.lock();
        assert!(kept.entries.len() <= MAX_ENTRIES && kept.entries.len() == kept.bytes);
    }
}
