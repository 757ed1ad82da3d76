//! How to reach an etcd, and what can be wrong with that.

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
    /// What TLS needs; for `https://` endpoints.
    pub tls: Option<TlsOptions>,
    /// Everything is kept under `{root}/`, and nothing else is looked at. It begins with a `/` and does not
    /// end with one.
    pub root: String,
    /// How long connecting to an endpoint may take.
    pub connect_timeout: Duration,
    /// How long a request may take, all attempts together.
    pub request_timeout: Duration,
    /// A connection on which nothing came for so long is tested, and given up if there is no answer in half that time.
    /// An etcd refuses clients that do this more often than every 5 seconds (its `--grpc-keepalive-min-time`).
    pub keep_alive: Duration,
    /// Entries to ask etcd for at first, when a range has more than that. Later pages are larger or smaller,
    /// by the size of the entries.
    pub page: usize,
    /// The ring from which open watches are served.
    pub feed: FeedOptions,
    /// Forgets history that is older than this, every so often; `None` leaves that to others. Replicas
    /// agree by a key under the root on who does it.
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

/// What TLS needs.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The certificates, in PEM, of the authorities that may vouch for etcd. No others are trusted.
    pub ca: Vec<u8>,
    /// Who this client is, for an etcd that asks.
    pub identity: Option<TlsIdentity>,
    /// The name etcd's certificate must have, where that is not the endpoint's host.
    pub domain: Option<String>,
}

/// A client's certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate, with those that lead to its authority, in PEM.
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

/// Why there is no store after [`EtcdStore::connect`](crate::EtcdStore::connect).
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
