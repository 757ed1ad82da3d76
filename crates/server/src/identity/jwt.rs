//! JSON Web Tokens of service accounts, and the keys that sign them.

use std::{collections::HashMap, fmt, mem, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use k1s_object::Status;
use k1s_store::Store;
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    PublicKeys, SigningKey,
    keys::{Algorithm, PublicKey},
};
use crate::errors;

/// The store key of the signing key. No tenant name begins with `_`.
const STORE_KEY: &str = "/_k1s/service-account-key";

/// Maximum length of a token.
pub(crate) const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Maximum number of verified tokens per generation of the cache; there are two generations.
const MAX_REMEMBERED: usize = 2048;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    #[serde(default)]
    pub(crate) alg: String,
    #[serde(default)]
    pub(crate) kid: String,
}

/// The claim that selects the issuer.
#[derive(Debug, Deserialize)]
struct Issuer {
    iss: String,
}

/// The parts of a token, before anything in them is believed.
pub(crate) struct Parts<'a> {
    head: &'a str,
    body: &'a str,
    signature: &'a str,
    /// What is signed.
    pub(crate) signed: &'a str,
}

impl<'a> Parts<'a> {
    /// The three parts of a token in compact form.
    pub(crate) fn of(token: &'a str) -> Option<Parts<'a>> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let mut parts = token.split('.');
        let (Some(head), Some(body), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let signed = token.get(..head.len() + 1 + body.len())?;
        Some(Parts { head, body, signature, signed })
    }

    pub(crate) fn header(&self) -> Option<Header> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(self.head).ok()?).ok()
    }

    /// The claims, as JSON.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(self.body).ok()
    }

    /// The signature.
    pub(crate) fn signature(&self) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(self.signature).ok()
    }
}

/// Signs and verifies tokens of all tenants, with keys shared by all servers over a store.
pub(crate) struct Signer<C> {
    /// The key that the server was given to sign with, instead of its own.
    given: Option<SigningKey>,
    own: tokio::sync::OnceCell<SigningKey>,
    /// The public keys whose tokens are accepted as well.
    accepted: Vec<(String, PublicKey)>,
    checked: Mutex<Checked<C>>,
}

/// A cache of tokens whose signature was verified, by their hash, because verifying is expensive. It has two generations;
/// the old one is dropped when the young one is full.
struct Checked<C> {
    young: HashMap<[u8; 32], Arc<C>>,
    old: HashMap<[u8; 32], Arc<C>>,
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
    /// Claims to be by an issuer of this server, but the signature is not valid.
    Forged(&'static str),
}

impl<C> Signer<C> {
    /// Signs with this key, or without one, with the server's own. Tokens of the other keys are accepted, too.
    pub(crate) fn new(given: Option<SigningKey>, accepted: &PublicKeys) -> Signer<C> {
        let accepted = accepted.0.iter().map(|key| (key.id(), key.clone())).collect();
        let checked = Checked { young: HashMap::new(), old: HashMap::new() };
        Signer { given, own: tokio::sync::OnceCell::new(), accepted, checked: Mutex::new(checked) }
    }

    async fn key(&self, store: &dyn Store) -> Result<&SigningKey, Status> {
        match &self.given {
            Some(given) => Ok(given),
            None => self.own.get_or_try_init(|| load(store)).await,
        }
    }

    /// The keys whose tokens are accepted, each once.
    fn public<'a>(&'a self, key: &'a SigningKey) -> impl Iterator<Item = (&'a str, &'a PublicKey)> {
        let more = self.accepted.iter().map(|(id, public)| (id.as_str(), public));
        std::iter::once((key.id(), key.public())).chain(more.filter(|(id, _)| *id != key.id()))
    }

    /// The public keys, as a JSON Web Key Set.
    pub(crate) async fn key_set(&self, store: &dyn Store) -> Result<Value, Status> {
        let key = self.key(store).await?;
        let keys: Vec<Value> = self.public(key).map(|(_, public)| public.to_jwk()).collect();
        Ok(json!({ "keys": keys }))
    }

    /// The algorithms of the keys, sorted.
    pub(crate) async fn algorithms(&self, store: &dyn Store) -> Result<Vec<&'static str>, Status> {
        let key = self.key(store).await?;
        let mut names: Vec<_> = self.public(key).map(|(_, public)| public.algorithm().name()).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

impl<C: DeserializeOwned> Signer<C> {
    /// A token with these claims.
    pub(crate) async fn sign(&self, store: &dyn Store, claims: &impl Serialize) -> Result<String, Status> {
        let failed = |what: &str| Status::internal(format!("failed to generate token: {what}"));
        let key = self.key(store).await?;
        let header = Header { alg: key.algorithm().name().into(), kid: key.id().to_owned() };
        let part = |json: serde_json::Result<Vec<u8>>| {
            json.map(|json| URL_SAFE_NO_PAD.encode(json)).map_err(|error| failed(&error.to_string()))
        };
        let mut token =
            format!("{}.{}", part(serde_json::to_vec(&header))?, part(serde_json::to_vec(claims))?);
        let signature =
            key.sign(token.as_bytes()).ok_or_else(|| failed("the signature could not be made"))?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    /// Whether one of these issuers signed the token. Its expiry and bound objects are not checked here.
    pub(crate) async fn verify(
        &self,
        store: &dyn Store,
        token: &str,
        is_issuer: impl Fn(&str) -> bool,
    ) -> Result<Verdict<C>, Status> {
        let Some(parts) = Parts::of(token) else { return Ok(Verdict::Foreign) };
        if decode::<Issuer>(parts.body).is_none_or(|claims| !is_issuer(&claims.iss)) {
            return Ok(Verdict::Foreign);
        }
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(claims) = self.checked.lock().find(&hash) {
            return Ok(Verdict::Good(claims));
        }
        let Some(header) = decode::<Header>(parts.head) else { return Ok(Verdict::Foreign) };
        let Ok(signature) = URL_SAFE_NO_PAD.decode(parts.signature) else { return Ok(Verdict::Foreign) };
        let key = self.key(store).await?;
        let algorithm = Algorithm::named(&header.alg);
        let mut candidates =
            self.public(key).filter(|(id, _)| header.kid.is_empty() || *id == header.kid).peekable();
        if candidates.peek().is_none() {
            return Ok(Verdict::Forged("invalid signature, no keys found"));
        }
        let good = algorithm.is_some_and(|algorithm| {
            candidates.any(|(_, key)| key.verifies(algorithm, parts.signed.as_bytes(), &signature))
        });
        if !good {
            return Ok(Verdict::Forged("go-jose/go-jose: error in cryptographic primitive"));
        }
        let Some(claims) = decode::<C>(parts.body).map(Arc::new) else { return Ok(Verdict::Foreign) };
        self.checked.lock().remember(hash, claims.clone());
        Ok(Verdict::Good(claims))
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

/// Loads the server's own key from the store, or generates it on first use.
async fn load(store: &dyn Store) -> Result<SigningKey, Status> {
    let read = async || store.get(STORE_KEY.as_bytes(), None).await.map_err(|error| errors::store(&error));
    let parse = |pkcs8: &[u8]| {
        SigningKey::own(pkcs8)
            .map_err(|error| Status::internal(format!("the stored key for tokens cannot be read: {error}")))
    };
    if let Some(entry) = read().await?.entry {
        return parse(&entry.value);
    }
    // A long-lived secret, so its randomness comes from the crypto library, as that of the signatures does.
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map_err(|_| Status::internal("the key for tokens could not be generated"))?;
    let made = Bytes::copy_from_slice(made.as_ref());
    match store.create(Bytes::from_static(STORE_KEY.as_bytes()), made.clone()).await {
        Ok(_) => parse(&made),
        Err(k1s_store::Error::Conflict(_)) => match read().await?.entry {
            Some(entry) => parse(&entry.value),
            None => Err(Status::internal("the key for tokens vanished")),
        },
        Err(error) => Err(errors::store(&error)),
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
        let own = || Signer::<Claims>::new(None, &PublicKeys::default());
        let (signer, replica, stranger) = (own(), own(), own());
        let token = signer.sign(&store, &claims(7)).await.unwrap();
        for who in [&signer, &replica, &replica] {
            let verdict = who.verify(&store, &token, |iss| iss == "me").await.unwrap();
            assert!(matches!(verdict, Verdict::Good(claims) if claims.n == 7));
        }
        assert!(matches!(signer.verify(&store, &token, |iss| iss == "you").await.unwrap(), Verdict::Foreign));
        let verdict = stranger.verify(&other_store, &token, |iss| iss == "me").await.unwrap();
        assert!(matches!(verdict, Verdict::Forged("invalid signature, no keys found")));
    }

    #[tokio::test]
    async fn changed_tokens_are_forged_and_malformed_ones_foreign() {
        let store = MemoryStore::default();
        let signer = Signer::<Claims>::new(None, &PublicKeys::default());
        let token = signer.sign(&store, &claims(1)).await.unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let body = URL_SAFE_NO_PAD.encode(br#"{"iss":"me","n":2}"#);
        let none = URL_SAFE_NO_PAD.encode(br#"{"alg":"none"}"#);
        for forged in [
            format!("{}.{body}.{}", parts[0], parts[2]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{none}.{}.", parts[1]),
        ] {
            let verdict = signer.verify(&store, &forged, |iss| iss == "me").await.unwrap();
            assert!(matches!(verdict, Verdict::Forged(_)), "{forged}");
        }
        for foreign in
            ["", "a", "a.b.c", "a.b.c.d", "...", &"x".repeat(MAX_TOKEN_BYTES + 1), &format!("{token}.")]
        {
            let verdict = signer.verify(&store, foreign, |iss| iss == "me").await.unwrap();
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
