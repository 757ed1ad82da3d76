//! The options of auditing, with kube-apiserver's defaults where it has them.

use std::{path::PathBuf, time::Duration};

use super::policy::AuditPolicy;

/// What is recorded of requests, and where. Nothing by default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditOptions {
    /// What is recorded. Nothing without it.
    pub policy: Option<AuditPolicy>,
    /// Records to a file.
    pub log: Option<AuditLogOptions>,
    /// Sends to a webhook.
    pub webhook: Option<AuditWebhookOptions>,
    /// The largest response object that is recorded; a larger one is left out, and the event has the annotation
    /// `audit.k8s.io/truncated`.
    pub max_response_bytes: usize,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        AuditOptions { policy: None, log: None, webhook: None, max_response_bytes: 16 << 20 }
    }
}

impl AuditOptions {
    pub(super) fn has_backend(&self) -> bool {
        self.log.is_some() || self.webhook.is_some()
    }
}

/// Whether requests wait for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AuditMode {
    /// Requests do not wait. Events are written a little later; if they come faster than they can be written, and the queue is
    /// full, they are dropped and counted.
    #[default]
    Batch,
    /// Requests wait until their events are written, or have failed to be.
    Blocking,
    /// The same, and a request whose first event cannot be written is rejected.
    BlockingStrict,
}

/// The bounds on the events that wait for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditQueueOptions {
    /// Maximum number of events.
    pub max_events: usize,
    /// Maximum total size of the events.
    pub max_bytes: usize,
}

impl Default for AuditQueueOptions {
    fn default() -> AuditQueueOptions {
        AuditQueueOptions { max_events: 10_000, max_bytes: 64 << 20 }
    }
}

/// Events that are too large lose their objects; if they still are, they are dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditTruncation {
    /// Maximum size of an event.
    pub max_event_bytes: usize,
    /// Maximum total size of the events in one request to a webhook; more are sent in several.
    pub max_batch_bytes: usize,
}

impl Default for AuditTruncation {
    fn default() -> AuditTruncation {
        AuditTruncation { max_event_bytes: 100 << 10, max_batch_bytes: 10 << 20 }
    }
}

/// An audit log: a file with one event per line, as JSON.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditLogOptions {
    /// The file; `-` is the standard output. Missing folders are created.
    pub path: PathBuf,
    /// Size in bytes at which the file is renamed, and a new one begun; 0 is never.
    pub max_size: u64,
    /// Maximum number of renamed files that are kept; 0 is all.
    pub max_backups: usize,
    /// How long renamed files are kept; zero is for ever.
    pub max_age: Duration,
    /// Whether renamed files are compressed.
    pub compress: bool,
    /// Whether requests wait.
    pub mode: AuditMode,
    /// The bounds on waiting events, in batch mode.
    pub queue: AuditQueueOptions,
    /// How long events wait for others that are written together with them, in batch mode.
    pub linger: Duration,
    /// What is done about large events; nothing by default.
    pub truncation: Option<AuditTruncation>,
}

impl AuditLogOptions {
    /// A log in this file, with defaults: 100 files of 100 MiB for a year.
    pub fn new(path: impl Into<PathBuf>) -> AuditLogOptions {
        AuditLogOptions {
            path: path.into(),
            max_size: 100 << 20,
            max_backups: 100,
            max_age: Duration::from_secs(366 * 24 * 60 * 60),
            compress: false,
            mode: AuditMode::default(),
            queue: AuditQueueOptions::default(),
            linger: Duration::from_millis(10),
            truncation: None,
        }
    }
}

/// A webhook that is sent events, as an `EventList`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditWebhookOptions {
    /// A kubeconfig file: its cluster is the webhook, its user are the credentials for it.
    pub config_file: PathBuf,
    /// Whether requests wait. In the blocking modes every event is sent on its own.
    pub mode: AuditMode,
    /// The bounds on events that wait, and on those that are under way.
    pub queue: AuditQueueOptions,
    /// Maximum number of events in a batch.
    pub max_batch_events: usize,
    /// How long a batch waits for further events.
    pub max_batch_wait: Duration,
    /// A limit on the rate of batches.
    pub throttle: Option<AuditThrottle>,
    /// The delay before the second attempt to send events. There are five attempts; each further delay is half as long again.
    pub initial_backoff: Duration,
    /// What is done about large events; nothing by default.
    pub truncation: Option<AuditTruncation>,
}

impl AuditWebhookOptions {
    /// The webhook that this file leads to, with defaults: 400 events at a time, at least twice a minute.
    pub fn new(config_file: impl Into<PathBuf>) -> AuditWebhookOptions {
        AuditWebhookOptions {
            config_file: config_file.into(),
            mode: AuditMode::default(),
            queue: AuditQueueOptions::default(),
            max_batch_events: 400,
            max_batch_wait: Duration::from_secs(30),
            throttle: Some(AuditThrottle::default()),
            initial_backoff: Duration::from_secs(10),
            truncation: None,
        }
    }
}

/// A limit on a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AuditThrottle {
    /// Per second, on average.
    pub qps: f32,
    /// At once, after a pause.
    pub burst: u32,
}

impl Default for AuditThrottle {
    fn default() -> AuditThrottle {
        AuditThrottle { qps: 10.0, burst: 15 }
    }
}
