//! The flags of `k1s serve` about aggregated API servers.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use k1s::{
    env::Env,
    server::{ProxyClient, ServerOptions},
};

use super::{Error, read};

/// How aggregated API servers are reached.
#[derive(Debug, Clone, Args)]
// The group that clap makes of a struct has its name, and those of one command must differ.
#[group(skip)]
#[command(next_help_heading = "Aggregated API servers")]
pub(crate) struct Flags {
    /// The address of a Service, for the aggregated APIs and webhooks that name it: there are no nodes that could run what is
    /// behind it. For the default tenant; `TENANT:` in front is for another one, `*:` for all. May be repeated.
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT", value_parser = service_address)]
    service_address: Vec<(String, String)>,
    /// Forwards requests for aggregated APIs of the default tenant whose Service has no --service-address to the addresses of
    /// its endpoints, or to its external name. Whoever may write those objects can make the server connect to any address
    /// that is neither loopback nor link-local.
    #[arg(long)]
    enable_aggregator_routing: bool,
    /// Allows webhooks and converters of tenants other than the default one at loopback and link-local addresses. Whoever may
    /// write a webhook configuration in a tenant then reaches what listens for this machine alone.
    #[arg(long)]
    allow_tenant_webhooks_on_host: bool,
    /// The certificate, as PEM, by which the server proves to aggregated API servers that the user in its headers is
    /// authenticated. Read again when it changes. Issued by an authority of its own by default.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    proxy_client_cert_file: Option<PathBuf>,
    /// The key of that certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    proxy_client_key_file: Option<PathBuf>,
}

impl Flags {
    /// Adds them to the options of the server. Returns the files of the certificate, if there are any, to be followed.
    pub(super) fn apply(&self, server: &mut ServerOptions) -> Result<Option<ProxyFiles>, Error> {
        server.services.addresses.extend(self.service_address.iter().cloned());
        server.services.tenants_reach_host = self.allow_tenant_webhooks_on_host;
        server.aggregation.routing = self.enable_aggregator_routing;
        let (Some(certificate), Some(key)) = (&self.proxy_client_cert_file, &self.proxy_client_key_file)
        else {
            return Ok(None);
        };
        let used = (read(certificate)?, read(key)?);
        let client = server.aggregation.proxy_client.clone();
        let wrong = |reason| Error::Flags(format!("{}: {reason}", certificate.display()));
        client.set(&used.0, &used.1).map_err(wrong)?;
        Ok(Some(ProxyFiles { certificate: certificate.clone(), key: key.clone(), client, used }))
    }
}

/// The files of the certificate for aggregated API servers.
pub(super) struct ProxyFiles {
    certificate: PathBuf,
    key: PathBuf,
    client: ProxyClient,
    /// The contents in use.
    used: (String, String),
}

/// Interval between looks at the files.
const FILES_INTERVAL: Duration = Duration::from_secs(60);

impl ProxyFiles {
    /// Uses them again whenever they have changed. Files that do not fit together are being replaced.
    pub(super) async fn follow(mut self, env: Env) {
        loop {
            env.sleep(FILES_INTERVAL).await;
            let (Ok(certificate), Ok(key)) = (read(&self.certificate), read(&self.key)) else { continue };
            if (&certificate, &key) == (&self.used.0, &self.used.1) {
                continue;
            }
            match self.client.set(&certificate, &key) {
                Ok(()) => {
                    tracing::info!("the certificate for aggregated API servers was replaced");
                    self.used = (certificate, key);
                }
                Err(reason) => tracing::warn!(reason, "the certificate for aggregated API servers is kept"),
            }
        }
    }
}

/// `namespace/name=host:port`
fn service_address(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not NAMESPACE/NAME[:PORT]=HOST:PORT");
    let (service, address) = text.split_once('=').ok_or_else(wrong)?;
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let port = port.and_then(|(_, port)| port.parse::<u16>().ok());
    match (service.split_once('/'), port) {
        (Some((namespace, name)), Some(_)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((service.to_owned(), address.to_owned()))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_services() {
        for text in ["ns/svc=10.1.2.3:8443", "a:ns/svc:443=host:1", "*:ns/svc=[::1]:2"] {
            let (service, address) = service_address(text).unwrap();
            assert_eq!(format!("{service}={address}"), text);
        }
        for text in
            ["", "ns/svc", "ns/svc=host", "svc=host:1", "ns/=host:1", "ns/svc=:1", "ns/svc=host:99999"]
        {
            assert!(service_address(text).is_err(), "{text}");
        }
    }
}
