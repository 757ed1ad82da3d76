//! The webhook server over real sockets: TLS, certificate rotation, client certificates, graceful stop.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod webhook_common;

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::{Env, Task};
use k1s_runtime::webhook::{
    Hook, Webhook, WebhookError, WebhookOptions, WebhookServer,
    admission::{AdmissionHook, AdmissionRequest, AdmissionResponse},
    certs::{DevCertificate, DevCertificateOptions},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpStream, sync::Notify};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;
use webhook_common::{Widget, create};

struct Running {
    server: WebhookServer,
    address: SocketAddr,
    cancel: CancellationToken,
    task: Task<Result<(), WebhookError>>,
    env: Env,
}

fn options(dir: &TempDir) -> WebhookOptions {
    WebhookOptions {
        host: Some("127.0.0.1".parse().unwrap()),
        port: 0,
        cert_dir: dir.path().into(),
        ..WebhookOptions::default()
    }
}

fn certificate(env: &Env, dir: &Path, names: &[&str]) -> DevCertificate {
    DevCertificate::open(env, DevCertificateOptions::new(dir, names.iter().copied())).unwrap()
}

async fn run(env: Env, options: WebhookOptions) -> Running {
    let server = WebhookServer::new(&env, options);
    Webhook::for_::<Widget>()
        .default_with(|widget, _| {
            widget.spec.replicas = Some(1);
            Ok(())
        })
        .complete(&server)
        .unwrap();
    let check = server.started_checker();
    assert_eq!(check().unwrap_err().to_string(), "webhook server has not been started yet");
    let cancel = CancellationToken::new();
    let task = env.spawn("server", {
        let (server, cancel) = (server.clone(), cancel.clone());
        async move { server.run(cancel).await }
    });
    let address = server.bound().await;
    assert_eq!(server.address(), Some(address));
    check().unwrap();
    Running { server, address, cancel, task, env }
}

impl Running {
    async fn stop(self) {
        let check = self.server.started_checker();
        self.cancel.cancel();
        self.task.await.unwrap().unwrap();
        assert_eq!(check().unwrap_err().to_string(), "webhook server has been stopped");
        self.env.tasks_ended().await;
    }
}

fn client(ca: &str, identity: Option<(&str, &str)>, alpn: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(connector: &TlsConnector, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// Sends one request over its own HTTP/1.1 connection.
async fn send(
    env: &Env,
    stream: TlsStream<TcpStream>,
    path: &str,
    body: impl Into<Bytes>,
) -> hyper::Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = env.spawn("client", connection);
    let request = Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap();
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    drop(sender);
    let _ = connection.await;
    Ok((status, body))
}

const MUTATE: &str = "/mutate-shop-example-com-v1-widget?timeout=10s";

#[tokio::test]
async fn reviews_are_answered_over_https_by_http_1_and_2() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let ca = certificate(&env, dir.path(), &["localhost"]).ca_bundle().to_owned();
    let running = run(env.clone(), options(&dir)).await;

    let stream = connect(&client(&ca, None, &["http/1.1"]), running.address).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let (status, body) = send(&env, stream, MUTATE, create(&json!({})).to_string()).await.unwrap();
    assert_eq!(status, 200);
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(webhook_common::patch(&answer).unwrap()[0]["path"], "/spec/replicas");

    let stream = connect(&client(&ca, None, &["h2", "http/1.1"]), running.address).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = env.spawn("client", connection);
    let request = Request::post(format!("https://localhost{MUTATE}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(create(&json!({})).to_string())))
        .unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    drop(sender);
    let _ = connection.await;

    let metrics = running.server.options().metrics.encode();
    let line = "controller_runtime_webhook_requests_total{webhook=\"/mutate-shop-example-com-v1-widget\",code=\"200\"} 2\n";
    assert!(metrics.contains(line), "{metrics}");
    running.stop().await;
}

#[tokio::test]
async fn a_body_of_more_than_seven_mebibytes_is_refused() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let ca = certificate(&env, dir.path(), &["localhost"]).ca_bundle().to_owned();
    let running = run(env.clone(), options(&dir)).await;
    let connector = client(&ca, None, &["http/1.1"]);
    let mut body = create(&json!({})).to_string();
    body.push_str(&" ".repeat((7 << 20) - body.len()));
    let stream = connect(&connector, running.address).await.unwrap();
    assert_eq!(send(&env, stream, MUTATE, body.clone()).await.unwrap().0, 200);
    body.push(' ');
    let stream = connect(&connector, running.address).await.unwrap();
    // The server may close the connection before the whole body was written.
    if let Ok((status, body)) = send(&env, stream, MUTATE, body).await {
        assert_eq!(status, 413);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["response"]["status"]["code"], 413);
    }
    let metrics = running.server.options().metrics.encode();
    assert!(metrics.contains("code=\"413\"} 1\n"), "{metrics}");
    running.stop().await;
}

#[tokio::test]
async fn a_rotated_certificate_is_used_by_the_next_handshake() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let ca = certificate(&env, dir.path(), &["localhost"]).ca_bundle().to_owned();
    let running = run(env.clone(), options(&dir)).await;
    let connector = client(&ca, None, &[]);
    let shown = async || {
        let stream = connect(&connector, running.address).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    };
    let first = shown().await;
    assert_eq!(shown().await, first);

    // More names: a new certificate of the same CA.
    certificate(&env, dir.path(), &["localhost", "127.0.0.1"]);
    let second = shown().await;
    assert_ne!(second, first);

    // An unusable pair changes nothing and is not fatal.
    let (good, file) = (std::fs::read(dir.path().join("tls.crt")).unwrap(), dir.path().join("tls.crt"));
    std::fs::write(&file, "half of a certific").unwrap();
    assert_eq!(shown().await, second);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(shown().await, second);
    std::fs::copy(dir.path().join("ca.crt"), &file).unwrap();
    assert_eq!(shown().await, second);
    std::fs::write(&file, good).unwrap();
    assert_eq!(shown().await, second);
    let metrics = running.server.options().metrics.encode();
    assert!(metrics.contains("certwatcher_read_certificate_errors_total 3\n"), "{metrics}");
    running.stop().await;
}

#[tokio::test]
async fn clients_need_a_certificate_if_a_client_ca_is_configured() {
    let (env, dir, clients) = (Env::system(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let ca = certificate(&env, dir.path(), &["localhost"]).ca_bundle().to_owned();
    let authority = rcgen_client(clients.path());
    let options = WebhookOptions {
        client_ca_name: Some(clients.path().join("ca.crt").to_str().unwrap().into()),
        ..options(&dir)
    };
    let running = run(env.clone(), options).await;
    let body = create(&json!({})).to_string();

    let good = client(&ca, Some((&authority.0, &authority.1)), &["http/1.1"]);
    let stream = connect(&good, running.address).await.unwrap();
    assert_eq!(send(&env, stream, MUTATE, body.clone()).await.unwrap().0, 200);

    let none = client(&ca, None, &["http/1.1"]);
    // With TLS 1.3 a client learns of the refusal only when it reads.
    if let Ok(stream) = connect(&none, running.address).await {
        assert!(send(&env, stream, MUTATE, body.clone()).await.is_err());
    }
    let elsewhere = TempDir::new().unwrap();
    let other = rcgen_client(elsewhere.path());
    let other = client(&ca, Some((&other.0, &other.1)), &["http/1.1"]);
    if let Ok(stream) = connect(&other, running.address).await {
        assert!(send(&env, stream, MUTATE, body).await.is_err());
    }
    running.stop().await;
}

/// A client's certificate and key; its CA is written to the folder.
fn rcgen_client(dir: &Path) -> (String, String) {
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(dir.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
}

#[tokio::test]
async fn a_request_in_flight_is_answered_when_the_server_stops() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let ca = certificate(&env, dir.path(), &["localhost"]).ca_bundle().to_owned();
    let running = run(env.clone(), options(&dir)).await;
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    // Registered while the server runs.
    let slow = AdmissionHook::new({
        let (entered, release) = (entered.clone(), release.clone());
        move |_: Arc<AdmissionRequest>| {
            let (entered, release) = (entered.clone(), release.clone());
            async move {
                entered.notify_one();
                release.notified().await;
                AdmissionResponse::allowed()
            }
        }
    });
    running.server.register("/slow", slow).unwrap();
    let connector = client(&ca, None, &["http/1.1"]);
    let stream = connect(&connector, running.address).await.unwrap();
    let request = env.spawn("request", {
        let env = env.clone();
        async move { send(&env, stream, "/slow", create(&json!({})).to_string()).await }
    });
    entered.notified().await;
    running.cancel.cancel();
    // New connections are refused, but this request gets its response.
    while running.server.address().is_some() {
        env.yield_now().await;
    }
    assert!(!running.task.is_finished());
    release.notify_one();
    assert_eq!(request.await.unwrap().unwrap().0, 200);
    assert!(connect(&connector, running.address).await.is_err());
    running.stop().await;
}

#[tokio::test]
async fn a_request_that_does_not_end_delays_the_stop_up_to_the_timeout() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let options = WebhookOptions { tls: false, shutdown_timeout: Duration::ZERO, ..options(&dir) };
    let running = run(env.clone(), options).await;
    let entered = Arc::new(Notify::new());
    let stuck = Hook::http({
        let entered = entered.clone();
        move |_| {
            entered.notify_one();
            std::future::pending()
        }
    });
    running.server.register("/stuck", stuck).unwrap();
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = env.spawn("client", connection);
    let request = Request::get("/stuck").header("host", "localhost").body(Full::new(Bytes::new())).unwrap();
    let request = env.spawn("request", async move { sender.send_request(request).await.map(|_| ()) });
    entered.notified().await;
    running.cancel.cancel();
    running.task.await.unwrap().unwrap();
    // The connection is closed, and no task is left.
    assert!(request.await.unwrap().is_err());
    let _ = connection.await;
    env.tasks_ended().await;
}

#[tokio::test]
async fn errors_on_start_are_reported() {
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let server = WebhookServer::new(&env, options(&dir));
    let error = server.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, WebhookError::Certificate(_)));
    assert!(error.to_string().contains("tls.crt cannot be read"), "{error}");

    // Once there is a certificate, it can be started again; but it runs only once.
    certificate(&env, dir.path(), &["localhost"]);
    let running = run(env.clone(), options(&dir)).await;
    let again = running.server.run(CancellationToken::new()).await;
    assert!(matches!(again, Err(WebhookError::AlreadyStarted)));

    let taken = WebhookOptions { port: running.address.port(), ..options(&dir) };
    let error = WebhookServer::new(&env, taken).run(CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("cannot listen at 127.0.0.1:"), "{error}");
    running.stop().await;
}
