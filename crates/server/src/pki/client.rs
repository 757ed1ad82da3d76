//! Certificates of clients. They are written here and not by `rcgen`, whose names have one `O` at most: a user has many groups.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, tz::TimeZone};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject as _};

use super::{Authority, PkiError, SKEW, TlsFiles, provider, since_epoch};
use crate::{
    der::{COMMON_NAME, INTEGER, OBJECT_ID, ORGANIZATION, SEQUENCE, SET, UTF8, expect, from_validity, write},
    identity::valid_until,
    pem,
};

/// ECDSA with SHA-256, SHA-384, and Ed25519.
const ECDSA_256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ECDSA_384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
pub(crate) const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Maximum length of a user's or a group's name in a certificate.
const MAX_NAME: usize = 1024;

/// What a certificate says.
pub(crate) struct Content<'a> {
    /// Object ids and values.
    pub(crate) subject: Vec<(&'a [u8], &'a str)>,
    /// The `SubjectPublicKeyInfo`.
    pub(crate) key: &'a [u8],
    /// From when until when it is valid, since 1970.
    pub(crate) times: (Duration, Duration),
    pub(crate) extensions: Vec<Vec<u8>>,
    /// Random bytes.
    pub(crate) serial: [u8; 16],
}

/// An attribute of a name.
fn name(id: &[u8], text: &str) -> Vec<u8> {
    let pair = write(SEQUENCE, &[&write(OBJECT_ID, &[id]), &write(UTF8, &[text.as_bytes()])]);
    write(SET, &[&pair])
}

pub(crate) fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mark: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    write(SEQUENCE, &[&write(OBJECT_ID, &[id]), mark, &write(0x04, &[value])])
}

/// The usages of the key; `bits` from the highest, without zeros at the end.
pub(crate) fn key_usage(bits: &[u8]) -> Vec<u8> {
    let unused = bits.last().map_or(0, |last| last.trailing_zeros().min(7));
    extension(KEY_USAGE, true, &write(0x03, &[&[u8::try_from(unused).unwrap_or_default()], bits]))
}

pub(crate) fn extended_key_usage(ids: &[&[u8]]) -> Vec<u8> {
    let ids: Vec<u8> = ids.iter().flat_map(|id| write(OBJECT_ID, &[id])).collect();
    extension(EXTENDED_KEY_USAGE, false, &write(SEQUENCE, &[&ids]))
}

/// That it is no authority.
pub(super) fn no_authority() -> Vec<u8> {
    extension(BASIC_CONSTRAINTS, true, &write(SEQUENCE, &[]))
}

impl Authority {
    /// A certificate with which a client is this user, in these groups. `serial` is random.
    ///
    /// # Errors
    /// If a name is empty or too long, or the authority cannot sign.
    pub fn issue_client(
        &self,
        user: &str,
        groups: &[String],
        validity: Duration,
        now: SystemTime,
        serial: [u8; 16],
    ) -> Result<TlsFiles, PkiError> {
        for name in groups.iter().map(String::as_str).chain([user]) {
            if name.is_empty() || name.len() > MAX_NAME {
                return Err(PkiError::Name(name.chars().take(40).collect()));
            }
        }
        let key = KeyPair::generate()?;
        let organizations = groups.iter().map(|group| (ORGANIZATION, group.as_str()));
        let now_since = since_epoch(now);
        let certificate = self.certify(Content {
            subject: organizations.chain([(COMMON_NAME, user)]).collect(),
            key: &key.subject_public_key_info(),
            times: (now_since.saturating_sub(SKEW), now_since + validity),
            extensions: vec![
                // Digital signature and key encipherment.
                key_usage(&[0xa0]),
                extended_key_usage(&[CLIENT_AUTH]),
                no_authority(),
            ],
            serial,
        })?;
        let files = TlsFiles {
            certificate: pem::encode("CERTIFICATE", &certificate),
            key: key.serialize_pem(),
            authority: self.certificate.clone(),
        };
        files.check_client(now).map_err(PkiError::Foreign)?;
        Ok(files)
    }

    /// Signs a certificate, as DER.
    pub(crate) fn certify(&self, content: Content<'_>) -> Result<Vec<u8>, PkiError> {
        let Content { subject, key, times, extensions, mut serial } = content;
        let signer = self.issuer.key();
        let algorithm = match signer.algorithm() {
            one if *one == rcgen::PKCS_ECDSA_P256_SHA256 => ECDSA_256,
            one if *one == rcgen::PKCS_ECDSA_P384_SHA384 => ECDSA_384,
            one if *one == rcgen::PKCS_ED25519 => ED25519,
            _ => return Err(PkiError::Foreign("only ECDSA and Ed25519 keys can sign here".into())),
        };
        let algorithm = write(SEQUENCE, &[&write(OBJECT_ID, &[algorithm])]);
        // Positive, and without leading zeros.
        serial[0] = serial[0] & 0x7f | 0x40;
        let subject: Vec<u8> = subject.into_iter().flat_map(|(id, text)| name(id, text)).collect();
        let times = [time(times.0)?, time(times.1)?].concat();
        let content = write(
            SEQUENCE,
            &[
                &write(0xa0, &[&write(INTEGER, &[&[2]])]),
                &write(INTEGER, &[&serial]),
                &algorithm,
                &self.subject()?,
                &write(SEQUENCE, &[&times]),
                &write(SEQUENCE, &[&subject]),
                key,
                &write(0xa3, &[&write(SEQUENCE, &[&extensions.concat()])]),
            ],
        );
        let signature = signer.sign(&content)?;
        Ok(write(SEQUENCE, &[&content, &algorithm, &write(0x03, &[&[0], &signature])]))
    }

    fn der(&self) -> Result<CertificateDer<'static>, PkiError> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|error| PkiError::Certificate(error.to_string()))
    }

    /// Until when the authority is valid, in seconds since 1970.
    pub(super) fn until(&self) -> Result<i64, PkiError> {
        let der = self.der()?;
        valid_until(&der).ok_or_else(|| PkiError::Certificate("its validity cannot be read".into()))
    }

    /// The name of the authority, as its certificate has it.
    fn subject(&self) -> Result<Vec<u8>, PkiError> {
        let der = self.der()?;
        let subject = from_validity(&der)
            .and_then(|fields| expect(fields, SEQUENCE))
            .and_then(|(_, fields)| expect(fields, SEQUENCE));
        subject
            .map(|(name, _)| write(SEQUENCE, &[name]))
            .ok_or_else(|| PkiError::Certificate("it has no subject".into()))
    }
}

impl TlsFiles {
    /// Checks that a server that trusts the authority would accept the certificate of a client at this time.
    ///
    /// # Errors
    /// Why it would not.
    pub fn check_client(&self, time: SystemTime) -> Result<(), String> {
        let mut roots = rustls::RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.authority.as_bytes()) {
            authority
                .map_err(|error| error.to_string())
                .and_then(|authority| roots.add(authority).map_err(|error| error.to_string()))?;
        }
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            std::sync::Arc::new(roots),
            provider(),
        )
        .build()
        .map_err(|error| error.to_string())?;
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|error| error.to_string())?;
        let time = UnixTime::since_unix_epoch(since_epoch(time));
        verifier.verify_client_cert(&certificate, &[], time).map(drop).map_err(|error| error.to_string())
    }
}

/// A time: with two digits for the year until 2049, as certificates have to.
fn time(since_epoch: Duration) -> Result<Vec<u8>, PkiError> {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    let invalid = || PkiError::Name("a validity of so many years".into());
    let at = Timestamp::from_second(seconds).map_err(|_| invalid())?.to_zoned(TimeZone::UTC);
    Ok(match at.year() {
        1950..2050 => write(0x17, &[at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()]),
        _ => write(0x18, &[at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Certificate;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * 20_000
    }

    #[test]
    fn a_client_has_its_name_and_all_its_groups() {
        let authority = Authority::generate(now()).unwrap();
        let groups: Vec<String> = ["devs", "qa", "ops: Zürich"].map(str::to_owned).to_vec();
        let files = authority.issue_client("alice", &groups, DAY * 365, now(), [0xff; 16]).unwrap();
        files.check_client(now() + DAY * 364).unwrap();
        assert!(files.check_client(now() + DAY * 366).unwrap_err().contains("xpired"));
        let der = CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap();
        let Certificate { user, until, tenant } = Certificate::read(&der, "ab").unwrap();
        assert_eq!(tenant, None);
        let user = user.unwrap();
        assert_eq!((&*user.name, until), ("alice", 86400 * 20_365));
        assert_eq!(user.groups, ["devs", "qa", "ops: Zürich", "system:authenticated"]);
        // It is not a certificate of a server, nor the other way round.
        assert!(files.check(&["localhost".into()], now()).is_err());
        let serving = authority.issue(&["localhost".into()], now()).unwrap();
        assert!(serving.check_client(now()).is_err());
        // Valid beyond 2049.
        authority.issue_client("alice", &[], DAY * 36_500, now(), [0; 16]).unwrap();
    }

    #[test]
    fn a_client_of_another_authority_is_not_valid() {
        let (one, other) = (Authority::generate(now()).unwrap(), Authority::generate(now()).unwrap());
        let files = one.issue_client("alice", &[], DAY, now(), [1; 16]).unwrap();
        let foreign = TlsFiles { authority: other.certificate().to_owned(), ..files };
        assert!(foreign.check_client(now()).is_err());
        for bad in ["", &*"x".repeat(2000)] {
            assert!(one.issue_client(bad, &[], DAY, now(), [1; 16]).is_err());
        }
    }
}
