//! Where Services are: webhooks and aggregated APIs name Services, but there are no nodes that could run what is behind them.
//!
//! A Service is in this process ([`LocalServices`]), or at an address that the server is told ([`ServiceOptions::addresses`]).
//! Both tables serve webhooks and aggregated APIs alike.

#[cfg(feature = "tls")]
pub(crate) mod connect;
mod forward;
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
    /// The addresses (`host:port`) of Services, by `namespace/name` or `namespace/name:port`, for webhooks of all tenants and
    /// for aggregated APIs of the default tenant. With `tenant:` in front, for that tenant; with `*:`, for all of them: what
    /// is at the address then is told the users of other tenants, too.
    pub addresses: BTreeMap<String, String>,
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
    /// The configured address of a Service. `shared`: whether entries without a tenant count.
    pub(crate) fn address(&self, tenant: &str, service: &ServicePort, shared: bool) -> Option<&str> {
        if self.addresses.is_empty() {
            return None;
        }
        let name = format!("{}/{}", service.namespace, service.name);
        let names = [format!("{name}:{}", service.port), name];
        let of = |prefix: &str| {
            names.iter().find_map(|name| self.addresses.get(&format!("{prefix}{name}"))).map(String::as_str)
        };
        of(&format!("{tenant}:")).or_else(|| of("*:")).or_else(|| shared.then(|| of("")).flatten())
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
        let of = |tenant: &str, name: &str, port: u16, shared: bool| {
            let service = ServicePort { namespace: "ns".into(), name: name.into(), port };
            options.address(tenant, &service, shared).map(str::to_owned)
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
