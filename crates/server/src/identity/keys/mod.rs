//! Keys of signatures: what they verify, and how they are named.

mod jwk;
mod parse;
mod signing;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

pub(crate) use jwk::KeySet;
pub use parse::KeyError;
pub use signing::SigningKey;

use crate::der::{INTEGER, OBJECT_ID, SEQUENCE, write};

/// The algorithms of signatures, by the names of RFC 7518.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// ECDSA on P-384 with SHA-384.
    ES384,
    /// RSA PKCS #1 with SHA-256.
    RS256,
    /// RSA PKCS #1 with SHA-384.
    RS384,
    /// RSA PKCS #1 with SHA-512.
    RS512,
    /// RSA PSS with SHA-256.
    PS256,
    /// RSA PSS with SHA-384.
    PS384,
    /// RSA PSS with SHA-512.
    PS512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::ES256 => "ES256",
            Algorithm::ES384 => "ES384",
            Algorithm::RS256 => "RS256",
            Algorithm::RS384 => "RS384",
            Algorithm::RS512 => "RS512",
            Algorithm::PS256 => "PS256",
            Algorithm::PS384 => "PS384",
            Algorithm::PS512 => "PS512",
        }
    }

    /// The algorithm of this name.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// An elliptic curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
}

impl Curve {
    /// Bytes of a coordinate.
    fn size(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
        }
    }

    fn object_id(self) -> &'static [u8] {
        match self {
            Curve::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
            Curve::P384 => &[0x2b, 0x81, 0x04, 0x00, 0x22],
        }
    }
}

/// A public key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PublicKey {
    /// Modulus and exponent, big-endian, without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// An uncompressed point: a byte 4, then both coordinates.
    Ec { curve: Curve, point: Vec<u8> },
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublicKey::Rsa { n, .. } => write!(f, "RSA-{}", n.len() * 8),
            PublicKey::Ec { curve, .. } => f.write_str(curve.name()),
        }
    }
}

/// 1.2.840.113549.1.1.1 and 1.2.840.10045.2.1.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const BIT_STRING: u8 = 0x03;

impl PublicKey {
    /// Whether this key made a signature, in the form that tokens have.
    pub(crate) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let point = |point: &[u8], with: &'static dyn signature::VerificationAlgorithm| {
            UnparsedPublicKey::new(with, point).verify(message, signature).is_ok()
        };
        let rsa = |n: &[u8], e: &[u8], with| {
            RsaPublicKeyComponents { n, e }.verify(with, message, signature).is_ok()
        };
        match (self, algorithm) {
            (PublicKey::Ec { curve: Curve::P256, point: at }, Algorithm::ES256) => {
                point(at, &signature::ECDSA_P256_SHA256_FIXED)
            }
            (PublicKey::Ec { curve: Curve::P384, point: at }, Algorithm::ES384) => {
                point(at, &signature::ECDSA_P384_SHA384_FIXED)
            }
            (PublicKey::Ec { .. }, _) => false,
            (PublicKey::Rsa { n, e }, algorithm) => {
                let with = match algorithm {
                    Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    Algorithm::ES256 | Algorithm::ES384 => return false,
                };
                rsa(n, e, with)
            }
        }
    }

    /// The algorithm with which tokens of service accounts are signed by this key.
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            PublicKey::Rsa { .. } => Algorithm::RS256,
            PublicKey::Ec { curve: Curve::P256, .. } => Algorithm::ES256,
            PublicKey::Ec { curve: Curve::P384, .. } => Algorithm::ES384,
        }
    }

    /// The key as DER: a `SubjectPublicKeyInfo`.
    fn to_der(&self) -> Vec<u8> {
        let bits = |content: &[u8]| write(BIT_STRING, &[&[0], content]);
        match self {
            PublicKey::Rsa { n, e } => {
                let number = |bytes: &[u8]| match bytes.first() {
                    Some(first) if *first >= 0x80 => write(INTEGER, &[&[0], bytes]),
                    _ => write(INTEGER, &[bytes]),
                };
                let algorithm = write(SEQUENCE, &[&write(OBJECT_ID, &[RSA]), &[0x05, 0x00]]);
                write(SEQUENCE, &[&algorithm, &bits(&write(SEQUENCE, &[&number(n), &number(e)]))])
            }
            PublicKey::Ec { curve, point } => {
                let algorithm =
                    write(SEQUENCE, &[&write(OBJECT_ID, &[EC]), &write(OBJECT_ID, &[curve.object_id()])]);
                write(SEQUENCE, &[&algorithm, &bits(point)])
            }
        }
    }

    /// The id by which tokens of service accounts name their key: a digest, so that nobody has to choose one.
    pub(crate) fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.to_der()))
    }
}

/// Public keys that verify the tokens of service accounts.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(pub(crate) Vec<PublicKey>);

#[cfg(test)]
mod tests;
