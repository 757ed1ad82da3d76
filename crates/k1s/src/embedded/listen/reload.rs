//! Certificates and authorities from files, reloaded when the files change.
//!
//! The files are read every few seconds and compared. (Kubernetes' secret volumes replace files by switching a symbolic link,
//! and editors replace them in other ways: only their content says whether they have changed.) What cannot be used, such as a
//! file that is half written, or a certificate whose key is not there yet, leaves what is in use as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k1s_env::Env;
use k1s_server::{ClientTrust, NamedCertificate, ServedCertificate, TlsFiles};
use parking_lot::Mutex;

use super::super::StartError;

/// A certificate and its key, in files.
#[derive(Debug, Clone)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The files of a listener.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// The serving certificate, if it comes from files.
    pub(super) serving: Option<CertificateFiles>,
    /// Certificates for certain names.
    pub(super) named: Vec<(CertificateFiles, Vec<String>)>,
    /// Authorities of client certificates.
    pub(super) client_authorities: Option<PathBuf>,
}

/// What the files contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    serving: Option<(String, String)>,
    named: Vec<(String, String, Vec<String>)>,
    pub(super) client_authorities: String,
}

fn text(path: &Path) -> Result<String, StartError> {
    fs::read_to_string(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> StartError {
    StartError::Pki { path: path.to_owned(), reason: reason.to_string() }
}

impl CertificateFiles {
    fn read(&self) -> Result<(String, String), StartError> {
        Ok((text(&self.certificate)?, text(&self.key)?))
    }
}

impl Files {
    pub(super) fn is_empty(&self) -> bool {
        self.serving.is_none() && self.named.is_empty() && self.client_authorities.is_none()
    }

    pub(super) fn read(&self) -> Result<Contents, StartError> {
        let named = self.named.iter().map(|(files, names)| {
            let (certificate, key) = files.read()?;
            Ok::<_, StartError>((certificate, key, names.clone()))
        });
        Ok(Contents {
            serving: self.serving.as_ref().map(CertificateFiles::read).transpose()?,
            named: named.collect::<Result<_, _>>()?,
            client_authorities: match &self.client_authorities {
                Some(path) => text(path)?,
                None => String::new(),
            },
        })
    }
}

impl Contents {
    /// The serving certificate. Clients should trust it, or the authority in its chain.
    pub(super) fn serving(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.serving.clone()?;
        Some(TlsFiles { authority: certificate.clone(), certificate, key })
    }

    pub(super) fn named(&self) -> Vec<NamedCertificate> {
        let named = self.named.iter();
        named
            .map(|(certificate, key, names)| NamedCertificate::new(certificate, key, names.clone()))
            .collect()
    }
}

/// The authorities of clients, as PEM, by where they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientAuthorities(Arc<Mutex<Sources>>);

#[derive(Debug, Clone, Default)]
struct Sources {
    /// What does not change.
    fixed: ClientTrust,
    own: String,
    given: String,
    file: String,
}

impl Sources {
    fn trust(&self) -> ClientTrust {
        let mut trust = self.fixed.clone();
        trust.users = format!("{}\n{}\n{}", self.own, self.given, self.file);
        trust
    }
}

impl ClientAuthorities {
    /// `fixed`: the authorities of others than users.
    pub(super) fn new(fixed: ClientTrust, own: String, given: String, file: String) -> ClientAuthorities {
        ClientAuthorities(Arc::new(Mutex::new(Sources { fixed, own, given, file })))
    }

    pub(super) fn trust(&self) -> ClientTrust {
        self.0.lock().trust()
    }

    pub(super) fn set_own(&self, own: &str, slot: &ServedCertificate) -> io::Result<()> {
        self.change(slot, |sources| own.clone_into(&mut sources.own))
    }

    fn set_file(&self, file: &str, slot: &ServedCertificate) -> io::Result<()> {
        // What is half written may have no certificate left.
        if !file.contains("-----END CERTIFICATE-----") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file of client authorities has no certificate",
            ));
        }
        self.change(slot, |sources| file.clone_into(&mut sources.file))
    }

    fn change(&self, slot: &ServedCertificate, change: impl FnOnce(&mut Sources)) -> io::Result<()> {
        let mut sources = self.0.lock();
        let mut new = sources.clone();
        change(&mut new);
        slot.replace_client_authorities(&new.trust())?;
        *sources = new;
        Ok(())
    }
}

/// Keeps a listener up to date with its files.
pub(super) struct Reload {
    pub(super) files: Files,
    pub(super) contents: Contents,
    pub(super) clients: ClientAuthorities,
    pub(super) interval: Duration,
}

impl Reload {
    /// Looks at the files, forever.
    pub(super) async fn run(mut self, env: Env, slot: ServedCertificate) {
        // A problem is logged when it appears, and not again.
        let mut problem = String::new();
        loop {
            env.sleep(self.interval).await;
            let files = self.files.clone();
            let read = env.spawn_blocking("reading certificates", move || files.read()).await;
            let changed = match read {
                Ok(Ok(contents)) if contents == self.contents => {
                    problem.clear();
                    continue;
                }
                Ok(Ok(contents)) => {
                    self.apply(&contents, &slot).map(|()| contents).map_err(|error| error.to_string())
                }
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => return,
            };
            match changed {
                Ok(contents) => {
                    tracing::info!("certificates were reloaded from their files");
                    self.contents = contents;
                    problem.clear();
                }
                Err(why) if why != problem => {
                    tracing::error!(%why, "changed certificates cannot be used; the previous ones stay in use");
                    problem = why;
                }
                Err(_) => {}
            }
        }
    }

    /// Each part is replaced on its own: one that cannot be used does not keep the others from being replaced.
    fn apply(&mut self, new: &Contents, slot: &ServedCertificate) -> io::Result<()> {
        let mut outcome = Ok(());
        let old = &mut self.contents;
        if old.serving != new.serving
            && let Some(files) = new.serving()
        {
            match slot.replace(&files) {
                Ok(()) => old.serving.clone_from(&new.serving),
                Err(error) => outcome = Err(error),
            }
        }
        if old.named != new.named {
            match slot.replace_named(new.named()) {
                Ok(()) => old.named.clone_from(&new.named),
                Err(error) => outcome = Err(error),
            }
        }
        if old.client_authorities != new.client_authorities {
            match self.clients.set_file(&new.client_authorities, slot) {
                Ok(()) => old.client_authorities.clone_from(&new.client_authorities),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}
