//! The providers of a resource: the first one writes, all of them read.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use k1s_env::Env;

use crate::{
    ConfigError,
    cipher::{AesCbc, AesGcm, Cipher, Secretbox},
    config::{Key, Provider},
    error::Failure,
};

/// How every encrypted value begins.
pub(crate) const ENCRYPTED: &[u8] = b"k8s:enc:";

/// What is said of an encrypted value that no provider is configured for.
pub(crate) const NOT_CONFIGURED: &str = "identity transformer tried to read encrypted data";

/// Connects the plugins of key management services that a configuration names; each of them once.
#[derive(Debug, Default)]
pub(crate) struct Plugins {
    #[cfg(feature = "kms")]
    pub(crate) connected: Vec<Arc<crate::kms::Plugin>>,
}

/// A provider.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Values as they are.
    Identity,
    Keys(Arc<Keys>),
    #[cfg(feature = "kms")]
    Kms(Arc<crate::kms::Plugin>),
}

/// The keys of a provider.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: &'static str,
    named: Vec<Named>,
    /// What is said of a value whose key is not among these.
    missing: &'static str,
}

struct Named {
    /// `k8s:enc:aesgcm:v1:key1:`
    prefix: String,
    cipher: Box<dyn Cipher>,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)
    }
}

impl Kind {
    pub(crate) fn new(provider: &Provider, plugins: &Plugins) -> Result<Kind, ConfigError> {
        const AES: &str = "no matching key was found for the provided AES transformer";
        const SECRETBOX: &str = "no matching key was found for the provided Secretbox transformer";
        if let Some(keys) = &provider.aesgcm {
            Keys::kind("k8s:enc:aesgcm:v1:", AES, keys, |key| Some(Box::new(AesGcm::new(key)?)))
        } else if let Some(keys) = &provider.aescbc {
            Keys::kind("k8s:enc:aescbc:v1:", AES, keys, |key| Some(Box::new(AesCbc::new(key)?)))
        } else if let Some(keys) = &provider.secretbox {
            Keys::kind("k8s:enc:secretbox:v1:", SECRETBOX, keys, |key| Some(Box::new(Secretbox::new(key)?)))
        } else if let Some(kms) = &provider.kms {
            plugins.find(kms)
        } else {
            Ok(Kind::Identity)
        }
    }
}

impl Keys {
    /// A provider with these keys.
    fn kind(
        prefix: &'static str,
        missing: &'static str,
        keys: &[Key],
        cipher: impl Fn(&[u8]) -> Option<Box<dyn Cipher>>,
    ) -> Result<Kind, ConfigError> {
        let named = |key: &Key| {
            let wrong = || {
                ConfigError::Build(format!(
                    "error while creating cipher for named key {}: invalid key size",
                    key.name
                ))
            };
            let cipher = key.bytes().and_then(|bytes| cipher(&bytes)).ok_or_else(wrong)?;
            Ok(Named { prefix: format!("{prefix}{}:", key.name), cipher })
        };
        let named = keys.iter().map(named).collect::<Result<_, ConfigError>>()?;
        Ok(Kind::Keys(Arc::new(Keys { prefix, named, missing })))
    }

    /// The plain value, and whether another key than the first was needed; `None` if another provider wrote it.
    fn open(&self, place: &[u8], stored: &[u8]) -> Option<Result<(Vec<u8>, bool), Failure>> {
        if !stored.starts_with(self.prefix.as_bytes()) {
            return None;
        }
        // Keys of the same name are possible while one replaces the other.
        let mut problems = Vec::new();
        for (i, one) in self.named.iter().enumerate() {
            if let Some(sealed) = stored.strip_prefix(one.prefix.as_bytes()) {
                match one.cipher.open(place, sealed) {
                    Ok(plain) => return Some(Ok((plain, i > 0))),
                    Err(failure) => problems.push(failure),
                }
            }
        }
        if problems.is_empty() {
            problems.push(Failure::value(self.missing));
        }
        Some(Err(all(problems)))
    }
}

/// The providers of a resource.
#[derive(Debug)]
pub(crate) struct Providers {
    kinds: Vec<Kind>,
}

/// A value that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// `None` if it is stored as it is.
    pub(crate) plain: Option<Vec<u8>>,
    /// Whether it would be written differently now.
    pub(crate) is_stale: bool,
}

/// A step of reading a value.
enum Step {
    Done(Result<Opened, Failure>),
    /// The plugin of this provider has to be asked for a key first.
    #[cfg(feature = "kms")]
    Ask(usize, Arc<crate::kms::Plugin>),
}

impl Providers {
    pub(crate) fn new(kinds: Vec<Kind>) -> Providers {
        Providers { kinds }
    }

    /// The value as it is stored.
    pub(crate) fn seal(&self, env: &Env, place: &[u8], plain: &Bytes) -> Result<Bytes, Failure> {
        match self.kinds.first() {
            None | Some(Kind::Identity) => Ok(plain.clone()),
            Some(Kind::Keys(keys)) => {
                let Some(key) = keys.named.first() else { return Err(Failure::value(keys.missing)) };
                // Room for what the ciphers add.
                let mut out = Vec::with_capacity(key.prefix.len() + plain.len() + 64);
                out.extend_from_slice(key.prefix.as_bytes());
                key.cipher.seal(env, place, plain, &mut out)?;
                // Without spare capacity: the store keeps these bytes.
                Ok(out.into_boxed_slice().into())
            }
            #[cfg(feature = "kms")]
            Some(Kind::Kms(plugin)) => plugin.seal(place, plain),
        }
    }

    /// The plain value, if no plugin has to be asked for a key.
    pub(crate) fn open_now(&self, place: &[u8], stored: &[u8]) -> Option<Result<Opened, Failure>> {
        match self.step(place, stored, &[]) {
            Step::Done(done) => Some(done),
            #[cfg(feature = "kms")]
            Step::Ask(..) => None,
        }
    }

    /// The plain value.
    #[cfg(not(feature = "kms"))]
    pub(crate) async fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, Failure> {
        let Step::Done(done) = self.step(place, stored, &[]);
        done
    }

    /// The plain value; asks plugins for keys that are not known yet.
    #[cfg(feature = "kms")]
    pub(crate) async fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, Failure> {
        let mut answers: Vec<(usize, Failure)> = Vec::new();
        loop {
            match self.step(place, stored, &answers) {
                Step::Done(done) => return done,
                Step::Ask(at, plugin) => {
                    if let Err(failure) = plugin.fetch(stored).await {
                        answers.push((at, failure));
                    }
                }
            }
        }
    }

    /// `answers`: why plugins could not give keys, by the position of the provider.
    fn step(&self, place: &[u8], stored: &[u8], answers: &[(usize, Failure)]) -> Step {
        let mut problems = Vec::new();
        for (i, kind) in self.kinds.iter().enumerate() {
            let opened = match kind {
                // Encrypted values are left to the other providers.
                Kind::Identity if stored.starts_with(ENCRYPTED) => None,
                Kind::Identity => Some(Ok((None, false))),
                Kind::Keys(keys) => {
                    let opened = keys.open(place, stored);
                    opened.map(|opened| opened.map(|(plain, is_stale)| (Some(plain), is_stale)))
                }
                #[cfg(feature = "kms")]
                Kind::Kms(plugin) => match plugin.open(place, stored) {
                    crate::kms::Open::Other => None,
                    crate::kms::Open::Done(opened) => {
                        Some(opened.map(|(plain, is_stale)| (Some(plain), is_stale)))
                    }
                    crate::kms::Open::Ask => match answers.iter().find(|(at, _)| *at == i) {
                        Some((_, failure)) => Some(Err(failure.clone())),
                        None => return Step::Ask(i, plugin.clone()),
                    },
                },
            };
            match opened {
                Some(Ok((plain, is_stale))) => {
                    return Step::Done(Ok(Opened { plain, is_stale: is_stale || i > 0 }));
                }
                Some(Err(failure)) => problems.push(failure),
                None => {}
            }
        }
        // Only plugins give answers.
        let _ = answers;
        if problems.is_empty() {
            problems.push(Failure::value("no matching prefix found"));
        }
        Step::Done(Err(all(problems)))
    }
}

/// One failure of several, as Go joins errors.
fn all(problems: Vec<Failure>) -> Failure {
    let is_service = problems.iter().any(|problem| matches!(problem, Failure::Service(_)));
    let mut texts: Vec<String> = Vec::new();
    for problem in problems {
        let (Failure::Value(text) | Failure::Service(text)) = problem;
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
    if is_service { Failure::Service(text) } else { Failure::Value(text) }
}

#[cfg(not(feature = "kms"))]
impl Plugins {
    pub(crate) fn connect(
        _: &Env,
        configuration: &crate::config::Configuration,
    ) -> Result<Plugins, ConfigError> {
        let providers = configuration.resources.iter().flat_map(|one| &one.providers);
        match providers.filter_map(|provider| provider.kms.as_ref()).next() {
            None => Ok(Plugins::default()),
            Some(kms) => Err(without_kms(kms)),
        }
    }

    fn find(&self, kms: &crate::config::Kms) -> Result<Kind, ConfigError> {
        Err(without_kms(kms))
    }

    /// Whether all plugins are healthy: there are none.
    pub(crate) async fn check(&self) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    /// The work of the plugins: none.
    pub(crate) fn start(&self, _: &Env) -> Vec<k1s_env::Task<()>> {
        Vec::new()
    }

    pub(crate) fn close(&self) {}
}

#[cfg(not(feature = "kms"))]
fn without_kms(kms: &crate::config::Kms) -> ConfigError {
    ConfigError::Build(format!(
        "could not configure KMS plugin {:?}: this program is built without KMS",
        kms.name
    ))
}

#[cfg(feature = "kms")]
impl Plugins {
    pub(crate) fn connect(
        env: &Env,
        configuration: &crate::config::Configuration,
    ) -> Result<Plugins, ConfigError> {
        let mut connected: Vec<Arc<crate::kms::Plugin>> = Vec::new();
        let providers = configuration.resources.iter().flat_map(|one| &one.providers);
        for kms in providers.filter_map(|provider| provider.kms.as_ref()) {
            if kms.api_version == "v1" {
                return Err(ConfigError::Build(
                    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
                        .into(),
                ));
            }
            connected.push(Arc::new(crate::kms::Plugin::new(env, kms)?));
        }
        Ok(Plugins { connected })
    }

    fn find(&self, kms: &crate::config::Kms) -> Result<Kind, ConfigError> {
        let found = self.connected.iter().find(|plugin| plugin.name() == kms.name);
        let missing = || ConfigError::Build(format!("could not configure KMS plugin {:?}", kms.name));
        Ok(Kind::Kms(found.ok_or_else(missing)?.clone()))
    }

    /// Whether all plugins are healthy; otherwise why not.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        for (i, plugin) in self.connected.iter().enumerate() {
            if let Err(problem) = plugin.check().await {
                problems.push(format!("kms-provider-{i}: {problem}"));
            }
        }
        match problems.len() {
            0 => Ok(()),
            1 => Err(problems.concat()),
            _ => Err(format!("[{}]", problems.join(", "))),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Starts the regular checks of the plugins.
    pub(crate) fn start(&self, env: &Env) -> Vec<k1s_env::Task<()>> {
        self.connected.iter().map(|plugin| env.spawn("kms-probe", plugin.clone().run())).collect()
    }

    /// Ends their connections.
    pub(crate) fn close(&self) {
        self.connected.iter().for_each(|plugin| plugin.close());
    }
}
