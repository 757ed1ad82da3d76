//! Encryption at rest: its configuration in a file, or a key that a data folder keeps itself.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::FutureExt as _;
use k1s_encryption::{Configuration, Encryption, EncryptionOptions};
use k1s_env::Env;
use k1s_server::{HealthCheck, ServerOptions};
use k1s_store::Store;

use super::{RuntimeBuilder, StartError};

/// The configuration in a data folder, with the folder's own key. A folder that has it is encrypted, whoever opens it.
const FILE: &str = "pki/encryption.yaml";

/// The keys of the server itself, which are written again whenever another key of encryption writes.
const OWN: &[u8] = b"/_k1s/";

/// How values are encrypted.
#[derive(Debug, Default)]
pub(super) enum Encrypt {
    /// As the data folder says, if it says anything.
    #[default]
    Found,
    /// The same, and a folder without a key gets one.
    Own,
    Configured(EncryptionOptions),
}

/// Encryption at rest, with the feature `encryption`.
impl RuntimeBuilder {
    /// Encrypts values in the store as an `EncryptionConfiguration` says, in the format of kube-apiserver. The keys that the
    /// server keeps in the store itself are encrypted like Secrets.
    pub fn encryption(mut self, options: EncryptionOptions) -> RuntimeBuilder {
        self.encrypt = Encrypt::Configured(options);
        self
    }

    /// Encrypts Secrets in a data folder with a key that is kept in its `pki/encryption.yaml`, and generated if there is none.
    /// Secrets that are there already are encrypted at that start. A folder with such a file is encrypted without this, too.
    pub fn encrypt_secrets(mut self) -> RuntimeBuilder {
        self.encrypt = Encrypt::Own;
        self
    }
}

impl Encrypt {
    /// The store through which all data goes. `folder`: the data folder, if there is one.
    pub(super) async fn wrap(
        self,
        env: &Env,
        folder: Option<&Path>,
        store: Arc<dyn Store>,
        server: &mut ServerOptions,
    ) -> Result<Arc<dyn Store>, StartError> {
        match self.over(env, folder, store.clone(), server).await {
            Ok(store) => Ok(store),
            Err(error) => {
                if let Err(error) = store.close().await {
                    tracing::warn!(%error, "could not close the store after a failed start");
                }
                Err(error)
            }
        }
    }

    async fn over(
        self,
        env: &Env,
        folder: Option<&Path>,
        store: Arc<dyn Store>,
        server: &mut ServerOptions,
    ) -> Result<Arc<dyn Store>, StartError> {
        let (options, is_new) = match self {
            Encrypt::Configured(options) => (options, false),
            Encrypt::Found | Encrypt::Own => {
                let create = matches!(self, Encrypt::Own);
                let Some(folder) = folder else {
                    if create {
                        let why = "only a data folder keeps a key of its own; use a configuration";
                        return Err(StartError::Encryption(why.into()));
                    }
                    return Ok(store);
                };
                let path = folder.join(FILE);
                let (random, file) = (env.clone(), path.clone());
                let find = move || find_or_create(&random, &file, create);
                let found = env.spawn_blocking("the key of encryption", find).await?;
                match found.map_err(|error| StartError::Encryption(format!("{}: {error}", path.display())))? {
                    Found::Nothing => return Ok(store),
                    Found::Existing => (EncryptionOptions::new(path), false),
                    Found::Created => (EncryptionOptions::new(path), true),
                }
            }
        };
        let encryption = Encryption::open(env, &options)
            .await
            .map_err(|error| StartError::Encryption(error.to_string()))?;
        let encrypted = encryption.store(store);
        let prefix = if is_new { b"" } else { OWN };
        match encrypted.rewrite(prefix).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "encrypted what was stored before"),
            Err(error) => {
                return Err(StartError::Encryption(format!(
                    "stored values cannot be written again: {error}"
                )));
            }
        }
        if options.automatic_reload || encryption.has_plugins() {
            server.health_checks.push(HealthCheck::new("kms-providers", move || {
                let encryption = encryption.clone();
                async move { encryption.check().await }.boxed()
            }));
        }
        Ok(Arc::new(encrypted))
    }
}

enum Found {
    Nothing,
    Existing,
    Created,
}

/// The configuration of a folder, whose store is locked.
fn find_or_create(env: &Env, path: &Path, create: bool) -> io::Result<Found> {
    if path.exists() {
        warn_if_open_to_others(path);
        return Ok(Found::Existing);
    }
    if !create {
        return Ok(Found::Nothing);
    }
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    let mut key = [0; 32];
    env.fill_random(&mut key);
    let text = Configuration::of_key("key1", &key);
    // Whole or not at all: a value must not be written with a key that is lost.
    let part = PathBuf::from(format!("{}.new", path.display()));
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
    let mut file = open.open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    let parents = [Some(folder.as_path()), folder.parent()];
    for parent in parents.into_iter().flatten() {
        fs::File::open(parent)?.sync_all()?;
    }
    Ok(Found::Created)
}

/// Warns if other users of this machine can read the key.
fn warn_if_open_to_others(path: &Path) {
    #[cfg(unix)]
    if let Ok(about) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0
    {
        tracing::warn!(file = %path.display(), "other users can read this key; chmod 600 it");
    }
    #[cfg(not(unix))]
    let _ = path;
}
