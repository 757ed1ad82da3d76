//! Placeholders for values that a store could not decode.

use bytes::Bytes;

/// No value that a server writes begins like this.
const MARK: &[u8] = b"\0unreadable:";

/// A value that stands for one that a store which transforms values, say one that decrypts them, could not read. The other
/// entries of a range, and other events of a watch, are delivered nevertheless; what is unreadable is a matter of its reader.
#[must_use]
pub fn unreadable(reason: &str) -> Bytes {
    [MARK, reason.as_bytes()].concat().into()
}

/// Why this value could not be read, if it is a placeholder.
#[must_use]
pub fn why_unreadable(value: &[u8]) -> Option<&str> {
    value.strip_prefix(MARK).map(|reason| std::str::from_utf8(reason).unwrap_or("it cannot be decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_says_why() {
        assert_eq!(why_unreadable(&unreadable("no key fits")), Some("no key fits"));
        assert_eq!(why_unreadable(b"\x0a\0\0\0\0\0\0\0\0v1{}"), None);
        assert_eq!(why_unreadable(b""), None);
    }
}
