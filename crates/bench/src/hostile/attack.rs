//! What attackers do, each over and over until it is stopped.

use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use k1s_env::Env;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::{
    Failure,
    server::{
        client::{Client, Content, Target, Wire, dial},
        work,
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// POSTs whose last byte is never sent
    SlowPosts,
    /// Connections that send nothing, or half a request
    SilentConnections,
    /// Lists and watches that the client does not read
    StoppedReaders,
    /// An access review with 900,000 empty requirements
    BadRequirements,
    /// A custom resource with 100,000 fields of the wrong type
    TypeErrors,
    /// YAML with 100,000 aliases of a long text
    YamlAliases,
    /// A million nested arrays
    DeepNesting,
    /// OpenAPI, over and over
    OpenApi,
}

impl Attack {
    pub(crate) const ALL: [Attack; 8] = [
        Attack::SlowPosts,
        Attack::SilentConnections,
        Attack::StoppedReaders,
        Attack::BadRequirements,
        Attack::TypeErrors,
        Attack::YamlAliases,
        Attack::DeepNesting,
        Attack::OpenApi,
    ];
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const GROUP: &str = "hostile.k1s.dev";
/// The pause of an attacker after a refusal.
const AGAIN: Duration = Duration::from_millis(20);

/// An attacked server, and the attacker's credentials.
#[derive(Clone)]
pub(crate) struct Battle {
    pub(crate) env: Env,
    pub(crate) admin: Target,
    /// A user without rights, where the server knows one.
    pub(crate) nobody: Target,
    pub(crate) small: bool,
}

impl Battle {
    /// Creates the objects that the attacks need.
    pub(crate) async fn prepare(
        &self,
        client: &mut Client,
        namespace: &str,
        attacks: &[Attack],
    ) -> Result<(), Failure> {
        if attacks.contains(&Attack::StoppedReaders) {
            let path = work::config_maps(namespace);
            for number in 0..10 {
                let map = json!({"metadata": {"name": format!("large-{number}")}, "data": {"a": "x".repeat(1_000_000)}});
                client.call(Method::POST, &path, Content::json(map.to_string())).await?;
            }
        }
        if attacks.contains(&Attack::TypeErrors) {
            let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties":
                {"numbers": {"type": "array", "items": {"type": "integer"}}}}}});
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("victims.{GROUP}")},
                "spec": {"group": GROUP, "scope": "Namespaced",
                    "names": {"plural": "victims", "singular": "victim", "kind": "Victim", "listKind": "VictimList"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            // A peer may still have it from the last run.
            client.exchange(Method::POST, path, Content::json(definition.to_string()), |_| ()).await?;
        }
        Ok(())
    }

    /// Attacks until it is aborted.
    pub(crate) async fn attack(&self, attack: Attack, namespace: &str) {
        match attack {
            Attack::SlowPosts => self.slow_posts().await,
            Attack::SilentConnections => self.silent_connections().await,
            Attack::StoppedReaders => self.stopped_readers(namespace).await,
            Attack::BadRequirements => {
                let some = vec!["{}"; 900_000].join(",");
                let body = format!(
                    r#"{{"spec":{{"resourceAttributes":{{"verb":"list","labelSelector":{{"requirements":[{some}]}}}}}}}}"#
                );
                self.send(&self.nobody, REVIEWS, "application/json", body).await;
            }
            Attack::TypeErrors => {
                let some = vec![r#""""#; 100_000].join(",");
                let body = format!(
                    r#"{{"apiVersion":"{GROUP}/v1","kind":"Victim","metadata":{{"name":"a"}},"spec":{{"numbers":[{some}]}}}}"#
                );
                let path = format!("/apis/{GROUP}/v1/namespaces/{namespace}/victims");
                self.send(&self.admin, &path, "application/json", body).await;
            }
            Attack::YamlAliases => {
                let body =
                    format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), vec!["*a"; 100_000].join(","));
                self.send(&self.nobody, REVIEWS, "application/yaml", body).await;
            }
            Attack::DeepNesting => {
                let body = format!(r#"{{"spec":{}{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
                self.send(&self.nobody, REVIEWS, "application/json", body).await;
            }
            Attack::OpenApi => loop {
                for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/api/v1"] {
                    let _ = self.once(&self.nobody, Method::GET, path, Content::none()).await;
                }
            },
        }
    }

    async fn once(
        &self,
        target: &Target,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<u16, Failure> {
        Client::connect(&self.env, target).await?.exchange(method, path, content, |_| ()).await
    }

    /// Sends a body again and again.
    async fn send(&self, target: &Target, path: &str, content_type: &'static str, body: impl Into<Bytes>) {
        let body = body.into();
        loop {
            let content = Content(body.clone(), content_type);
            if !matches!(self.once(target, Method::POST, path, content).await, Ok(status) if status != 429) {
                self.env.sleep(AGAIN).await;
            }
        }
    }

    /// Opens as many connections as possible, sends these bytes on each, and reopens those that are closed.
    async fn keep_open(&self, target: &Target, count: usize, bytes: impl Fn(usize) -> Bytes + Send) {
        let mut open: Vec<Box<dyn Wire>> = Vec::new();
        for number in 0.. {
            // Those that the server has closed by now make room for new ones.
            if open.len() == count {
                open.rotate_left(1);
                if let Some(mut oldest) = open.pop()
                    && oldest.write_all(b"\r").await.is_ok()
                    && oldest.write_all(b"\r").await.is_ok()
                {
                    open.push(oldest);
                    self.env.sleep(AGAIN).await;
                    continue;
                }
            }
            match dial(target).await {
                Ok(mut stream) => {
                    if stream.write_all(&bytes(number)).await.is_ok() {
                        open.push(stream);
                    }
                }
                Err(_) => self.env.sleep(AGAIN).await,
            }
        }
    }

    async fn slow_posts(&self) {
        let length = 2_500_000;
        let head = format!(
            "POST {REVIEWS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n",
            self.nobody.token
        );
        let mut bytes = head.into_bytes();
        // Short of Content-Length by more than the bytes sent to probe whether the connection is open.
        bytes.resize(bytes.len() + length - 100_000, b' ');
        let bytes = Bytes::from(bytes);
        self.keep_open(&self.nobody, if self.small { 100 } else { 400 }, |_| bytes.clone()).await;
    }

    async fn silent_connections(&self) {
        let count = if self.small { 500 } else { 5000 };
        self.keep_open(&self.nobody, count, |number| {
            Bytes::from_static(match number % 3 {
                0 => b"",
                1 => b"PRI * HTTP/2.0\r\n",
                _ => b"GET / HTTP/1.1\r\nx: ",
            })
        })
        .await;
    }

    async fn stopped_readers(&self, namespace: &str) {
        let path = work::config_maps(namespace);
        let ask = |query: &str, accept: &str| {
            Bytes::from(format!(
                "GET {path}{query} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nauthorization: Bearer {}\r\n\r\n",
                self.admin.token
            ))
        };
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let requests = [
            ask("", "application/json"),
            ask("?watch=true", "application/json"),
            ask("", "application/yaml"),
            ask("", "application/vnd.kubernetes.protobuf"),
            ask("?includeObject=Object", table),
        ];
        let count = if self.small { 50 } else { 200 };
        self.keep_open(&self.admin, count, |number| requests[number % requests.len()].clone()).await;
    }
}
