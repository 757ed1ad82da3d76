//! The versions and cipher suites of TLS, by the names of Go, which kube-apiserver's flags take.

use std::{fmt, str::FromStr, sync::Arc};

use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion, crypto::CryptoProvider};

/// The oldest version of TLS that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// A name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsNameError {
    /// There is no such version.
    #[error("unknown tls version {0:?}: possible values are VersionTLS12 and VersionTLS13")]
    UnknownVersion(String),
    /// It is too old.
    #[error("{0} is not supported, because it is not secure: use VersionTLS12 or VersionTLS13")]
    OldVersion(String),
    /// There is no such cipher suite.
    #[error("Cipher suite {name} not supported or doesn't exist: possible values are {known}", known = suites().join(", "))]
    UnknownSuite {
        /// Its name.
        name: String,
    },
    /// It exists, but is not secure.
    #[error("Cipher suite {name} is not supported, because it is not secure: possible values are {known}", known = suites().join(", "))]
    InsecureSuite {
        /// Its name.
        name: String,
    },
    /// None of the suites belongs to a version that is accepted.
    #[error("none of the cipher suites can be used with TLS 1.2: allow one of it, or only VersionTLS13")]
    NoSuite,
}

impl FromStr for TlsVersion {
    type Err = TlsNameError;

    fn from_str(name: &str) -> Result<TlsVersion, TlsNameError> {
        match name {
            "VersionTLS12" => Ok(TlsVersion::Tls12),
            "VersionTLS13" => Ok(TlsVersion::Tls13),
            "VersionTLS10" | "VersionTLS11" => Err(TlsNameError::OldVersion(name.to_owned())),
            other => Err(TlsNameError::UnknownVersion(other.to_owned())),
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsVersion::Tls12 => "VersionTLS12",
            TlsVersion::Tls13 => "VersionTLS13",
        })
    }
}

/// Names, and the suite that each stands for.
const SUITES: [(&str, CipherSuite); 11] = [
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Those that kube-apiserver knows and that are not secure: without forward secrecy, or with CBC, RC4 or 3DES.
const INSECURE: [&str; 15] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];

static ONLY_13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

/// The names of all suites that can be used.
fn suites() -> Vec<&'static str> {
    SUITES.iter().map(|(name, _)| *name).collect()
}

/// The oldest version and the cipher suites of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsProtocol {
    min_version: TlsVersion,
    suites: Vec<CipherSuite>,
}

impl TlsProtocol {
    /// Versions from this one on, and these cipher suites, by name; if there are none, all that are secure. As for
    /// kube-apiserver, those of TLS 1.3 are all used unless some of them are named.
    ///
    /// # Errors
    /// If a name is not one of a suite that can be used.
    pub fn new<S: AsRef<str>>(
        min_version: TlsVersion,
        names: impl IntoIterator<Item = S>,
    ) -> Result<TlsProtocol, TlsNameError> {
        let mut suites = Vec::new();
        for name in names {
            let name = name.as_ref();
            match SUITES.iter().find(|(known, _)| *known == name) {
                Some((_, suite)) => suites.push(*suite),
                None if INSECURE.contains(&name) => {
                    return Err(TlsNameError::InsecureSuite { name: name.to_owned() });
                }
                None => return Err(TlsNameError::UnknownSuite { name: name.to_owned() }),
            }
        }
        let protocol = TlsProtocol { min_version, suites };
        let for_12 = |suite: &SupportedCipherSuite| suite.tls13().is_none();
        if min_version == TlsVersion::Tls12 && !protocol.provider().cipher_suites.iter().any(for_12) {
            return Err(TlsNameError::NoSuite);
        }
        Ok(protocol)
    }

    /// The provider of cryptography with these suites.
    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = rustls::crypto::ring::default_provider();
        if !self.suites.is_empty() {
            let is_13 = |suite: &CipherSuite| SUITES[..3].iter().any(|(_, one)| one == suite);
            let names_13 = self.suites.iter().any(is_13);
            provider
                .cipher_suites
                .retain(|suite| self.suites.contains(&suite.suite()) || !names_13 && is_13(&suite.suite()));
        }
        Arc::new(provider)
    }

    pub(super) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.min_version {
            TlsVersion::Tls12 => rustls::ALL_VERSIONS,
            TlsVersion::Tls13 => &ONLY_13,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_go() {
        assert_eq!("VersionTLS13".parse(), Ok(TlsVersion::Tls13));
        assert_eq!(TlsVersion::default().to_string(), "VersionTLS12");
        let wrong = |name: &str| name.parse::<TlsVersion>().unwrap_err().to_string();
        assert!(wrong("VersionTLS11").contains("VersionTLS11 is not supported"), "{}", wrong("VersionTLS11"));
        assert!(wrong("1.2").contains("unknown tls version \"1.2\""), "{}", wrong("1.2"));
        let wrong = |names: &[&str]| TlsProtocol::new(TlsVersion::Tls12, names).unwrap_err().to_string();
        assert!(wrong(&["TLS_FOO"]).starts_with("Cipher suite TLS_FOO not supported or doesn't exist"));
        let insecure = wrong(&["TLS_RSA_WITH_AES_128_CBC_SHA"]);
        assert!(insecure.contains("not secure"), "{insecure}");
        for name in INSECURE {
            assert!(TlsProtocol::new(TlsVersion::Tls12, [name]).is_err());
        }
    }

    #[test]
    fn suites_of_tls_13_are_all_used_unless_named() {
        let of = |names: &[&str]| {
            let provider = TlsProtocol::new(TlsVersion::Tls12, names).unwrap().provider();
            let count = |is_13: bool| {
                provider.cipher_suites.iter().filter(|suite| suite.tls13().is_some() == is_13).count()
            };
            (count(true), count(false))
        };
        assert_eq!(of(&[]), (3, 6));
        assert_eq!(of(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]), (3, 1));
        assert_eq!(of(&["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_AES_128_GCM_SHA256"]), (1, 1));
        let only_13 = TlsProtocol::new(TlsVersion::Tls12, ["TLS_AES_128_GCM_SHA256"]);
        assert_eq!(only_13, Err(TlsNameError::NoSuite));
        assert!(TlsProtocol::new(TlsVersion::Tls13, ["TLS_AES_128_GCM_SHA256"]).is_ok());
    }
}
