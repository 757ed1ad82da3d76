//! The server as a Service in this process: no sockets, no HTTP, nobody to share the processors with.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use k1s_env::Env;
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use serde_json::json;
use tower::Service as _;

use super::{
    objects::{ConfigMaps, name},
    work::{Done, config_maps},
};
use crate::{Failure, report::quantile};

#[derive(Clone)]
pub(crate) struct Inside {
    env: Env,
    server: ApiServer,
}

impl Inside {
    pub(crate) async fn start(env: &Env) -> Result<Inside, Failure> {
        Inside::with(env, ServerOptions::default()).await
    }

    pub(crate) async fn with(env: &Env, options: ServerOptions) -> Result<Inside, Failure> {
        let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        let server = ApiServer::new(env.clone(), store, options).await;
        let server = server.map_err(|status| Failure(status.message))?;
        Ok(Inside { env: env.clone(), server: server.as_user(User::admin()) })
    }

    /// The server, for its administrator.
    pub(crate) fn server(&self) -> ApiServer {
        self.server.clone()
    }

    /// The same server, for a user with the rights of its roles.
    pub(crate) fn as_user(&self, user: User) -> Inside {
        Inside { env: self.env.clone(), server: self.server.as_user(user) }
    }

    /// Creates roles, and bindings of them: ten for each user, of which the last allows to read `ConfigMaps`.
    pub(crate) async fn grant(&mut self, roles: u64, bindings: u64) -> Result<(), Failure> {
        const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        for number in 0..roles {
            let resource = if number % 10 == 9 { "configmaps" } else { "secrets" };
            let role = json!({"metadata": {"name": format!("role-{number}")},
                "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "list"]}]});
            self.call(Method::POST, format!("{GROUP}/roles"), role.to_string().into()).await?;
        }
        for number in 0..bindings {
            let binding = json!({"metadata": {"name": format!("binding-{number:06}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": format!("role-{}", number % roles)},
                "subjects": [{"kind": "User", "name": format!("user-{}", number / 10)}]});
            self.call(Method::POST, format!("{GROUP}/rolebindings"), binding.to_string().into()).await?;
        }
        Ok(())
    }

    /// Sends a request; the response may be an error.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: String,
        body: Bytes,
    ) -> Result<Response<Body>, Failure> {
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        Ok(self.server.call(request.body(Full::new(body))?).await.map_err(|never: Infallible| never)?)
    }

    /// Sends a request; anything but success is a failure. Returns the size of the body, whose pieces are dropped as a
    /// connection drops them: put together, they would cost more than the server did.
    pub(crate) async fn call(&mut self, method: Method, path: String, body: Bytes) -> Result<usize, Failure> {
        let answer = self.send(method, path, body).await?;
        let status = answer.status();
        let mut body = answer.into_body();
        let (mut size, mut message) = (0, Vec::new());
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame.map_err(|error| Failure(error.to_string()))?.data_ref() {
                size += data.len();
                if !status.is_success() {
                    message.extend_from_slice(data);
                }
            }
        }
        match status.is_success() {
            true => Ok(size),
            false => Err(Failure(String::from_utf8_lossy(&message).into_owned())),
        }
    }

    /// The first piece of an answer to a GET: the head of a list, without all of its items.
    pub(crate) async fn first_bytes(&mut self, path: String) -> Result<Bytes, Failure> {
        let mut body = self.send(Method::GET, path, Bytes::new()).await?.into_body();
        let frame = body.frame().await.transpose().map_err(|error| Failure(error.to_string()))?;
        Ok(frame.and_then(|frame| frame.into_data().ok()).unwrap_or_default())
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
