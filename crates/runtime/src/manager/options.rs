//! The options of a manager.

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
    /// The address that serves `/metrics`: `:8080` by default, `0` to disable.
    pub metrics_address: String,
    /// Whether metrics are served over TLS, and to whom. By default over HTTP, without authentication.
    pub metrics_serving: MetricsServing,
    /// The address that serves `/healthz` and `/readyz`: `:8081` by default, `0` to disable.
    pub health_probe_address: String,
    /// The address that serves `/debug/pprof/`, as in Go: CPU profiles (with the feature `pprof`), and work in flight as
    /// text. Disabled by default, as with `0` or an empty address. It may reveal secrets, at least names of objects: choose
    /// loopback, `127.0.0.1:6060`.
    pub pprof_bind_address: String,
    /// Elects a leader; runnables that need one run on the leader only. Off by default.
    pub leader_election: Option<LeaderElectionOptions>,
    /// The namespaces that are watched; all by default.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// Options of the cache.
    pub cache: CacheOptions,
    /// Kinds that the manager's client reads from the server instead of the cache, because they are read rarely or are too
    /// large to hold. None by default. Go's `client.CacheOptions.DisableFor`.
    pub uncached: Vec<GroupKind>,
    /// The field manager of everything that the manager's client writes, unless a call names another one. Go's
    /// `client.WithFieldOwner`. By default the id of the leader election or, without one, the name of the program's file.
    ///
    /// It has to stay the same from release to release: after a change, what was applied under the old name is not removed
    /// any more, and its fields have two owners.
    pub field_owner: Option<Arc<str>>,
    /// Whether the server's warnings are logged, each text once. On by default.
    pub log_warnings: bool,
    /// Defaults for controllers. Go's `config.Controller`.
    pub controller: ControllerDefaults,
    /// The webhook server, started if a webhook is registered. Port 9443 by default.
    #[cfg(feature = "webhook")]
    pub webhook: crate::webhook::WebhookOptions,
    /// How long a shutdown waits for work in flight: 30 s by default. Zero is not at all, `None` is for ever.
    pub graceful_shutdown_timeout: Option<Duration>,
    /// Options of the event recorders.
    pub events: EventOptions,
    /// The registry of the manager's metrics. A new one by default.
    pub metrics: Metrics,
    /// Time, tasks and randomness. By default those of the runtime that the manager is made for.
    pub env: Option<Env>,
    /// Where work in flight is counted. By default the tracker of the runtime that the manager is made for.
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
            field_owner: None,
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
    /// Listens on no address: for tests, and for programs that are not services.
    #[must_use]
    pub fn local() -> ManagerOptions {
        ManagerOptions {
            metrics_address: "0".to_owned(),
            health_probe_address: "0".to_owned(),
            ..ManagerOptions::default()
        }
    }

    /// The field manager of the client.
    pub(super) fn field_owner(&self) -> Option<Arc<str>> {
        let set = self.field_owner.as_deref().filter(|name| !name.is_empty());
        let elected =
            || self.leader_election.as_ref().map(|election| &*election.id).filter(|id| !id.is_empty());
        set.or_else(elected).map(Arc::from).or_else(program)
    }
}

/// The name of the program's file, as far as a server accepts it as a field manager.
fn program() -> Option<Arc<str>> {
    // A server accepts 128 bytes; a character has at most four.
    const LONGEST: usize = 128 / 4;
    let path = PathBuf::from(std::env::args_os().next()?);
    let file = path.file_name()?.to_str()?;
    let name = file.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(file);
    let printable: String = name.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    (!printable.is_empty()).then(|| printable.into())
}

/// How metrics are served.
#[derive(Debug, Clone)]
pub struct MetricsServing {
    /// Over TLS, which needs the feature `tls`. Off by default.
    pub secure: bool,
    /// The directory of certificate and key, which are reloaded when they change. Without it, a self-signed certificate is
    /// generated at each start.
    pub cert_dir: Option<PathBuf>,
    /// The file name of the certificate: `tls.crt` by default.
    pub cert_name: String,
    /// The file name of the key: `tls.key` by default.
    pub key_name: String,
    /// Checks with the API server who may read metrics; see [`AccessReview`](crate::endpoint::AccessReview). No check by
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
    /// Over TLS, to clients that the API server authorizes.
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
