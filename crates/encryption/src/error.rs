//! Why a configuration cannot be used, and why a value cannot be read or written.

use std::{io, path::PathBuf};

/// Why an `EncryptionConfiguration` cannot be used. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(
        "error while parsing file: error while loading file: error reading encryption provider configuration file \
         {path:?}: {error}"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The file is empty.
    #[error(
        "error while parsing file: error while loading file: encryption provider configuration file {path:?} is empty"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It is not YAML or JSON, not of this kind, or has unknown fields.
    #[error(
        "error while parsing file: error decoding encryption provider configuration file {path:?}: {reason}"
    )]
    Decode {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It is another kind of configuration.
    #[error("error while parsing file: got unexpected config type: {0}")]
    Kind(String),
    /// Fields are invalid.
    #[error("error while parsing file: {0}")]
    Invalid(String),
    /// The providers cannot be made of it.
    #[error("error while building transformers: {0}")]
    Build(String),
}

/// Why a stored value could not be decrypted, or a value could not be encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No key fits, or the value is damaged: retrying does not help.
    Value(String),
    /// A key management service is needed and does not answer: retrying may help.
    Service(String),
}

impl Failure {
    pub(crate) fn value(reason: impl Into<String>) -> Failure {
        Failure::Value(reason.into())
    }
}
