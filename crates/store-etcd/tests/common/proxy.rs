//! A network that can fail: a TCP proxy to a server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k1s_env::{Env, Task};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Mutex, watch},
};

/// Forwards connections to a server.
pub(crate) struct Proxy {
    env: Env,
    pub(crate) endpoint: String,
    server: String,
    port: u16,
    listening: Option<Task<()>>,
    connections: Arc<Mutex<Vec<Task<()>>>>,
    /// Number of freezes. Connections made before the last one are frozen.
    frozen: watch::Sender<u64>,
    /// Number of bytes from the server after which a connection breaks.
    lasts: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn new(env: &Env, server_endpoint: &str) -> Self {
        let server = server_endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut proxy = Self {
            env: env.clone(),
            endpoint: format!("http://127.0.0.1:{port}"),
            server,
            port,
            listening: None,
            connections: Arc::default(),
            frozen: watch::Sender::new(0),
            lasts: Arc::new(AtomicUsize::new(usize::MAX)),
        };
        proxy.listen(listener);
        proxy
    }

    fn listen(&mut self, listener: TcpListener) {
        let (env, server, connections) = (self.env.clone(), self.server.clone(), self.connections.clone());
        let (frozen, lasts) = (self.frozen.subscribe(), self.lasts.clone());
        self.listening = Some(self.env.spawn("proxy", async move {
            while let Ok((near, _)) = listener.accept().await {
                let (server, frozen) = (server.clone(), frozen.clone());
                let lasts = lasts.load(Ordering::Relaxed);
                let connection = env.spawn("proxied", async move {
                    if let Ok(far) = TcpStream::connect(server).await {
                        let (near_in, near_out) = near.into_split();
                        let (far_in, far_out) = far.into_split();
                        tokio::select! {
                            () = pass(near_in, far_out, frozen.clone(), usize::MAX) => {}
                            () = pass(far_in, near_out, frozen, lasts) => {}
                        }
                    }
                });
                connections.lock().await.push(connection);
            }
        }));
    }

    /// Breaks all connections; new ones are accepted.
    pub(crate) async fn cut(&self) {
        for connection in self.connections.lock().await.drain(..) {
            connection.abort();
            let _ = connection.await;
        }
    }

    /// Stops forwarding on existing connections, without closing them; new ones work.
    pub(crate) fn freeze(&self) {
        self.frozen.send_modify(|times| *times += 1);
    }

    /// Breaks each new connection after this many bytes from the server.
    pub(crate) fn break_after(&self, bytes: usize) {
        self.lasts.store(bytes, Ordering::Relaxed);
    }

    /// Breaks all connections, and refuses new ones.
    pub(crate) async fn down(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
        self.cut().await;
    }

    /// Accepts connections again.
    pub(crate) async fn up(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.listen(listener);
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    frozen: watch::Receiver<u64>,
    mut left: usize,
) {
    let born = *frozen.borrow();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if *frozen.borrow() > born {
            std::future::pending::<()>().await;
        }
        let length = length.min(left);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
        left -= length;
        if left == 0 {
            return;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}
