//! What a manager can be told.

use std::{sync::Arc, time::Duration};

use k1s_env::{Env, WorkTracker};

use crate::{
    Metrics, cache::CacheOptions, leader::LeaderElectionOptions, recorder::EventOptions,
    webhook::WebhookOptions,
};

/// The options of a manager. The defaults are those of Go's controller-runtime.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Where metrics are served, at `/metrics`: `:8080` by default, `0` for nowhere.
    pub metrics_address: String,
    /// Where `/healthz` and `/readyz` are served: `:8081` by default, `0` for nowhere.
    pub health_probe_address: String,
    /// Where `/debug/pprof/` is served, as in Go: CPU profiles (with the feature `pprof`), and what is in flight as text.
    /// `0` or nothing, for nowhere, by default. It may tell secrets, names of objects at least: choose loopback,
    /// `127.0.0.1:6060`.
    pub pprof_bind_address: String,
    /// Elects a leader, and runs what needs one on the leader only. Off by default.
    pub leader_election: Option<LeaderElectionOptions>,
    /// The namespaces that are watched; all by default.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// What the cache holds, and how.
    pub cache: CacheOptions,
    /// The webhook server; started if a webhook is registered. Port 9443 by default.
    pub webhook: WebhookOptions,
    /// For how long a shutdown waits for what is in flight: 30 s by default. Zero is not at all, `None` is for ever.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// How events for people are recorded.
    pub events: EventOptions,
    /// The metrics that the manager adds its own to. A new registry by default.
    pub metrics: Metrics,
    /// Time, tasks and randomness. Those of what the manager is made for by default.
    pub env: Option<Env>,
    /// Where work in flight is counted. That of what the manager is made for by default.
    pub work: Option<WorkTracker>,
}

impl Default for ManagerOptions {
    fn default() -> ManagerOptions {
        ManagerOptions {
            metrics_address: ":8080".to_owned(),
            health_probe_address: ":8081".to_owned(),
            pprof_bind_address: String::new(),
            leader_election: None,
            namespaces: None,
            cache: CacheOptions::default(),
            webhook: WebhookOptions::default(),
            graceful_shutdown_timeout: Some(Duration::from_secs(30)),
            events: EventOptions::default(),
            metrics: Metrics::new(),
            env: None,
            work: None,
        }
    }
}

impl ManagerOptions {
    /// Without any address to listen on: for tests, and for programs that are not services.
    #[must_use]
    pub fn local() -> ManagerOptions {
        ManagerOptions {
            metrics_address: "0".to_owned(),
            health_probe_address: "0".to_owned(),
            ..ManagerOptions::default()
        }
    }
}
