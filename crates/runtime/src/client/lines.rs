//! Splits a byte stream into lines.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};

/// Splits chunks of arbitrary size into lines. A line within one chunk is a slice of it, not a copy.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    complete: VecDeque<Bytes>,
    partial: BytesMut,
}

impl Lines {
    pub(crate) fn push(&mut self, mut chunk: Bytes) {
        while let Some(end) = memchr::memchr(b'\n', &chunk) {
            let mut line = chunk.split_to(end);
            chunk.advance(1);
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(&line);
                line = self.partial.split().freeze();
            }
            if !line.trim_ascii().is_empty() {
                self.complete.push_back(line);
            }
        }
        self.partial.extend_from_slice(&chunk);
    }

    pub(crate) fn next(&mut self) -> Option<Bytes> {
        self.complete.pop_front()
    }

    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let rest = self.partial.split().freeze();
        (!rest.trim_ascii().is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> (Vec<String>, Option<String>) {
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for chunk in chunks {
            lines.push(Bytes::copy_from_slice(chunk.as_bytes()));
            while let Some(line) = lines.next() {
                out.push(text(line));
            }
        }
        (out, lines.rest().map(text))
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        let text = "one\ntwo\n\r\n\nthree\nfo";
        let whole = split(&[text]);
        assert_eq!(whole, (vec!["one".into(), "two".into(), "three".into()], Some("fo".into())));
        for at in 0..text.len() {
            let (a, b) = text.split_at(at);
            assert_eq!(split(&[a, b]), whole, "cut at {at}");
        }
        let letters: Vec<&str> = text.split("").collect();
        assert_eq!(split(&letters), whole);
    }

    #[test]
    fn a_line_within_a_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"one\ntwo\n");
        let mut lines = Lines::default();
        lines.push(chunk.clone());
        let first = lines.next().expect("a line");
        assert_eq!(first.as_ptr(), chunk.as_ptr());
    }
}
