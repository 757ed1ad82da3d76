//! A listening server, and raw connections to it.

#![allow(dead_code, reason = "each test binary uses a part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{net::SocketAddr, sync::Arc};

use k1s_env::{Env, Task};
use k1s_server::{ApiServer, Listener, ServerOptions, TlsFiles, User};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::common::{self, HANG};

pub(crate) struct Served {
    pub(crate) env: Env,
    pub(crate) server: ApiServer,
    pub(crate) address: SocketAddr,
    task: Task<std::io::Result<()>>,
}

/// A listening server with the users `admin` and, without any permissions, `mallory`.
pub(crate) async fn served(tls: Option<&TlsFiles>, change: impl FnOnce(&mut ServerOptions)) -> Served {
    let env = Env::system();
    let mut options = ServerOptions::default();
    options.tokens.insert("admin", User::admin());
    options.tokens.insert("mallory", User::new("mallory", &[]));
    change(&mut options);
    let store = Arc::new(k1s_store::MemoryStore::default());
    let server = ApiServer::new(env.clone(), store, options).await.unwrap();
    let local = ([127, 0, 0, 1], 0).into();
    let listener = match tls {
        Some(files) => Listener::https(local, files).await.unwrap(),
        None => Listener::http(local).await.unwrap(),
    };
    let address = listener.address().unwrap();
    let task = env.spawn("server", k1s_server::serve(server.clone(), listener));
    Served { env, server, address, task }
}

impl Served {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection on which these bytes were sent.
    pub(crate) async fn say(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    /// Sends a request on a new connection; returns the status and the whole response.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> (u16, String) {
        let mut stream = self.say(request).await;
        self.answer(&mut stream).await
    }

    /// Reads a response.
    pub(crate) async fn answer(&self, stream: &mut (impl AsyncRead + Unpin)) -> (u16, String) {
        let read = async {
            let mut text = Vec::new();
            loop {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap_or(0);
                text.extend_from_slice(&buffer[..count]);
                let seen = String::from_utf8_lossy(&text).into_owned();
                let whole = seen.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                    let length = head.lines().find_map(|line| {
                        line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                    });
                    length.is_some_and(|length| body.len() >= length.parse::<usize>().unwrap())
                });
                if count == 0 || whole {
                    return seen;
                }
            }
        };
        let text = self.env.timeout(HANG, read).await.expect("there is no response");
        let status = text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, text)
    }

    /// Waits until the server has closed a connection.
    pub(crate) async fn closed(&self, stream: &mut (impl AsyncRead + Unpin), what: &str) {
        let mut rest = Vec::new();
        let read = self.env.timeout(HANG, stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "{what} is never closed");
    }

    /// The connections that the server serves.
    pub(crate) fn open_connections(&self) -> usize {
        self.env.tasks().iter().find(|task| task.name == "connection").map_or(0, |task| task.running())
    }

    pub(crate) async fn connections_ended(&self) {
        common::eventually("the connections have ended", || async {
            !self.env.tasks().iter().any(|task| task.name == "connection")
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        self.server.shutdown();
        self.env.timeout(HANG, self.task).await.unwrap().unwrap().unwrap();
    }
}

pub(crate) fn get(path: &str, token: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")
}

pub(crate) async fn shake_hands(
    address: SocketAddr,
    files: &TlsFiles,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(files.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
}
