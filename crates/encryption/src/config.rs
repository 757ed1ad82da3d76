//! The `EncryptionConfiguration`: its types, and strict decoding as Go's.

mod decode;
mod validate;

use std::{fmt, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k1s_object::time::Duration;

use crate::ConfigError;

/// What is encrypted, and by which keys: `apiserver.config.k8s.io/v1`, kind `EncryptionConfiguration`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub(crate) resources: Vec<Resources>,
}

/// Resources with the providers that write and read them. The first provider writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) resources: Vec<String>,
    pub(crate) providers: Vec<Provider>,
}

/// An element of `providers`, of which exactly one field has to be set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) aesgcm: Option<Vec<Key>>,
    pub(crate) aescbc: Option<Vec<Key>>,
    pub(crate) secretbox: Option<Vec<Key>>,
    pub(crate) identity: bool,
    pub(crate) kms: Option<Kms>,
}

/// A named key.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// In base64.
    pub(crate) secret: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Key {
    /// The bytes of the key.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        // Go's decoder skips line breaks.
        let text: String = self.secret.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        STANDARD.decode(text).ok()
    }
}

/// A plugin of a key management service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kms {
    pub(crate) api_version: String,
    pub(crate) name: String,
    pub(crate) cache_size: Option<i64>,
    pub(crate) endpoint: String,
    pub(crate) timeout: Option<Duration>,
}

impl Configuration {
    /// Decodes, defaults and validates the text of a file, of which `path` is the name in errors. `reload`: it may be replaced
    /// while it is in use, which requires unique names of plugins.
    ///
    /// # Errors
    /// In kube-apiserver's words.
    pub fn parse(text: &[u8], path: &Path, reload: bool) -> Result<Configuration, ConfigError> {
        if text.is_empty() {
            return Err(ConfigError::Empty { path: path.to_owned() });
        }
        let mut configuration = decode::decode(text, path)?;
        configuration.set_defaults();
        let errors = validate::validate(&configuration, reload);
        match errors.as_slice() {
            [] => Ok(configuration),
            [one] => Err(ConfigError::Invalid(one.to_string())),
            several => {
                let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(ConfigError::Invalid(format!("[{}]", texts.join(", "))))
            }
        }
    }

    /// A configuration that encrypts Secrets with AES-GCM and a key of 32 bytes, and reads what is not encrypted yet.
    #[must_use]
    pub fn of_key(name: &str, key: &[u8; 32]) -> String {
        let secret = STANDARD.encode(key);
        format!(
            "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources:\n  - secrets\n  \
             providers:\n  - aesgcm:\n      keys:\n      - name: {name}\n        secret: {secret}\n  - identity: {{}}\n"
        )
    }

    fn set_defaults(&mut self) {
        let providers = self.resources.iter_mut().flat_map(|one| &mut one.providers);
        for kms in providers.filter_map(|provider| provider.kms.as_mut()) {
            kms.timeout.get_or_insert(Duration::from_secs(3));
            if kms.api_version.is_empty() {
                kms.api_version = "v1".into();
            }
            if kms.api_version == "v1" {
                kms.cache_size.get_or_insert(1000);
            }
        }
    }
}
