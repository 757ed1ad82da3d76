//! Opens connections to Services and other addresses, with TLS.

use std::{
    error::Error as _,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::{
        Error,
        connect::{Connected, Connection},
    },
    rt::TokioIo,
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::guard;

/// Connects to one address, whatever the URI of a request is.
#[derive(Clone)]
pub(crate) struct Connector {
    /// `host:port` to connect to.
    pub(crate) address: Arc<str>,
    /// The name in the certificate.
    pub(crate) server_name: ServerName<'static>,
    pub(crate) tls: Arc<ClientConfig>,
    /// Whether the addresses that [`guard`] knows are refused: for addresses that are not the administrator's choice.
    pub(crate) guarded: bool,
}

/// The client's side of TLS with these authorities; without any, with those of the system.
pub(crate) fn tls(ca_bundle: &[u8]) -> Result<ClientConfig, String> {
    let roots = roots(ca_bundle)?;
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

/// The same with a client certificate, if there is one. `insecure`: any certificate of the server is accepted.
pub(crate) fn tls_as(
    ca_bundle: &[u8],
    insecure: bool,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, String> {
    let builder = match insecure {
        true => builder()?.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer::default())),
        false => builder()?.with_root_certificates(roots(ca_bundle)?),
    };
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(|why| format!("the proxy's client certificate cannot be used: {why}")),
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())
}

/// The certificate and key of a client.
pub(crate) struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads PEM.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<ClientIdentity, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|why| format!("the proxy's client certificate cannot be read: {why}"))?;
        if chain.is_empty() {
            return Err("the proxy's client certificate cannot be read: there is none".into());
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|why| format!("the key of the proxy's client certificate cannot be read: {why}"))?;
        Ok(ClientIdentity { chain, key })
    }
}

/// Accepts every certificate: `insecureSkipTLSVerify`. The server still has to have its key.
#[derive(Debug)]
struct AnyServer(rustls::crypto::WebPkiSupportedAlgorithms);

impl Default for AnyServer {
    fn default() -> AnyServer {
        AnyServer(rustls::crypto::ring::default_provider().signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

fn roots(ca_bundle: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if ca_bundle.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
            let certificate = certificate.map_err(|why| format!("the caBundle cannot be read: {why}"))?;
            roots.add(certificate).map_err(|why| format!("the caBundle cannot be used: {why}"))?;
            found += 1;
        }
        if found == 0 {
            return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
        }
    }
    Ok(roots)
}

impl tower::Service<http::Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let tcp = dial(&connector.address, connector.guarded).await?;
            let tls = TlsConnector::from(connector.tls).connect(connector.server_name, tcp).await;
            tls.map(|stream| Stream(TokioIo::new(stream))).map_err(|why| io::Error::other(handshake(&why)))
        })
    }
}

async fn dial(address: &str, guarded: bool) -> io::Result<TcpStream> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let found: Vec<SocketAddr> = match tokio::net::lookup_host(address).await {
        Ok(found) => found.collect(),
        Err(_) => Vec::new(),
    };
    let mut first = None;
    for address in found {
        // After the lookup: a name may point anywhere.
        if guarded && !guard::is_allowed(address.ip()) {
            first.get_or_insert_with(|| format!("dial tcp {address}: the address is not allowed"));
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(why) => {
                first.get_or_insert_with(|| format!("dial tcp {address}: connect: {}", said(&why)));
            }
        }
    }
    let nothing = || format!("dial tcp: lookup {host}: no such host");
    Err(io::Error::other(first.unwrap_or_else(nothing)))
}

/// An error of the operating system, as Go says it.
pub(crate) fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
        io::ErrorKind::BrokenPipe => "broken pipe".into(),
        io::ErrorKind::HostUnreachable => "no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".into(),
        io::ErrorKind::TimedOut => "connection timed out".into(),
        io::ErrorKind::UnexpectedEof => "EOF".into(),
        _ => error.to_string(),
    }
}

/// An error of a handshake, as Go says it.
fn handshake(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let unverified = |why: &str| format!("tls: failed to verify certificate: x509: {why}");
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            // An authority of the same name has another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                unverified("certificate signed by unknown authority")
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                unverified("certificate has expired or is not yet valid")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                unverified("certificate has expired or is not yet valid")
            }
            other => unverified(&other.to_string()),
        },
        Some(rustls::Error::InvalidMessage(_)) => "http: server gave HTTP response to HTTPS client".into(),
        Some(other) => format!("remote error: tls: {other}"),
        None => said(error),
    }
}

/// Why a request could not be sent, as Go says it.
pub(crate) fn why(error: &Error) -> String {
    let mut source = error.source();
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return said(error);
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>()
            && error.is_incomplete_message()
        {
            return "EOF".into();
        }
        last = cause.to_string();
        source = cause.source();
    }
    last
}

/// A connection.
pub(crate) struct Stream(TokioIo<TlsStream<TcpStream>>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self.0.inner().get_ref().1.alpn_protocol() {
            Some(b"h2") => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
