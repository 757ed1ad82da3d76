//! The options of a server, with their defaults.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;

use crate::{
    audit::AuditOptions,
    authorization::AuthorizationOptions,
    identity::{AuthenticationOptions, Tokens, User},
    limits::{ConnectionOptions, LimitOptions},
    plugins::AdmissionPlugins,
    services::{AggregationOptions, ServiceOptions},
};

/// The options of an [`crate::ApiServer`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Users by their bearer tokens.
    pub tokens: Tokens,
    /// The user of requests without credentials. `None`: the [anonymous](AuthenticationOptions::anonymous) user, who may read
    /// almost nothing.
    pub default_user: Option<User>,
    /// How senders are authenticated otherwise.
    pub authentication: AuthenticationOptions,
    /// Who decides what users may do. Members of `system:masters` may do everything.
    pub authorization: AuthorizationOptions,
    /// Which admission plugins are enabled.
    pub admission_plugins: AdmissionPlugins,
    /// What is recorded of requests, and where.
    pub audit: AuditOptions,
    /// Maximum number of requests of a tenant in flight, not counting watches once they have started. Its flow schemas and
    /// priority levels divide them; more requests wait, or get 429. Administrators are exempt.
    pub max_in_flight: usize,
    /// Maximum size of a request body.
    pub max_body_bytes: usize,
    /// Limits on the memory and processor use of requests.
    pub limits: LimitOptions,
    /// Limits on the connections of a listener.
    pub connections: ConnectionOptions,
    /// Maximum length of a label or field selector.
    pub max_selector_bytes: usize,
    /// Minimum lifetime of a watch without `timeoutSeconds`; the maximum is twice as long.
    pub min_watch_lifetime: Duration,
    /// Interval between the bookmarks of a watch that requested them.
    pub bookmark_interval: Duration,
    /// How long a read waits for a resourceVersion that the server has not reached yet.
    pub future_revision_patience: Duration,
    /// The first address of the cluster IPs of services, a range of 65,536 addresses.
    pub service_network: Ipv4Addr,
    /// The address of this server for the Service `default/kubernetes` of each tenant. `None`: it has no endpoints.
    pub advertise_address: Option<SocketAddr>,
    /// The version reported by `/version`.
    pub git_version: String,
    /// The certificate authority in `kube-root-ca.crt`, as PEM.
    pub root_ca: String,
    /// The tenant that paths without `/clusters/{name}` belong to.
    pub default_tenant: String,
    /// Whether a write to `/clusters/{name}/…` by a user that may create tenants creates a missing tenant, as
    /// `POST /k1s/v1/tenants` and [`crate::ApiServer::create_tenant`] do. Reads never create one. Off by default: a client
    /// that continues to write would recreate a tenant that was just deleted.
    pub create_tenants: bool,
    /// Whether Projects of the default tenant have control planes: the tenant of a Project's name is also served at
    /// `/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane`, while the Project's condition
    /// `ControlPlaneReady` is true, and nowhere while it is suspended. Off by default. Whoever turns it on also runs the
    /// controller of Projects, and installs their definitions.
    pub projects: bool,
    /// Where the Services are that webhooks and aggregated APIs name: their addresses, and those in this process.
    pub services: ServiceOptions,
    /// How requests are forwarded to aggregated APIs.
    pub aggregation: AggregationOptions,
    /// Called when a tenant needs controllers, and when it is deleted.
    pub tenant_hook: Option<TenantHook>,
    /// Further checks of `/healthz`, `/livez` and `/readyz`: of what the server depends on, and does not know.
    pub health_checks: Vec<HealthCheck>,
}

/// A check of the health endpoints.
#[derive(Clone)]
pub struct HealthCheck {
    name: &'static str,
    check: Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
}

impl HealthCheck {
    /// A check under this name; its error says what is wrong. Any client can cause it, so it should be cheap.
    pub fn new(
        name: &'static str,
        check: impl Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
    ) -> HealthCheck {
        HealthCheck { name, check: Arc::new(check) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether all is well; otherwise what is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn run(&self) -> Result<(), String> {
        (self.check)().await
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The namespace and name of the Lease in the tenant `default` by which servers over one store elect whose controllers run.
/// Its renewal alone does not start controllers.
pub const CONTROLLERS_LEASE: (&str, &str) = ("kube-system", "k1s-controllers");

/// An event for a [`TenantHook`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TenantEvent<'a> {
    /// This tenant needs controllers: for an object with owners; for the deletion of a namespace, a definition or an object
    /// that is protected while in use (`PersistentVolumeClaim`, `PersistentVolume`, `VolumeAttributesClass`); for an Event, a
    /// Lease, a `StorageVersionMigration` or a `CertificateSigningRequest`; or for a default object of a namespace that was changed or deleted. Sent once per tenant, until it is gone.
    Needed(&'a str),
    /// This tenant was deleted.
    Gone(&'a str),
}

/// A callback for events of tenants; it must not block. It lets the owner of a server start controllers only for tenants that
/// need them, so that an unused tenant costs only its storage.
#[derive(Clone)]
pub struct TenantHook(Arc<dyn Fn(TenantEvent<'_>) + Send + Sync>);

impl TenantHook {
    /// A hook that calls a function.
    pub fn new(hook: impl Fn(TenantEvent<'_>) + Send + Sync + 'static) -> TenantHook {
        TenantHook(Arc::new(hook))
    }

    /// Calls the hook.
    pub fn tell(&self, event: TenantEvent<'_>) {
        (self.0)(event);
    }
}

impl fmt::Debug for TenantHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantHook")
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            tokens: Tokens::new(),
            default_user: None,
            authentication: AuthenticationOptions::default(),
            authorization: AuthorizationOptions::default(),
            admission_plugins: AdmissionPlugins::default(),
            audit: AuditOptions::default(),
            max_in_flight: 400,
            max_body_bytes: 3 << 20,
            limits: LimitOptions::default(),
            connections: ConnectionOptions::default(),
            max_selector_bytes: 64 << 10,
            min_watch_lifetime: Duration::from_secs(30 * 60),
            bookmark_interval: Duration::from_secs(60),
            future_revision_patience: Duration::from_secs(3),
            service_network: Ipv4Addr::new(10, 0, 0, 0),
            advertise_address: None,
            git_version: "v1.37.0+k1s".into(),
            root_ca: String::new(),
            default_tenant: "default".into(),
            create_tenants: false,
            projects: false,
            services: ServiceOptions::default(),
            aggregation: AggregationOptions::default(),
            tenant_hook: None,
            health_checks: Vec::new(),
        }
    }
}
