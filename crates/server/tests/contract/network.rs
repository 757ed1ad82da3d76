//! Listeners: HTTP and HTTPS, HTTP/1.1 and HTTP/2, and graceful shutdown.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::Env;
use k1s_server::{ApiServer, Authority, Listener, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::net::TcpStream;

use crate::common::{self, config_map};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

async fn connect(address: SocketAddr, files: &TlsFiles, protocol: &str) -> Stream {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(files.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, TcpStream::connect(address).await.unwrap()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
    stream
}

/// Sends requests on one connection, with either protocol.
enum Sender {
    One(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Two(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    async fn over(env: &Env, stream: Stream, protocol: &str) -> Sender {
        let io = TokioIo::new(stream);
        if protocol == "h2" {
            let (sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            drop(env.spawn("client", connection));
            Sender::Two(sender)
        } else {
            let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            drop(env.spawn("client", connection));
            Sender::One(sender)
        }
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> hyper::Result<Response<Incoming>> {
        let uri =
            if matches!(self, Sender::Two(_)) { format!("https://localhost{path}") } else { path.to_owned() };
        let request = Request::builder().method(method).uri(uri).header("host", "localhost");
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
        match self {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

async fn served() -> (Env, ApiServer, TlsFiles, SocketAddr, k1s_env::Task<std::io::Result<()>>) {
    let env = Env::system();
    let server =
        common::bare(&env, Arc::new(k1s_store::MemoryStore::default()), k1s_server::ServerOptions::default())
            .await;
    let files = k1s_server::certificate(&["localhost".into(), "127.0.0.1".into()]).unwrap();
    let listener = Listener::https(local(), &files).await.unwrap();
    let address = listener.address().unwrap();
    let task = env.spawn("server", k1s_server::serve(server.clone(), listener));
    (env, server, files, address, task)
}

#[tokio::test]
async fn https_speaks_both_protocols_and_ends_gracefully_with_open_watches() {
    let (env, server, files, address, serving) = served().await;
    let mut watches = Vec::new();
    let mut senders = Vec::new();
    for (protocol, version) in [("http/1.1", Version::HTTP_11), ("h2", Version::HTTP_2)] {
        let mut sender = Sender::over(&env, connect(address, &files, protocol).await, protocol).await;
        let created =
            sender.send("POST", MAPS, &config_map(&version_name(version)).to_string()).await.unwrap();
        assert_eq!((created.status().as_u16(), created.version()), (201, version));
        created.into_body().collect().await.unwrap();
        let again = sender.send("GET", &format!("{MAPS}/{}", version_name(version)), "").await.unwrap();
        assert_eq!(again.status(), 200);
        let length = again.headers()["content-length"].to_str().unwrap().parse::<usize>().unwrap();
        assert_eq!(again.into_body().collect().await.unwrap().to_bytes().len(), length);

        let mut watcher = Sender::over(&env, connect(address, &files, protocol).await, protocol).await;
        let path = format!("{MAPS}?watch=true&resourceVersion=0");
        // The headers arrive at once, and each event as it occurs.
        let mut watch = watcher.send("GET", &path, "").await.unwrap();
        assert_eq!(watch.version(), version);
        let first = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b"{\"type\":\"ADDED\""), "{first:?}");
        watches.push((watch, watcher));
        senders.push(sender);
    }
    let started = env.now();
    server.shutdown();
    for (watch, _watcher) in watches {
        // The stream ends properly, and not by a broken connection.
        env.timeout(common::HANG, watch.into_body().collect()).await.unwrap().unwrap();
    }
    env.timeout(common::HANG, serving).await.unwrap().unwrap().unwrap();
    assert!(env.now() - started < Duration::from_secs(5));
    assert!(TcpStream::connect(address).await.is_err());
    drop((server, senders));
    common::eventually("all tasks have ended", || async { env.tasks().is_empty() }).await;
}

fn version_name(version: Version) -> String {
    format!("{version:?}").to_lowercase().replace('/', "-")
}

#[tokio::test]
async fn plain_http_is_served_without_tls() {
    let env = Env::system();
    let server = common::server().await;
    let listener = Listener::http(local()).await.unwrap();
    let address = listener.address().unwrap();
    let serving = env.spawn("server", k1s_server::serve(server.clone(), listener));
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(stream).await.unwrap();
    drop(env.spawn("client", connection));
    let head = Request::head("/api/v1").header("host", "x").body(Full::default()).unwrap();
    let answer = sender.send_request(head).await.unwrap();
    assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    sender.ready().await.unwrap();
    let answer = sender
        .send_request(Request::get("/healthz").header("host", "x").body(Full::default()).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    server.shutdown();
    env.timeout(common::HANG, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn connections_without_http_are_dropped_and_others_are_still_served() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (env, server, files, address, serving) = served().await;
    // No TLS at all, and TLS with garbage in it.
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = env.timeout(common::HANG, plain.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.starts_with(b"HTTP"), "{}", rest.escape_ascii());
    let mut rubbish = connect(address, &files, "http/1.1").await;
    rubbish.write_all(b"\0\x01\x02 rubbish\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = env.timeout(common::HANG, rubbish.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{}", rest.escape_ascii());
    let mut sender = Sender::over(&env, connect(address, &files, "h2").await, "h2").await;
    assert_eq!(sender.send("GET", "/readyz", "").await.unwrap().status(), 200);
    let wrong = TlsFiles { certificate: "rubbish".into(), ..files };
    let refused = Listener::https(local(), &wrong).await.unwrap_err();
    assert_eq!(refused.to_string(), "the certificate cannot be used: the file contains none");
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    server.shutdown();
    env.timeout(common::HANG, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_is_replaced_while_the_server_serves() {
    let env = Env::system();
    let server =
        common::bare(&env, Arc::new(k1s_store::MemoryStore::default()), k1s_server::ServerOptions::default())
            .await;
    let names = ["localhost".to_owned()];
    let authority = Authority::generate(env.wall()).unwrap();
    let [first, second] = [0, 1].map(|_| authority.issue(&names, env.wall()).unwrap());
    let listener = Listener::http(local()).await.unwrap().with_tls(&first).unwrap();
    let (address, slot) = (listener.address().unwrap(), listener.served_certificate().unwrap());
    let serving = env.spawn("server", k1s_server::serve(server.clone(), listener));
    let shown = |stream: &Stream| stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    let in_file = |files: &TlsFiles| CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap();

    let open = connect(address, &first, "h2").await;
    assert_eq!(shown(&open), in_file(&first));
    slot.replace(&TlsFiles { key: second.key.clone(), ..first.clone() }).unwrap_err();
    assert_eq!(
        shown(&connect(address, &first, "h2").await),
        in_file(&first),
        "an unusable certificate is not installed"
    );
    slot.replace(&second).unwrap();
    assert_eq!(shown(&connect(address, &first, "h2").await), in_file(&second));
    let mut open = Sender::over(&env, open, "h2").await;
    assert_eq!(open.send("GET", "/api/v1/namespaces/default", "").await.unwrap().status(), 200);
    server.shutdown();
    drop(open);
    env.timeout(common::HANG, serving).await.unwrap().unwrap().unwrap();
}
