//! The `clientConfig` of a webhook, and the address in it.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::CallError;

/// Where a webhook is, as its configuration says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ClientConfig {
    pub(crate) url: Option<String>,
    pub(crate) service: Option<ServiceReference>,
    /// The authorities, as PEM, that sign its certificate. Empty: those of the system.
    pub(crate) ca_bundle: Vec<u8>,
}

/// A webhook behind a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServiceReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) path: String,
}

/// The parts of the address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(super) scheme: String,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as they are written in the URL.
    pub(super) authority: String,
    pub(super) path: String,
}

impl ClientConfig {
    /// Reads a `clientConfig` that has been validated.
    pub(crate) fn of(config: &Value) -> ClientConfig {
        let text = |of: &Value, field: &str| of[field].as_str().map(str::to_owned);
        let service = Some(&config["service"]).filter(|service| service.is_object()).map(|service| {
            let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
            ServiceReference {
                namespace: text(service, "namespace").unwrap_or_default(),
                name: text(service, "name").unwrap_or_default(),
                port: port.filter(|port| *port > 0).unwrap_or(443),
                path: text(service, "path").unwrap_or_default(),
            }
        });
        let ca_bundle = config["caBundle"].as_str().unwrap_or_default();
        ClientConfig {
            url: text(config, "url"),
            service,
            ca_bundle: BASE64_STANDARD.decode(ca_bundle).unwrap_or_default(),
        }
    }

    /// The address.
    pub(super) fn endpoint(&self) -> Result<Endpoint, CallError> {
        if let Some(service) = &self.service {
            let host = format!("{}.{}.svc", service.name, service.namespace);
            let path = match service.path.strip_prefix('/') {
                Some(_) => service.path.clone(),
                None => format!("/{}", service.path),
            };
            let authority = format!("{host}:{}", service.port);
            return Ok(Endpoint { scheme: "https".into(), host, port: service.port, authority, path });
        }
        let failed = |why: &str| CallError::Failed(why.to_owned());
        let text = self.url.as_deref().unwrap_or_default();
        if text.is_empty() {
            return Err(failed("webhook configuration must have either service or URL"));
        }
        let unparsable = |why: &dyn std::fmt::Display| CallError::Failed(format!("Unparsable URL: {why}"));
        let url: http::Uri = text.parse().map_err(|why| unparsable(&why))?;
        let authority = url.authority().ok_or_else(|| unparsable(&"it has no host"))?;
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let scheme = url.scheme_str().unwrap_or("https").to_owned();
        let shown = authority.as_str().rsplit('@').next().unwrap_or_default().to_owned();
        let port = authority.port_u16().unwrap_or(443);
        Ok(Endpoint { scheme, host: bare.to_owned(), port, authority: shown, path: url.path().to_owned() })
    }
}

impl Endpoint {
    /// The URL of a call: the timeout, rounded up to seconds, tells the webhook how long it may take.
    pub(super) fn url(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        format!("{}://{}{}?timeout={seconds}s", self.scheme, self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_urls_and_services() {
        let url = |config: Value, millis: u64| {
            let endpoint = ClientConfig::of(&config).endpoint().map_err(|why| why.to_string())?;
            Ok::<_, String>((endpoint.url(Duration::from_millis(millis)), endpoint.host, endpoint.port))
        };
        let service = json!({"service": {"namespace": "ns", "name": "svc", "path": "/a/b"}});
        assert_eq!(
            url(service, 10_000).unwrap(),
            ("https://svc.ns.svc:443/a/b?timeout=10s".into(), "svc.ns.svc".into(), 443)
        );
        let service = json!({"service": {"namespace": "ns", "name": "svc", "port": 8443}});
        assert_eq!(url(service, 1).unwrap().0, "https://svc.ns.svc:8443/?timeout=1s");
        let given = |text: &str| url(json!({ "url": text }), 4_001);
        assert_eq!(
            given("https://127.0.0.1:1/hook").unwrap(),
            ("https://127.0.0.1:1/hook?timeout=5s".into(), "127.0.0.1".into(), 1)
        );
        assert_eq!(
            given("https://[::1]/x").unwrap(),
            ("https://[::1]/x?timeout=5s".into(), "::1".into(), 443)
        );
        assert_eq!(given("https://user:secret@a.example").unwrap().0, "https://a.example/?timeout=5s");
        assert_eq!(url(json!({}), 1).unwrap_err(), "webhook configuration must have either service or URL");
    }
}
