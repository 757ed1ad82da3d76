//! The door to the network: certificate, listener, and the kubeconfig that leads to it.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use k1s_env::Env;
use k1s_server::{Listener, TlsFiles, certificate};

use super::StartError;

/// How it is listened.
#[derive(Debug, Clone, Default)]
pub(super) struct EndpointOptions {
    pub(super) address: Option<SocketAddr>,
    pub(super) transport: Transport,
    /// More names for a generated certificate.
    pub(super) names: Vec<String>,
    pub(super) token: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Transport {
    /// HTTPS with a certificate made for it.
    #[default]
    Generated,
    Https(TlsFiles),
    Http,
}

/// A listener that is bound, and how clients come to it.
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) token: String,
    pub(super) authority: Option<String>,
    pub(super) kubeconfig: String,
}

impl EndpointOptions {
    /// Takes the address. Nothing is answered yet.
    pub(super) async fn bind(self, env: &Env) -> Result<Option<(Endpoint, Listener)>, StartError> {
        let EndpointOptions { address, transport, names, token } = self;
        let Some(wanted) = address else { return Ok(None) };
        let tls = match transport {
            Transport::Http => None,
            Transport::Https(files) => Some(files),
            Transport::Generated => Some(generate(wanted.ip(), names)?),
        };
        let bound = match &tls {
            Some(files) => Listener::https(wanted, files).await,
            None => Listener::http(wanted).await,
        };
        let listener = bound.map_err(|error| StartError::listen(wanted, error))?;
        let address = listener.address().map_err(|error| StartError::listen(wanted, error))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(address));
        let token = token.unwrap_or_else(|| random_token(env));
        let authority = tls.map(|files| files.authority);
        let kubeconfig = kubeconfig(&url, authority.as_deref(), &token);
        Ok(Some((Endpoint { address, url, token, authority, kubeconfig }, listener)))
    }
}

fn generate(ip: IpAddr, more: Vec<String>) -> Result<TlsFiles, StartError> {
    let mut names: Vec<String> =
        ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
    if !ip.is_unspecified() && !ip.is_loopback() {
        names.push(ip.to_string());
    }
    names.extend(more);
    certificate(&names).map_err(|error| StartError::Certificate(error.to_string()))
}

/// An address that a client on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

fn random_token(env: &Env) -> String {
    let mut bytes = [0_u8; 24];
    env.fill_random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kubeconfig(url: &str, authority: Option<&str>, token: &str) -> String {
    let authority = authority.map_or_else(String::new, |authority| {
        format!("\n    certificate-authority-data: {}", in_base64(authority.as_bytes()))
    });
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: k1s\n\
         clusters:\n- name: k1s\n  cluster:\n    server: {url}{authority}\n\
         users:\n- name: admin\n  user:\n    token: {token}\n\
         contexts:\n- name: k1s\n  context:\n    cluster: k1s\n    user: admin\n"
    )
}

fn in_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Writes a kubeconfig to a file that only its owner can read: who has its token may do everything.
///
/// # Errors
/// Those of the file system.
pub fn write_kubeconfig(path: &Path, kubeconfig: &str) -> io::Result<()> {
    let mut open = fs::OpenOptions::new();
    open.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        open.mode(0o600);
    }
    io::Write::write_all(&mut open.open(path)?, kubeconfig.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_reached_at_loopback() {
        let at = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(at("0.0.0.0:6443"), "127.0.0.1:6443");
        assert_eq!(at("[::]:6443"), "[::1]:6443");
        assert_eq!(at("10.1.2.3:6443"), "10.1.2.3:6443");
    }

    #[test]
    fn a_kubeconfig_says_where_whom_to_trust_and_who_one_is() {
        let text = kubeconfig("https://127.0.0.1:1", Some("PEM"), "secret");
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("k1s"));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
        assert!(!kubeconfig("http://127.0.0.1:1", None, "secret").contains("certificate-authority"));
    }
}
