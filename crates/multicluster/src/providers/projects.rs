//! The control planes of Milo's projects.

use std::sync::Arc;

use k1s_object::selector::LabelSelector;
use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Kind};
use kube::api::{ApiResource, DynamicObject};

use super::{
    Connection, Connector, at_path, connector,
    kubeconfig::Clients,
    objects::{ObjectClusters, Objects, provider_of_objects},
};

/// The default address of a project's control plane inside of the cluster that runs it.
pub const PROJECT_ADDRESS: &str = "milo-apiserver.project-{name}.svc.cluster.local:6443";

/// How projects are found, and their control planes reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// `ProjectControlPlane`s with the condition `ControlPlaneReady`, in the cluster that runs the control planes.
    Internal,
    /// `Project`s with the condition `Ready`, through the endpoint of the API.
    External,
}

/// Every project is a cluster.
#[derive(Debug)]
pub struct ProjectsProvider {
    objects: Arc<Objects<Projects>>,
}

struct Projects {
    discovery: Discovery,
    /// Where Projects are watched, if not in the host cluster.
    watched: Option<kube::Client>,
    selector: Option<LabelSelector>,
    inside: Inside,
}

/// How projects are connected to.
enum Inside {
    /// Through the server that they are watched at.
    Path,
    /// At an address of their own, in which `{name}` is the project's name.
    Address {
        address: String,
        credentials: Box<kube::Config>,
        clients: Clients,
    },
    Connector(Connector),
}

impl ProjectsProvider {
    /// Watches `Project`s (`resourcemanager.miloapis.com/v1alpha1`) in the host cluster, and connects to their control planes
    /// through its path `/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane`, with the connections and
    /// credentials of the manager's client.
    #[must_use]
    pub fn external() -> ProjectsProvider {
        ProjectsProvider::with(Discovery::External, Inside::Path)
    }

    /// Watches `ProjectControlPlane`s (`infrastructure.miloapis.com/v1alpha1`) in the host cluster, and connects to the address
    /// `https://` and [`PROJECT_ADDRESS`] with these credentials.
    #[must_use]
    pub fn internal(credentials: kube::Config) -> ProjectsProvider {
        ProjectsProvider::internal_at(PROJECT_ADDRESS, credentials)
    }

    /// Like [`internal`](Self::internal), at another address, in which `{name}` is the project's name. `https://` is added if
    /// there is no scheme.
    pub fn internal_at(address: impl Into<String>, credentials: kube::Config) -> ProjectsProvider {
        let address = address.into();
        let address = if address.contains("://") { address } else { format!("https://{address}") };
        let (credentials, clients) = (Box::new(credentials), Clients::default());
        ProjectsProvider::with(Discovery::Internal, Inside::Address { address, credentials, clients })
    }

    /// Watches `ProjectControlPlane`s, and connects to control planes in this process.
    #[must_use]
    pub fn in_process(connect: Connector) -> ProjectsProvider {
        ProjectsProvider::with(Discovery::Internal, Inside::Connector(connect))
    }

    fn with(discovery: Discovery, inside: Inside) -> ProjectsProvider {
        let projects = Projects { discovery, watched: None, selector: None, inside };
        ProjectsProvider { objects: Arc::new(Objects::new(projects)) }
    }

    fn change(mut self, change: impl FnOnce(&mut Projects)) -> ProjectsProvider {
        // Nothing else refers to it before it runs.
        if let Some(objects) = Arc::get_mut(&mut self.objects) {
            change(objects.of_mut());
        }
        self
    }

    /// Only projects whose labels match.
    ///
    /// # Errors
    /// If the selector is invalid.
    pub fn with_selector(self, selector: &str) -> Result<ProjectsProvider, BoxError> {
        let selector = LabelSelector::parse(selector)?;
        Ok(self.change(|projects| projects.selector = Some(selector)))
    }

    /// Watches projects at another server than that of the host cluster.
    #[must_use]
    pub fn watched_at(self, client: kube::Client) -> ProjectsProvider {
        self.change(|projects| projects.watched = Some(client))
    }

    /// Uses this client's connections and credentials inside of projects, instead of those that projects are watched with.
    /// External discovery only.
    #[must_use]
    pub fn with_project_client(self, client: kube::Client) -> ProjectsProvider {
        let connect = connector(move |name: ClusterName| {
            let client = at_path(&client, &control_plane_path(&name));
            async move { Ok(Box::new(client) as Connection) }
        });
        self.with_connector(connect)
    }

    /// Connects to projects in another way.
    #[must_use]
    pub fn with_connector(self, connect: Connector) -> ProjectsProvider {
        self.change(|projects| projects.inside = Inside::Connector(connect))
    }
}

/// The path of a project's control plane at the endpoint of the API.
fn control_plane_path(name: &str) -> String {
    format!("/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane")
}

provider_of_objects!(ProjectsProvider, |this| match this.objects.of().discovery {
    Discovery::Internal => "project control planes".to_owned(),
    Discovery::External => "projects".to_owned(),
});

impl Projects {
    fn condition(&self) -> &'static str {
        match self.discovery {
            Discovery::Internal => "ControlPlaneReady",
            Discovery::External => "Ready",
        }
    }

    fn is_ready(&self, object: &DynamicObject) -> bool {
        let conditions = object.data.pointer("/status/conditions").and_then(serde_json::Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one["type"] == self.condition() && one["status"] == "True")
    }
}

#[async_trait::async_trait]
impl ObjectClusters for Projects {
    type Object = DynamicObject;

    fn controller(&self) -> String {
        "provider-projects".to_owned()
    }

    fn kind(&self) -> Kind<DynamicObject> {
        let (group, kind, plural) = match self.discovery {
            Discovery::Internal => {
                ("infrastructure.miloapis.com", "ProjectControlPlane", "projectcontrolplanes")
            }
            Discovery::External => ("resourcemanager.miloapis.com", "Project", "projects"),
        };
        Kind::dynamic(ApiResource {
            group: group.to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: format!("{group}/v1alpha1"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        })
    }

    fn watched(&self, _: &Cluster, options: ClusterOptions) -> Option<Cluster> {
        Some(Cluster::new("", self.watched.clone()?, options))
    }

    /// A project that is deleted stays a cluster as long as its control plane is ready: finalizers inside need their
    /// controllers.
    fn fingerprint(&self, object: &DynamicObject) -> Option<Vec<u8>> {
        let labels = object.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        let selected = self.selector.as_ref().is_none_or(|selector| selector.matches(label));
        (selected && self.is_ready(object))
            .then(|| object.metadata.uid.clone().unwrap_or_default().into_bytes())
    }

    async fn connect(
        &self,
        name: ClusterName,
        _: &DynamicObject,
        watched: &Cluster,
        options: ClusterOptions,
    ) -> Result<Cluster, BoxError> {
        let client = match &self.inside {
            Inside::Connector(connect) => {
                return Ok(Cluster::new(name.clone(), &*connect(name).await?, options));
            }
            Inside::Address { address, credentials, clients } => {
                let mut config = (**credentials).clone();
                config.cluster_url = address.replace("{name}", &name).parse()?;
                clients.of_config(config, &options)?
            }
            Inside::Path => at_path(watched.kube_client(), &control_plane_path(&name)),
        };
        Ok(Cluster::new(name, client, options))
    }
}
