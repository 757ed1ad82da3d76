//! HTTPS: the certificates that a listener serves, and handshakes.

use std::{io, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use k1s_env::Env;
use parking_lot::Mutex;
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    Listener,
    connections::Connection,
    sni::{Certificates, NamedCertificate, certified_key},
    suites::TlsProtocol,
};
use crate::{
    TlsFiles,
    identity::{Certificate, Peer, User, Verified},
};

/// How a listener speaks TLS, besides its certificate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TlsOptions {
    /// Versions and cipher suites.
    pub protocol: TlsProtocol,
    /// Certificates for certain names; clients that ask for another one get the listener's.
    pub named: Vec<NamedCertificate>,
}

/// The certificates of a listener, and the authorities of its clients. They can be replaced while the server runs.
#[derive(Clone)]
pub struct ServedCertificate {
    inner: Arc<Inner>,
}

struct Inner {
    current: ArcSwap<Current>,
    parts: Mutex<Parts>,
}

#[derive(Clone)]
struct Parts {
    files: TlsFiles,
    options: TlsOptions,
    /// The authorities of client certificates.
    clients: Option<Arc<ClientAuthorities>>,
}

/// What a connection is accepted with.
pub(super) struct Current {
    config: Arc<rustls::ServerConfig>,
    clients: Option<Arc<ClientAuthorities>>,
}

impl Current {
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }

    /// Who the client of a connection is, by its certificate; `None` if it sent none, or none is wanted.
    pub(super) fn peer<S>(&self, env: &Env, stream: &TlsStream<S>) -> Option<Peer> {
        let clients = self.clients.as_ref()?;
        let (certificate, between) = stream.get_ref().1.peer_certificates()?.split_first()?;
        Some(clients.verify(env, certificate, between))
    }
}

impl ServedCertificate {
    pub(super) fn new(
        files: &TlsFiles,
        clients: Option<Arc<ClientAuthorities>>,
    ) -> io::Result<ServedCertificate> {
        let parts = Parts { files: files.clone(), options: TlsOptions::default(), clients };
        let current = ArcSwap::from_pointee(parts.compile()?);
        Ok(ServedCertificate { inner: Arc::new(Inner { current, parts: Mutex::new(parts) }) })
    }

    /// Presents this certificate from the next connection on. Open connections are not affected.
    ///
    /// # Errors
    /// If it cannot be used; the previous one stays in use.
    pub fn replace(&self, files: &TlsFiles) -> io::Result<()> {
        self.change(|parts| {
            parts.files = files.clone();
            Ok(())
        })
    }

    /// The same for the certificates for certain names.
    ///
    /// # Errors
    /// If one cannot be used; the previous ones stay in use.
    pub fn replace_named(&self, named: Vec<NamedCertificate>) -> io::Result<()> {
        self.change(|parts| {
            parts.options.named = named;
            Ok(())
        })
    }

    /// Trusts the client certificates of these authorities from the next connection on. Not for a listener that takes none.
    ///
    /// # Errors
    /// If an authority cannot be used; the previous ones stay in use.
    pub fn replace_client_authorities(&self, trust: &ClientTrust) -> io::Result<()> {
        self.change(|parts| {
            if parts.clients.is_some() {
                parts.clients = Some(Arc::new(ClientAuthorities::new(trust)?));
            }
            Ok(())
        })
    }

    fn change(&self, change: impl FnOnce(&mut Parts) -> io::Result<()>) -> io::Result<()> {
        let mut parts = self.inner.parts.lock();
        let mut new = parts.clone();
        change(&mut new)?;
        self.inner.current.store(Arc::new(new.compile()?));
        *parts = new;
        Ok(())
    }

    pub(super) fn current(&self) -> Arc<Current> {
        self.inner.current.load_full()
    }
}

impl Parts {
    fn compile(&self) -> io::Result<Current> {
        let protocol = &self.options.protocol;
        let provider = protocol.provider();
        let default = certified_key(&self.files.certificate, &self.files.key, &provider)?;
        let certificates = Certificates::new(default, &self.options.named, &provider)?;
        let builder = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(protocol.versions())
            .map_err(|error| wrong("TLS set-up", &error))?;
        let builder = match &self.clients {
            Some(clients) => builder.with_client_cert_verifier(clients.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Current { config: Arc::new(config), clients: self.clients.clone() })
    }
}

impl std::fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServedCertificate")
    }
}

/// Whose certificates a listener takes from clients.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClientTrust {
    /// The authorities of users, as PEM: a client with a certificate of one of them is the user named by its `CN`, in the
    /// groups named by its `O`s.
    pub users: String,
    /// The authorities of [front proxies](crate::RequestHeaderOptions), as PEM.
    pub front_proxies: String,
    /// The `CN`s of front proxies; empty for all.
    pub front_proxy_names: Vec<String>,
}

/// The authorities that issue the certificates of clients.
///
/// As in kube-apiserver, a handshake only proves that the client has the key of its certificate. Whether the certificate is
/// valid is decided per connection, and told with 401 by the API: a refused handshake would tell the user nothing.
pub(super) struct ClientAuthorities {
    users: Option<Arc<dyn ClientCertVerifier>>,
    front_proxies: Option<Arc<dyn ClientCertVerifier>>,
    front_proxy_names: Vec<String>,
    /// The names of all authorities, for clients that choose between certificates.
    names: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl std::fmt::Debug for ClientAuthorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientAuthorities")
    }
}

/// The verifier of the authorities in a PEM file; `None` if it is empty.
fn verifier(
    pem: &str,
    what: &str,
    provider: &Arc<CryptoProvider>,
) -> io::Result<Option<Arc<dyn ClientCertVerifier>>> {
    if pem.trim().is_empty() {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        authority
            .map_err(|error| error.to_string())
            .and_then(|authority| roots.add(authority).map_err(|error| error.to_string()))
            .map_err(|error| wrong(what, &error))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| wrong(what, &error))?;
    Ok(Some(verifier))
}

impl ClientAuthorities {
    fn new(trust: &ClientTrust) -> io::Result<ClientAuthorities> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let users = verifier(&trust.users, "authority of client certificates", &provider)?;
        let front_proxies = verifier(&trust.front_proxies, "authority of front proxies", &provider)?;
        let names = [&users, &front_proxies].into_iter().flatten();
        let names = names.flat_map(|verifier| verifier.root_hint_subjects()).cloned().collect();
        let front_proxy_names = trust.front_proxy_names.clone();
        Ok(ClientAuthorities { users, front_proxies, front_proxy_names, names, provider })
    }

    fn verify(&self, env: &Env, certificate: &CertificateDer<'_>, between: &[CertificateDer<'_>]) -> Peer {
        let now = env.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(now);
        let digest: [u8; 32] = Sha256::digest(certificate).into();
        let fingerprint: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let read = Certificate::read(certificate, &fingerprint);
        // Whether a certificate is issued by one of these authorities; `None` if there are none.
        let issued = |verifier: &Option<Arc<dyn ClientCertVerifier>>| {
            let verified = verifier.as_ref()?.verify_client_cert(certificate, between, now);
            Some(
                verified
                    .inspect_err(|error| tracing::debug!(%error, "a client certificate is not valid"))
                    .is_ok(),
            )
        };
        Peer {
            user: user_of(issued(&self.users), read.as_ref()),
            proxy: self.proxy_of(issued(&self.front_proxies), read.as_ref()),
            tenant: read.and_then(|read| read.tenant),
        }
    }

    fn proxy_of(&self, issued: Option<bool>, read: Option<&Certificate>) -> Verified<()> {
        let allowed = |user: Option<&User>| {
            let name = user.map_or("", |user| user.name.as_str());
            self.front_proxy_names.is_empty() || self.front_proxy_names.iter().any(|allowed| allowed == name)
        };
        match (issued, read) {
            (None, _) => Verified::NoOpinion,
            // Whoever may approve requests in a tenant speaks for nobody.
            (Some(true), Some(Certificate { user, until, tenant: None })) if allowed(user.as_ref()) => {
                Verified::Good { value: (), until: *until }
            }
            _ => Verified::Refused,
        }
    }
}

fn user_of(issued: Option<bool>, read: Option<&Certificate>) -> Verified<User> {
    match (issued, read) {
        (None, _) => Verified::NoOpinion,
        (Some(true), Some(Certificate { user: Some(user), until, .. })) => {
            Verified::Good { value: user.clone(), until: *until }
        }
        (Some(true), Some(Certificate { user: None, .. })) => Verified::NoOpinion,
        _ => Verified::Refused,
    }
}

impl ClientCertVerifier for ClientAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

pub(super) fn wrong(what: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the {what} cannot be used: {error}"))
}

impl Listener {
    /// HTTPS.
    pub async fn https(address: SocketAddr, files: &TlsFiles) -> io::Result<Listener> {
        let tls = Some(ServedCertificate::new(files, None)?);
        Ok(Listener { socket: TcpListener::bind(address).await?, tls })
    }

    /// The same address, with HTTPS: for callers that bind the address before they have the certificate.
    ///
    /// # Errors
    /// If the certificate or the key cannot be used.
    pub fn with_tls(self, files: &TlsFiles) -> io::Result<Listener> {
        Ok(Listener { tls: Some(ServedCertificate::new(files, None)?), ..self })
    }

    /// The same with client certificates of these authorities. Has to be called with the certificate that the listener serves.
    ///
    /// # Errors
    /// If an authority, the certificate or the key cannot be used.
    pub fn with_client_authorities(self, files: &TlsFiles, trust: &ClientTrust) -> io::Result<Listener> {
        let clients = Arc::new(ClientAuthorities::new(trust)?);
        Ok(Listener { tls: Some(ServedCertificate::new(files, Some(clients))?), ..self })
    }

    /// The same with these options. Has to be called last; does nothing for plain HTTP.
    ///
    /// # Errors
    /// If a certificate or a key cannot be used.
    pub fn with_tls_options(self, options: &TlsOptions) -> io::Result<Listener> {
        if let Some(tls) = &self.tls {
            tls.change(|parts| {
                parts.options = options.clone();
                Ok(())
            })?;
        }
        Ok(self)
    }

    /// A handle to replace the certificate before it expires; `None` for plain HTTP.
    #[must_use]
    pub fn served_certificate(&self) -> Option<ServedCertificate> {
        self.tls.clone()
    }
}

/// Performs the handshake, which counts towards the timeout of the first request; `None` if it failed or the connection has to
/// close.
pub(super) async fn accept<S>(
    acceptor: TlsAcceptor,
    stream: S,
    connection: &Connection,
) -> Option<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = tokio::select! {
        handshake = acceptor.accept(stream) => handshake,
        () = connection.signalled() => return None,
    };
    handshake.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed")).ok()
}

#[cfg(test)]
mod upstream;
