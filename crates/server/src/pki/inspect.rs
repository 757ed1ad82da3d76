//! What a certificate says, for people who look at their certificates.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};

use super::PkiError;
use crate::der::{COMMON_NAME, INTEGER, OBJECT_ID, ORGANIZATION, SEQUENCE, SET, element, expect, time};

const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// What a certificate says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateInfo {
    /// The `CN` of its subject: for a client, the user.
    pub name: String,
    /// The `O`s of its subject: for a client, the groups.
    pub groups: Vec<String>,
    /// The `CN` of its issuer.
    pub issuer: String,
    /// The domain names and IP addresses that it is for.
    pub names: Vec<String>,
    /// From when on it is valid, in seconds since 1970.
    pub from: i64,
    /// Until when it is valid, likewise.
    pub until: i64,
    /// Whether it can issue others.
    pub is_authority: bool,
    /// Its number, in hexadecimal.
    pub serial: String,
    /// Its SHA-256, in hexadecimal.
    pub fingerprint: String,
}

/// A time in seconds since 1970, as Kubernetes writes it: `2026-11-19T12:00:00Z`.
#[must_use]
pub fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "unknown".to_owned(), |time| time.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The certificates in a PEM text, in their order.
///
/// # Errors
/// If there is none, or one cannot be read.
pub fn inspect(pem: &str) -> Result<Vec<CertificateInfo>, PkiError> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| PkiError::Certificate(error.to_string()))?;
        let info = read(&certificate).ok_or_else(|| PkiError::Certificate("it is damaged".into()))?;
        found.push(info);
    }
    match found.is_empty() {
        true => Err(PkiError::Certificate("there is none".into())),
        false => Ok(found),
    }
}

fn read(certificate: &[u8]) -> Option<CertificateInfo> {
    let (whole, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(whole, SEQUENCE)?;
    // The version is optional, and tagged.
    if let Some((_, rest)) = expect(fields, 0xa0) {
        fields = rest;
    }
    let (serial, fields) = expect(fields, INTEGER)?;
    let (_, fields) = expect(fields, SEQUENCE)?;
    let (issuer, fields) = expect(fields, SEQUENCE)?;
    let (validity, fields) = expect(fields, SEQUENCE)?;
    let (subject, fields) = expect(fields, SEQUENCE)?;
    let (_, mut fields) = expect(fields, SEQUENCE)?;
    let (tag, from, validity) = element(validity)?;
    let from = time(tag, from)?;
    let (tag, until, _) = element(validity)?;
    let mut info = CertificateInfo {
        name: attributes(subject, COMMON_NAME)?.pop().unwrap_or_default(),
        groups: attributes(subject, ORGANIZATION)?,
        issuer: attributes(issuer, COMMON_NAME)?.pop().unwrap_or_default(),
        from,
        until: time(tag, until)?,
        serial: hex(serial),
        fingerprint: hex(&Sha256::digest(certificate)),
        ..CertificateInfo::default()
    };
    while !fields.is_empty() {
        let (tag, content, rest) = element(fields)?;
        fields = rest;
        if tag == 0xa3 {
            let (mut extensions, _) = expect(content, SEQUENCE)?;
            while !extensions.is_empty() {
                let (extension, rest) = expect(extensions, SEQUENCE)?;
                extensions = rest;
                read_extension(extension, &mut info)?;
            }
        }
    }
    Some(info)
}

fn read_extension(extension: &[u8], info: &mut CertificateInfo) -> Option<()> {
    let (id, mut value) = expect(extension, OBJECT_ID)?;
    if let Some((_, after_critical)) = expect(value, 0x01) {
        value = after_critical;
    }
    let (value, _) = expect(value, 0x04)?;
    match id {
        BASIC_CONSTRAINTS => {
            let (constraints, _) = expect(value, SEQUENCE)?;
            info.is_authority = expect(constraints, 0x01).is_some_and(|(flag, _)| flag != [0]);
        }
        ALTERNATIVE_NAMES => {
            let (mut names, _) = expect(value, SEQUENCE)?;
            while !names.is_empty() {
                let (tag, name, rest) = element(names)?;
                names = rest;
                match (tag, name.len()) {
                    (0x82, _) => info.names.push(String::from_utf8_lossy(name).into_owned()),
                    (0x87, 4) => {
                        info.names.push(std::net::IpAddr::from(<[u8; 4]>::try_from(name).ok()?).to_string());
                    }
                    (0x87, 16) => {
                        info.names.push(std::net::IpAddr::from(<[u8; 16]>::try_from(name).ok()?).to_string());
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Some(())
}

/// The values of an attribute of a name.
fn attributes(mut name: &[u8], wanted: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    while !name.is_empty() {
        let (mut set, rest) = expect(name, SET)?;
        name = rest;
        while !set.is_empty() {
            let (attribute, rest) = expect(set, SEQUENCE)?;
            set = rest;
            let (id, value) = expect(attribute, OBJECT_ID)?;
            let (_, value, _) = element(value)?;
            if id == wanted {
                found.push(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::pki::Authority;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn certificates_say_whose_they_are_and_until_when() {
        let now = SystemTime::UNIX_EPOCH + DAY * 20_000;
        let authority = Authority::generate(now).unwrap();
        let [own] = inspect(authority.certificate()).unwrap().try_into().unwrap();
        assert_eq!((&*own.name, &*own.issuer, own.is_authority), ("k1s", "k1s", true));
        let names = ["localhost", "*.example.com", "127.0.0.1", "::1"].map(str::to_owned);
        let serving = authority.issue(&names, now).unwrap();
        let [serving] = inspect(&serving.certificate).unwrap().try_into().unwrap();
        assert_eq!((&*serving.name, serving.is_authority), ("kube-apiserver", false));
        assert_eq!(serving.names, names);
        assert_eq!(serving.until, 86_400 * 20_365);
        let groups = ["devs", "qa"].map(str::to_owned);
        let client = authority.issue_client("alice", &groups, DAY * 3, now, [7; 16]).unwrap();
        let [client] = inspect(&client.certificate).unwrap().try_into().unwrap();
        assert_eq!((&*client.name, &*client.issuer, client.until), ("alice", "k1s", 86_400 * 20_003));
        assert_eq!(client.groups, groups);
        assert_eq!((client.serial.len(), client.fingerprint.len()), (32, 64));
        assert!(inspect("").is_err());
        assert!(inspect("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").is_err());
    }
}
