//! What a manager can be told.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k1s_env::{Env, WorkTracker};

use crate::{
    BoxError, GroupKind, Metrics,
    cache::CacheOptions,
    controller::ControllerDefaults,
    endpoint::{AccessReviewOptions, Certificates},
    leader::LeaderElectionOptions,
    recorder::EventOptions,
};

/// The options of a manager. The defaults are those of Go's controller-runtime.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Where metrics are served, at `/metrics`: `:8080` by default, `0` for nowhere.
    pub metrics_address: String,
    /// Whether metrics are served over TLS, and to whom. Over HTTP to everybody, by default.
    pub metrics_serving: MetricsServing,
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
    /// Kinds that the manager's client reads from the server, not from the cache: what is read rarely, or is too much to
    /// hold. None by default. Go's `client.CacheOptions.DisableFor`.
    pub uncached: Vec<GroupKind>,
    /// Whether warnings of the server are logged, each text once; so they are by default.
    pub log_warnings: bool,
    /// What controllers do that do not say otherwise. Go's `config.Controller`.
    pub controller: ControllerDefaults,
    /// The webhook server; started if a webhook is registered. Port 9443 by default.
    #[cfg(feature = "webhook")]
    pub webhook: crate::webhook::WebhookOptions,
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
            metrics_serving: MetricsServing::default(),
            health_probe_address: ":8081".to_owned(),
            pprof_bind_address: String::new(),
            leader_election: None,
            namespaces: None,
            cache: CacheOptions::default(),
            uncached: Vec::new(),
            log_warnings: true,
            controller: ControllerDefaults::default(),
            #[cfg(feature = "webhook")]
            webhook: crate::webhook::WebhookOptions::default(),
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

/// How metrics are served.
#[derive(Debug, Clone)]
pub struct MetricsServing {
    /// Over TLS, which needs the feature `tls`. Off by default.
    pub secure: bool,
    /// Where certificate and key are; they are read again when they change. Without it, a self-signed certificate is made
    /// at each start.
    pub cert_dir: Option<PathBuf>,
    /// The file of the certificate: `tls.crt`.
    pub cert_name: String,
    /// The file of the key: `tls.key`.
    pub key_name: String,
    /// Asks the API server who may read metrics; see [`AccessReview`](crate::endpoint::AccessReview). Nobody is asked by
    /// default.
    pub access_review: Option<AccessReviewOptions>,
}

impl Default for MetricsServing {
    fn default() -> MetricsServing {
        MetricsServing {
            secure: false,
            cert_dir: None,
            cert_name: "tls.crt".to_owned(),
            key_name: "tls.key".to_owned(),
            access_review: None,
        }
    }
}

impl MetricsServing {
    /// Over TLS, to those whom the API server lets.
    #[must_use]
    pub fn secure() -> MetricsServing {
        MetricsServing {
            secure: true,
            access_review: Some(AccessReviewOptions::default()),
            ..MetricsServing::default()
        }
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn certificates(&self) -> Result<Option<Certificates>, BoxError> {
        if self.secure { Err("TLS needs the feature `tls` of k1s-runtime".into()) } else { Ok(None) }
    }

    #[cfg(feature = "tls")]
    pub(super) fn certificates(&self) -> Result<Option<Certificates>, BoxError> {
        use crate::tls::CertFiles;
        if !self.secure {
            return Ok(None);
        }
        let certificates = match &self.cert_dir {
            None => Certificates::self_signed(["localhost"]),
            Some(dir) => Certificates::files(CertFiles {
                certificate: dir.join(&self.cert_name),
                key: dir.join(&self.key_name),
                client_ca: None,
            }),
        };
        Ok(Some(certificates?))
    }
}
