//! What clients can take of a server, one by one and together: every number has its default here.

use std::time::Duration;

/// Bounds on memory and processors. Those who run the control plane (`system:masters`, its own controllers and
/// components) have a share of each that others cannot take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LimitOptions {
    /// So many requests more than [`max_in_flight`](crate::ServerOptions::max_in_flight) are worked on for those who run
    /// the control plane.
    pub reserved_in_flight: usize,
    /// The body of a request has to be there by then.
    pub body_timeout: Duration,
    /// The bodies of all requests that are read or worked on, in bytes. What does not fit gets 429.
    pub max_body_bytes_in_flight: usize,
    /// So many bytes more for those who run the control plane.
    pub reserved_body_bytes: usize,
    /// All answers that have to be made as a whole before they are sent (lists in protobuf and YAML, tables), in bytes of
    /// the objects in them. One answer alone may be larger.
    pub max_answer_bytes_in_flight: usize,
    /// How long a request waits for room before it gets 429.
    pub patience: Duration,
    /// From this size on, a body or an object is worked on by a thread of its own, so that other requests need not wait
    /// for it.
    pub large_bytes: usize,
    /// How many large requests are worked on at the same time; one more for those who run the control plane. 0: one less
    /// than there are processors, and at least one.
    pub max_large: usize,
    /// How long a large request waits for its turn before it gets 429.
    pub large_patience: Duration,
}

impl Default for LimitOptions {
    fn default() -> LimitOptions {
        LimitOptions {
            reserved_in_flight: 100,
            body_timeout: Duration::from_secs(60),
            max_body_bytes_in_flight: 96 << 20,
            reserved_body_bytes: 32 << 20,
            max_answer_bytes_in_flight: 128 << 20,
            patience: Duration::from_secs(1),
            large_bytes: 32 << 10,
            max_large: 0,
            large_patience: Duration::from_secs(30),
        }
    }
}

/// Bounds on the connections of a listener. The times are kube-apiserver's, where it has them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// How many there can be. Beyond that, the one that has been idle for the longest is closed; if none is idle, the new
    /// one is.
    pub max: usize,
    /// The first request has to be there by then, TLS handshake included; and the head of a later one, from its first
    /// byte on.
    pub head_timeout: Duration,
    /// A connection without a request is closed after this long.
    pub idle_timeout: Duration,
    /// A client that reads nothing of its answer for this long is cut off.
    pub write_timeout: Duration,
    /// The largest head of a request.
    pub max_header_bytes: u32,
    /// The most header fields of an HTTP/1.1 request. hyper makes room for that many with each request, so this is not free.
    pub max_headers: usize,
    /// The most requests at the same time over one HTTP/2 connection.
    pub max_streams: u32,
    /// Requests under way have this long to end when the server stops.
    pub shutdown_timeout: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> ConnectionOptions {
        ConnectionOptions {
            max: 4096,
            head_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(60),
            max_header_bytes: 1 << 20,
            max_headers: 500,
            max_streams: 1000,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
