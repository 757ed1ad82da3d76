//! The options of an election.

use std::{fs, path::Path, time::Duration};

/// How a leader is elected. The defaults are those of Go's controller-runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderElectionOptions {
    /// The name of the Lease. All candidates of an election use the same one.
    pub id: String,
    /// The namespace of the Lease. If empty (the default), the namespace of the pod that this program runs in.
    pub namespace: String,
    /// The holder identity in the Lease; `host_uuid` if not given. Candidates of the same identity still compete.
    pub identity: Option<String>,
    /// How long other candidates wait after they last saw the Lease renewed. Leases store whole seconds; fractions are
    /// rounded up.
    pub lease_duration: Duration,
    /// How long a leader keeps leading without a successful renewal. Must be less than the lease duration: the margin
    /// keeps two leaders apart.
    pub renew_deadline: Duration,
    /// The interval between two attempts.
    pub retry_period: Duration,
    /// Candidates add a random delay of up to this many retry periods to the interval.
    pub jitter: f64,
    /// Whether [`Leadership::release`](super::Leadership::release) gives the Lease back, so that the next leader need not
    /// wait for it to expire.
    pub release_on_cancel: bool,
}

impl Default for LeaderElectionOptions {
    fn default() -> LeaderElectionOptions {
        LeaderElectionOptions {
            id: String::new(),
            namespace: String::new(),
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            jitter: 1.2,
            release_on_cancel: true,
        }
    }
}

/// The file that holds a pod's namespace.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Invalid options.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// The Lease has no name.
    #[error("leader election needs an id: the name of its Lease")]
    NoId,
    /// The Lease has no namespace.
    #[error(
        "leader election needs a namespace for its Lease {id:?}: none is given, and this does not run in a pod \
         (cannot read {POD_NAMESPACE})"
    )]
    NoNamespace {
        /// The name of the Lease.
        id: String,
    },
    /// The identity is empty.
    #[error("the identity of a candidate must not be empty; leave it unset for `host_uuid`")]
    EmptyIdentity,
    /// A duration is zero.
    #[error("{field} must be greater than zero")]
    Zero {
        /// Which one.
        field: &'static str,
    },
    /// The leader would keep leading while another candidate takes over.
    #[error("lease_duration ({lease_duration:?}) must be greater than renew_deadline ({renew_deadline:?})")]
    LeaseTooShort {
        /// The lease duration.
        lease_duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// The leader would have no time to retry.
    #[error(
        "renew_deadline ({renew_deadline:?}) must be greater than retry_period ({retry_period:?}) times jitter ({jitter})"
    )]
    DeadlineTooShort {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
        /// The jitter.
        jitter: f64,
    },
    /// The jitter is negative or not finite.
    #[error("jitter must be a finite number of at least 0, got {0}")]
    Jitter(f64),
}

impl LeaderElectionOptions {
    /// An election over the Lease of this name and namespace.
    pub fn new(id: impl Into<String>, namespace: impl Into<String>) -> LeaderElectionOptions {
        LeaderElectionOptions {
            id: id.into(),
            namespace: namespace.into(),
            ..LeaderElectionOptions::default()
        }
    }

    /// An election over the Lease of this name, in the namespace of the pod that this program runs in.
    pub fn in_pod(id: impl Into<String>) -> LeaderElectionOptions {
        LeaderElectionOptions { id: id.into(), ..LeaderElectionOptions::default() }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first problem found.
    pub fn validate(&self) -> Result<(), InvalidOptions> {
        self.clone().resolved(Path::new(POD_NAMESPACE)).map(drop)
    }

    /// The validated options, with the namespace filled in.
    pub(crate) fn in_namespace(self) -> Result<LeaderElectionOptions, InvalidOptions> {
        self.resolved(Path::new(POD_NAMESPACE))
    }

    fn resolved(mut self, pod_namespace: &Path) -> Result<LeaderElectionOptions, InvalidOptions> {
        if self.id.is_empty() {
            return Err(InvalidOptions::NoId);
        }
        if self.namespace.is_empty() {
            let found = fs::read_to_string(pod_namespace).unwrap_or_default();
            found.trim().clone_into(&mut self.namespace);
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), InvalidOptions> {
        if self.namespace.is_empty() {
            return Err(InvalidOptions::NoNamespace { id: self.id.clone() });
        }
        if self.identity.as_deref() == Some("") {
            return Err(InvalidOptions::EmptyIdentity);
        }
        if !self.jitter.is_finite() || self.jitter < 0.0 {
            return Err(InvalidOptions::Jitter(self.jitter));
        }
        for (field, duration) in [
            ("lease_duration", self.lease_duration),
            ("renew_deadline", self.renew_deadline),
            ("retry_period", self.retry_period),
        ] {
            if duration.is_zero() {
                return Err(InvalidOptions::Zero { field });
            }
        }
        let (lease_duration, renew_deadline) = (self.lease_duration, self.renew_deadline);
        if lease_duration <= renew_deadline {
            return Err(InvalidOptions::LeaseTooShort { lease_duration, renew_deadline });
        }
        let (retry_period, jitter) = (self.retry_period, self.jitter);
        let longest_retry = retry_period.as_secs_f64() * jitter.max(1.0);
        if renew_deadline.as_secs_f64() <= longest_retry {
            return Err(InvalidOptions::DeadlineTooShort { renew_deadline, retry_period, jitter });
        }
        Ok(())
    }

    /// The lease duration in whole seconds, rounded up.
    pub(super) fn lease_seconds(&self) -> i32 {
        let part = u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(self.lease_duration.as_secs().saturating_add(part)).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut LeaderElectionOptions)) -> String {
        let mut options = LeaderElectionOptions::new("test", "default");
        change(&mut options);
        options.resolved(Path::new("/nowhere")).unwrap_err().to_string()
    }

    #[test]
    fn the_namespace_is_that_of_the_pod_unless_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("namespace");
        fs::write(&file, "operators\n").unwrap();
        let namespace = |options: LeaderElectionOptions, file: &Path| -> Result<String, InvalidOptions> {
            Ok(options.resolved(file)?.namespace)
        };
        assert_eq!(namespace(LeaderElectionOptions::in_pod("test"), &file), Ok("operators".to_owned()));
        assert_eq!(namespace(LeaderElectionOptions::new("test", "other"), &file), Ok("other".to_owned()));
        let missing = namespace(LeaderElectionOptions::in_pod("test"), &folder.path().join("none"));
        let missing = missing.unwrap_err();
        assert!(
            missing.to_string().contains("needs a namespace for its Lease \"test\": none is given"),
            "{missing}"
        );
    }

    #[test]
    fn the_defaults_are_those_of_controller_runtime() {
        let options = LeaderElectionOptions::new("test", "default");
        assert_eq!(options.validate(), Ok(()));
        let durations = [options.lease_duration, options.renew_deadline, options.retry_period];
        assert_eq!(durations.map(|d| d.as_secs()), [15, 10, 2]);
        assert_eq!(options.lease_seconds(), 15);
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let second = Duration::from_secs(1);
        assert!(refused(|o| o.id.clear()).contains("needs an id"));
        assert!(refused(|o| o.namespace.clear()).contains("needs a namespace"));
        assert!(refused(|o| o.identity = Some(String::new())).contains("identity"));
        assert!(
            refused(|o| o.retry_period = Duration::ZERO).contains("retry_period must be greater than zero")
        );
        assert!(refused(|o| o.renew_deadline = 15 * second).contains("lease_duration (15s) must be greater"));
        assert!(refused(|o| o.retry_period = 9 * second).contains("renew_deadline (10s) must be greater"));
        assert!(refused(|o| o.jitter = f64::NAN).contains("jitter"));
    }

    #[test]
    fn fractions_of_a_second_are_rounded_up() {
        let mut options = LeaderElectionOptions::new("test", "default");
        options.lease_duration = Duration::from_millis(1500);
        assert_eq!(options.lease_seconds(), 2);
    }
}
