//! Where Services are: webhooks and aggregated APIs name Services, but there are no nodes that could run what is behind them.
//!
//! A Service is in this process ([`LocalServices`]), or at an address that the server is told ([`ServiceOptions::addresses`]).
//! Both tables serve webhooks and aggregated APIs alike. Other addresses come from objects: whether their author may choose
//! any is decided here as well (`guard`), where the connection is opened and the name is resolved.

#[cfg(feature = "tls")]
pub(crate) mod connect;
mod forward;
#[cfg(feature = "tls")]
mod guard;
mod local;

use std::collections::BTreeMap;

pub use forward::{AggregationOptions, ProxyClient};
pub(crate) use forward::{Forwarder, SendError, Target};
pub(crate) use local::{LocalError, LocalService};
pub use local::{LocalServices, RequestBody};

/// Where Services are.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// The addresses (`host:port`) of Services, by `namespace/name` or `namespace/name:port`, for webhooks and aggregated APIs
    /// of the default tenant. With `tenant:` in front, for that tenant; with `*:`, for all of them: what is at the address then
    /// is told the users of other tenants, too.
    pub addresses: BTreeMap<String, String>,
    /// Whether webhooks, for admission and for conversion, whose configuration in another tenant than the default one has a
    /// URL may be at loopback and link-local addresses, and at those of a cloud's metadata. Off by default: whoever writes
    /// such an object reaches what listens for this machine alone.
    pub tenants_reach_host: bool,
    /// The Services in this process.
    pub local: LocalServices,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServicePort {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl ServicePort {
    /// Its name in the cluster.
    pub(crate) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl ServiceOptions {
    /// The configured address of a Service. `is_default`: whether entries without a tenant count.
    pub(crate) fn address(&self, tenant: &str, service: &ServicePort, is_default: bool) -> Option<&str> {
        if self.addresses.is_empty() {
            return None;
        }
        let name = format!("{}/{}", service.namespace, service.name);
        let names = [format!("{name}:{}", service.port), name];
        let of = |prefix: &str| {
            names.iter().find_map(|name| self.addresses.get(&format!("{prefix}{name}"))).map(String::as_str)
        };
        of(&format!("{tenant}:")).or_else(|| of("*:")).or_else(|| is_default.then(|| of("")).flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_for_the_tenants_that_its_key_names() {
        let mut options = ServiceOptions::default();
        for (key, address) in [
            ("ns/plain", "1:1"),
            ("ns/plain:8443", "1:2"),
            ("a:ns/svc", "2:2"),
            ("*:ns/svc", "3:3"),
            ("*:ns/svc:8443", "3:4"),
        ] {
            options.addresses.insert(key.into(), address.into());
        }
        let of = |tenant: &str, name: &str, port: u16, is_default: bool| {
            let service = ServicePort { namespace: "ns".into(), name: name.into(), port };
            options.address(tenant, &service, is_default).map(str::to_owned)
        };
        assert_eq!(of("a", "plain", 443, true).as_deref(), Some("1:1"));
        assert_eq!(of("a", "plain", 8443, true).as_deref(), Some("1:2"));
        assert_eq!(of("a", "plain", 443, false), None);
        assert_eq!(of("a", "svc", 8443, false).as_deref(), Some("2:2"));
        assert_eq!(of("b", "svc", 443, false).as_deref(), Some("3:3"));
        assert_eq!(of("b", "svc", 8443, false).as_deref(), Some("3:4"));
        assert_eq!(of("b", "other", 443, true), None);
    }
}
