//! Certificates for development: a private CA, and a serving certificate that is renewed.

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
/// Certificates are valid from this long before they are issued, since clocks differ.
const SKEW: Duration = Duration::from_secs(3600);
/// Practically unlimited: a renewed CA would have to be injected everywhere again.
const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(36_500);

/// The options of a [`DevCertificate`].
#[derive(Debug, Clone)]
pub struct DevCertificateOptions {
    /// The directory. It is created if it does not exist.
    pub dir: PathBuf,
    /// DNS names and addresses of the server; `localhost`, `127.0.0.1` and `::1` by default.
    pub names: Vec<String>,
    /// The file name of the certificate: `tls.crt` by default.
    pub cert_name: String,
    /// The file name of its key: `tls.key` by default.
    pub key_name: String,
    /// The file name of the CA: `ca.crt` by default.
    pub ca_name: String,
    /// The file name of the CA's key: `ca.key` by default.
    pub ca_key_name: String,
    /// The validity of a certificate: 90 days by default.
    pub validity: Duration,
    /// How long before it expires it is renewed: 30 days by default.
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
    /// A certificate for these names in this directory.
    pub fn new(
        dir: impl Into<PathBuf>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> DevCertificateOptions {
        let names = names.into_iter().map(Into::into).collect();
        DevCertificateOptions { dir: dir.into(), names, ..DevCertificateOptions::default() }
    }
}

/// The DNS names of a Service.
#[must_use]
pub fn service_names(namespace: &str, name: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{name}.{namespace}"),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// Why a certificate could not be provided.
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
    /// The certificate cannot be generated, most likely because of an invalid name.
    #[error("cannot generate the certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// A certificate for development, in files: issued by a private CA, and renewed before it expires.
///
/// Existing files are used as long as they are valid for the names and for long enough, so a restart changes nothing, and
/// an injected CA stays valid.
#[derive(Debug)]
pub struct DevCertificate {
    env: Env,
    options: DevCertificateOptions,
    authority: String,
    renew_at: SystemTime,
}

impl DevCertificate {
    /// Uses the files in the directory, or generates them.
    ///
    /// # Errors
    /// If the directory cannot be used, or a name is invalid.
    pub fn open(env: &Env, options: DevCertificateOptions) -> Result<DevCertificate, DevCertificateError> {
        fs::create_dir_all(&options.dir)
            .map_err(|source| DevCertificateError::Io { path: options.dir.clone(), source })?;
        let mut this =
            DevCertificate { env: env.clone(), options, authority: String::new(), renew_at: env.wall() };
        this.renew_if_due()?;
        Ok(this)
    }

    /// The CA, as PEM: for API servers and clients to trust.
    #[must_use]
    pub fn ca_bundle(&self) -> &str {
        &self.authority
    }

    /// Issues a new certificate if the current one is missing, invalid or about to expire. Returns whether it did.
    ///
    /// # Errors
    /// If the directory cannot be used, or a name is invalid.
    pub fn renew_if_due(&mut self) -> Result<bool, DevCertificateError> {
        if let Some(authority) = self.valid_authority() {
            self.authority = authority;
            // The exact expiry of an existing certificate is not known: check again later.
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
        // Key first: until the certificate follows, readers find a pair that does not match, and keep the old one.
        self.write(&self.options.key_name, &key.serialize_pem(), true)?;
        self.write(&self.options.cert_name, &certificate.pem(), false)?;
        self.renew_at = now + self.options.validity.saturating_sub(self.options.renew_before);
        tracing::info!(dir = %self.options.dir.display(), names = ?self.options.names, "issued a certificate");
        Ok(true)
    }

    /// Renews the certificate when it is due, until `cancel`. Failures are logged and retried.
    pub async fn run(mut self, cancel: CancellationToken) {
        let env = self.env.clone();
        loop {
            let due = self.renew_at.duration_since(env.wall()).unwrap_or_default();
            // The wall clock may jump, so it is checked at least daily.
            if cancel.run_until_cancelled(env.sleep(due.clamp(SKEW, DAY))).await.is_none() {
                return;
            }
            if env.wall() < self.renew_at {
                continue;
            }
            if let Err(error) = self.renew_if_due() {
                tracing::error!(%error, "cannot renew the certificate");
            }
        }
    }

    /// The CA, if the existing certificate is valid for all names, now and at the end of the renewal margin.
    fn valid_authority(&self) -> Option<String> {
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
        for time in [now, now + self.options.renew_before] {
            for name in &self.options.names {
                let name = ServerName::try_from(name.as_str()).ok()?;
                let time = UnixTime::since_unix_epoch(time);
                verifier.verify_server_cert(&certificate, &[], &name, &[], time).ok()?;
            }
        }
        Some(authority)
    }

    /// The existing CA, or a new one.
    fn issuer(&mut self) -> Result<Issuer<'static, KeyPair>, DevCertificateError> {
        // Everything that an issuer needs from its certificate is the same for all of them.
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

    /// Writes a file atomically; secrets are readable only by their owner.
    fn write(&self, name: &str, content: &str, secret: bool) -> Result<(), DevCertificateError> {
        let path = self.options.dir.join(name);
        let temporary = self.options.dir.join(format!(".{name}.new"));
        let written = write_file(&temporary, content, secret).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|source| DevCertificateError::Io { path, source })
    }
}

fn write_file(path: &Path, content: &str, secret: bool) -> io::Result<()> {
    // A leftover file may have looser permissions.
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

/// Whether the certificate belongs to this key.
fn certifies(authority: &str, key: &KeyPair) -> bool {
    let provider = rustls::crypto::ring::default_provider();
    let Ok(certificate) = CertificateDer::from_pem_slice(authority.as_bytes()) else { return false };
    let Ok(key) = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()) else { return false };
    rustls::sign::CertifiedKey::from_der(vec![certificate], key, &provider).is_ok()
}
