//! The body of a response: complete bytes or a stream.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

/// The body of a response. Its stream never fails: an error becomes an event, or ends the stream.
pub struct Body(Kind);

/// A stream of bytes.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

enum Kind {
    Full(Option<Bytes>),
    Stream(Chunks),
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

    /// The bytes, or else the stream.
    pub(crate) fn into_bytes(self) -> Result<Bytes, Chunks> {
        match self.0 {
            Kind::Full(bytes) => Ok(bytes.unwrap_or_default()),
            Kind::Stream(stream) => Err(stream),
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
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}
