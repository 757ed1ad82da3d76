//! Envelope encryption with a plugin of a key management service, KMS v2: values are encrypted with keys derived from a seed, and
//! the plugin encrypts the seed only. So it is asked once per seed, not once per value.

mod envelope;
mod service;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use k1s_env::{Env, Instant};
use prost::Message as _;

use self::{
    envelope::{EncryptedObject, SourceType, hash_of, validate, validate_key_id},
    service::{Service, StatusResponse},
};
use crate::{
    ConfigError,
    cipher::{AesGcm, Cipher, Extended, SEED_LEN},
    config::Kms,
    error::Failure,
};

/// How long a healthy and an unhealthy answer of the plugin are remembered by health checks.
const HEALTHY_AGE: Duration = Duration::from_secs(20);
const UNHEALTHY_AGE: Duration = Duration::from_secs(3);

/// Pauses between checks of the plugin, after a healthy and an unhealthy answer.
const HEALTHY_PAUSE: Duration = Duration::from_secs(60);
const UNHEALTHY_PAUSE: Duration = Duration::from_secs(10);

/// How long a seed encrypts values after the plugin was last healthy. Short, so that a change of the service's key is noticed
/// before values are migrated to it.
const SEED_AGE: Duration = Duration::from_secs(180);

/// How long a decrypted key or seed is remembered.
const KEY_AGE: Duration = Duration::from_secs(24 * 3600);

/// A plugin.
pub(crate) struct Plugin {
    env: Env,
    name: String,
    /// `k8s:enc:kms:v2:name:`
    prefix: String,
    service: Service,
    /// What values are encrypted with.
    state: ArcSwapOption<State>,
    /// Decrypted keys and seeds, by [`EncryptedObject::source_key`].
    opened: Mutex<HashMap<Vec<u8>, Known>>,
    /// Held while the plugin decrypts a key, so that concurrent reads ask for it once.
    fetching: tokio::sync::Mutex<()>,
    checked: tokio::sync::Mutex<Checked>,
}

/// A key that was decrypted, and when.
type Known = (Instant, Arc<dyn Cipher>);

/// The seed in use.
#[derive(Debug)]
struct State {
    cipher: Arc<dyn Cipher>,
    /// Without data.
    object: EncryptedObject,
    expires: Instant,
    /// For messages.
    expires_at: String,
}

/// The last check.
#[derive(Debug, Default)]
struct Checked {
    last: Option<(Instant, Result<(), String>)>,
    /// The version of the plugin's first answer, which it has to keep.
    version: String,
}

/// The result of opening a value.
pub(crate) enum Open {
    /// Another provider wrote it.
    Other,
    Done(Result<(Vec<u8>, bool), Failure>),
    /// The plugin has to decrypt its key first: [`Plugin::fetch`].
    Ask,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)
    }
}

impl Plugin {
    pub(crate) fn new(env: &Env, config: &Kms) -> Result<Plugin, ConfigError> {
        let timeout = config.timeout.map_or(3_000_000_000, |timeout| timeout.0);
        let timeout = Duration::from_nanos(u64::try_from(timeout).unwrap_or_default());
        let service = Service::new(env, &config.endpoint, timeout).map_err(|error| {
            ConfigError::Build(format!(
                "could not configure KMSv2-Plugin's probe {:?}, error: {error}",
                config.name
            ))
        })?;
        Ok(Plugin {
            env: env.clone(),
            name: config.name.clone(),
            prefix: format!("k8s:enc:kms:v2:{}:", config.name),
            service,
            state: ArcSwapOption::empty(),
            opened: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            checked: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Encrypts a value.
    pub(crate) fn seal(&self, place: &[u8], plain: &Bytes) -> Result<Bytes, Failure> {
        let Some(state) = self.state.load_full() else {
            let why = format!("the KMS plugin {} has not encrypted a seed yet", self.name);
            return Err(Failure::Service(why));
        };
        if self.env.now() > state.expires {
            return Err(Failure::Service(format!(
                "encryptedDEKSource with keyID hash {:?} expired at {}: the KMS plugin {} is not healthy",
                hash_of(&state.object.key_id),
                state.expires_at,
                self.name
            )));
        }
        let mut object = state.object.clone();
        state.cipher.seal(&self.env, place, plain, &mut object.encrypted_data)?;
        let mut out = Vec::with_capacity(self.prefix.len() + object.encoded_len());
        out.extend_from_slice(self.prefix.as_bytes());
        object.encode(&mut out).map_err(|error| Failure::value(error.to_string()))?;
        Ok(out.into())
    }

    /// Decrypts a value, if its key is known.
    pub(crate) fn open(&self, place: &[u8], stored: &[u8]) -> Open {
        let Some(sealed) = stored.strip_prefix(self.prefix.as_bytes()) else { return Open::Other };
        let object = match envelope::decode(sealed) {
            Ok(object) => object,
            Err(failure) => return Open::Done(Err(failure)),
        };
        let state = self.state.load();
        let current = state.as_ref().map(|state| &state.object);
        let cipher = match (&*state, current) {
            (Some(state), Some(current)) if current.has_same_source(&object) => Some(state.cipher.clone()),
            _ => self.remembered(&object.source_key()),
        };
        let Some(cipher) = cipher else { return Open::Ask };
        let is_stale = current.is_none_or(|current| {
            current.key_id != object.key_id || current.source_type != object.source_type
        });
        Open::Done(cipher.open(place, &object.encrypted_data).map(|plain| (plain, is_stale)))
    }

    /// Asks the plugin for the key of a value.
    pub(crate) async fn fetch(&self, stored: &[u8]) -> Result<(), Failure> {
        let sealed = stored.strip_prefix(self.prefix.as_bytes()).unwrap_or_default();
        let object = envelope::decode(sealed)?;
        let key = object.source_key();
        let _turn = self.fetching.lock().await;
        if self.remembered(&key).is_some() {
            return Ok(());
        }
        let uid = self.env.uuid().to_string();
        let plain = self.service.decrypt(&object, uid).await.map_err(|failure| match failure {
            Failure::Value(why) => Failure::Value(format!("failed to decrypt DEK, error: {why}")),
            Failure::Service(why) => {
                Failure::Service(format!("failed to decrypt DEK, error: KMS plugin {}: {why}", self.name))
            }
        })?;
        let cipher: Option<Arc<dyn Cipher>> = match object.source_type() {
            SourceType::AesGcmKey => AesGcm::new(&plain).map(|cipher| Arc::new(cipher) as _),
            SourceType::HkdfSha256XnonceAesGcmSeed => {
                Extended::new(&plain).map(|cipher| Arc::new(cipher) as _)
            }
        };
        let wrong = || Failure::value(format!("invalid seed length {} used for key generation", plain.len()));
        self.remember(key, cipher.ok_or_else(wrong)?);
        Ok(())
    }

    fn remembered(&self, key: &[u8]) -> Option<Arc<dyn Cipher>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(key).map(|(_, cipher)| cipher.clone())
    }

    fn remember(&self, key: Vec<u8>, cipher: Arc<dyn Cipher>) {
        let now = self.env.now();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, (since, _)| now - *since < KEY_AGE);
        opened.insert(key, (now, cipher));
    }

    /// Whether the plugin is healthy; asks it unless it was just asked. A new key of the service gets a new seed.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let mut checked = self.checked.lock().await;
        if let Some((at, last)) = &checked.last {
            let age = if last.is_ok() { HEALTHY_AGE } else { UNHEALTHY_AGE };
            if self.env.now() - *at < age {
                return last.clone();
            }
        }
        let result = match self.service.status().await {
            Ok(status) => self.take(&mut checked.version, &status).await,
            Err(Failure::Value(why) | Failure::Service(why)) => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {}, error: {why}",
                self.name
            )),
        };
        checked.last = Some((self.env.now(), result.clone()));
        result
    }

    async fn take(&self, version: &mut String, status: &StatusResponse) -> Result<(), String> {
        let mut problems = Vec::new();
        if status.healthz != "ok" {
            problems.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        if !matches!(&*status.version, "v2" | "v2beta1") {
            problems.push(format!("expected KMSv2 API version v2, got {}", status.version));
        } else if version.is_empty() {
            version.clone_from(&status.version);
        } else if *version != status.version {
            problems.push(format!(
                "KMSv2 API version should not change after the initial status response version {version}, got {}",
                status.version
            ));
        }
        match validate_key_id(&status.key_id) {
            Err(why) => {
                problems.push(format!("got invalid KMSv2 KeyID hash {:?}: {why}", hash_of(&status.key_id)))
            }
            Ok(()) => {
                if let Err(why) = self.rotate(&status.key_id).await {
                    problems.push(why);
                }
            }
        }
        let text = match problems.len() {
            0 => return Ok(()),
            1 => problems.concat(),
            _ => format!("[{}]", problems.join(", ")),
        };
        Err(format!("kmsv2 Provider {} is not healthy, error: {text}", self.name))
    }

    /// Prolongs the use of the seed, or replaces it if the service has another key. If that fails, the old one is used until it
    /// expires.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        // Before the call: a seed is used no longer than that after it.
        let expires = self.env.now() + SEED_AGE;
        let expires_at = time_of(&self.env, SEED_AGE);
        let old = self.state.load_full();
        if let Some(old) = old.as_ref().filter(|old| old.object.key_id == key_id) {
            self.state.store(Some(Arc::new(State {
                cipher: old.cipher.clone(),
                object: old.object.clone(),
                expires,
                expires_at,
            })));
            return Ok(());
        }
        let uid = self.env.uuid().to_string();
        let failed = |why: String, got: &str| {
            let old = old.as_ref().map_or("", |old| &*old.object.key_id);
            format!(
                "failed to rotate DEK uid={uid:?}, errGen={why}, statusKeyIDHash={:?}, encryptKeyIDHash={:?}, \
                 stateKeyIDHash={:?}",
                hash_of(key_id),
                hash_of(got),
                hash_of(old)
            )
        };
        let mut seed = [0_u8; SEED_LEN];
        self.env.fill_random(&mut seed);
        let Some(cipher) = Extended::new(&seed) else { return Err(failed("no seed".into(), "")) };
        let sealed = self.service.encrypt(seed.to_vec(), uid.clone()).await;
        let sealed = sealed.map_err(|failure| {
            let (Failure::Value(why) | Failure::Service(why)) = failure;
            failed(format!("failed to encrypt DEK, error: {why}"), "")
        })?;
        let object = EncryptedObject {
            encrypted_data: Vec::new(),
            key_id: sealed.key_id,
            source: sealed.ciphertext,
            annotations: sealed.annotations,
            source_type: SourceType::HkdfSha256XnonceAesGcmSeed.into(),
        };
        validate(&object).map_err(|why| failed(why, &object.key_id))?;
        if object.key_id != key_id {
            return Err(failed("<nil>".into(), &object.key_id));
        }
        let cipher: Arc<dyn Cipher> = Arc::new(cipher);
        // Values that are encrypted with it are read without the plugin.
        self.remember(object.source_key(), cipher.clone());
        tracing::info!(plugin = self.name, key = hash_of(key_id), "a new seed encrypts values");
        self.state.store(Some(Arc::new(State { cipher, object, expires, expires_at })));
        Ok(())
    }

    /// Ends its connections.
    pub(crate) fn close(&self) {
        self.service.close();
    }

    /// Checks the plugin, forever.
    pub(crate) async fn run(self: Arc<Plugin>) {
        loop {
            let pause = match self.check().await {
                Ok(()) => HEALTHY_PAUSE,
                Err(error) => {
                    tracing::error!(%error, name = self.name, "kms plugin failed health check probe");
                    UNHEALTHY_PAUSE
                }
            };
            self.env.sleep(pause).await;
        }
    }
}

/// The wall clock's time after `age`, for a message.
fn time_of(env: &Env, age: Duration) -> String {
    let at = env.wall() + age;
    let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    k1s_object::time::Time::from_unix(i64::try_from(since.as_secs()).unwrap_or_default(), 0).to_string()
}
