//! Watches: streams of events.

use std::{
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use kube::{api::ApiResource, client::Body, core::Status};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Call, Error, Target, Verb, decode, lines::Lines};
use crate::Object;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object is new, or matches the selectors now.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone, or no longer matches the selectors.
    Deleted,
    /// No change: the object contains little more than the resource version that the watch has reached.
    Bookmark,
}

/// An event whose object is not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEvent {
    /// The type of the event.
    pub event: EventType,
    /// The object's JSON.
    pub object: Bytes,
}

/// A watch event.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent<K> {
    /// The object is new, or matches the selectors now.
    Added(K),
    /// The object has changed.
    Modified(K),
    /// The object is gone, or no longer matches the selectors.
    Deleted(K),
    /// The watch has reached a resource version.
    Bookmark {
        /// A new watch can start from here.
        resource_version: String,
        /// Whether all initial objects have been sent.
        initial_events_end: bool,
    },
}

/// The events of a watch, with undecoded objects. Ends when the server ends it, or after an error of the connection or
/// of the server (410: the resource version is too old).
#[derive(Debug)]
pub struct RawWatchStream {
    // `None` after the end.
    body: Option<Body>,
    lines: Lines,
    target: Target,
}

impl RawWatchStream {
    pub(super) fn new(call: &Call<'_>, body: Body) -> RawWatchStream {
        RawWatchStream { body: Some(body), lines: Lines::default(), target: call.target() }
    }

    fn event(&mut self, line: &Bytes) -> Result<RawEvent, Error> {
        #[derive(Deserialize)]
        struct Line<'a> {
            r#type: &'a str,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let parsed = serde_json::from_slice::<Line<'_>>(line).map_err(|source| Error::Decode {
            target: Box::new(self.target.clone()),
            object: "an event".into(),
            source,
        });
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                // Some servers end a stream with a bare status.
                return Err(match serde_json::from_slice::<Status>(line) {
                    Ok(status) if status.is_failure() => self.end(status),
                    _ => error,
                });
            }
        };
        let event = match parsed.r#type {
            "ADDED" => EventType::Added,
            "MODIFIED" => EventType::Modified,
            "DELETED" => EventType::Deleted,
            "BOOKMARK" => EventType::Bookmark,
            "ERROR" => {
                let status = serde_json::from_str(parsed.object.get());
                let status = status.unwrap_or_else(|_| Status::failure(parsed.object.get(), ""));
                return Err(self.end(status));
            }
            other => {
                let message = format!("unknown event type {other:?}");
                return Err(Error::invalid(self.target.clone(), message));
            }
        };
        Ok(RawEvent { event, object: line.slice_ref(parsed.object.get().as_bytes()) })
    }

    fn end(&mut self, status: Status) -> Error {
        self.body = None;
        Error::api(self.target.clone(), status, None)
    }
}

impl Stream for RawWatchStream {
    type Item = Result<RawEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            if let Some(line) = this.lines.next() {
                return Poll::Ready(Some(this.event(&line)));
            }
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.lines.push(data);
                    }
                }
                Some(Err(error)) => {
                    this.body = None;
                    let target = Box::new(this.target.clone());
                    return Poll::Ready(Some(Err(Error::Transport { target, source: Box::new(error) })));
                }
                None => {
                    // The last line may lack its newline; a truncated one is dropped.
                    let rest =
                        this.lines.rest().filter(|rest| serde_json::from_slice::<&RawValue>(rest).is_ok());
                    let event = rest.map(|rest| this.event(&rest));
                    this.body = None;
                    return Poll::Ready(event);
                }
            }
        }
    }
}

/// The events of a watch. An object that cannot be decoded is an error that names it, and the stream continues. Ends when
/// the server ends it, or after an error of the connection or of the server (410: the resource version is too old).
#[derive(Debug)]
pub struct WatchStream<K> {
    raw: RawWatchStream,
    resource: ApiResource,
    kind: PhantomData<fn() -> K>,
}

impl<K: Object> WatchStream<K> {
    pub(super) fn new(raw: RawWatchStream, resource: ApiResource) -> WatchStream<K> {
        WatchStream { raw, resource, kind: PhantomData }
    }

    fn decode(&self, raw: &RawEvent) -> Result<WatchEvent<K>, Error> {
        let mut call = Call::new(Verb::Watch, &self.resource, self.raw.target.namespace());
        call.name = self.raw.target.name();
        let object = || decode::object::<K>(&call, &raw.object);
        Ok(match raw.event {
            EventType::Added => WatchEvent::Added(object()?),
            EventType::Modified => WatchEvent::Modified(object()?),
            EventType::Deleted => WatchEvent::Deleted(object()?),
            EventType::Bookmark => decode::bookmark(&call, &raw.object)?,
        })
    }
}

impl<K: Object> Stream for WatchStream<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let raw = ready!(Pin::new(&mut self.raw).poll_next(cx));
        Poll::Ready(raw.map(|raw| raw.and_then(|raw| self.decode(&raw))))
    }
}
