//! The certificates of a TLS endpoint.

use std::sync::Arc;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};

use crate::tls::{CertFiles, CertWatcher, CertificateError};

/// Certificates from files, or self-signed.
#[derive(Debug, Clone)]
pub struct Certificates {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Files(CertWatcher),
    SelfSigned(Arc<ServerConfig>),
}

impl Certificates {
    /// Certificates from files, which are reloaded when they change.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub fn files(files: CertFiles) -> Result<Certificates, CertificateError> {
        Ok(Certificates { source: Source::Files(CertWatcher::new(files)?) })
    }

    /// A self-signed certificate in memory: connections are encrypted, but clients cannot verify the server.
    ///
    /// # Errors
    /// If a name is invalid.
    pub fn self_signed(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Certificates, CertificateError> {
        let failed = |why: String| CertificateError::SelfSigned { why };
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut params = CertificateParams::new(names).map_err(|error| failed(error.to_string()))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(|error| failed(error.to_string()))?;
        let certificate = params.self_signed(&key).map_err(|error| failed(error.to_string()))?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|error| failed(error.to_owned()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(|error| failed(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Certificates { source: Source::SelfSigned(Arc::new(config)) })
    }

    /// The configuration for the next handshake.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        match &self.source {
            Source::Files(watcher) => watcher.current(),
            Source::SelfSigned(config) => Arc::clone(config),
        }
    }
}
