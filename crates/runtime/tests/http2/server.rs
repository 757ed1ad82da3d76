//! A server over TLS that can be made to misbehave.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::{
    body::{Body, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::{Env, Task};
use kube::Config;
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;
type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// What a server does with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manners {
    #[default]
    Answers,
    /// Accepts it, and never sends anything.
    NoHandshake,
    /// Ends the TLS handshake, and sends nothing after it.
    NoSettings,
}

pub struct Options {
    pub protocols: &'static [&'static str],
    pub max_streams: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { protocols: &["h2", "http/1.1"], max_streams: 1000 }
    }
}

/// The connections of a server.
#[derive(Default)]
struct Connections {
    /// Of those that are open, and whether they were told to go away.
    open: Vec<CancellationToken>,
    cut: CancellationToken,
    manners: Manners,
}

pub struct Server {
    address: SocketAddr,
    certificate: Vec<u8>,
    connections: Arc<Mutex<Connections>>,
    /// How many connections it has accepted.
    accepted: watch::Receiver<usize>,
    task: Task<()>,
}

impl Server {
    pub async fn start<F, Fut>(options: Options, handler: F) -> Server
    where
        F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = options.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Connections::default()));
        let (count, accepted) = watch::channel(0);
        let (state, env) = (Arc::clone(&connections), Env::system());
        let (tls, max_streams) = (TlsAcceptor::from(Arc::new(tls)), options.max_streams);
        let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
        let task = env.clone().spawn("server", async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (away, cut, manners) = {
                    let mut state = state.lock().unwrap();
                    let away = CancellationToken::new();
                    state.open.push(away.clone());
                    (away, state.cut.clone(), state.manners)
                };
                count.send_modify(|count| *count += 1);
                let (tls, handler) = (tls.clone(), Arc::clone(&handler));
                drop(env.spawn("connection", async move {
                    let serve = serve(stream, tls, max_streams, manners, handler, away);
                    // How a connection ends does not matter here.
                    let _ = cut.run_until_cancelled(serve).await;
                }));
            }
        });
        Server { address, certificate: made.cert.der().to_vec(), connections, accepted, task }
    }

    pub fn config(&self) -> Config {
        let mut config = Config::new(format!("https://{}", self.address).parse().unwrap());
        config.root_cert = Some(vec![self.certificate.clone()]);
        config
    }

    /// From the next connection on.
    pub fn behave(&self, manners: Manners) {
        self.connections.lock().unwrap().manners = manners;
    }

    pub fn accepted(&self) -> usize {
        *self.accepted.borrow()
    }

    /// Waits until it has accepted so many connections.
    pub async fn has_accepted(&self, wanted: usize) {
        self.accepted.clone().wait_for(|count| *count >= wanted).await.unwrap();
    }

    /// Takes no more requests on the connections that there are, and answers those that it has.
    pub fn go_away(&self) {
        for connection in self.connections.lock().unwrap().open.drain(..) {
            connection.cancel();
        }
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        std::mem::take(&mut self.connections.lock().unwrap().cut).cancel();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn serve(
    stream: TcpStream,
    tls: TlsAcceptor,
    max_streams: u32,
    manners: Manners,
    handler: Handler,
    away: CancellationToken,
) {
    if manners == Manners::NoHandshake {
        return std::future::pending().await;
    }
    let Ok(stream) = tls.accept(stream).await else { return };
    if manners == Manners::NoSettings {
        return std::future::pending().await;
    }
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    if !is_http2 {
        drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        return;
    }
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(max_streams)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = away.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    drop(connection.await);
}

/// The version of HTTP that a request came with.
pub fn version(request: &Request<Incoming>) -> Answer {
    text(if request.version() == Version::HTTP_2 { "2" } else { "1.1" })
}

pub fn text(text: &'static str) -> Answer {
    body(Full::new(Bytes::from_static(text.as_bytes())))
}

pub fn body(body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static) -> Answer {
    Response::new(body.boxed_unsync())
}
