//! What a response says to the audit log: its Status, and its object.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, header};
use serde_json::Value;

use super::{
    event::{Outcome, write},
    payload::Payload,
    trail::Ending,
};
use crate::{body::Chunks, negotiate::Media};

/// The encoding of a response, if it is one of objects.
pub(super) fn media_of(headers: &HeaderMap) -> Option<Media> {
    let sent = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let sent = sent.split(';').next().unwrap_or_default();
    [Media::Json, Media::Yaml, Media::Protobuf].into_iter().find(|media| media.content_type() == sent)
}

/// The outcome that a complete response shows.
pub(super) fn outcome(code: u16, media: Option<Media>, body: &Bytes) -> Outcome {
    let status = media.filter(|media| may_be_status(code, *media, body)).and_then(|media| {
        let json = Payload::new(body.clone(), media, false).json()?;
        let value: Value = serde_json::from_slice(&json).ok()?;
        (value["kind"] == "Status").then(|| described(&value).into())
    });
    Outcome { code, status }
}

/// Whether a response may be a Status, which is decoded for that.
fn may_be_status(code: u16, media: Media, body: &[u8]) -> bool {
    match media {
        _ if code >= 400 => true,
        Media::Json => body.starts_with(br#"{"kind":"Status""#),
        Media::Yaml => memchr::memmem::find(body, b"kind: Status").is_some(),
        // The kind is at the beginning of the envelope.
        Media::Protobuf => memchr::memmem::find(body.get(..32).unwrap_or(body), b"\x12\x06Status").is_some(),
    }
}

/// The fields of a Status that events show, as JSON without braces.
fn described(status: &Value) -> String {
    let mut out = Vec::new();
    for name in ["status", "message", "reason", "details"] {
        let value = &status[name];
        if value.is_null() || value == "" {
            continue;
        }
        if !out.is_empty() {
            out.push(b',');
        }
        write(&mut out, &name);
        out.push(b':');
        write(&mut out, value);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// The part of a stream that is recorded.
pub(super) struct Capture {
    media: Media,
    max: usize,
    bytes: Vec<u8>,
    /// Whether there was more than is recorded.
    is_cut: bool,
}

impl Capture {
    pub(super) fn new(media: Media, max: usize) -> Capture {
        Capture { media, max, bytes: Vec::new(), is_cut: false }
    }

    pub(super) fn add(&mut self, bytes: &Bytes) {
        if self.is_cut || self.bytes.len() + bytes.len() > self.max {
            self.is_cut = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The object; `None` if it is too large.
    pub(super) fn finish(self, omit_managed_fields: bool) -> Option<Payload> {
        (!self.is_cut).then(|| Payload::new(self.bytes.into(), self.media, omit_managed_fields))
    }
}

/// A streamed response, which is complete when it ends or nobody reads it any more.
pub(super) struct Recorded {
    chunks: Chunks,
    capture: Option<Capture>,
    ending: Option<Ending>,
}

impl Recorded {
    pub(super) fn new(chunks: Chunks, capture: Option<Capture>, ending: Ending) -> Recorded {
        Recorded { chunks, capture, ending: Some(ending) }
    }

    fn end(&mut self) {
        if let Some(ending) = self.ending.take() {
            ending.complete(self.capture.take());
        }
    }
}

impl Stream for Recorded {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let next = self.chunks.as_mut().poll_next(cx);
        match &next {
            Poll::Ready(Some(bytes)) => self.capture.iter_mut().for_each(|capture| capture.add(bytes)),
            Poll::Ready(None) => self.end(),
            Poll::Pending => {}
        }
        next
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.end();
    }
}
