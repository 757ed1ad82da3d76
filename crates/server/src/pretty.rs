//! Indented JSON: for clients that request it, or that look like a browser, curl or wget.
//!
//! Handlers always write compact JSON; it is indented while it is sent, chunk by chunk, so that a large response is never in
//! memory twice.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, Request, Response, header};

use crate::{
    body::{Body, Chunks},
    request::Query,
};

/// Marks a response that is never indented: event streams, and documents for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsIs;

/// Marks a response as [`AsIs`].
pub(crate) fn as_is(mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(AsIs);
    response
}

/// Whether a request wants indented JSON: according to `pretty` in the query, otherwise to the `User-Agent`.
pub(crate) fn is_wanted<B>(request: &Request<B>) -> bool {
    let text = |name| {
        let headers: &HeaderMap = request.headers();
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    if text(header::ACCEPT).contains("pretty=1") {
        return true;
    }
    if let Some(query) = request.uri().query().filter(|query| query.contains("pretty")) {
        match Query::parse(Some(query)).get("pretty") {
            "" => {}
            value => return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        }
    }
    let agent = text(header::USER_AGENT);
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| agent.starts_with(known))
}

/// Indents the body of a response, if it is JSON.
pub(crate) fn indent(response: Response<Body>) -> Response<Body> {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_json = content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if !is_json || response.extensions().get::<AsIs>().is_some() {
        return response;
    }
    response.map(|body| match body.into_bytes() {
        Ok(bytes) => {
            let mut indented = Indented::new(None, bytes);
            let first = indented.chunk();
            match indented.is_done() {
                true => first.into(),
                false => Body::stream(Indented { ready: Some(first.into()), ..indented }),
            }
        }
        Err(stream) => Body::stream(Indented::new(Some(stream), Bytes::new())),
    })
}

/// Indents a small document at once.
pub(crate) fn text(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut indenter = Indenter::default();
    for byte in json {
        indenter.push(*byte, &mut out);
    }
    out
}

/// Target size of an output chunk. An indented document can be many times as long as the compact one.
const CHUNK_BYTES: usize = 64 << 10;

/// A body of compact JSON, read and indented chunk by chunk.
struct Indented {
    from: Option<Chunks>,
    input: Bytes,
    ready: Option<Bytes>,
    indenter: Indenter,
}

impl Indented {
    fn new(from: Option<Chunks>, input: Bytes) -> Indented {
        Indented { from, input, ready: None, indenter: Indenter::default() }
    }

    fn is_done(&self) -> bool {
        self.from.is_none() && self.input.is_empty()
    }

    /// Indents the next chunk of the buffered input.
    fn chunk(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CHUNK_BYTES.min(self.input.len().saturating_mul(2)));
        let mut read = 0;
        for byte in &self.input {
            if out.len() >= CHUNK_BYTES {
                break;
            }
            self.indenter.push(*byte, &mut out);
            read += 1;
        }
        let _ = self.input.split_to(read);
        out
    }
}

impl Stream for Indented {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = self.get_mut();
        if let Some(ready) = this.ready.take() {
            return Poll::Ready(Some(ready));
        }
        loop {
            if !this.input.is_empty() {
                return Poll::Ready(Some(this.chunk().into()));
            }
            let Some(from) = &mut this.from else { return Poll::Ready(None) };
            match from.as_mut().poll_next(cx) {
                Poll::Ready(Some(bytes)) => this.input = bytes,
                Poll::Ready(None) => this.from = None,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Indents JSON by two spaces, as Go does. Takes the document byte by byte, and assumes that it is valid.
#[derive(Default)]
struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Directly after an opening bracket: an empty object or list stays on its line.
    opened: bool,
}

impl Indenter {
    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_string {
            out.push(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        if matches!(byte, b'}' | b']') {
            self.depth = self.depth.saturating_sub(1);
            if !std::mem::take(&mut self.opened) {
                self.new_line(out);
            }
            out.push(byte);
            return;
        }
        if std::mem::take(&mut self.opened) {
            self.new_line(out);
        }
        out.push(byte);
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                self.depth += 1;
                self.opened = true;
            }
            b',' => self.new_line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }

    fn new_line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn documents_are_indented_like_serde_json() {
        let value = json!({"a": [], "b": {}, "c": [1, -2.5e3, null, true], "d": {"e\"\\,{[:": "x: [y], {z}\u{1F600}"},
            "f": [[[]], [{}], {"g": ""}]});
        for value in [value, json!([]), json!("text"), json!(3)] {
            let compact = format!("{value}\n");
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(String::from_utf8(text(compact.as_bytes())).unwrap(), expected);
            assert_eq!(String::from_utf8(text(expected.as_bytes())).unwrap(), expected);
        }
    }

    #[test]
    fn indentation_depends_on_the_query_and_the_user_agent() {
        let wanted = |path: &str, agent: &str| {
            is_wanted(&Request::get(path).header(header::USER_AGENT, agent).body(()).unwrap())
        };
        assert!(wanted("/api?pretty=1", "kubectl/v1.37.0"));
        assert!(wanted("/api?pretty=true", ""));
        assert!(wanted("/api", "curl/8.5.0"));
        assert!(wanted("/api", "Wget/1.21"));
        assert!(wanted("/api?pretty=", "Mozilla/5.0 (X11)"));
        assert!(!wanted("/api?pretty=false", "curl/8.5.0"));
        assert!(!wanted("/api?pretty=yes", "curl/8.5.0"));
        assert!(!wanted("/api", "kubectl/v1.37.0"));
    }

    #[test]
    fn a_long_document_is_sent_in_chunks() {
        let value: Value = (0..20_000).map(|number| json!({"number": [number]})).collect();
        let mut indented = Indented::new(None, value.to_string().into());
        let (mut whole, mut chunks) = (Vec::new(), 0);
        while !indented.is_done() {
            let chunk = indented.chunk();
            assert!(chunk.len() < 2 * CHUNK_BYTES);
            whole.extend(chunk);
            chunks += 1;
        }
        assert!(chunks > 5);
        assert_eq!(String::from_utf8(whole).unwrap(), serde_json::to_string_pretty(&value).unwrap());
    }
}
