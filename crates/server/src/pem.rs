//! PEM: keys and certificates as text.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The blocks of a text: their kinds, and the bytes in them. What is not well-formed is skipped.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, begin) = rest.split_once("-----BEGIN ")?;
            rest = begin;
            let Some((kind, body)) = begin.split_once("-----") else { continue };
            let Some((body, after)) = body.split_once(&format!("-----END {kind}-----")) else { continue };
            rest = after;
            // Headers, as encrypted keys have, come before an empty line.
            let lines = body.lines().map(str::trim).filter(|line| !line.contains(": "));
            if let Ok(bytes) = BASE64_STANDARD.decode(lines.collect::<String>()) {
                return Some((kind, bytes));
            }
        }
    })
}

/// Bytes as a block of PEM.
#[cfg(feature = "tls")]
pub(crate) fn encode(kind: &str, bytes: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + &format!("-----END {kind}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_other_text() {
        let two = format!("first\n{}some text\r\n{}", encode("A", b"one"), encode("B KEY", &[7; 100]));
        let found: Vec<_> = blocks(&two).collect();
        assert_eq!(found, [("A", b"one".to_vec()), ("B KEY", vec![7; 100])]);
        let broken = [
            "",
            "-----BEGIN A-----",
            "-----BEGIN A-----\n!\n-----END A-----",
            "-----BEGIN A-----\nAAAA\n-----END B-----",
        ];
        for text in broken {
            assert_eq!(blocks(text).count(), 0, "{text}");
        }
        assert_eq!(blocks(&format!("-----BEGIN A-----\n{}", encode("A", b"one"))).count(), 0);
    }
}
