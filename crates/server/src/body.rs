//! The body of a response: complete bytes or a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, Collected, Limited, combinators::UnsyncBoxBody};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response. The server's own never fail: an error becomes an event, or ends the stream. That of an aggregated
/// API fails if it is cut off, so that the client does not take a part for the whole.
pub struct Body(Kind);

/// A stream of bytes.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

enum Kind {
    Full(Option<Bytes>),
    Stream(Chunks),
    Forwarded(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// An empty body.
    pub fn empty() -> Body {
        Body(Kind::Full(None))
    }

    /// A stream of chunks, each sent as soon as it is available.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body(Kind::Stream(Box::pin(stream)))
    }

    /// The body of another server's response.
    pub(crate) fn of<B>(body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body(Kind::Forwarded(body.map_err(Into::into).boxed_unsync()))
    }

    /// All of the bytes, unless there are more than this.
    pub(crate) fn collect_up_to(self, max_bytes: usize) -> BoxFuture<'static, Result<Bytes, BoxError>> {
        // Boxed: whether the future is `Send` cannot be seen inside of others.
        let collected = Limited::new(self, max_bytes).collect();
        Box::pin(collected.map(|collected| collected.map(Collected::to_bytes)))
    }

    /// The bytes, or else the stream.
    pub(crate) fn into_bytes(self) -> Result<Bytes, Chunks> {
        match self.0 {
            Kind::Full(bytes) => Ok(bytes.unwrap_or_default()),
            Kind::Stream(stream) => Err(stream),
            Kind::Forwarded(body) => {
                Err(Box::pin(body.into_data_stream().filter_map(|chunk| std::future::ready(chunk.ok()))))
            }
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body(Kind::Full((!bytes.is_empty()).then_some(bytes)))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Bytes::from(bytes).into()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
            Kind::Forwarded(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Stream(_) => false,
            Kind::Forwarded(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => SizeHint::default(),
            Kind::Forwarded(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream(_) | Kind::Forwarded(_) => f.write_str("Body(stream)"),
        }
    }
}
