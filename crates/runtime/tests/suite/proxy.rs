//! A network that drops connections: a TCP proxy to the server.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k1s_env::{Env, Task};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Forwards connections to a server and cuts all of them periodically. Ends when dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    stop: CancellationToken,
    tasks: Vec<Task<()>>,
}

impl Proxy {
    pub(crate) async fn start(env: &Env, target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (target, stop) = (Arc::new(Mutex::new(target)), CancellationToken::new());
        let cut: Arc<Mutex<CancellationToken>> = Arc::default();
        let accepting = {
            let (env, target, stop, cut) = (env.clone(), target.clone(), stop.clone(), cut.clone());
            env.clone().spawn("proxy", async move {
                while let Some(Ok((mut near, _))) = stop.run_until_cancelled(listener.accept()).await {
                    let (target, cut) = (*target.lock(), cut.lock().clone());
                    drop(env.spawn("proxied", async move {
                        let Ok(mut far) = TcpStream::connect(target).await else { return };
                        let pass = tokio::io::copy_bidirectional(&mut near, &mut far);
                        let _ = cut.run_until_cancelled(pass).await;
                    }));
                }
            })
        };
        let cutting = {
            let (env, stop) = (env.clone(), stop.clone());
            env.clone().spawn("cuts", async move {
                loop {
                    let pause = Duration::from_millis(30 + env.random_below(120));
                    let stopped = stop.run_until_cancelled(env.sleep(pause)).await.is_none();
                    std::mem::take(&mut *cut.lock()).cancel();
                    if stopped {
                        return;
                    }
                }
            })
        };
        Proxy { address, target, stop, tasks: vec![accepting, cutting] }
    }

    /// Forwards new connections to `target`.
    pub(crate) fn set_target(&self, target: SocketAddr) {
        *self.target.lock() = target;
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}
