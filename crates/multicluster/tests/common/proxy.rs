//! Servers behind sockets, and proxies before them that can fail.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use k1s::{
    CancellationToken, Runtime,
    env::{Env, Task},
    k8s_openapi::{ByteString, api::core::v1::Secret},
    kube,
    multicluster::providers::KUBECONFIG_LABEL,
    tokio::{
        self,
        io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
        sync::watch,
    },
};
use k1s_runtime::client::http2;

/// A runtime that listens on HTTPS.
pub async fn listening() -> Runtime {
    Runtime::builder().listen(([127, 0, 0, 1], 0)).start().await.unwrap()
}

/// A kubeconfig for a tenant of a runtime that listens.
pub fn kubeconfig(runtime: &Runtime, tenant: &str) -> String {
    let (text, url) = (runtime.kubeconfig().unwrap(), runtime.url().unwrap());
    assert!(text.contains(url), "{text}");
    text.replacen(url, &format!("{url}/clusters/{tenant}"), 1)
}

pub async fn config_of(kubeconfig: &str) -> kube::Config {
    let config = kube::config::Kubeconfig::from_yaml(kubeconfig).unwrap();
    kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap()
}

pub async fn client_of(kubeconfig: &str) -> kube::Client {
    http2(&Env::system(), config_of(kubeconfig).await).unwrap()
}

/// A Secret that `KubeconfigSecrets` finds.
pub fn secret(name: &str, kubeconfig: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.labels = Some(BTreeMap::from([(KUBECONFIG_LABEL.to_owned(), "true".to_owned())]));
    let content = ByteString(kubeconfig.as_bytes().to_vec());
    secret.data = Some(BTreeMap::from([("kubeconfig".to_owned(), content)]));
    secret
}

/// Forwards connections to a server; it can cut them, and let them hang.
pub struct Proxy {
    server: String,
    address: SocketAddr,
    /// `Err` while it refuses connections; cancelled to cut those that there are.
    open: Arc<Mutex<Result<CancellationToken, ()>>>,
    /// Connections at this moment, and the most there have been.
    count: Arc<Mutex<(usize, usize)>>,
    flows: watch::Sender<bool>,
    task: Task<()>,
}

impl Proxy {
    pub async fn to(server: &str) -> Proxy {
        let far: SocketAddr = server.strip_prefix("https://").unwrap().parse().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new(Ok(CancellationToken::new())));
        let count = Arc::new(Mutex::new((0, 0)));
        let flows = watch::Sender::new(true);
        let (state, counted, flowing, env) =
            (Arc::clone(&open), Arc::clone(&count), flows.subscribe(), Env::system());
        let task = env.clone().spawn("proxy", async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let Ok(cut) = state.lock().unwrap().clone() else { continue };
                let (counted, flowing) = (Arc::clone(&counted), flowing.clone());
                drop(env.spawn("proxied connection", async move {
                    {
                        let mut count = counted.lock().unwrap();
                        count.0 += 1;
                        count.1 = count.1.max(count.0);
                    }
                    let far = TcpStream::connect(far).await.unwrap();
                    let ((read_near, write_near), (read_far, write_far)) =
                        (near.into_split(), far.into_split());
                    let copied = async {
                        tokio::join!(
                            forward(read_near, write_far, flowing.clone()),
                            forward(read_far, write_near, flowing.clone()),
                        )
                    };
                    // How a connection ends does not matter here.
                    drop(cut.run_until_cancelled(copied).await);
                    counted.lock().unwrap().0 -= 1;
                }));
            }
        });
        Proxy { server: server.to_owned(), address, open, count, flows, task }
    }

    /// A kubeconfig of the server, for the proxy.
    pub fn kubeconfig(&self, text: &str) -> String {
        assert!(text.contains(&self.server), "{text}");
        text.replace(&self.server, &format!("https://{}", self.address))
    }

    pub fn cut(&self) {
        if let Ok(cut) = std::mem::replace(&mut *self.open.lock().unwrap(), Err(())) {
            cut.cancel();
        }
    }

    pub fn restore(&self) {
        *self.open.lock().unwrap() = Ok(CancellationToken::new());
    }

    /// Connections are accepted, and nothing gets through.
    pub fn hang(&self) {
        self.flows.send_replace(false);
    }

    pub fn flow(&self) {
        self.flows.send_replace(true);
    }

    /// The most connections that there have been at a time.
    pub fn most(&self) -> usize {
        self.count.lock().unwrap().1
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut flows: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        if flows.wait_for(|flows| *flows).await.is_err() {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await?;
    }
}
