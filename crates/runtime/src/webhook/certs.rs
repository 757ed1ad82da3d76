//! Certificates for development: an authority of one's own, and a serving certificate that is renewed.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use k1s_env::Env;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_util::sync::CancellationToken;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Clocks differ: certificates are valid from a little before they are made.
const SKEW: Duration = Duration::from_secs(3600);
/// The authority does not expire while anybody looks: renewing it would mean to inject it everywhere again.
const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(36_500);

/// What a [`DevCertificate`] is for and where it is.
#[derive(Debug, Clone)]
pub struct DevCertificateOptions {
    /// The folder. It is made if it is not there.
    pub dir: PathBuf,
    /// DNS names and addresses of the server: `localhost`, `127.0.0.1`, `::1`.
    pub names: Vec<String>,
    /// The file of the certificate: `tls.crt`.
    pub cert_name: String,
    /// The file of its key: `tls.key`.
    pub key_name: String,
    /// The file of the authority: `ca.crt`.
    pub ca_name: String,
    /// The file of the authority's key: `ca.key`.
    pub ca_key_name: String,
    /// How long a certificate is valid: 90 days.
    pub validity: Duration,
    /// How long before its end it is renewed: 30 days.
    pub renew_before: Duration,
}

impl Default for DevCertificateOptions {
    fn default() -> DevCertificateOptions {
        DevCertificateOptions {
            dir: super::WebhookOptions::default().cert_dir,
            names: ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec(),
            cert_name: "tls.crt".into(),
            key_name: "tls.key".into(),
            ca_name: "ca.crt".into(),
            ca_key_name: "ca.key".into(),
            validity: DAY * 90,
            renew_before: DAY * 30,
        }
    }
}

impl DevCertificateOptions {
    /// In this folder, for these names.
    pub fn new(
        dir: impl Into<PathBuf>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> DevCertificateOptions {
        let names = names.into_iter().map(Into::into).collect();
        DevCertificateOptions { dir: dir.into(), names, ..DevCertificateOptions::default() }
    }
}

/// The names by which a Service is called.
#[must_use]
pub fn service_names(namespace: &str, name: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{name}.{namespace}"),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum DevCertificateError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be made: a name that is none, most likely.
    #[error("the certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// A certificate for development, in files: made by an authority made for it, and renewed before it expires.
///
/// What is in the folder is used again as long as it is good for the names and long enough, so a restart changes nothing, and
/// a CA that was injected stays right.
#[derive(Debug)]
pub struct DevCertificate {
    env: Env,
    options: DevCertificateOptions,
    authority: String,
    renew_at: SystemTime,
}

impl DevCertificate {
    /// Uses what is in the folder, or makes it.
    ///
    /// # Errors
    /// The folder cannot be used, or a name is none.
    pub fn open(env: &Env, options: DevCertificateOptions) -> Result<DevCertificate, DevCertificateError> {
        fs::create_dir_all(&options.dir)
            .map_err(|source| DevCertificateError::Io { path: options.dir.clone(), source })?;
        let mut this =
            DevCertificate { env: env.clone(), options, authority: String::new(), renew_at: env.wall() };
        this.renew_if_due()?;
        Ok(this)
    }

    /// The authority, as PEM: what API servers and clients are to trust.
    #[must_use]
    pub fn ca_bundle(&self) -> &str {
        &self.authority
    }

    /// Makes a new certificate if the one that is there is missing, wrong or near its end. Says whether it did.
    ///
    /// # Errors
    /// The folder cannot be used, or a name is none.
    pub fn renew_if_due(&mut self) -> Result<bool, DevCertificateError> {
        if let Some(authority) = self.good() {
            self.authority = authority;
            // When exactly it ends is not known of one that was found: look again in a while.
            self.renew_at = self.renew_at.max(self.env.wall() + DAY.min(self.options.renew_before / 2));
            return Ok(false);
        }
        let issuer = self.issuer()?;
        let now = self.env.wall();
        let mut params = CertificateParams::new(self.options.names.clone())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "k1s webhook server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        validity(&mut params, now, self.options.validity);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        // Key first: until the certificate follows, a reader finds a pair that does not fit, and keeps the old one.
        self.write(&self.options.key_name, &key.serialize_pem(), true)?;
        self.write(&self.options.cert_name, &certificate.pem(), false)?;
        self.renew_at = now + self.options.validity.saturating_sub(self.options.renew_before);
        tracing::info!(dir = %self.options.dir.display(), names = ?self.options.names, "made a certificate");
        Ok(true)
    }

    /// Renews the certificate when it is time, until it is cancelled. What fails is logged and tried again.
    pub async fn run(mut self, cancel: CancellationToken) {
        let env = self.env.clone();
        loop {
            let due = self.renew_at.duration_since(env.wall()).unwrap_or_default();
            // The wall clock may jump, so it is looked at every day.
            if cancel.run_until_cancelled(env.sleep(due.clamp(SKEW, DAY))).await.is_none() {
                return;
            }
            if env.wall() < self.renew_at {
                continue;
            }
            if let Err(error) = self.renew_if_due() {
                tracing::error!(%error, "the certificate could not be renewed");
            }
        }
    }

    /// The authority, if the certificate that is there is right for all names, now and when it would have to be renewed.
    fn good(&self) -> Option<String> {
        let read = |name: &str| fs::read_to_string(self.options.dir.join(name)).ok();
        let authority = read(&self.options.ca_name)?;
        let certificate = read(&self.options.cert_name)?;
        let key = KeyPair::from_pem(&read(&self.options.key_name)?).ok()?;
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).ok()?;
        rustls::sign::CertifiedKey::from_der(vec![certificate.clone()], private, &provider).ok()?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).ok()?).ok()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
        let now = self.env.wall().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        for moment in [now, now + self.options.renew_before] {
            for name in &self.options.names {
                let name = ServerName::try_from(name.as_str()).ok()?;
                let moment = UnixTime::since_unix_epoch(moment);
                verifier.verify_server_cert(&certificate, &[], &name, &[], moment).ok()?;
            }
        }
        Some(authority)
    }

    /// The authority: the one that is there, or a new one.
    fn issuer(&mut self) -> Result<Issuer<'static, KeyPair>, DevCertificateError> {
        // All that an issuer has to know of its certificate is the same for all of them.
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "k1s webhook development CA");
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let read = |name: &str| fs::read_to_string(self.options.dir.join(name)).ok();
        let found = read(&self.options.ca_key_name).and_then(|key| KeyPair::from_pem(&key).ok());
        if let (Some(key), Some(authority)) = (found, read(&self.options.ca_name))
            && certifies(&authority, &key)
        {
            self.authority = authority;
            return Ok(Issuer::new(params, key));
        }
        let key = KeyPair::generate()?;
        validity(&mut params, self.env.wall(), AUTHORITY_VALIDITY);
        let authority = params.self_signed(&key)?.pem();
        self.write(&self.options.ca_key_name, &key.serialize_pem(), true)?;
        self.write(&self.options.ca_name, &authority, false)?;
        self.authority = authority;
        Ok(Issuer::new(params, key))
    }

    /// Writes a file so that it is there whole or not at all; a secret is for its owner's eyes alone.
    fn write(&self, name: &str, content: &str, secret: bool) -> Result<(), DevCertificateError> {
        let path = self.options.dir.join(name);
        let temporary = self.options.dir.join(format!(".{name}.new"));
        let written = write_file(&temporary, content, secret).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|source| DevCertificateError::Io { path, source })
    }
}

fn write_file(path: &Path, content: &str, secret: bool) -> io::Result<()> {
    // One left over might be readable by others.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if secret { 0o600 } else { 0o644 });
    #[cfg(not(unix))]
    let _ = secret;
    let mut file = options.open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

fn validity(params: &mut CertificateParams, now: SystemTime, validity: Duration) {
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch.saturating_sub(SKEW);
    params.not_after = epoch + since_epoch + validity;
}

/// Whether this is the certificate of this key.
fn certifies(authority: &str, key: &KeyPair) -> bool {
    let provider = rustls::crypto::ring::default_provider();
    let Ok(certificate) = CertificateDer::from_pem_slice(authority.as_bytes()) else { return false };
    let Ok(key) = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()) else { return false };
    rustls::sign::CertifiedKey::from_der(vec![certificate], key, &provider).is_ok()
}
