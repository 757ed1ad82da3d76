//! Keys in PEM files.

use super::{BIT_STRING, Curve, EC, PublicKey, PublicKeys, RSA};
use crate::{
    der::{INTEGER, OBJECT_ID, SEQUENCE, element, expect, from_validity},
    pem,
};

/// Why there is no key in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no public key.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    /// There is no private key.
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// There is one that cannot be used.
    #[error("the private key cannot be used: {0}")]
    Unusable(String),
}

const OCTETS: u8 = 0x04;
/// The tags of the optional parts of a private EC key: its curve, and its public key.
const PARAMETERS: u8 = 0xa0;
const PUBLIC: u8 = 0xa1;

/// A private key, as far as its algorithm is known.
pub(super) enum Private {
    /// As PKCS #1.
    Rsa {
        der: Vec<u8>,
        public: PublicKey,
    },
    Ec {
        curve: Curve,
        secret: Vec<u8>,
        public: PublicKey,
    },
}

impl Private {
    pub(super) fn public(&self) -> &PublicKey {
        match self {
            Private::Rsa { public, .. } | Private::Ec { public, .. } => public,
        }
    }
}

impl PublicKeys {
    /// The keys in PEM files: public keys, certificates, and the public parts of private keys. Blocks of other kinds are
    /// skipped.
    ///
    /// # Errors
    /// If there are none.
    pub fn from_pem(text: &str) -> Result<PublicKeys, KeyError> {
        let keys: Vec<PublicKey> = pem::blocks(text)
            .filter_map(|(_, der)| private(&der).map(|key| key.public().clone()).or_else(|| public(&der)))
            .collect();
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(PublicKeys(keys)) }
    }

    /// Adds the keys of another set.
    pub fn extend(&mut self, more: PublicKeys) {
        self.0.extend(more.0);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first private key in a PEM file.
pub(super) fn first_private(text: &str) -> Result<Private, KeyError> {
    pem::blocks(text).find_map(|(_, der)| private(&der)).ok_or(KeyError::NoPrivateKey)
}

/// A number without leading zeros.
fn number(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (content, rest) = expect(bytes, INTEGER)?;
    let zeros = content.iter().take_while(|byte| **byte == 0).count();
    Some((content.get(zeros..)?.to_vec(), rest))
}

fn rsa(n: Vec<u8>, e: Vec<u8>) -> Option<PublicKey> {
    (!n.is_empty() && !e.is_empty()).then_some(PublicKey::Rsa { n, e })
}

fn curve(object_id: &[u8]) -> Option<Curve> {
    [Curve::P256, Curve::P384].into_iter().find(|curve| curve.object_id() == object_id)
}

/// A point of a curve, which has to be uncompressed.
pub(super) fn ec(curve: Curve, point: &[u8]) -> Option<PublicKey> {
    let right = point.len() == 1 + 2 * curve.size() && point.first() == Some(&4);
    right.then(|| PublicKey::Ec { curve, point: point.to_vec() })
}

fn bits(bytes: &[u8]) -> Option<&[u8]> {
    expect(bytes, BIT_STRING)?.0.strip_prefix(&[0])
}

/// A public key: a `SubjectPublicKeyInfo`, alone or in a certificate, or that of PKCS #1.
fn public(der: &[u8]) -> Option<PublicKey> {
    let subject_key = |fields: &[u8]| {
        let (algorithm, key) = expect(fields, SEQUENCE)?;
        let (id, parameters) = expect(algorithm, OBJECT_ID)?;
        match id {
            RSA => pkcs1(bits(key)?),
            EC => ec(curve(expect(parameters, OBJECT_ID)?.0)?, bits(key)?),
            _ => None,
        }
    };
    let in_certificate = || {
        // Validity, subject, key.
        let (_, fields) = expect(from_validity(der)?, SEQUENCE)?;
        let (_, fields) = expect(fields, SEQUENCE)?;
        subject_key(expect(fields, SEQUENCE)?.0)
    };
    let (fields, _) = expect(der, SEQUENCE)?;
    subject_key(fields).or_else(|| pkcs1(der)).or_else(in_certificate)
}

fn pkcs1(der: &[u8]) -> Option<PublicKey> {
    let (fields, _) = expect(der, SEQUENCE)?;
    let (n, rest) = number(fields)?;
    let (e, rest) = number(rest)?;
    if rest.is_empty() { rsa(n, e) } else { None }
}

/// A private key: that of PKCS #8, of PKCS #1 (RSA), or of SEC 1 (EC).
fn private(der: &[u8]) -> Option<Private> {
    let (fields, _) = expect(der, SEQUENCE)?;
    let (version, rest) = number(fields)?;
    let (tag, content, after) = element(rest)?;
    match tag {
        SEQUENCE => {
            let (id, parameters) = expect(content, OBJECT_ID)?;
            let (inner, _) = expect(after, OCTETS)?;
            match id {
                RSA => rsa_private(inner),
                EC => ec_private(inner, curve(expect(parameters, OBJECT_ID)?.0)),
                _ => None,
            }
        }
        OCTETS if version == [1] => ec_private(der, None),
        INTEGER => rsa_private(der),
        _ => None,
    }
}

fn rsa_private(der: &[u8]) -> Option<Private> {
    let (fields, _) = expect(der, SEQUENCE)?;
    let (version, rest) = number(fields)?;
    let (n, rest) = number(rest)?;
    let (e, rest) = number(rest)?;
    // A public key has no third number.
    number(rest)?;
    version.is_empty().then_some(())?;
    Some(Private::Rsa { der: der.to_vec(), public: rsa(n, e)? })
}

fn ec_private(der: &[u8], known: Option<Curve>) -> Option<Private> {
    let (fields, _) = expect(der, SEQUENCE)?;
    let (_, rest) = number(fields)?;
    let (secret, rest) = expect(rest, OCTETS)?;
    let (named, rest) = match expect(rest, PARAMETERS) {
        Some((id, rest)) => (curve(expect(id, OBJECT_ID)?.0), rest),
        None => (None, rest),
    };
    let curve = named.or(known)?;
    let (key, _) = expect(rest, PUBLIC)?;
    let public = ec(curve, bits(key)?)?;
    Some(Private::Ec { curve, secret: secret.to_vec(), public })
}
