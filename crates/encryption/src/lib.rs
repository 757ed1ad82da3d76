//! Encryption at rest: a [`Store`] over another one, which encrypts the values of some resources.
//!
//! What is encrypted, and with which keys, an `EncryptionConfiguration` says, as that of kube-apiserver does. The stored values have
//! its formats, too: `k8s:enc:aesgcm:v1:key1:` and the sealed value, with the key in the store as authenticated data. The crate knows
//! keys and bytes, and no objects; resources are the third and fourth part of a key (`/tenant/core/secrets/…`).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use k1s_encryption::{Configuration, Encryption};
//! use k1s_env::Env;
//! use k1s_store::{MemoryStore, Store};
//!
//! let text = Configuration::of_key("key1", &[7; 32]);
//! let encryption = Encryption::new(&Env::system(), &Configuration::parse(text.as_bytes(), "here".as_ref(), false)?).await?;
//! let inside: Arc<dyn Store> = Arc::new(MemoryStore::default());
//! let store = encryption.store(inside.clone());
//! store.create("/t/core/secrets/n/a".into(), "hush".into()).await?;
//!
//! let stored = inside.get(b"/t/core/secrets/n/a", None).await?.entry.unwrap().value;
//! assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
//! assert_eq!(store.get(b"/t/core/secrets/n/a", None).await?.entry.unwrap().value, "hush");
//! # Ok(())
//! # }
//! ```

mod cipher;
mod config;
mod error;
#[cfg(feature = "kms")]
mod kms;
mod providers;
mod recent;
mod reload;
mod resource;
mod rules;
mod store;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::{ArcSwap, Guard};
use k1s_env::{Env, Task};
use k1s_store::Store;
use tokio::sync::watch;

pub use self::{config::Configuration, error::ConfigError, reload::EncryptionOptions, store::EncryptedStore};
use self::{providers::Plugins, recent::Recent, rules::Rules};

/// The configuration in use. Clones share it.
#[derive(Clone)]
pub struct Encryption {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    current: ArcSwap<Loaded>,
    /// Whether a value could not be read since the last change of the configuration.
    saw_unreadable: AtomicBool,
    /// Changes when such values may be readable: watches end, so that caches read everything again.
    reloads: watch::Sender<u64>,
    /// The task that follows the file.
    following: Mutex<Option<Task<()>>>,
}

/// A configuration with what was made of it.
struct Loaded {
    rules: Rules,
    /// What was encrypted by these rules last. Other rules may not be able to read it.
    recent: Mutex<Recent>,
    plugins: Plugins,
    /// The checks of plugins.
    tasks: Vec<Task<()>>,
}

impl Loaded {
    fn new(env: &Env, configuration: &Configuration) -> Result<Loaded, ConfigError> {
        let plugins = Plugins::connect(env, configuration)?;
        let rules = Rules::new(configuration, &plugins)?;
        Ok(Loaded { rules, recent: Mutex::default(), plugins, tasks: Vec::new() })
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&mut self, env: &Env) {
        self.tasks = self.plugins.start(env);
    }

    fn close(&self) {
        self.tasks.iter().for_each(Task::abort);
        self.plugins.close();
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Reads in flight may still use a plugin, whose connections end with it.
        self.tasks.iter().for_each(Task::abort);
    }
}

impl Encryption {
    /// Makes the providers of a configuration, and asks its plugins for their first keys. A plugin that is not healthy is no error:
    /// it is asked again.
    ///
    /// # Errors
    /// If a resource is masked by an earlier rule, or a provider is not supported.
    pub async fn new(env: &Env, configuration: &Configuration) -> Result<Encryption, ConfigError> {
        let mut loaded = Loaded::new(env, configuration)?;
        if let Err(error) = loaded.plugins.check().await {
            tracing::error!(%error, "a KMS plugin is not healthy");
        }
        loaded.start(env);
        Ok(Encryption {
            shared: Arc::new(Shared {
                env: env.clone(),
                current: ArcSwap::from_pointee(loaded),
                saw_unreadable: AtomicBool::new(false),
                reloads: watch::Sender::new(0),
                following: Mutex::new(None),
            }),
        })
    }

    /// A store that encrypts values in another one. Closing it also closes the other one, and ends the work of the plugins.
    #[must_use]
    pub fn store(&self, inner: Arc<dyn Store>) -> EncryptedStore {
        EncryptedStore::new(inner, self.clone())
    }

    /// Whether key management services are used, and [`check`](Self::check) says anything.
    #[must_use]
    pub fn has_plugins(&self) -> bool {
        !self.current().plugins.is_empty()
    }

    /// Whether all plugins are healthy; otherwise why not. The answer may be some seconds old.
    ///
    /// # Errors
    /// What is wrong, as the health check `kms-providers` shows it.
    pub async fn check(&self) -> Result<(), String> {
        self.shared.current.load_full().plugins.check().await
    }

    pub(crate) fn env(&self) -> &Env {
        &self.shared.env
    }

    pub(crate) fn current(&self) -> Guard<Arc<Loaded>> {
        self.shared.current.load()
    }

    /// Replaces the configuration.
    fn replace(&self, loaded: Loaded) {
        let old = self.shared.current.swap(Arc::new(loaded));
        old.tasks.iter().for_each(Task::abort);
        if self.shared.saw_unreadable.swap(false, Ordering::AcqRel) {
            self.shared.reloads.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn reloads(&self) -> watch::Receiver<u64> {
        self.shared.reloads.subscribe()
    }

    pub(crate) fn note_unreadable(&self) {
        self.shared.saw_unreadable.store(true, Ordering::Release);
    }

    fn follow(&self, task: Task<()>) {
        *self.shared.following.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Ends its tasks and connections.
    pub(crate) fn close(&self) {
        if let Some(task) = self.shared.following.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        self.current().close();
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("rules", &self.current().rules).finish_non_exhaustive()
    }
}
