//! A lean HTTP client: it shares the machine with the server it measures.
//!
//! With HTTP/1.1 a client has a connection of its own, driven by the task that uses it, so that no other one has
//! to be woken. With HTTP/2 clients share a connection, as those of client-go do.

use std::{future::poll_fn, net::SocketAddr, pin::Pin, sync::Arc, task::Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::Env;
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{io, net::TcpStream};
use tokio_rustls::TlsConnector;

use crate::Failure;

/// A server, and who asks it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// HTTPS, and then HTTP/2.
    pub(crate) tls: bool,
    pub(crate) token: String,
}

impl Target {
    /// The server at `http://host:port` or `https://host:port`.
    pub(crate) async fn parse(url: &str, token: &str) -> Result<Target, Failure> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(Failure(format!("{url}: it should be http://host:port or https://host:port"))),
        };
        let place = rest.trim_end_matches('/');
        let found = tokio::net::lookup_host(place).await;
        let address = found.map_err(|error| Failure(format!("{url}: {error}")))?.next();
        let address = address.ok_or_else(|| Failure(format!("{url}: there is no such host")))?;
        Ok(Target { address, tls, token: token.to_owned() })
    }
}

type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Sender {
    Http1(conn::http1::SendRequest<Full<Bytes>>),
    Http2(conn::http2::SendRequest<Full<Bytes>>),
}

/// Sends one request at a time.
pub(crate) struct Client {
    sender: Sender,
    /// An HTTP/1.1 connection; one of HTTP/2 has a task of its own.
    connection: Option<Connection>,
    authority: HeaderValue,
    authorization: HeaderValue,
    /// `https://host:port`, where paths alone are not enough.
    base: String,
}

/// What is sent beside the path.
pub(crate) struct Content(pub(crate) Bytes, pub(crate) &'static str);

impl Content {
    pub(crate) fn none() -> Content {
        Content(Bytes::new(), "")
    }

    pub(crate) fn json(body: impl Into<Bytes>) -> Content {
        Content(body.into(), "application/json")
    }

    pub(crate) fn apply(body: impl Into<Bytes>) -> Content {
        Content(body.into(), "application/apply-patch+yaml")
    }

    pub(crate) fn merge_patch(body: impl Into<Bytes>) -> Content {
        Content(body.into(), "application/merge-patch+json")
    }
}

/// A connection without a protocol yet.
pub(crate) trait Wire: io::AsyncRead + io::AsyncWrite + Unpin + Send {}

impl<S: io::AsyncRead + io::AsyncWrite + Unpin + Send> Wire for S {}

/// Connects, for those who speak HTTP/1.1 by hand.
pub(crate) async fn dial(target: &Target) -> Result<Box<dyn Wire>, Failure> {
    let stream = TcpStream::connect(target.address).await?;
    if !target.tls {
        return Ok(Box::new(stream));
    }
    let mut config = tls()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::IpAddress(target.address.ip().into());
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

impl Client {
    pub(crate) async fn connect(env: &Env, target: &Target) -> Result<Client, Failure> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let mut client = if target.tls {
            let connector = TlsConnector::from(Arc::new(tls()?));
            let name = ServerName::IpAddress(target.address.ip().into());
            over_http2(env, connector.connect(name, stream).await?).await?
        } else {
            let (sender, connection) = conn::http1::handshake(TokioIo::new(stream)).await?;
            // Why it ended is what the sender says.
            let connection: Connection = Box::pin(async move { drop(connection.await) });
            Client {
                sender: Sender::Http1(sender),
                connection: Some(connection),
                authority: HeaderValue::from_static("localhost"),
                authorization: HeaderValue::from_static(""),
                base: String::new(),
            }
        };
        client.authority = HeaderValue::from_str(&target.address.to_string())?;
        client.authorization = HeaderValue::from_str(&format!("Bearer {}", target.token))?;
        if target.tls {
            client.base = format!("https://{}", target.address);
        }
        Ok(client)
    }

    /// So many clients of a server: with a connection each, or one for all of them.
    pub(crate) async fn several(env: &Env, target: &Target, count: usize) -> Result<Vec<Client>, Failure> {
        let mut clients = vec![Client::connect(env, target).await?];
        while clients.len() < count {
            let another = match clients[0].share() {
                Some(another) => another,
                None => Client::connect(env, target).await?,
            };
            clients.push(another);
        }
        Ok(clients)
    }

    fn share(&self) -> Option<Client> {
        let Sender::Http2(sender) = &self.sender else { return None };
        Some(Client {
            sender: Sender::Http2(sender.clone()),
            connection: None,
            authority: self.authority.clone(),
            authorization: self.authorization.clone(),
            base: self.base.clone(),
        })
    }

    /// Sends a request, and hands over the answer's body piece by piece. Returns the status.
    pub(crate) async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        content: Content,
        mut each: impl FnMut(&[u8]),
    ) -> Result<u16, Failure> {
        let uri = if self.base.is_empty() { path.parse() } else { format!("{}{path}", self.base).parse() };
        let mut request = Request::new(Full::new(content.0));
        *request.method_mut() = method;
        *request.uri_mut() =
            uri.map_err(|error: http::uri::InvalidUri| Failure(format!("{path}: {error}")))?;
        let headers = request.headers_mut();
        if matches!(self.sender, Sender::Http1(_)) {
            headers.insert(header::HOST, self.authority.clone());
        }
        headers.insert(header::AUTHORIZATION, self.authorization.clone());
        if !content.1.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content.1));
        }
        let connection = &mut self.connection;
        let answer = match &mut self.sender {
            Sender::Http1(sender) => {
                // The connection takes a request when it is through with the answer before.
                drive(connection, sender.ready()).await?;
                drive(connection, sender.send_request(request)).await?
            }
            Sender::Http2(sender) => sender.send_request(request).await?,
        };
        let status = answer.status().as_u16();
        let mut body: Incoming = answer.into_body();
        while let Some(frame) = drive(connection, body.frame()).await {
            if let Some(data) = frame?.data_ref() {
                each(data);
            }
        }
        Ok(status)
    }

    /// Sends a request; anything but success is a failure. Returns the answer's body.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<Vec<u8>, Failure> {
        let mut answer = Vec::new();
        let what = format!("{method} {path}");
        match self.exchange(method, path, content, |data| answer.extend_from_slice(data)).await? {
            200..=299 => Ok(answer),
            status => Err(Failure(format!("{what}: {status} {}", String::from_utf8_lossy(&answer)))),
        }
    }
}

/// Waits for a future and drives a connection meanwhile.
async fn drive<F: Future>(connection: &mut Option<Connection>, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        let Some(running) = connection else { return Poll::Pending };
        if running.as_mut().poll(cx).is_ready() {
            *connection = None;
        }
        future.as_mut().poll(cx)
    })
    .await
}

async fn over_http2<S>(env: &Env, stream: S) -> Result<Client, Failure>
where
    S: io::AsyncRead + io::AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = conn::http2::Builder::new(TokioExecutor::new());
    // What Go's client has.
    builder.initial_stream_window_size(4 << 20).initial_connection_window_size(1 << 30);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    drop(env.spawn("connection", connection));
    Ok(Client {
        sender: Sender::Http2(sender),
        connection: None,
        authority: HeaderValue::from_static(""),
        authorization: HeaderValue::from_static(""),
        base: String::new(),
    })
}

fn tls() -> Result<rustls::ClientConfig, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(schemes)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Takes any certificate: what is measured here is known, and nothing secret is sent.
#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>);

impl ServerCertVerifier for Anybody {
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
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
