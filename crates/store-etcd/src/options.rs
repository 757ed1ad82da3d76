//! How to reach etcd, and why that can fail.

use std::{fmt, time::Duration};

use k1s_store::feed::FeedOptions;

/// How an [`EtcdStore`](crate::EtcdStore) reaches its etcd and behaves there.
///
/// ```
/// # use k1s_store_etcd::EtcdOptions;
/// let options = EtcdOptions {
///     root: "/staging".into(),
///     ..EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379"])
/// };
/// ```
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Members of one cluster, each `http://host:port` or `https://host:port`. One is used at a time;
    /// the next takes over when it does not answer.
    pub endpoints: Vec<String>,
    /// TLS settings; for `https://` endpoints.
    pub tls: Option<TlsOptions>,
    /// Prefix of all keys: `{root}/`. Other keys are not read or written. It begins with a `/` and does not
    /// end with one.
    pub root: String,
    /// Timeout of connecting to an endpoint.
    pub connect_timeout: Duration,
    /// Timeout of a request, including retries.
    pub request_timeout: Duration,
    /// Idle time after which a connection is pinged; it is closed if there is no answer within half that time.
    /// etcd disconnects clients that ping more often than every 5 seconds (its `--grpc-keepalive-min-time`).
    pub keep_alive: Duration,
    /// Entries in the first page of a range. Later pages are larger or smaller, by the size of the entries.
    pub page: usize,
    /// Size of the ring of recent changes that serves open watches.
    pub feed: FeedOptions,
    /// Interval of compaction, and minimum age of the history that is compacted; `None` disables it. Replicas
    /// agree on who compacts by a key under the root.
    pub compaction: Option<Duration>,
}

impl EtcdOptions {
    /// The defaults, with these endpoints.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { endpoints: endpoints.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    pub(crate) fn validate(&self) -> Result<(), ConnectError> {
        if self.endpoints.is_empty() {
            return Err(ConnectError::NoEndpoints);
        }
        let root = |reason| Err(ConnectError::Root { root: self.root.clone(), reason });
        if !self.root.starts_with('/') {
            return root("must begin with a \"/\"");
        }
        if self.root.ends_with('/') {
            return root("must not end with a \"/\"");
        }
        for (option, value) in [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("keep_alive", self.keep_alive),
            ("compaction", self.compaction.unwrap_or(Duration::MAX)),
        ] {
            if value.is_zero() {
                return Err(ConnectError::Zero { option });
            }
        }
        if self.page == 0 {
            return Err(ConnectError::Zero { option: "page" });
        }
        Ok(())
    }
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".into()],
            tls: None,
            root: "/k1s".into(),
            connect_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(10),
            page: 1000,
            feed: FeedOptions::default(),
            compaction: Some(Duration::from_secs(5 * 60)),
        }
    }
}

/// TLS settings.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// CA certificates, in PEM, for etcd's certificate. No others are trusted.
    pub ca: Vec<u8>,
    /// Client certificate, if etcd requires one.
    pub identity: Option<TlsIdentity>,
    /// The name etcd's certificate must have, where that is not the endpoint's host.
    pub domain: Option<String>,
}

/// A client's certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate chain, in PEM.
    pub certificate: Vec<u8>,
    /// Its private key, in PEM.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca", &format_args!("{} bytes", self.ca.len()))
            .field("identity", &self.identity)
            .field("domain", &self.domain)
            .finish()
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret.
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// Why [`EtcdStore::connect`](crate::EtcdStore::connect) failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No endpoint was given.
    #[error("no etcd endpoint was given; one looks like \"http://127.0.0.1:2379\"")]
    NoEndpoints,

    /// An endpoint is not an address.
    #[error("{endpoint:?} is not an etcd endpoint: {reason}; one looks like \"http://127.0.0.1:2379\"")]
    Endpoint {
        /// What was given.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The TLS options cannot be used.
    #[error("the TLS options for etcd cannot be used: {reason}")]
    Tls {
        /// What is wrong with them.
        reason: String,
    },

    /// The root cannot be used.
    #[error("the root {root:?} {reason}; one looks like \"/k1s\"")]
    Root {
        /// What was given.
        root: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// An option that must not be 0 is.
    #[error("the option {option} must not be 0")]
    Zero {
        /// Its name.
        option: &'static str,
    },

    /// There was no usable answer from etcd.
    #[error(transparent)]
    Store(#[from] k1s_store::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &EtcdOptions) -> String {
        options.validate().unwrap_err().to_string()
    }

    #[test]
    fn options_that_cannot_work_are_refused_with_the_reason() {
        assert_eq!(EtcdOptions::default().validate(), Ok(()));
        assert_eq!(
            refused(&EtcdOptions { endpoints: Vec::new(), ..EtcdOptions::default() }),
            "no etcd endpoint was given; one looks like \"http://127.0.0.1:2379\""
        );
        assert_eq!(
            refused(&EtcdOptions { root: "k1s".into(), ..EtcdOptions::default() }),
            "the root \"k1s\" must begin with a \"/\"; one looks like \"/k1s\""
        );
        assert_eq!(
            refused(&EtcdOptions { root: "/".into(), ..EtcdOptions::default() }),
            "the root \"/\" must not end with a \"/\"; one looks like \"/k1s\""
        );
        assert_eq!(
            refused(&EtcdOptions { compaction: Some(Duration::ZERO), ..EtcdOptions::default() }),
            "the option compaction must not be 0"
        );
    }

    #[test]
    fn debug_output_keeps_the_key_secret() {
        let identity = TlsIdentity { certificate: b"certificate".to_vec(), key: b"secret".to_vec() };
        let tls = TlsOptions { identity: Some(identity), ..TlsOptions::default() };
        assert!(!format!("{tls:?}").contains("secret"));
    }
}
