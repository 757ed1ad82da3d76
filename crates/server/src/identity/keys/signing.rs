//! Keys that sign.

use std::{fmt, sync::Arc};

use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, RsaKeyPair},
};

use super::{
    Algorithm, Curve, PublicKey,
    parse::{KeyError, Private, first_private},
};

/// The private key that signs the tokens of service accounts. Cheap to clone.
#[derive(Clone)]
pub struct SigningKey(Arc<Inner>);

struct Inner {
    pair: Pair,
    public: PublicKey,
    id: String,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.0.id)
    }
}

impl SigningKey {
    /// The first private key in a PEM file: RSA, or ECDSA on P-256 or P-384.
    ///
    /// # Errors
    /// If there is none, or it cannot sign.
    pub fn from_pem(text: &str) -> Result<SigningKey, KeyError> {
        let unusable = |error: ring::error::KeyRejected| KeyError::Unusable(error.to_string());
        let key = first_private(text)?;
        let pair = match &key {
            Private::Rsa { der, .. } => Pair::Rsa(RsaKeyPair::from_der(der).map_err(unusable)?),
            Private::Ec { curve, secret, public: PublicKey::Ec { point, .. } } => {
                let with = match curve {
                    Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
                    Curve::P384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
                };
                let pair =
                    EcdsaKeyPair::from_private_key_and_public_key(with, secret, point, &SystemRandom::new());
                Pair::Ec(pair.map_err(unusable)?)
            }
            Private::Ec { .. } => return Err(KeyError::NoPrivateKey),
        };
        Ok(SigningKey::new(pair, key.public().clone()))
    }

    /// The pair of keys that a server has made itself, as PKCS #8.
    pub(crate) fn own(pkcs8: &[u8]) -> Result<SigningKey, KeyError> {
        use ring::signature::KeyPair as _;
        let with = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(with, pkcs8, &SystemRandom::new())
            .map_err(|error| KeyError::Unusable(error.to_string()))?;
        let public = PublicKey::Ec { curve: Curve::P256, point: pair.public_key().as_ref().to_vec() };
        Ok(SigningKey::new(Pair::Ec(pair), public))
    }

    fn new(pair: Pair, public: PublicKey) -> SigningKey {
        let id = public.id();
        SigningKey(Arc::new(Inner { pair, public, id }))
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.0.public
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.0.public.algorithm()
    }

    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// A signature, if one can be made.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.0.pair {
            Pair::Ec(pair) => pair.sign(&random, message).ok().map(|signature| signature.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}
