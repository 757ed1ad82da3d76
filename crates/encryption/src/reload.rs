//! The configuration in a file, and its replacement while it is in use.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use k1s_env::Env;
use sha2::{Digest as _, Sha256};

use crate::{ConfigError, Configuration, Encryption, Loaded, Shared};

/// How long the plugins of a new configuration have to become healthy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncryptionOptions {
    /// The file: YAML or JSON.
    pub config: PathBuf,
    /// Whether the file is followed: a new one that is valid, and whose plugins are healthy, replaces the one in use.
    pub automatic_reload: bool,
    /// The interval between looks at the file.
    pub reload_interval: Duration,
}

impl EncryptionOptions {
    /// A configuration that is read once.
    pub fn new(config: impl Into<PathBuf>) -> EncryptionOptions {
        EncryptionOptions {
            config: config.into(),
            automatic_reload: false,
            reload_interval: Duration::from_secs(60),
        }
    }

    /// Follows the file.
    #[must_use]
    pub fn automatic_reload(mut self, wanted: bool) -> EncryptionOptions {
        self.automatic_reload = wanted;
        self
    }
}

/// A file that was read.
struct Read {
    configuration: Configuration,
    hash: [u8; 32],
}

fn read(path: &Path, reload: bool) -> Result<Read, ConfigError> {
    let text = fs::read(path).map_err(|error| ConfigError::File { path: path.to_owned(), error })?;
    let hash = Sha256::digest(&text).into();
    Ok(Read { configuration: Configuration::parse(&text, path, reload)?, hash })
}

impl Encryption {
    /// Reads the configuration from a file, and follows that if wanted.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid; see [`Encryption::new`].
    pub async fn open(env: &Env, options: &EncryptionOptions) -> Result<Encryption, ConfigError> {
        let (path, reload) = (options.config.clone(), options.automatic_reload);
        let read =
            env.spawn_blocking("reading the encryption configuration", move || read(&path, reload)).await;
        let Read { configuration, hash } = read.map_err(|error| ConfigError::Build(error.to_string()))??;
        let encryption = Encryption::new(env, &configuration).await?;
        if options.automatic_reload {
            let follow = follow(Arc::downgrade(&encryption.shared), env.clone(), options.clone(), hash);
            encryption.follow(env.spawn("encryption-provider-config", follow));
        }
        Ok(encryption)
    }
}

async fn follow(shared: Weak<Shared>, env: Env, options: EncryptionOptions, mut last: [u8; 32]) {
    loop {
        env.sleep(options.reload_interval).await;
        let Some(shared) = shared.upgrade() else { return };
        match reload(&env, &options.config, last).await {
            Ok(None) => {}
            Ok(Some((loaded, hash))) => {
                last = hash;
                Encryption { shared }.replace(loaded);
                tracing::info!(file = %options.config.display(), "loaded a new encryption configuration");
            }
            Err(error) => {
                tracing::error!(file = %options.config.display(), error, "error processing encryption config file");
            }
        }
    }
}

/// The new configuration, if the file has changed and its plugins are healthy.
async fn reload(env: &Env, path: &Path, last: [u8; 32]) -> Result<Option<(Loaded, [u8; 32])>, String> {
    let file = path.to_owned();
    let read = env.spawn_blocking("reading the encryption configuration", move || read(&file, true)).await;
    let Read { configuration, hash } =
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    if hash == last {
        return Ok(None);
    }
    let mut loaded = Loaded::new(env, &configuration).map_err(|error| error.to_string())?;
    let healthy = async {
        loop {
            match loaded.plugins.check().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(error, "a plugin of the new encryption configuration is not healthy")
                }
            }
            env.sleep(Duration::from_secs(1)).await;
        }
    };
    if env.timeout(PATIENCE, healthy).await.is_err() {
        return Err("health check for new transformers failed".into());
    }
    loaded.start(env);
    Ok(Some((loaded, hash)))
}
