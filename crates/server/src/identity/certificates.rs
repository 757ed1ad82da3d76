//! Client certificates: the user in a certificate that was verified.
//!
//! Only the subject, the end of the validity and the tenant are read here. That the certificate is well-formed, and issued by an
//! authority that is trusted, was verified before (`serve/tls.rs`).

use super::User;
use crate::der::{
    COMMON_NAME, OBJECT_ID, ORGANIZATION, SEQUENCE, SET, TENANT, element, expect, extension, from_validity,
    time,
};

/// 1.3.6.1.4.1.57683.2: the uid of the user, as in kube-apiserver.
const UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// A string of a name.
fn text(tag: u8, bytes: &[u8]) -> Option<String> {
    match tag {
        // UTF8String, PrintableString, IA5String, NumericString, TeletexString.
        0x0c | 0x13 | 0x16 | 0x12 | 0x14 => std::str::from_utf8(bytes).ok().map(str::to_owned),
        // BMPString.
        0x1e if bytes.len().is_multiple_of(2) => {
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte)))
                .collect();
            String::from_utf16(&units).ok()
        }
        _ => None,
    }
}

/// What a certificate says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Its user; `None` if its subject has no name.
    pub(crate) user: Option<User>,
    /// When it expires, in seconds since 1970.
    pub(crate) until: i64,
    /// The only tenant in which it is valid; `None` if it is in all.
    pub(crate) tenant: Option<Box<str>>,
}

/// When a certificate, as DER, expires: in seconds since 1970.
pub(crate) fn valid_until(certificate: &[u8]) -> Option<i64> {
    let (validity, _) = expect(from_validity(certificate)?, SEQUENCE)?;
    let (_, _, end) = element(validity)?;
    let (tag, end, _) = element(end)?;
    time(tag, end)
}

impl Certificate {
    /// Reads a verified certificate, as DER; `None` if its subject cannot be read. `fingerprint` is its SHA-256, in hex.
    pub(crate) fn read(certificate: &[u8], fingerprint: &str) -> Option<Certificate> {
        let until = valid_until(certificate)?;
        let (_, fields) = expect(from_validity(certificate)?, SEQUENCE)?;
        let (mut subject, after_subject) = expect(fields, SEQUENCE)?;
        // Subject and key are followed by extensions.
        let (_, extensions) = expect(after_subject, SEQUENCE)?;
        let tenant = match extension(extensions, TENANT) {
            Some(tenant) => Some(std::str::from_utf8(tenant).ok()?.into()),
            None => None,
        };
        let (mut user, mut uids) = (User::default(), Vec::new());
        while !subject.is_empty() {
            let (mut set, rest) = expect(subject, SET)?;
            subject = rest;
            while !set.is_empty() {
                let (attribute, rest) = expect(set, SEQUENCE)?;
                set = rest;
                let (id, value) = expect(attribute, OBJECT_ID)?;
                let (tag, value, _) = element(value)?;
                match id {
                    COMMON_NAME => user.name = text(tag, value)?,
                    ORGANIZATION => user.groups.push(text(tag, value)?),
                    UID => uids.push(text(tag, value)?),
                    _ => {}
                }
            }
        }
        if user.name.is_empty() {
            return Some(Certificate { user: None, until, tenant });
        }
        match uids.as_slice() {
            [] => {}
            [uid] if !uid.is_empty() => user.uid.clone_from(uid),
            _ => return None,
        }
        let id = format!("X509SHA256={fingerprint}");
        user.extra.push(("authentication.kubernetes.io/credential-id".into(), vec![id]));
        Some(Certificate { user: Some(user.authenticated()), until, tenant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_certificates_have_no_user() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x02, 0x30, 0x00]] {
            assert_eq!(Certificate::read(bytes, ""), None);
        }
    }
}
