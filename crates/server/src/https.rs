//! Requests of the server itself to other servers over HTTPS: issuers of tokens.
//!
//! A request is bounded in time by its timeout and in memory by [`MAX_ANSWER_BYTES`].

#[cfg(feature = "tls")]
mod client;
#[cfg(not(feature = "tls"))]
mod none;

use bytes::Bytes;
use http::StatusCode;

#[cfg(feature = "tls")]
pub(crate) use client::HttpsClient;
#[cfg(not(feature = "tls"))]
pub(crate) use none::HttpsClient;

/// Maximum size of an answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}
