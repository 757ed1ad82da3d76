//! Which certificate a listener presents to whom: the one for the name that the client asks for.

use std::{io, sync::Arc};

use rustls::{
    client::verify_server_name,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject as _},
    server::{ClientHello, ParsedCertificate, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::tls::wrong;

/// A certificate for certain names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NamedCertificate {
    /// The certificate, followed by its intermediate certificates, as PEM.
    pub certificate: String,
    /// The private key, as PEM.
    pub key: String,
    /// Domain names, possibly beginning with `*.`. If there are none, those of the certificate.
    pub names: Vec<String>,
}

impl NamedCertificate {
    /// A certificate for these names, or its own.
    pub fn new(
        certificate: impl Into<String>,
        key: impl Into<String>,
        names: Vec<String>,
    ) -> NamedCertificate {
        NamedCertificate { certificate: certificate.into(), key: key.into(), names }
    }
}

/// Reads a certificate and its key.
pub(super) fn certified_key(
    certificate: &str,
    key: &str,
    provider: &CryptoProvider,
) -> io::Result<CertifiedKey> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    if chain.is_empty() {
        return Err(wrong("certificate", &"the file contains none"));
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .or_else(|_| PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map(PrivateKeyDer::from))
        .map_err(|error| wrong("key", &error))?;
    // Also checks that they belong together.
    CertifiedKey::from_der(chain, key, provider).map_err(|error| wrong("certificate", &error))
}

#[derive(Debug)]
struct Named {
    key: Arc<CertifiedKey>,
    /// Lower-case.
    names: Vec<String>,
}

/// Chooses a certificate as kube-apiserver does: names before wildcards, given names before those of certificates.
#[derive(Debug)]
pub(super) struct Certificates {
    default: Arc<CertifiedKey>,
    named: Vec<Named>,
}

impl Certificates {
    pub(super) fn new(
        default: CertifiedKey,
        named: &[NamedCertificate],
        provider: &CryptoProvider,
    ) -> io::Result<Certificates> {
        let read = |one: &NamedCertificate| {
            let key = Arc::new(certified_key(&one.certificate, &one.key, provider)?);
            Ok(Named { key, names: one.names.iter().map(|name| name.to_ascii_lowercase()).collect() })
        };
        let named = named.iter().map(read).collect::<io::Result<_>>()?;
        Ok(Certificates { default: Arc::new(default), named })
    }

    fn find(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let given = |matches: &dyn Fn(&str) -> bool| {
            self.named.iter().find(|one| one.names.iter().any(|pattern| matches(pattern)))
        };
        let own = || {
            let asked = ServerName::try_from(name.as_str()).ok()?;
            let is_for = |one: &&Named| {
                let certificate = one.key.cert.first().and_then(|one| ParsedCertificate::try_from(one).ok());
                certificate.is_some_and(|certificate| verify_server_name(&certificate, &asked).is_ok())
            };
            self.named.iter().filter(|one| one.names.is_empty()).find(is_for)
        };
        let found = given(&|pattern| pattern == name).or_else(|| given(&|pattern| covers(pattern, &name)));
        found.or_else(own).map_or(&self.default, |one| &one.key)
    }
}

/// Whether `*.example.com` covers `a.example.com`.
fn covers(pattern: &str, name: &str) -> bool {
    let parent = name.split_once('.').map(|(_, parent)| parent);
    pattern.strip_prefix("*.").is_some_and(|rest| parent == Some(rest))
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(match hello.server_name() {
            Some(name) => self.find(name).clone(),
            None => self.default.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_that_of_the_name() {
        let provider = rustls::crypto::ring::default_provider();
        let issue = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            crate::pki::certificate(&names).unwrap()
        };
        let named = |own: &[&str], given: &[&str]| {
            let files = issue(own);
            let given = given.iter().map(|name| (*name).to_owned()).collect();
            NamedCertificate::new(files.certificate, files.key, given)
        };
        let default = issue(&["localhost"]);
        let all = [
            named(&["a.example.com", "*.example.org"], &[]),
            named(&["x"], &["*.example.com", "Example.net"]),
            named(&["b.example.com"], &["b.example.com"]),
        ];
        let default = certified_key(&default.certificate, &default.key, &provider).unwrap();
        let certificates = Certificates::new(default, &all, &provider).unwrap();
        let number = |name: &str| {
            let found = certificates.find(name);
            certificates.named.iter().position(|one| Arc::ptr_eq(&one.key, found))
        };
        for (name, expected) in [
            ("a.example.com", Some(1)),
            ("b.example.com", Some(2)),
            ("B.Example.Com.", Some(2)),
            ("c.example.com", Some(1)),
            ("d.c.example.com", None),
            ("example.com", None),
            ("example.net", Some(1)),
            ("z.example.org", Some(0)),
            ("localhost", None),
        ] {
            assert_eq!(number(name), expected, "{name}");
        }
        let (one, other) = (issue(&["a"]), issue(&["b"]));
        let mixed = [NamedCertificate::new(one.certificate, other.key, vec![])];
        let default = certified_key(&other.certificate, &issue(&["c"]).key, &provider);
        assert!(default.is_err(), "another key");
        let good = issue(&["d"]);
        let default = certified_key(&good.certificate, &good.key, &provider).unwrap();
        assert!(Certificates::new(default, &mixed, &provider).is_err());
    }
}
