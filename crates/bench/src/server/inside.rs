//! The server as a Service in this process: no sockets, no HTTP, nobody to share the processors with.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use k1s_env::Env;
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use tower::Service as _;

use super::{
    objects::{ConfigMaps, name},
    work::{Done, config_maps},
};
use crate::{Failure, report::quantile};

pub(crate) struct Inside {
    env: Env,
    server: ApiServer,
}

impl Inside {
    pub(crate) async fn start(env: &Env) -> Result<Inside, Failure> {
        let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await;
        let server = server.map_err(|status| Failure(status.message))?;
        Ok(Inside { env: env.clone(), server: server.as_user(User::admin()) })
    }

    async fn call(&mut self, method: Method, path: String, body: Bytes) -> Result<usize, Failure> {
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let answer =
            self.server.call(request.body(Full::new(body))?).await.map_err(|never: Infallible| never)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|never: Infallible| never)?.to_bytes();
        match status.is_success() {
            true => Ok(body.len()),
            false => Err(Failure(String::from_utf8_lossy(&body).into_owned())),
        }
    }

    /// Creates `ConfigMaps` of 2 KB, one after the other.
    pub(crate) async fn create(&mut self, count: u64) -> Result<Done, Failure> {
        let (path, bodies) = (config_maps("default"), ConfigMaps::new());
        let began = self.env.now();
        for number in 0..count {
            let body = bodies.get(&name("cm", number), number);
            self.call(Method::POST, path.clone(), body.into()).await?;
        }
        Ok(Done { count, seconds: (self.env.now() - began).as_secs_f64() })
    }

    /// Reads them.
    pub(crate) async fn get(&mut self, size: u64, count: u64) -> Result<Done, Failure> {
        let path = config_maps("default");
        let began = self.env.now();
        for number in 0..count {
            let name = name("cm", number.wrapping_mul(7919) % size);
            self.call(Method::GET, format!("{path}/{name}"), Bytes::new()).await?;
        }
        Ok(Done { count, seconds: (self.env.now() - began).as_secs_f64() })
    }

    /// Lists them; the median of the seconds.
    pub(crate) async fn list(&mut self, times: usize) -> Result<f64, Failure> {
        let mut seconds = Vec::new();
        for _ in 0..times {
            let began = self.env.now();
            self.call(Method::GET, config_maps("default"), Bytes::new()).await?;
            seconds.push((self.env.now() - began).as_secs_f64());
        }
        Ok(quantile(&mut seconds, 0.5))
    }
}
