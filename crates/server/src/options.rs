//! How a server is set up: every number has its default here.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use crate::{
    identity::{Tokens, User},
    limits::{ConnectionOptions, LimitOptions},
};

/// What an [`crate::ApiServer`] can be told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Users by their bearer tokens.
    pub tokens: Tokens,
    /// Who a request without a bearer token is. `None`: the anonymous user, who may see almost nothing.
    pub default_user: Option<User>,
    /// Requests that are worked on at the same time, watches apart; more get 429. Those who run the control plane have
    /// [some more](crate::LimitOptions::reserved_in_flight).
    pub max_in_flight: usize,
    /// The largest request body.
    pub max_body_bytes: usize,
    /// What requests can take of memory and processors.
    pub limits: LimitOptions,
    /// What a listener does about its connections.
    pub connections: ConnectionOptions,
    /// The longest label or field selector.
    pub max_selector_bytes: usize,
    /// A watch without `timeoutSeconds` lives this long at least, and at most twice as long.
    pub min_watch_lifetime: Duration,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark_interval: Duration,
    /// How long a read waits for a resourceVersion that is not there yet.
    pub future_revision_patience: Duration,
    /// The first address of the services' cluster IPs: a range of 65,536 addresses.
    pub service_network: Ipv4Addr,
    /// Where clients find this server: the Service `default/kubernetes` of each tenant leads there. `None`: nowhere.
    pub advertise_address: Option<SocketAddr>,
    /// What `/version` says.
    pub git_version: String,
    /// The certificate authority that `kube-root-ca.crt` holds, as PEM.
    pub root_ca: String,
    /// Who tokens of service accounts are issued by and, if they name nobody else, for; a tenant's name is added.
    pub service_account_issuer: String,
    /// The tenant that paths without `/clusters/{name}` belong to.
    pub default_tenant: String,
    /// Whether a tenant that is not there also comes into being by a write to `/clusters/{name}/…` of somebody who may create
    /// tenants, besides `POST /k1s/v1/tenants` and [`crate::ApiServer::create_tenant`]. Reading never makes one. Off by
    /// default: a client that goes on writing would bring back a tenant that was just deleted.
    pub create_tenants: bool,
    /// Hears when a tenant needs controllers, and when it is gone.
    pub tenant_hook: Option<TenantHook>,
}

/// The namespace and name of the Lease, in the tenant `default`, by which servers over one store agree whose controllers run.
/// That it is renewed is no reason to start controllers.
pub const CONTROLLERS_LEASE: (&str, &str) = ("kube-system", "k1s-controllers");

/// What a [`TenantHook`] hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TenantEvent<'a> {
    /// There is something in this tenant that controllers have to take care of: an object with owners, a namespace, a
    /// definition or something protected from deletion while it is in use (PersistentVolumeClaims, PersistentVolumes,
    /// VolumeAttributesClasses) that is being deleted, an Event or a Lease, a default object of a namespace that was changed
    /// or deleted. Told once per tenant, until it is gone.
    Needed(&'a str),
    /// This tenant was deleted.
    Gone(&'a str),
}

/// Called when something happens to a tenant; it must not wait. This is how whoever runs a server starts controllers where
/// they are needed only: a tenant that nobody uses costs nothing but what it holds.
#[derive(Clone)]
pub struct TenantHook(Arc<dyn Fn(TenantEvent<'_>) + Send + Sync>);

impl TenantHook {
    /// A hook that calls a function.
    pub fn new(hook: impl Fn(TenantEvent<'_>) + Send + Sync + 'static) -> TenantHook {
        TenantHook(Arc::new(hook))
    }

    /// Calls it.
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
            service_account_issuer: "https://kubernetes.default.svc.cluster.local".into(),
            default_tenant: "default".into(),
            create_tenants: false,
            tenant_hook: None,
        }
    }
}
