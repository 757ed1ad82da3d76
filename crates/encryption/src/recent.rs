//! The values that this process has encrypted last: whoever watches the store is told of them a moment later, and need not decrypt
//! them.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

/// The end of an encrypted value, which the ciphers make different for each.
type Tag = [u8; 16];

/// Maximum number of values.
const MOST: usize = 256;
/// Maximum size of all of them together, encrypted and plain.
const MAX_BYTES: usize = 4 << 20;

struct Value {
    key: Bytes,
    sealed: Bytes,
    plain: Bytes,
}

impl Value {
    fn len(&self) -> usize {
        self.key.len() + self.sealed.len() + self.plain.len()
    }
}

#[derive(Default)]
pub(crate) struct Recent {
    values: HashMap<Tag, Value>,
    /// From the oldest to the newest.
    order: VecDeque<Tag>,
    bytes: usize,
}

impl Recent {
    /// Remembers a value in the place of the oldest ones.
    pub(crate) fn add(&mut self, key: Bytes, sealed: Bytes, plain: Bytes) {
        let value = Value { key, sealed, plain };
        let (Some(tag), length) = (value.sealed.last_chunk().copied(), value.len()) else { return };
        if length > MAX_BYTES || self.values.contains_key(&tag) {
            return;
        }
        while self.values.len() >= MOST || self.bytes + length > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.values.remove(&oldest).map_or(0, |value| value.len());
        }
        self.bytes += length;
        self.values.insert(tag, value);
        self.order.push_back(tag);
    }

    /// The plain value of exactly what is stored under a key.
    pub(crate) fn find(&self, key: &[u8], stored: &[u8]) -> Option<Bytes> {
        let value = self.values.get(stored.last_chunk::<16>()?)?;
        (value.sealed == stored && value.key == key).then(|| value.plain.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: usize, length: usize) -> Bytes {
        let mut bytes = vec![b's'; length];
        bytes.extend_from_slice(&(number as u128).to_be_bytes());
        bytes.into()
    }

    #[test]
    fn only_the_same_value_of_the_same_key_is_found() {
        let mut recent = Recent::default();
        recent.add("key".into(), sealed(1, 10), "plain".into());
        assert_eq!(recent.find(b"key", &sealed(1, 10)).unwrap(), "plain");
        for (key, stored) in [("other", sealed(1, 10)), ("key", sealed(2, 10)), ("key", sealed(1, 11))] {
            assert_eq!(recent.find(key.as_bytes(), &stored), None);
        }
        // What is shorter than a tag is no encrypted value.
        recent.add("key".into(), "short".into(), "plain".into());
        assert_eq!(recent.find(b"key", b"short"), None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recent = Recent::default();
        let add = |recent: &mut Recent, number: usize, length: usize| {
            recent.add("key".into(), sealed(number, length), number.to_string().into());
        };
        let has = |recent: &Recent, number: usize, length: usize| {
            recent.find(b"key", &sealed(number, length)).is_some()
        };
        for number in 0..=MOST {
            add(&mut recent, number, 10);
        }
        assert!(!has(&recent, 0, 10) && has(&recent, 1, 10) && has(&recent, MOST, 10));
        assert_eq!((recent.values.len(), recent.order.len()), (MOST, MOST));
        // One large value takes the place of many.
        add(&mut recent, 1000, MAX_BYTES - 100);
        assert!(has(&recent, 1000, MAX_BYTES - 100) && !has(&recent, 1, 10));
        assert!(recent.bytes <= MAX_BYTES);
        add(&mut recent, 1001, MAX_BYTES);
        assert!(!has(&recent, 1001, MAX_BYTES) && has(&recent, 1000, MAX_BYTES - 100));
    }
}
