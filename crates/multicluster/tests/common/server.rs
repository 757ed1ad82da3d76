//! A server of tenants that can be restarted.

use std::{sync::Arc, time::Duration};

use http::{Request, Response};
use k1s::{
    BoxError, Runtime,
    env::{Env, Task, VirtualClock},
    kube::{self, client::Body},
    server::User,
    store::{MemoryOptions, MemoryStore, Store},
    tokio::sync::RwLock,
};

/// Clones are the same server.
#[derive(Clone)]
pub struct Server {
    env: Env,
    store: Arc<dyn Store>,
    /// `None` while it is down.
    up: Arc<RwLock<Option<Up>>>,
}

#[derive(Clone)]
struct Up {
    runtime: Arc<Runtime>,
    /// Of the administrator, for all tenants by their paths.
    all: kube::Client,
}

impl Server {
    pub async fn start(env: &Env) -> Server {
        let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        let server = Server { env: env.clone(), store, up: Arc::default() };
        server.begin().await;
        server
    }

    async fn begin(&self) {
        let builder = Runtime::builder().env(self.env.clone()).shared_store(Arc::clone(&self.store));
        let runtime = Arc::new(builder.start().await.unwrap());
        let all = kube::Client::new(runtime.server().as_user(User::admin()), "default");
        *self.up.write().await = Some(Up { runtime, all });
    }

    pub async fn runtime(&self) -> Arc<Runtime> {
        Arc::clone(&self.up.read().await.as_ref().expect("the server is up").runtime)
    }

    /// Stops it, lets some time pass, and starts it again.
    pub async fn restart(&self, clock: &VirtualClock, pause: Duration) {
        let Some(Up { runtime, all }) = self.up.write().await.take() else { return };
        drop(all);
        let stopping: Task<()> =
            self.env.spawn("stop a server", async move { runtime.stop().await.expect("it stops") });
        while !stopping.is_finished() {
            clock.advance_and_settle(Duration::from_millis(100)).await;
        }
        stopping.await.unwrap();
        clock.advance_and_settle(pause).await;
        self.begin().await;
    }

    /// Sends a request to a tenant.
    pub async fn send(&self, tenant: &str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let all = self.up.read().await.as_ref().map(|up| up.all.clone()).ok_or("connection refused")?;
        let (mut parts, body) = request.into_parts();
        let rest = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("/clusters/{tenant}{rest}").parse()?;
        Ok(all.send(Request::from_parts(parts, body)).await?)
    }

    pub async fn stop(&self) {
        let up = self.up.write().await.take();
        if let Some(Up { runtime, .. }) = up {
            runtime.stop().await.unwrap();
        }
    }
}
