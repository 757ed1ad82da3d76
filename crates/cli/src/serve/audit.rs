//! The flags of auditing.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use k1s::server::{
    AuditLogOptions, AuditMode, AuditOptions, AuditPolicy, AuditThrottle, AuditTruncation,
    AuditWebhookOptions,
};

use super::{Error, duration, read};

/// Command-line options of auditing, with the names that kube-apiserver has for them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Auditing")]
#[group(skip)]
pub(crate) struct Options {
    /// The audit policy (audit.k8s.io/v1), which says what is recorded of which requests. Without it nothing is.
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    /// Records requests in this file, one event per line as JSON; `-` is the standard output.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Days for which old audit logs are kept, by the time in their names; 0 is for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    audit_log_maxage: u32,
    /// Number of old audit logs that are kept; 0 is all of them.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    audit_log_maxbackup: usize,
    /// Size in megabytes at which the audit log is renamed and a new one begun; 0 is never.
    #[arg(long, value_name = "MEGABYTES", default_value_t = 100)]
    audit_log_maxsize: u32,
    /// Compresses old audit logs with gzip.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    audit_log_compress: bool,
    /// Whether requests wait for the audit log: `batch` does not delay them, `blocking` writes their events before they are
    /// answered, and `blocking-strict` also rejects requests that cannot be recorded.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Batch)]
    audit_log_mode: Mode,
    /// Number of events that may wait for the audit log in batch mode; further ones are dropped and counted.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    audit_log_batch_buffer_size: usize,
    /// Shortens events that are too large for the audit log.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    audit_log_truncate_enabled: bool,
    /// Size in bytes beyond which an event loses its objects, and beyond which it is then dropped.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    audit_log_truncate_max_event_size: usize,
    /// Sends requests to the webhook that is the cluster of this kubeconfig file, as lists of events.
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,
    /// Whether requests wait for the audit webhook.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Batch)]
    audit_webhook_mode: Mode,
    /// How long to wait before events are sent a second time.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    audit_webhook_initial_backoff: Duration,
    /// Number of events that may wait for the audit webhook, or be under way to it, in batch mode; further ones are dropped and
    /// counted.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    audit_webhook_batch_buffer_size: usize,
    /// Number of events that are sent at once.
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    audit_webhook_batch_max_size: usize,
    /// How long events wait for others that are sent together with them.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    audit_webhook_batch_max_wait: Duration,
    /// Limits the rate of batches.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    audit_webhook_batch_throttle_enable: bool,
    /// Batches per second, on average.
    #[arg(long, value_name = "RATE", default_value_t = 10.0, value_parser = rate)]
    audit_webhook_batch_throttle_qps: f32,
    /// Batches at once, after a pause.
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    audit_webhook_batch_throttle_burst: u32,
    /// Shortens events that are too large for the audit webhook.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    audit_webhook_truncate_enabled: bool,
    /// Size in bytes beyond which an event loses its objects, and beyond which it is then dropped.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    audit_webhook_truncate_max_event_size: usize,
    /// Size in bytes beyond which events are sent in several requests.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760)]
    audit_webhook_truncate_max_batch_size: usize,
}

/// A rate above zero.
fn rate(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f32::is_finite(rate) => Ok(rate),
        _ => Err(format!("{text:?} is not a number above 0")),
    }
}

/// Whether requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Batch,
    Blocking,
    BlockingStrict,
}

impl From<Mode> for AuditMode {
    fn from(mode: Mode) -> AuditMode {
        match mode {
            Mode::Batch => AuditMode::Batch,
            Mode::Blocking => AuditMode::Blocking,
            Mode::BlockingStrict => AuditMode::BlockingStrict,
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Options {
    /// The options of the server. Reads the policy.
    pub(super) fn read(&self) -> Result<AuditOptions, Error> {
        let mut audit = AuditOptions::default();
        if let Some(path) = &self.audit_policy_file {
            let policy = AuditPolicy::parse(&read(path)?);
            audit.policy = Some(policy.map_err(|error| Error::Policy { path: path.clone(), error })?);
        }
        audit.log = self.audit_log_path.as_ref().map(|path| self.log(path));
        audit.webhook = self.audit_webhook_config_file.as_ref().map(|path| self.webhook(path));
        Ok(audit)
    }

    fn log(&self, path: &std::path::Path) -> AuditLogOptions {
        let mut log = AuditLogOptions::new(path);
        log.max_age = DAY * self.audit_log_maxage;
        log.max_backups = self.audit_log_maxbackup;
        log.max_size = u64::from(self.audit_log_maxsize) << 20;
        log.compress = self.audit_log_compress;
        log.mode = self.audit_log_mode.into();
        log.queue.max_events = self.audit_log_batch_buffer_size;
        log.truncation = self.audit_log_truncate_enabled.then(|| {
            let mut truncation = AuditTruncation::default();
            truncation.max_event_bytes = self.audit_log_truncate_max_event_size;
            truncation
        });
        log
    }

    fn webhook(&self, path: &std::path::Path) -> AuditWebhookOptions {
        let mut webhook = AuditWebhookOptions::new(path);
        webhook.mode = self.audit_webhook_mode.into();
        webhook.initial_backoff = self.audit_webhook_initial_backoff;
        webhook.queue.max_events = self.audit_webhook_batch_buffer_size;
        webhook.max_batch_events = self.audit_webhook_batch_max_size;
        webhook.max_batch_wait = self.audit_webhook_batch_max_wait;
        webhook.throttle = self.audit_webhook_batch_throttle_enable.then(|| {
            let mut throttle = AuditThrottle::default();
            throttle.qps = self.audit_webhook_batch_throttle_qps;
            throttle.burst = self.audit_webhook_batch_throttle_burst;
            throttle
        });
        webhook.truncation = self.audit_webhook_truncate_enabled.then(|| {
            let mut truncation = AuditTruncation::default();
            truncation.max_event_bytes = self.audit_webhook_truncate_max_event_size;
            truncation.max_batch_bytes = self.audit_webhook_truncate_max_batch_size;
            truncation
        });
        webhook
    }
}
