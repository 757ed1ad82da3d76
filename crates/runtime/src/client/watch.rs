//! A watch: the stream of a server's events, line by line.

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

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is new, or selected now.
    Added,
    /// It has changed.
    Modified,
    /// It is gone, or not selected any more.
    Deleted,
    /// Nothing: the server says how far it is. The object has little more than a resource version.
    Bookmark,
}

/// An event whose object is still JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEvent {
    /// What happened.
    pub event: EventType,
    /// The object's JSON.
    pub object: Bytes,
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent<K> {
    /// It is new, or selected now.
    Added(K),
    /// It has changed.
    Modified(K),
    /// It is gone, or not selected any more.
    Deleted(K),
    /// The server has got as far as this.
    Bookmark {
        /// A watch may go on from here.
        resource_version: String,
        /// Whether the objects that were there have all come now.
        initial_events_end: bool,
    },
}

/// The events of a watch, with the objects' JSON. Ends when the server ends it, or after an error of the connection or
/// of the server (410: the version is too old).
#[derive(Debug)]
pub struct RawWatchStream {
    // `None` once it has ended.
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
                let message = format!("an event of the unknown type {other:?}");
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
                    // The last line may lack its newline; one that was cut off is no event.
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

/// The events of a watch. An object that cannot be decoded is an error that names it, and the stream goes on behind it.
/// Ends when the server ends it, or after an error of the connection or of the server (410: the version is too old).
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
