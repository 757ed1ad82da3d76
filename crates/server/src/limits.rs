//! Limits on requests and connections, with their defaults.

use std::time::Duration;

/// Limits on memory and processor use. A part of the memory is reserved for control plane users (`system:masters`, controllers
/// and components of the control plane).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LimitOptions {
    /// Seats on top of [`max_in_flight`](crate::ServerOptions::max_in_flight) that one tenant leaves to others: however many
    /// tenants flood the server, some are left for the next one.
    pub reserved_in_flight: usize,
    /// How long a request waits for a seat in the queue of its priority level before it gets 429.
    pub queue_patience: Duration,
    /// Maximum time to receive the body of a request.
    pub body_timeout: Duration,
    /// Maximum total size of the bodies of all requests in flight. Requests over it get 429.
    pub max_body_bytes_in_flight: usize,
    /// Additional bytes for control plane users.
    pub reserved_body_bytes: usize,
    /// Maximum total size of all responses that are buffered as a whole (lists in protobuf and YAML, tables), measured by
    /// the stored size of their objects. A single response may exceed it.
    pub max_answer_bytes_in_flight: usize,
    /// How long a request waits for bytes of these budgets before it gets 429.
    pub patience: Duration,
    /// Minimum size of a body or an object for which the request runs on a separate thread, so that it does not delay
    /// other requests.
    pub large_bytes: usize,
    /// Maximum number of large requests at the same time, plus one for control plane users. 0: one less than the number
    /// of processors, but at least one.
    pub max_large: usize,
    /// How long a large request waits for a thread before it gets 429.
    pub large_patience: Duration,
    /// Maximum size of the objects, converted by webhooks, that are remembered.
    pub max_converted_bytes: usize,
}

impl Default for LimitOptions {
    fn default() -> LimitOptions {
        LimitOptions {
            reserved_in_flight: 100,
            queue_patience: Duration::from_secs(15),
            body_timeout: Duration::from_secs(60),
            max_body_bytes_in_flight: 96 << 20,
            reserved_body_bytes: 32 << 20,
            max_answer_bytes_in_flight: 128 << 20,
            patience: Duration::from_secs(1),
            large_bytes: 32 << 10,
            max_large: 0,
            large_patience: Duration::from_secs(30),
            max_converted_bytes: 64 << 20,
        }
    }
}

/// Limits on the connections of a listener. The timeouts are those of kube-apiserver, where it has them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Maximum number of connections. Beyond it, an idle connection of the peer that has the most is closed; if none is idle,
    /// the new one is.
    pub max: usize,
    /// The same for one peer, by its IP address. Not limited by default: all clients may be behind one proxy.
    pub max_per_peer: usize,
    /// Maximum time to receive the head of the first request, including the TLS handshake; for later requests it counts
    /// from their first byte.
    pub head_timeout: Duration,
    /// An idle connection is closed after this time.
    pub idle_timeout: Duration,
    /// A client that reads nothing of its response for this time is disconnected.
    pub write_timeout: Duration,
    /// Maximum size of the head of a request.
    pub max_header_bytes: u32,
    /// Maximum number of header fields of an HTTP/1.1 request. hyper allocates that many for each request.
    pub max_headers: usize,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub max_streams: u32,
    /// A connection on which the client has given up as many requests, beyond those that it has waited for, is closed.
    pub max_given_up: usize,
    /// How long requests in flight may take to finish when the server shuts down.
    pub shutdown_timeout: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> ConnectionOptions {
        ConnectionOptions {
            max: 4096,
            max_per_peer: usize::MAX,
            head_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(60),
            max_header_bytes: 1 << 20,
            max_headers: 500,
            max_streams: 1000,
            max_given_up: 1000,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
