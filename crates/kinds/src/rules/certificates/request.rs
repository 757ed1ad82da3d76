//! PKCS #10: the certificate requests in `CertificateSigningRequest`s. Signatures are not verified here.

use std::{borrow::Cow, net::IpAddr};

use super::pem::{OBJECT_ID, SEQUENCE, SET, element, expect};

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// The attributes of a name that a certificate keeps, in Go's order: C, O, OU, L, ST, street, postal code, CN, serial number.
/// Others, above all the uid of a user, are dropped as they are there.
const KEPT: [u8; 9] = [0x06, 0x0a, 0x0b, 0x07, 0x08, 0x09, 0x11, 0x03, 0x05];
/// `extensionRequest`, 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

type Fault = Cow<'static, str>;

/// The subject of a certificate.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Object ids (as in DER) and values that a certificate keeps, in Go's order; of `CN` only the last.
    pub attributes: Vec<(Vec<u8>, String)>,
}

impl Subject {
    /// `CN`: the user.
    pub fn common_name(&self) -> &str {
        self.values(COMMON_NAME).last().unwrap_or_default()
    }

    /// `O`: the groups.
    pub fn organizations(&self) -> Vec<&str> {
        self.values(ORGANIZATION).collect()
    }

    fn values<'a>(&'a self, id: &'a [u8]) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter(move |(one, _)| one == id).map(|(_, value)| value.as_str())
    }
}

/// A certificate request.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whose certificate it is.
    pub subject: Subject,
    /// DNS names.
    pub dns_names: Vec<String>,
    /// Mail addresses.
    pub emails: Vec<String>,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// URIs.
    pub uris: Vec<String>,
    /// The public key, as a DER `SubjectPublicKeyInfo`.
    pub key: Vec<u8>,
    /// What the signature signs.
    pub signed: Vec<u8>,
    /// The object id of the signature's algorithm.
    pub algorithm: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

/// The first element as it is, with its header, and the bytes after it.
fn whole(bytes: &[u8], tag: u8) -> Result<(&[u8], &[u8]), Fault> {
    let (_, rest) = expect(bytes, tag)?;
    Ok(bytes.split_at(bytes.len() - rest.len()))
}

/// Parses a DER `CertificationRequest`.
pub(super) fn parse(bytes: &[u8]) -> Result<Request, Fault> {
    let (content, rest) = expect(bytes, SEQUENCE)?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data".into());
    }
    let (signed, rest) = whole(content, SEQUENCE)?;
    let (algorithm, signature) = expect(rest, SEQUENCE)?;
    let (algorithm, _) = expect(algorithm, OBJECT_ID)?;
    let (signature, _) = expect(signature, 0x03)?;
    let Some((0, signature)) = signature.split_first() else {
        return Err("asn1: syntax error: invalid padding bits in BIT STRING".into());
    };
    let (info, _) = expect(signed, SEQUENCE)?;
    let (_, fields) = expect(info, 0x02)?;
    let (name, fields) = expect(fields, SEQUENCE)?;
    let (key, fields) = whole(fields, SEQUENCE)?;
    let mut request = Request {
        subject: subject(name)?,
        key: key.to_owned(),
        signed: signed.to_owned(),
        algorithm: algorithm.to_owned(),
        signature: signature.to_owned(),
        ..Request::default()
    };
    if let Ok((attributes, _)) = expect(fields, 0xa0) {
        request.read_attributes(attributes)?;
    }
    Ok(request)
}

fn subject(mut name: &[u8]) -> Result<Subject, Fault> {
    let mut found: Vec<(Vec<u8>, String)> = Vec::new();
    while !name.is_empty() {
        let (mut set, rest) = expect(name, SET)?;
        name = rest;
        while !set.is_empty() {
            let (attribute, rest) = expect(set, SEQUENCE)?;
            set = rest;
            let (id, value) = expect(attribute, OBJECT_ID)?;
            let (tag, value, _) = element(value)?;
            let is_kept = matches!(id, [0x55, 0x04, last] if KEPT.contains(last));
            if is_kept {
                found.push((id.to_owned(), text(tag, value)?));
            }
        }
    }
    let mut attributes = Vec::with_capacity(found.len());
    for last in KEPT {
        let of: Vec<_> = found.iter().filter(|(id, _)| id.last() == Some(&last)).cloned().collect();
        // Of several common names and serial numbers, the last one counts.
        let first = if matches!(last, 0x03 | 0x05) { of.len().saturating_sub(1) } else { 0 };
        attributes.extend(of.into_iter().skip(first));
    }
    Ok(Subject { attributes })
}

/// A string of a name.
fn text(tag: u8, bytes: &[u8]) -> Result<String, Fault> {
    let wrong = || Fault::from("x509: invalid RDNSequence: invalid attribute value");
    match tag {
        // UTF8String, PrintableString, IA5String, NumericString, TeletexString.
        0x0c | 0x13 | 0x16 | 0x12 | 0x14 => String::from_utf8(bytes.to_owned()).map_err(|_| wrong()),
        // BMPString.
        0x1e if bytes.len().is_multiple_of(2) => {
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte)))
                .collect();
            String::from_utf16(&units).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

impl Request {
    fn read_attributes(&mut self, mut attributes: &[u8]) -> Result<(), Fault> {
        while !attributes.is_empty() {
            let (attribute, rest) = expect(attributes, SEQUENCE)?;
            attributes = rest;
            let (id, values) = expect(attribute, OBJECT_ID)?;
            if id != EXTENSION_REQUEST {
                continue;
            }
            let (values, _) = expect(values, SET)?;
            let (mut extensions, _) = expect(values, SEQUENCE)?;
            while !extensions.is_empty() {
                let (extension, rest) = expect(extensions, SEQUENCE)?;
                extensions = rest;
                let (id, mut value) = expect(extension, OBJECT_ID)?;
                if let Ok((_, after_critical)) = expect(value, 0x01) {
                    value = after_critical;
                }
                let (octets, _) = expect(value, 0x04)?;
                if id == ALTERNATIVE_NAMES {
                    self.read_alternative_names(octets)?;
                }
            }
        }
        Ok(())
    }

    fn read_alternative_names(&mut self, octets: &[u8]) -> Result<(), Fault> {
        let (mut names, _) = expect(octets, SEQUENCE)?;
        let ascii = |bytes: &[u8], kind: &str| match bytes.is_ascii() {
            true => Ok(String::from_utf8_lossy(bytes).into_owned()),
            false => Err(Fault::from(format!("x509: SAN {kind} is malformed"))),
        };
        while !names.is_empty() {
            let (tag, name, rest) = element(names)?;
            names = rest;
            match tag {
                0x81 => self.emails.push(ascii(name, "rfc822Name")?),
                0x82 => self.dns_names.push(ascii(name, "dNSName")?),
                0x86 => self.uris.push(ascii(name, "uniformResourceIdentifier")?),
                0x87 => self.addresses.push(if let Ok(four) = <[u8; 4]>::try_from(name) {
                    four.into()
                } else if let Ok(sixteen) = <[u8; 16]>::try_from(name) {
                    sixteen.into()
                } else {
                    return Err(format!("x509: cannot parse IP address of length {}", name.len()).into());
                }),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_der_is_not_a_certificate_request() {
        for bytes in
            [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x02, 0x01, 0x00]]
        {
            assert!(parse(bytes).is_err());
        }
    }

    #[test]
    fn names_are_read_in_every_encoding_and_unknown_attributes_are_dropped() {
        // UID, CN as BMPString, CN as UTF8String, O.
        let attribute = |id: &[u8], tag: u8, value: &[u8]| {
            let size = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
            let pair = [&[OBJECT_ID, size(id)], id, &[tag, size(value)], value].concat();
            let sequence = [&[SEQUENCE, size(&pair)], &*pair].concat();
            [&[SET, size(&sequence)], &*sequence].concat()
        };
        let name = [
            attribute(&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02], 0x0c, b"7"),
            attribute(COMMON_NAME, 0x1e, &[0, b'a']),
            attribute(COMMON_NAME, 0x0c, b"bob"),
            attribute(ORGANIZATION, 0x1e, &[0, b'q', 0, b'a']),
        ]
        .concat();
        let subject = subject(&name).unwrap();
        assert_eq!((subject.common_name(), subject.organizations()), ("bob", vec!["qa"]));
        assert_eq!(subject.attributes.len(), 2);
    }
}
