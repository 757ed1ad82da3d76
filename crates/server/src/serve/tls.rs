//! HTTPS: the certificate that a listener serves, and handshakes.

use std::{io, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{Listener, connections::Connection};
use crate::TlsFiles;

/// The certificate of a listener. It can be replaced while the server runs.
#[derive(Clone)]
pub struct ServedCertificate(Arc<ArcSwap<rustls::ServerConfig>>);

impl ServedCertificate {
    pub(super) fn new(files: &TlsFiles) -> io::Result<ServedCertificate> {
        Ok(ServedCertificate(Arc::new(ArcSwap::from_pointee(tls_config(files)?))))
    }

    /// Presents this certificate from the next connection on. Open connections are not affected.
    ///
    /// # Errors
    /// If it cannot be used; the previous one stays in use.
    pub fn replace(&self, files: &TlsFiles) -> io::Result<()> {
        self.0.store(Arc::new(tls_config(files)?));
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
}

impl std::fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServedCertificate")
    }
}

fn tls_config(files: &TlsFiles) -> io::Result<rustls::ServerConfig> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the {what} cannot be used: {error}"))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(files.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    if chain.is_empty() {
        return Err(wrong("certificate", &"the file contains none"));
    }
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes())
        .or_else(|_| PrivatePkcs8KeyDer::from_pem_slice(files.key.as_bytes()).map(PrivateKeyDer::from))
        .map_err(|error| wrong("key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("TLS set-up", &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong("certificate", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

impl Listener {
    /// HTTPS.
    pub async fn https(address: SocketAddr, files: &TlsFiles) -> io::Result<Listener> {
        let tls = Some(ServedCertificate::new(files)?);
        Ok(Listener { socket: TcpListener::bind(address).await?, tls })
    }

    /// The same address, with HTTPS: for callers that bind the address before they have the certificate.
    ///
    /// # Errors
    /// If the certificate or the key cannot be used.
    pub fn with_tls(self, files: &TlsFiles) -> io::Result<Listener> {
        Ok(Listener { tls: Some(ServedCertificate::new(files)?), ..self })
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
