//! Audit: who did what, when and from where, and with which outcome, as kube-apiserver records it.
//!
//! A request has a [`Trail`]. When its sender is authenticated, the [`AuditPolicy`] decides how much of the request is
//! recorded; the steps of the request add what they know; each stage of it is [`Made`] into an event, which goes to the
//! backends: a [log](mod@log) and a [webhook]. Each backend has a bounded [queue] and a task, so that neither a slow disk nor a
//! slow webhook delays a request, unless the mode of the backend demands that.
//!
//! Events are encoded as they are made; objects in them are recorded as bytes, and become JSON only when their event is written. Without a policy there is no [`Auditor`],
//! and a request pays for one look at an `Option`.

mod counters;
mod event;
mod head;
mod log;
mod options;
mod origin;
mod payload;
mod policy;
mod queue;
mod recorded;
mod trail;
#[cfg(feature = "tls")]
mod webhook;

use std::sync::Arc;

use futures_util::future::join_all;
use http::Request;
use k1s_env::Env;

pub use options::{
    AuditLogOptions, AuditMode, AuditOptions, AuditQueueOptions, AuditThrottle, AuditTruncation,
    AuditWebhookOptions,
};
pub(crate) use origin::Remote;
pub(crate) use policy::Level;
pub use policy::{AuditPolicy, AuditPolicyError};
pub(crate) use trail::{About, Trail};

use counters::Counters;
use event::Made;
use queue::{Backend, Delay};

/// Why auditing could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    #[error("the audit log {path} cannot be written: {why}")]
    Log { path: String, why: std::io::Error },
    #[error("the audit webhook cannot be used: {0}")]
    Webhook(String),
}

/// The backends that a request waits for.
struct Delays(Vec<Delay>);

impl Delays {
    /// Returns whether the request may go on.
    async fn wait(self) -> bool {
        let mut may_go_on = true;
        for delay in self.0 {
            may_go_on &= delay.wait().await;
        }
        may_go_on
    }
}

/// Records the requests of a server.
pub(crate) struct Auditor {
    env: Env,
    policy: AuditPolicy,
    /// The largest response object that is recorded.
    max_response_bytes: usize,
    counters: Arc<Counters>,
    backends: Vec<Backend>,
}

impl Auditor {
    /// Starts the backends; `None` without a policy or without a backend.
    pub(crate) fn start(env: &Env, options: &AuditOptions) -> Result<Option<Arc<Auditor>>, AuditError> {
        let Some(policy) = options.policy.clone() else {
            if options.has_backend() {
                tracing::warn!("there is no audit policy, so nothing is recorded");
            }
            return Ok(None);
        };
        let counters = Arc::new(Counters::default());
        let mut backends = Vec::new();
        if let Some(options) = &options.log {
            backends.push(log::start(env, options, &counters)?);
        }
        if let Some(options) = &options.webhook {
            #[cfg(feature = "tls")]
            backends.push(webhook::start(env, options, &counters)?);
            #[cfg(not(feature = "tls"))]
            return Err(AuditError::Webhook(format!(
                "{}: this server is built without TLS",
                options.config_file.display()
            )));
        }
        if backends.is_empty() {
            tracing::warn!("there is an audit policy, but neither an audit log nor an audit webhook");
            return Ok(None);
        }
        let max_response_bytes = options.max_response_bytes;
        Ok(Some(Arc::new(Auditor { env: env.clone(), policy, max_response_bytes, counters, backends })))
    }

    /// The trail of a request.
    pub(crate) fn receive<B>(self: &Arc<Auditor>, request: &Request<B>) -> Arc<Trail> {
        Arc::new(Trail::new(self.clone(), request))
    }

    /// Records an event. Returns what the request has to wait for.
    fn record(&self, event: &Made<'_>) -> Delays {
        self.counters.event();
        Delays(self.backends.iter().filter_map(|backend| backend.record(event)).collect())
    }

    /// Records an event without waiting.
    fn record_later(&self, event: &Made<'_>) {
        self.counters.event();
        self.backends.iter().for_each(|backend| backend.record_later(event));
    }

    /// Writes out what is recorded, and ends the backends. Later events are lost, and counted as such.
    pub(crate) async fn close(&self) {
        join_all(self.backends.iter().map(Backend::close)).await;
    }

    /// The metrics in Prometheus' text format.
    pub(crate) fn metrics(&self, out: &mut String) {
        self.counters.write(out);
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.backends.iter().for_each(Backend::end);
    }
}
