//! Certificates from files, reloaded when they change. Go's `certwatcher`.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use k1s_env::Env;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_util::sync::CancellationToken;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{} is not usable: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate could not be generated.
    #[error("cannot generate a certificate: {why}")]
    SelfSigned {
        /// Why not.
        why: String,
    },
    /// Certificate and key do not match, or cannot be used.
    #[error("the certificate {} and its key cannot be used: {source}", path.display())]
    Pair {
        /// The file of the certificate.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The files to watch.
#[derive(Debug, Clone)]
pub struct CertFiles {
    /// The certificate and its chain; PEM.
    pub certificate: PathBuf,
    /// Its key; PEM.
    pub key: PathBuf,
    /// The client CAs, if clients must present a certificate; PEM.
    pub client_ca: Option<PathBuf>,
}

/// The TLS configuration from a set of files, kept up to date.
///
/// [`current`](Self::current) checks whether the files have changed, so a handshake after a change uses the new ones. If
/// they are not usable (half written, for example), the previous configuration stays; this is logged once per change.
#[derive(Clone)]
pub struct CertWatcher {
    inner: Arc<Inner>,
}

struct Inner {
    files: CertFiles,
    loaded: Mutex<Loaded>,
    reads: Counter,
    errors: Counter,
}

struct Loaded {
    config: Arc<ServerConfig>,
    contents: Contents,
    /// The stamps of the files when they were last read, whether or not they were usable.
    seen: Vec<Stamp>,
}

/// Metadata of a file that shows whether it has changed: modification time, size, inode. None if it does not exist.
type Stamp = Option<(Option<SystemTime>, u64, u64)>;

#[derive(PartialEq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl CertWatcher {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub fn new(files: CertFiles) -> Result<CertWatcher, CertificateError> {
        CertWatcher::counted(files, Counter::default(), Counter::default())
    }

    pub(super) fn counted(
        files: CertFiles,
        reads: Counter,
        errors: Counter,
    ) -> Result<CertWatcher, CertificateError> {
        // Stamps first, so that a file that changes while it is read is read again.
        let seen = files.stamps();
        reads.inc();
        let loaded = files.read().and_then(|contents| Ok((files.config(&contents)?, contents)));
        let (config, contents) = loaded.inspect_err(|_| {
            errors.inc();
        })?;
        let loaded = Mutex::new(Loaded { config, contents, seen });
        Ok(CertWatcher { inner: Arc::new(Inner { files, loaded, reads, errors }) })
    }

    /// The configuration for the next handshake. It checks the files' metadata, which takes some microseconds, and reloads
    /// them if they have changed.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        let seen = self.inner.files.stamps();
        let mut loaded = self.inner.loaded.lock();
        if loaded.seen != seen {
            self.inner.reload(&mut loaded, seen);
        }
        Arc::clone(&loaded.config)
    }

    /// Reloads the files now, whether or not their metadata has changed.
    pub fn reload(&self) {
        let seen = self.inner.files.stamps();
        self.inner.reload(&mut self.inner.loaded.lock(), seen);
    }

    /// Reloads the files every `period`, for changes that their metadata does not show, until `cancel`.
    pub async fn run(&self, env: &Env, period: Duration, cancel: CancellationToken) {
        while cancel.run_until_cancelled(env.sleep(period)).await.is_some() {
            let watcher = self.clone();
            // Cannot fail: the closure does not panic, and is not cancelled while this runs.
            let _ = env.spawn_blocking("webhook-certificates", move || watcher.reload()).await;
        }
    }
}

impl Inner {
    fn reload(&self, loaded: &mut Loaded, seen: Vec<Stamp>) {
        self.reads.inc();
        let read = self.files.read();
        let changed = match read {
            Ok(contents) if contents == loaded.contents => Ok(None),
            Ok(contents) => self.files.config(&contents).map(|config| Some((config, contents))),
            Err(error) => Err(error),
        };
        match changed {
            Ok(None) => {}
            Ok(Some((config, contents))) => {
                tracing::info!(certificate = %self.files.certificate.display(), "updated current TLS certificate");
                (loaded.config, loaded.contents) = (config, contents);
            }
            Err(error) => {
                self.errors.inc();
                if loaded.seen != seen {
                    tracing::error!(%error, "the new certificate is not usable, keeping the old one");
                }
            }
        }
        loaded.seen = seen;
    }
}

impl CertFiles {
    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok(), metadata.len(), inode(&metadata)))
        };
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()]
            .into_iter()
            .flatten()
            .map(|path| stamp(path))
            .collect()
    }

    fn read(&self) -> Result<Contents, CertificateError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|source| CertificateError::Read { path: path.clone(), source })
        };
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            client_ca: self.client_ca.as_ref().map(read).transpose()?,
        })
    }

    fn config(&self, contents: &Contents) -> Result<Arc<ServerConfig>, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pair = |source| CertificateError::Pair { path: self.certificate.clone(), source };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(pair)?;
        let builder = match (&self.client_ca, &contents.client_ca) {
            (Some(path), Some(pem)) => {
                let unusable = |why: String| CertificateError::Content { path: path.clone(), why };
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, pem)? {
                    roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| unusable(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let chain = certificates(&self.certificate, &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|error| CertificateError::Content { path: self.key.clone(), why: error.to_string() })?;
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let unusable = |why: String| CertificateError::Content { path: path.to_owned(), why };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(error.to_string()))?;
    if chain.is_empty() { Err(unusable("there is no certificate in it".into())) } else { Ok(chain) }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

impl fmt::Debug for CertWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertWatcher").field("files", &self.inner.files).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::certs::{DevCertificate, DevCertificateOptions};

    fn certificate(env: &Env, dir: &Path, names: &[&str]) {
        DevCertificate::open(env, DevCertificateOptions::new(dir, names.iter().copied())).unwrap();
    }

    #[tokio::test]
    async fn files_are_reloaded_every_period_without_a_handshake() {
        let (dir, (env, clock)) = (tempfile::tempdir().unwrap(), Env::simulated(1));
        certificate(&env, dir.path(), &["localhost"]);
        let (reads, errors) = (Counter::default(), Counter::default());
        let path = |name| dir.path().join(name);
        let files = CertFiles { certificate: path("tls.crt"), key: path("tls.key"), client_ca: None };
        let watcher = CertWatcher::counted(files, reads.clone(), errors.clone()).unwrap();
        let first = watcher.current();
        assert!(Arc::ptr_eq(&first, &watcher.current()), "unchanged files are not read again");
        assert_eq!(reads.get(), 1);

        let cancel = CancellationToken::new();
        let running = env.spawn("watcher", {
            let (watcher, env, cancel) = (watcher.clone(), env.clone(), cancel.clone());
            async move { watcher.run(&env, Duration::from_secs(10), cancel).await }
        });
        certificate(&env, dir.path(), &["localhost", "127.0.0.1"]);
        clock.advance_and_settle(Duration::from_secs(9)).await;
        assert_eq!(reads.get(), 1);
        clock.advance_and_settle(Duration::from_secs(1)).await;
        assert_eq!(reads.get(), 2);
        assert!(!Arc::ptr_eq(&first, &watcher.current()));
        assert_eq!(reads.get(), 2, "the periodic reload was first");

        std::fs::write(path("tls.key"), "no key").unwrap();
        clock.advance_and_settle(Duration::from_secs(20)).await;
        assert_eq!((reads.get(), errors.get()), (4, 2));
        cancel.cancel();
        running.await.unwrap();
    }

    #[test]
    fn errors_name_the_file_and_the_problem() {
        let (env, dir) = (Env::system(), tempfile::tempdir().unwrap());
        certificate(&env, dir.path(), &["localhost"]);
        let path = |name: &str| dir.path().join(name);
        let files = CertFiles { certificate: path("tls.crt"), key: path("tls.key"), client_ca: None };
        let wrong = |files: CertFiles| CertWatcher::new(files).unwrap_err().to_string();
        let mixed = wrong(CertFiles { certificate: path("ca.crt"), ..files.clone() });
        assert!(mixed.contains("ca.crt and its key cannot be used"), "{mixed}");
        let no_key = wrong(CertFiles { key: path("tls.crt"), ..files.clone() });
        assert!(no_key.contains("tls.crt is not usable"), "{no_key}");
        let no_ca = wrong(CertFiles { client_ca: Some(path("tls.key")), ..files.clone() });
        assert!(no_ca.contains("tls.key is not usable: there is no certificate in it"), "{no_ca}");
        let missing = wrong(CertFiles { client_ca: Some(path("none")), ..files });
        assert!(missing.contains("none cannot be read"), "{missing}");
    }
}
