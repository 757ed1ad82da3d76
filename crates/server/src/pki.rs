//! A certificate authority, and the certificates that it issues to servers and clients.

mod client;
mod inspect;
mod request;
mod rotation;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

#[cfg(test)]
pub(crate) use client::{CLIENT_AUTH, Content, extended_key_usage, extension};
pub use request::{Signing, SigningError, SigningRequest, certificate_end, kubelet_client_name};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Maximum clock skew: certificates are valid from this long before they are issued.
const SKEW: Duration = Duration::from_secs(3600);
/// Every kubeconfig contains the authority, so it should never expire in practice.
const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(36_500);
/// As in kubeadm.
const SERVING_VALIDITY: Duration = DAY.saturating_mul(365);

pub use inspect::{CertificateInfo, inspect, timestamp};

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: String,
    /// The private key.
    pub key: String,
    /// The authority that clients should trust.
    pub authority: String,
}

impl fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsFiles")
    }
}

impl TlsFiles {
    /// Checks that a client that trusts the authority would accept the certificate for each of these names and addresses at
    /// this time.
    ///
    /// # Errors
    /// Why it would not: damaged, issued by another authority, not valid for a name, expired.
    pub fn check(&self, names: &[String], time: SystemTime) -> Result<(), String> {
        let (chain, verifier) = self.verifier()?;
        let Some((certificate, between)) = chain.split_first() else {
            return Err("there is no certificate".into());
        };
        let time = UnixTime::since_unix_epoch(since_epoch(time));
        for name in names {
            // A wildcard matches any label. Names that are not valid in TLS cannot be requested by clients.
            let Ok(asked) = ServerName::try_from(name.replacen('*', "any", 1)) else { continue };
            verifier
                .verify_server_cert(certificate, between, &asked, &[], time)
                .map_err(|error| format!("not good for {name}: {error}"))?;
        }
        Ok(())
    }

    /// Whether the certificate was issued by the authority with [`Authority::issue`], at any time and for any names. False if
    /// it cannot be read.
    #[must_use]
    pub fn is_by_its_authority(&self, now: SystemTime) -> bool {
        use rustls::{CertificateError as Problem, Error};
        let Ok((chain, verifier)) = self.verifier() else { return false };
        let Some((certificate, between)) = chain.split_first() else { return false };
        let Ok(name) = ServerName::try_from("localhost") else { return false };
        // The verifier checks the validity period first, so this searches for a time within it.
        let mut time = since_epoch(now);
        let mut direction = None;
        for _ in 0..100 {
            let at = UnixTime::since_unix_epoch(time);
            let later = match verifier.verify_server_cert(certificate, between, &name, &[], at) {
                Ok(_) => return true,
                Err(Error::InvalidCertificate(
                    Problem::NotValidForName | Problem::NotValidForNameContext { .. },
                )) => return true,
                Err(Error::InvalidCertificate(Problem::Expired | Problem::ExpiredContext { .. })) => false,
                Err(Error::InvalidCertificate(Problem::NotValidYet | Problem::NotValidYetContext { .. })) => {
                    true
                }
                Err(_) => return false,
            };
            if direction.is_some_and(|direction| direction != later) {
                // Its validity is shorter than that of certificates issued here.
                return false;
            }
            direction = Some(later);
            let step = SERVING_VALIDITY / 2;
            time = if later { time + step } else { time.saturating_sub(step) };
        }
        false
    }

    /// The certificate chain, which is checked to match the key, and a verifier that acts as a client.
    fn verifier(&self) -> Result<(Vec<CertificateDer<'static>>, Arc<WebPkiServerVerifier>), String> {
        let provider = provider();
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        if chain.is_empty() {
            return Err("there is no certificate".into());
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| format!("the key cannot be read: {error}"))?;
        rustls::sign::CertifiedKey::from_der(chain.clone(), key, &provider)
            .map_err(|error| format!("certificate and key do not fit together: {error}"))?;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.authority.as_bytes()) {
            authority
                .map_err(|error| error.to_string())
                .and_then(|authority| roots.add(authority).map_err(|error| error.to_string()))
                .map_err(|error| format!("the authority cannot be read: {error}"))?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| format!("the authority cannot be used: {error}"))?;
        Ok((chain, verifier))
    }
}

/// A certificate for these names and addresses, signed by a temporary authority: for servers that keep no state. Other
/// servers should store an [`Authority`].
///
/// # Errors
/// If a name is invalid.
pub fn certificate(names: &[String]) -> Result<TlsFiles, PkiError> {
    let key = KeyPair::generate()?;
    let authority = Authority::signed(authority_params()?, key)?;
    authority.sign(&serving_params(names)?)
}

/// Why an authority cannot be loaded, or a certificate cannot be issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// It cannot be created, most likely because of an invalid name.
    #[error("the certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// This cannot be in a certificate.
    #[error("{0:?} cannot be in a certificate: a name must have between 1 and 1024 bytes")]
    Name(String),
    /// This is not a private key.
    #[error("it is not a private key: {0}")]
    Key(String),
    /// This is not a certificate.
    #[error("it is not a certificate: {0}")]
    Certificate(String),
    /// The certificate does not match the key.
    #[error("it is not the certificate of the authority's key")]
    NotThisKeys,
    /// Clients that trust the authority would not accept certificates issued with it here.
    #[error("certificates cannot be issued by this authority, which was made by another program: {0}")]
    Foreign(String),
}

/// A certificate authority with its key. If it is stored, clients that trust it also accept renewed serving certificates.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
    /// Those that it has replaced, the newest first.
    earlier: Vec<rotation::Earlier>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// A new one, valid for a hundred years.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn generate(now: SystemTime) -> Result<Authority, PkiError> {
        Authority::of_key(KeyPair::generate()?, now)
    }

    /// Recreates an authority whose certificate is lost from its key. Clients that trusted it still do.
    ///
    /// # Errors
    /// If this is not a key.
    pub fn from_key(key: &str, now: SystemTime) -> Result<Authority, PkiError> {
        Authority::of_key(parse_key(key)?, now)
    }

    /// Loads a stored authority from PEM.
    ///
    /// # Errors
    /// If one of them cannot be read, or they do not match.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Authority, PkiError> {
        let pair = parse_key(key)?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|error| PkiError::Certificate(error.to_string()))?;
        RootCertStore::empty().add(der.clone()).map_err(|error| PkiError::Certificate(error.to_string()))?;
        let private =
            PrivateKeyDer::try_from(pair.serialize_der()).map_err(|error| PkiError::Key(error.into()))?;
        rustls::sign::CertifiedKey::from_der(vec![der], private, &provider())
            .map_err(|_| PkiError::NotThisKeys)?;
        // All authorities created here have the same issuer parameters, but for the name.
        let mut params = authority_params()?;
        params.distinguished_name = name_of(certificate)?;
        let issuer = Issuer::new(params, pair);
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Authority { certificate, key, issuer, earlier: Vec::new() })
    }

    fn of_key(key: KeyPair, now: SystemTime) -> Result<Authority, PkiError> {
        Authority::named(NAME, key, now)
    }

    fn named(name: &str, key: KeyPair, now: SystemTime) -> Result<Authority, PkiError> {
        let mut params = authority_params()?;
        params.distinguished_name = common_name(name);
        // Small machines may set their clock after the first start; the authority must be valid before and after.
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(now) + AUTHORITY_VALIDITY;
        Authority::signed(params, key)
    }

    fn signed(params: CertificateParams, key: KeyPair) -> Result<Authority, PkiError> {
        let certificate = params.self_signed(&key)?.pem();
        let text = key.serialize_pem();
        let issuer = Issuer::new(params, key);
        Ok(Authority { certificate, key: text, issuer, earlier: Vec::new() })
    }

    /// The certificate that clients should trust, as PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The private key, as PEM. Anyone who has it can impersonate the server.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A serving certificate for these names and addresses, valid for a year.
    ///
    /// # Errors
    /// If a name is invalid, or this authority was created by another program.
    pub fn issue(&self, names: &[String], now: SystemTime) -> Result<TlsFiles, PkiError> {
        let mut params = serving_params(names)?;
        let (epoch, now_since) = (rcgen::date_time_ymd(1970, 1, 1), since_epoch(now));
        params.not_before = epoch + now_since.saturating_sub(SKEW);
        params.not_after = epoch + now_since + SERVING_VALIDITY;
        let mut files = self.sign(&params)?;
        files.certificate.push_str(&self.crosses(now));
        files.authority = self.trusted(now);
        files.check(names, now).map_err(PkiError::Foreign)?;
        Ok(files)
    }

    fn sign(&self, params: &CertificateParams) -> Result<TlsFiles, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(TlsFiles {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            authority: self.certificate.clone(),
        })
    }
}

/// The name of an authority that has replaced none.
const NAME: &str = "k1s";

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// The name of an authority, by its certificate.
fn name_of(certificate: &str) -> Result<DistinguishedName, PkiError> {
    let info = inspect(certificate)?;
    Ok(common_name(info.first().map_or(NAME, |info| &*info.name)))
}

fn authority_params() -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = common_name(NAME);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn serving_params(names: &[String]) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn parse_key(key: &str) -> Result<KeyPair, PkiError> {
    KeyPair::from_pem(key).map_err(|error| PkiError::Key(error.to_string()))
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["localhost", "127.0.0.1", "::1", "*.example.com"].map(str::to_owned).to_vec()
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * 20_000
    }

    #[test]
    fn an_issued_certificate_is_valid_for_a_year_and_its_names() {
        let authority = Authority::generate(now()).unwrap();
        let files = authority.issue(&names(), now()).unwrap();
        files.check(&names(), now() + DAY * 364).unwrap();
        let late = files.check(&names(), now() + DAY * 366).unwrap_err();
        assert!(late.contains("expired"), "{late}");
        let other = files.check(&["example.org".to_owned()], now()).unwrap_err();
        assert!(other.contains("not good for example.org"), "{other}");
        assert!(certificate(&names()).unwrap().check(&names(), now()).is_ok());
    }

    #[test]
    fn a_certificate_is_recognized_by_its_authority_at_any_time() {
        let authority = Authority::generate(now()).unwrap();
        let files = authority.issue(&["example.org".to_owned()], now()).unwrap();
        for at in [now(), now() + DAY * 400, now() + DAY * 4000, now() - DAY * 1000] {
            assert!(files.is_by_its_authority(at));
        }
        let other = Authority::generate(now()).unwrap();
        let foreign = TlsFiles { authority: other.certificate().to_owned(), ..files.clone() };
        for at in [now(), now() + DAY * 4000] {
            assert!(!foreign.is_by_its_authority(at));
        }
        assert!(!TlsFiles { certificate: "half of it".into(), ..files }.is_by_its_authority(now()));
    }

    #[test]
    fn a_stored_authority_continues_to_issue() {
        let first = Authority::generate(now()).unwrap();
        let kept = Authority::from_pem(first.certificate(), first.key()).unwrap();
        assert_eq!(kept.certificate(), first.certificate());
        kept.issue(&names(), now() + DAY * 1000).unwrap().check(&names(), now() + DAY * 1001).unwrap();

        // The certificate is lost: clients that have a copy accept what the recreated one issues.
        let again = Authority::from_key(first.key(), now() + DAY).unwrap();
        let files = again.issue(&names(), now() + DAY).unwrap();
        let trusting = TlsFiles { authority: first.certificate().to_owned(), ..files };
        trusting.check(&names(), now() + DAY).unwrap();
    }

    #[test]
    fn invalid_authorities_are_rejected() {
        let (one, other) = (Authority::generate(now()).unwrap(), Authority::generate(now()).unwrap());
        let mixed = Authority::from_pem(one.certificate(), other.key()).unwrap_err();
        assert!(matches!(mixed, PkiError::NotThisKeys), "{mixed}");
        let key = Authority::from_pem(one.certificate(), "nonsense").unwrap_err();
        assert!(matches!(key, PkiError::Key(_)), "{key}");
        let certificate = Authority::from_pem("nonsense", one.key()).unwrap_err();
        assert!(matches!(certificate, PkiError::Certificate(_)), "{certificate}");

        let key = KeyPair::generate().unwrap();
        let mut params = authority_params().unwrap();
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        params.distinguished_name.push(DnType::OrganizationName, "others");
        let foreign = params.self_signed(&key).unwrap().pem();
        let foreign = Authority::from_pem(&foreign, &key.serialize_pem()).unwrap();
        let refused = foreign.issue(&names(), now()).unwrap_err();
        assert!(refused.to_string().contains("made by another program"), "{refused}");
    }
}
