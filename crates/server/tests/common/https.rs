//! Webhooks over HTTPS, behind a server that does with connections what the test wants.

#![allow(dead_code, reason = "each test binary uses a part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k1s_env::Env;
use k1s_server::Authority;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

/// What a server does with a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Answer,
    /// Answers after so many spaces.
    Pad(usize),
    Garbage,
    WrongUid,
    /// Answers with a patch of the object's uid.
    PatchUid,
    /// Never answers.
    Hang,
    /// Sends two megabytes, and the rest never.
    HangMidway,
    /// Sends bytes until the connection breaks.
    Flood,
    /// Announces a gigabyte.
    Announce,
    /// Closes in the middle of an answer.
    CloseMidway,
    /// Closes instead of an answer.
    Close,
}

/// Answers a review.
type Answer = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// A server of webhooks.
pub(crate) struct Remote {
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    pub(crate) connections: Arc<AtomicUsize>,
    /// Bytes sent by [`Way::Flood`].
    pub(crate) sent: Arc<AtomicUsize>,
    /// Requests received.
    pub(crate) requests: Arc<AtomicUsize>,
    way: Arc<Mutex<Way>>,
}

impl Remote {
    /// A server with a certificate for these names.
    pub(crate) async fn start(
        names: &[&str],
        way: Way,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Remote {
        let authority = Authority::generate(Env::system().wall()).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let files = authority.issue(&names, Env::system().wall()).unwrap();
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(files.certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = Remote {
            port: listener.local_addr().unwrap().port(),
            authority,
            connections: Arc::default(),
            sent: Arc::default(),
            requests: Arc::default(),
            way: Arc::new(Mutex::new(way)),
        };
        let connections = remote.connections.clone();
        let server = Server {
            way: remote.way.clone(),
            sent: remote.sent.clone(),
            requests: remote.requests.clone(),
            answer: Arc::new(answer),
        };
        drop(Env::system().spawn("webhooks", async move {
            loop {
                let Ok((tcp, _)) = listener.accept().await else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, server) = (acceptor.clone(), server.clone());
                drop(Env::system().spawn("webhook", async move {
                    if let Ok(stream) = acceptor.accept(tcp).await {
                        server.serve(stream).await;
                    }
                }));
            }
        }));
        remote
    }

    /// What is done with requests from now on.
    pub(crate) fn set(&self, way: Way) {
        *self.way.lock() = way;
    }

    /// The authority as it is in a `caBundle`.
    pub(crate) fn bundle(&self) -> String {
        BASE64_STANDARD.encode(self.authority.certificate())
    }

    /// Its address at a host.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/hook", self.port)
    }
}

#[derive(Clone)]
struct Server {
    way: Arc<Mutex<Way>>,
    sent: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    answer: Answer,
}

impl Server {
    /// Serves requests until the connection ends.
    async fn serve(self, mut stream: TlsStream<TcpStream>) {
        while let Some(body) = request(&mut stream).await {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let way = *self.way.lock();
            let mut answer = (self.answer)(&serde_json::from_slice(&body).unwrap());
            if matches!(way, Way::WrongUid) {
                answer["response"]["uid"] = "other".into();
            }
            if matches!(way, Way::PatchUid) {
                let patch = r#"[{"op": "add", "path": "/metadata/uid", "value": "mine"}]"#;
                answer["response"]["patch"] = BASE64_STANDARD.encode(patch).into();
                answer["response"]["patchType"] = "JSONPatch".into();
            }
            let answer = match way {
                Way::Garbage => "<html>".to_owned(),
                Way::Pad(spaces) => format!("{}{answer}", " ".repeat(spaces)),
                _ => answer.to_string(),
            };
            let head = |length: usize| {
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                )
            };
            match way {
                Way::Hang => std::future::pending().await,
                Way::HangMidway => {
                    let text = format!("{}{}", head(3 << 20), " ".repeat(2 << 20));
                    let _ = stream.write_all(text.as_bytes()).await;
                    let _ = stream.flush().await;
                    std::future::pending().await
                }
                Way::Close => return,
                Way::CloseMidway => {
                    let _ = stream.write_all(format!("{}{{\"kind\":", head(1000)).as_bytes()).await;
                    return;
                }
                Way::Announce => {
                    let _ = stream.write_all(head(1 << 30).as_bytes()).await;
                }
                Way::Flood => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                    let block = vec![b' '; 1 << 16];
                    while stream.write_all(&block).await.is_ok() {
                        self.sent.fetch_add(block.len(), Ordering::SeqCst);
                    }
                    return;
                }
                Way::Answer | Way::Pad(_) | Way::Garbage | Way::WrongUid | Way::PatchUid => {
                    let text = format!("{}{answer}", head(answer.len()));
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// The body of the next request.
async fn request(stream: &mut TlsStream<TcpStream>) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).await.ok()?;
        read.push(byte[0]);
    }
    let head = String::from_utf8(read).unwrap().to_lowercase();
    assert!(head.starts_with("post /hook?timeout="), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some(body)
}
