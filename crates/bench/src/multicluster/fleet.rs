//! A fleet of tenants, of an embedded runtime or of a server, and what connects to them.

use std::path::Path;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s::{
    Runtime,
    multicluster::{
        ClusterName,
        providers::{Connection, Connector, at_path},
    },
};
use k1s_env::Env;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use serde_json::{Value, json};

use crate::Failure;

pub(super) const NAMESPACE: &str = "default";

/// Concurrent writes.
pub(super) const WRITERS: usize = 16;

/// The name of an object that is reconciled; others are not counted.
pub(super) fn object_name(number: u64) -> String {
    format!("counted-{number}")
}

pub(super) fn is_counted(name: &str) -> bool {
    name.starts_with("counted-")
}

pub(super) fn object(number: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(object_name(number)),
        namespace: Some(NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

pub(super) fn cluster_name(number: u64) -> ClusterName {
    format!("cluster-{number:04}").into()
}

/// Where tenants are.
pub(super) enum Place {
    Embedded { runtime: Box<Runtime>, connect: Connector },
    Server { config: Box<kube::Config>, client: kube::Client },
}

impl Place {
    pub(super) async fn open(kubeconfig: Option<&Path>) -> Result<Place, Failure> {
        let Some(file) = kubeconfig else {
            let runtime = Box::new(Runtime::builder().start().await?);
            let connect = runtime.tenant_connector();
            return Ok(Place::Embedded { runtime, connect });
        };
        let config = kube::config::Kubeconfig::read_from(file)?;
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await?;
        let client = k1s_runtime::client::http2(&Env::system(), config.clone())?;
        Ok(Place::Server { config: Box::new(config), client })
    }

    /// Makes tenants, each with so many objects.
    pub(super) async fn fill(&self, clusters: u64, objects: u64) -> Result<(), Failure> {
        let made = stream::iter(0..clusters).map(|number| async move {
            let name = cluster_name(number);
            match self {
                Place::Embedded { runtime, .. } => {
                    runtime.server().create_tenant(&name).await.map_err(|status| Failure(status.message))?;
                }
                Place::Server { client, .. } => {
                    let body = serde_json::to_vec(&json!({"metadata": {"name": name.as_str()}}))?;
                    let request = http::Request::post("/k1s/v1/tenants")
                        .header(http::header::CONTENT_TYPE, "application/json");
                    client.request::<Value>(request.body(body)?).await?;
                }
            }
            let maps = Api::<ConfigMap>::namespaced(self.connect(&name).await?.client(), NAMESPACE);
            for number in 0..objects {
                maps.create(&PostParams::default(), &object(number)).await?;
            }
            Ok::<(), Failure>(())
        });
        made.buffer_unordered(WRITERS).try_collect().await
    }

    /// The connection of a fleet: all clusters of a server share it.
    pub(super) async fn connect(&self, name: &ClusterName) -> Result<Connection, Failure> {
        match self {
            Place::Embedded { connect, .. } => {
                connect(name.clone()).await.map_err(|error| Failure(error.to_string()))
            }
            Place::Server { client, .. } => Ok(Box::new(at_path(client, &format!("/clusters/{name}")))),
        }
    }

    /// The connection of a program that knows one cluster only.
    pub(super) async fn connect_alone(&self, name: &ClusterName) -> Result<Connection, Failure> {
        let Place::Server { config, .. } = self else { return self.connect(name).await };
        let mut config = kube::Config::clone(config);
        let root = config.cluster_url.to_string();
        config.cluster_url = format!("{}/clusters/{name}", root.trim_end_matches('/')).parse()?;
        Ok(Box::new(kube::Client::try_from(config)?))
    }

    /// The connection of the manager's own cluster.
    pub(super) fn host(&self) -> kube::Client {
        match self {
            Place::Embedded { runtime, .. } => runtime.client(),
            Place::Server { client, .. } => client.clone(),
        }
    }

    /// The port of the server.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Place::Embedded { .. } => None,
            Place::Server { config, .. } => config.cluster_url.port_u16(),
        }
    }
}
