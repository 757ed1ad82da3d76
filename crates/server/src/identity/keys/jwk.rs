//! JSON Web Keys.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Algorithm, Curve, PublicKey, parse};

/// A set of keys of an issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    keys: Vec<Named>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    id: String,
    /// The only algorithm it may be used with, if it names one.
    algorithm: Option<String>,
    key: PublicKey,
}

#[derive(Debug, Deserialize)]
struct RawSet {
    #[serde(default)]
    keys: Vec<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    kty: String,
    kid: String,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: String,
    x: String,
    y: String,
    n: String,
    e: String,
}

/// Maximum number of keys of an issuer.
const MAX_KEYS: usize = 1000;

impl KeySet {
    /// Reads a set. Keys of other kinds, or for encryption, are skipped.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Result<KeySet, serde_json::Error> {
        let raw: RawSet = serde_json::from_slice(bytes)?;
        let named = |raw: Raw| {
            let signs = raw.purpose.as_deref().is_none_or(|purpose| purpose == "sig" || purpose.is_empty());
            let key = raw.key().filter(|_| signs)?;
            Some(Named { id: raw.kid, algorithm: raw.alg.filter(|alg| !alg.is_empty()), key })
        };
        Ok(KeySet { keys: raw.keys.into_iter().take(MAX_KEYS).filter_map(named).collect() })
    }

    /// The keys of a token that names this one; all of them if it names none.
    fn candidates<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Named> {
        self.keys.iter().filter(move |named| id.is_empty() || named.id == id)
    }

    /// Whether a token that names this key can be checked with these.
    #[cfg(test)]
    pub(crate) fn has(&self, id: &str) -> bool {
        self.candidates(id).next().is_some()
    }

    /// Whether one of the keys made a signature.
    pub(crate) fn verifies(&self, id: &str, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.candidates(id).any(|named| {
            named.algorithm.as_deref().is_none_or(|only| only == algorithm.name())
                && named.key.verifies(algorithm, message, signature)
        })
    }
}

impl Raw {
    fn key(&self) -> Option<PublicKey> {
        let bytes = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            bytes.get(zeros..).map(<[u8]>::to_vec)
        };
        match self.kty.as_str() {
            "RSA" => {
                let (n, e) = (bytes(&self.n)?, bytes(&self.e)?);
                (!n.is_empty() && !e.is_empty()).then_some(PublicKey::Rsa { n, e })
            }
            "EC" => {
                let curve = [Curve::P256, Curve::P384].into_iter().find(|curve| curve.name() == self.crv)?;
                let mut point = vec![4];
                for coordinate in [bytes(&self.x)?, bytes(&self.y)?] {
                    let missing = curve.size().checked_sub(coordinate.len())?;
                    point.extend(std::iter::repeat_n(0, missing));
                    point.extend(coordinate);
                }
                parse::ec(curve, &point)
            }
            _ => None,
        }
    }
}

impl PublicKey {
    /// The key as a JSON Web Key.
    pub(crate) fn to_jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (id, algorithm) = (self.id(), self.algorithm().name());
        match self {
            PublicKey::Rsa { n, e } => {
                json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": text(n), "e": text(e)})
            }
            PublicKey::Ec { curve, point } => {
                let (x, y) = point.get(1..).unwrap_or_default().split_at(curve.size());
                json!({"use": "sig", "kty": "EC", "kid": id, "crv": curve.name(), "alg": algorithm,
                    "x": text(x), "y": text(y)})
            }
        }
    }
}
