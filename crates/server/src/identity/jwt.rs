//! JSON Web Tokens signed with ES256, and their signing key.

use std::{collections::HashMap, fmt, mem, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use k1s_object::Status;
use k1s_store::Store;
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::errors;

/// The store key of the signing key. No tenant name begins with `_`.
const STORE_KEY: &str = "/_k1s/service-account-key";

/// DER prefix of a P-256 public key (`SubjectPublicKeyInfo`); the point follows.
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Maximum length of a token.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Maximum number of verified tokens per generation of the cache; there are two generations.
const MAX_REMEMBERED: usize = 2048;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// The claim that selects the issuer.
#[derive(Debug, Deserialize)]
struct Issuer {
    iss: String,
}

/// Signs and verifies tokens of all tenants, with one key shared by all servers over a store.
pub(crate) struct Signer<C> {
    key: tokio::sync::OnceCell<Key>,
    checked: Mutex<Checked<C>>,
}

/// A cache of tokens whose signature was verified, by their hash, because verifying is expensive. It has two generations;
/// the old one is dropped when the young one is full.
struct Checked<C> {
    young: HashMap<[u8; 32], Arc<C>>,
    old: HashMap<[u8; 32], Arc<C>>,
}

struct Key {
    pair: EcdsaKeyPair,
    id: String,
}

impl<C> Default for Signer<C> {
    fn default() -> Signer<C> {
        let checked = Checked { young: HashMap::new(), old: HashMap::new() };
        Signer { key: tokio::sync::OnceCell::new(), checked: Mutex::new(checked) }
    }
}

impl<C> fmt::Debug for Signer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// The result of verifying a token.
#[derive(Debug)]
pub(crate) enum Verdict<C> {
    Good(Arc<C>),
    /// From another issuer, or not a token.
    Foreign,
    /// Claims this issuer, but the signature is not valid.
    Forged(&'static str),
}

impl<C: Serialize + DeserializeOwned> Signer<C> {
    async fn key(&self, store: &dyn Store) -> Result<&Key, Status> {
        self.key.get_or_try_init(|| Key::load(store)).await
    }

    /// A token with these claims.
    pub(crate) async fn sign(&self, store: &dyn Store, claims: &C) -> Result<String, Status> {
        let failed = |what: &str| Status::internal(format!("failed to generate token: {what}"));
        let key = self.key(store).await?;
        let header = Header { alg: "ES256".into(), kid: key.id.clone() };
        let part = |json: serde_json::Result<Vec<u8>>| {
            json.map(|json| URL_SAFE_NO_PAD.encode(json)).map_err(|error| failed(&error.to_string()))
        };
        let mut token =
            format!("{}.{}", part(serde_json::to_vec(&header))?, part(serde_json::to_vec(claims))?);
        let signature = key
            .pair
            .sign(&SystemRandom::new(), token.as_bytes())
            .map_err(|_| failed("the signature could not be made"))?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.as_ref(), &mut token);
        Ok(token)
    }

    /// Whether this issuer signed the token. Its expiry and bound objects are not checked here.
    pub(crate) async fn verify(
        &self,
        store: &dyn Store,
        token: &str,
        issuer: &str,
    ) -> Result<Verdict<C>, Status> {
        if token.len() > MAX_TOKEN_BYTES {
            return Ok(Verdict::Foreign);
        }
        let mut parts = token.split('.');
        let (Some(head), Some(body), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(Verdict::Foreign);
        };
        if decode::<Issuer>(body).is_none_or(|claims| claims.iss != issuer) {
            return Ok(Verdict::Foreign);
        }
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(claims) = self.checked.lock().find(&hash) {
            return Ok(Verdict::Good(claims));
        }
        let Some(header) = decode::<Header>(head) else { return Ok(Verdict::Foreign) };
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return Ok(Verdict::Foreign) };
        let key = self.key(store).await?;
        if !header.kid.is_empty() && header.kid != key.id {
            return Ok(Verdict::Forged("invalid signature, no keys found"));
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
        let signed = token.get(..head.len() + 1 + body.len()).unwrap_or_default();
        if header.alg != "ES256" || public.verify(signed.as_bytes(), &signature).is_err() {
            return Ok(Verdict::Forged("go-jose/go-jose: error in cryptographic primitive"));
        }
        let Some(claims) = decode::<C>(body).map(Arc::new) else { return Ok(Verdict::Foreign) };
        self.checked.lock().remember(hash, claims.clone());
        Ok(Verdict::Good(claims))
    }

    /// The public keys, as a JSON Web Key Set.
    pub(crate) async fn key_set(&self, store: &dyn Store) -> Result<Value, Status> {
        let key = self.key(store).await?;
        // An uncompressed point: a byte 4, then x and y of the same length.
        let point = key.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        Ok(json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": key.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]}))
    }
}

fn decode<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

impl<C> Checked<C> {
    fn find(&mut self, hash: &[u8; 32]) -> Option<Arc<C>> {
        if let Some(claims) = self.young.get(hash) {
            return Some(claims.clone());
        }
        let claims = self.old.remove(hash)?;
        self.remember(*hash, claims.clone());
        Some(claims)
    }

    fn remember(&mut self, hash: [u8; 32], claims: Arc<C>) {
        if self.young.len() >= MAX_REMEMBERED {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash, claims);
    }
}

impl Key {
    /// Loads the key from the store, or generates it on first use.
    async fn load(store: &dyn Store) -> Result<Key, Status> {
        let read =
            async || store.get(STORE_KEY.as_bytes(), None).await.map_err(|error| errors::store(&error));
        if let Some(entry) = read().await?.entry {
            return Key::parse(&entry.value);
        }
        // A long-lived secret, so its randomness comes from the crypto library, as that of the signatures does.
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| Status::internal("the key for tokens could not be generated"))?;
        let made = Bytes::copy_from_slice(made.as_ref());
        match store.create(Bytes::from_static(STORE_KEY.as_bytes()), made.clone()).await {
            Ok(_) => Key::parse(&made),
            Err(k1s_store::Error::Conflict(_)) => match read().await?.entry {
                Some(entry) => Key::parse(&entry.value),
                None => Err(Status::internal("the key for tokens vanished")),
            },
            Err(error) => Err(errors::store(&error)),
        }
    }

    fn parse(pkcs8: &[u8]) -> Result<Key, Status> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new())
            .map_err(|error| {
                Status::internal(format!("the stored key for tokens cannot be read: {error}"))
            })?;
        let mut hash = Sha256::new();
        hash.update(SPKI_HEAD);
        hash.update(pair.public_key().as_ref());
        let id = URL_SAFE_NO_PAD.encode(hash.finalize());
        Ok(Key { pair, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_store::MemoryStore;

    #[derive(Debug, Serialize, Deserialize)]
    struct Claims {
        iss: String,
        n: u32,
    }

    fn claims(n: u32) -> Claims {
        Claims { iss: "me".into(), n }
    }

    #[tokio::test]
    async fn a_token_is_accepted_by_all_servers_over_the_same_store() {
        let (store, other_store) = (MemoryStore::default(), MemoryStore::default());
        let (signer, replica, stranger) =
            (Signer::default(), Signer::<Claims>::default(), Signer::<Claims>::default());
        let token = signer.sign(&store, &claims(7)).await.unwrap();
        for who in [&signer, &replica, &replica] {
            let verdict = who.verify(&store, &token, "me").await.unwrap();
            assert!(matches!(verdict, Verdict::Good(claims) if claims.n == 7));
        }
        assert!(matches!(signer.verify(&store, &token, "you").await.unwrap(), Verdict::Foreign));
        let verdict = stranger.verify(&other_store, &token, "me").await.unwrap();
        assert!(matches!(verdict, Verdict::Forged("invalid signature, no keys found")));
    }

    #[tokio::test]
    async fn changed_tokens_are_forged_and_malformed_ones_foreign() {
        let store = MemoryStore::default();
        let signer = Signer::default();
        let token = signer.sign(&store, &claims(1)).await.unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let body = URL_SAFE_NO_PAD.encode(br#"{"iss":"me","n":2}"#);
        let none = URL_SAFE_NO_PAD.encode(br#"{"alg":"none"}"#);
        for forged in [
            format!("{}.{body}.{}", parts[0], parts[2]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{none}.{}.", parts[1]),
        ] {
            let verdict = signer.verify(&store, &forged, "me").await.unwrap();
            assert!(matches!(verdict, Verdict::Forged(_)), "{forged}");
        }
        for foreign in
            ["", "a", "a.b.c", "a.b.c.d", "...", &"x".repeat(MAX_TOKEN_BYTES + 1), &format!("{token}.")]
        {
            let verdict = signer.verify(&store, foreign, "me").await.unwrap();
            assert!(matches!(verdict, Verdict::Foreign), "{foreign}");
        }
    }

    #[test]
    fn the_cache_of_verified_tokens_is_bounded() {
        let mut checked = Checked { young: HashMap::new(), old: HashMap::new() };
        for n in 0..3 * MAX_REMEMBERED as u64 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&n.to_le_bytes());
            checked.remember(hash, Arc::new(n));
        }
        assert!(checked.young.len() + checked.old.len() <= 2 * MAX_REMEMBERED);
    }
}
