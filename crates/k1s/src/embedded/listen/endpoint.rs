//! The listener, and the kubeconfig that leads to it.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
};

use k1s_env::{Env, Task};
use k1s_server::{ApiServer, Listener, ServedCertificate, ServerOptions, TlsFiles, User, serve};
use k1s_store::Store;

use super::{
    super::{StartError, store::StoreChoice},
    identity::{Identity, Keep, Renewal},
};

/// Where to listen, and with which certificate.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ListenOptions {
    pub(super) address: Option<SocketAddr>,
    pub(super) transport: Transport,
    /// Additional names for a generated certificate.
    pub(super) names: Vec<String>,
    pub(super) token: Option<String>,
    /// Where certificates and token are kept, instead of with the store.
    pub(super) cert_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Transport {
    /// HTTPS with a generated certificate.
    #[default]
    Generated,
    Https(TlsFiles),
    Http,
}

/// A bound listener, and how clients connect to it.
pub(in super::super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) token: String,
    pub(super) authority: Option<String>,
    pub(super) kubeconfig: String,
}

/// A bound address, before the certificate is known: that may have to wait for the store.
pub(in super::super) struct Bound {
    listener: Listener,
    address: SocketAddr,
    wanted: SocketAddr,
    transport: Transport,
    names: Vec<String>,
    token: Option<String>,
    keep: Keep,
}

/// A listener that is ready, and the renewal of its certificate.
pub(in super::super) struct Ready {
    endpoint: Endpoint,
    listener: Listener,
    renewal: Option<(Renewal, TlsFiles, ServedCertificate)>,
}

impl ListenOptions {
    /// Binds the address. Nothing is served yet.
    pub(in super::super) async fn bind(self, store: &StoreChoice) -> Result<Option<Bound>, StartError> {
        let ListenOptions { address, transport, names, token, cert_dir } = self;
        let keep = cert_dir.map_or_else(|| store.keep(), Keep::Folder);
        let Some(wanted) = address else { return Ok(None) };
        let bound = match &transport {
            Transport::Https(files) => Listener::https(wanted, files).await,
            Transport::Http | Transport::Generated => Listener::http(wanted).await,
        };
        let listener = bound.map_err(|error| StartError::listen(wanted, error))?;
        let address = listener.address().map_err(|error| StartError::listen(wanted, error))?;
        Ok(Some(Bound { listener, address, wanted, transport, names, token, keep }))
    }
}

impl Bound {
    /// Loads certificate and token, or creates them, and adds them to the server's options.
    pub(in super::super) async fn identify(
        self,
        env: &Env,
        store: &dyn Store,
        server: &mut ServerOptions,
    ) -> Result<Ready, StartError> {
        let Bound { mut listener, address, wanted, transport, names, token, keep } = self;
        let names = matches!(transport, Transport::Generated).then(|| all_names(wanted.ip(), names));
        let Identity { token, tls } = keep.identity(env, store, names, token).await?;
        let mut renewal = None;
        let authority = match (transport, tls) {
            (Transport::Https(files), _) => Some(files.authority),
            (_, Some((files, how))) => {
                listener = listener.with_tls(&files).map_err(|error| StartError::listen(wanted, error))?;
                let authority = files.authority.clone();
                renewal = how.zip(listener.served_certificate()).map(|(how, slot)| (how, files, slot));
                Some(authority)
            }
            (_, None) => None,
        };
        let scheme = if authority.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(address));
        let kubeconfig = kubeconfig(&url, authority.as_deref(), &token);
        server.advertise_address.get_or_insert_with(|| advertised(address));
        server.tokens.insert(token.clone(), User::admin());
        if server.root_ca.is_empty() {
            server.root_ca = authority.clone().unwrap_or_default();
        }
        Ok(Ready { endpoint: Endpoint { address, url, token, authority, kubeconfig }, listener, renewal })
    }
}

/// The listener's task, and the task that renews its certificate.
type Serving = (Option<Endpoint>, Option<Task<io::Result<()>>>, Option<Task<()>>);

impl Ready {
    /// Starts to serve.
    pub(in super::super) fn serve(self, env: &Env, server: &ApiServer) -> Serving {
        let Ready { endpoint, listener, renewal } = self;
        let serving = env.spawn("listener", serve(server.clone(), listener));
        let renewing = renewal.map(|(renewal, files, slot)| {
            env.spawn("certificate renewal", renewal.run(env.clone(), files, slot))
        });
        (Some(endpoint), Some(serving), renewing)
    }
}

/// The names in a generated certificate.
fn all_names(ip: IpAddr, more: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> =
        ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
    if !ip.is_unspecified() && !ip.is_loopback() {
        names.push(ip.to_string());
    }
    names.extend(more);
    names
}

/// An address that clients on this machine can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

/// An address that other machines can connect to, if it can be determined: for the unspecified address, that
/// of the interface with the default route.
fn advertised(address: SocketAddr) -> SocketAddr {
    let outside = |any: SocketAddr, there: SocketAddr| {
        // Nothing is sent: connecting a UDP socket determines its source address.
        let socket = std::net::UdpSocket::bind(any)?;
        socket.connect(there)?;
        socket.local_addr()
    };
    let found = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => {
            outside((ip, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into())
        }
        IpAddr::V6(ip) if ip.is_unspecified() => {
            outside((ip, 0).into(), (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into())
        }
        _ => return address,
    };
    found.map_or_else(|_| reachable(address), |found| SocketAddr::new(found.ip(), address.port()))
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

/// Writes a kubeconfig to a file that only its owner can read: its token grants full access.
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
    let mut file = open.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // An existing file may be readable by others. A pipe or a terminal is not changed.
        if file.metadata()?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    io::Write::write_all(&mut file, kubeconfig.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unspecified_address_is_reached_at_loopback() {
        let at = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(at("0.0.0.0:6443"), "127.0.0.1:6443");
        assert_eq!(at("[::]:6443"), "[::1]:6443");
        assert_eq!(at("10.1.2.3:6443"), "10.1.2.3:6443");
    }

    #[test]
    fn the_unspecified_address_is_advertised_as_a_reachable_one() {
        let at = |text: &str| advertised(text.parse().unwrap());
        assert_eq!(at("10.1.2.3:6443").to_string(), "10.1.2.3:6443");
        for all in ["0.0.0.0:6443", "[::]:6443"] {
            assert!(!at(all).ip().is_unspecified());
            assert_eq!(at(all).port(), 6443);
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_kubeconfig_is_readable_by_its_owner_only_even_if_the_file_existed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        fs::write(&path, "a longer text that was there before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_kubeconfig(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_kubeconfig_has_the_server_the_authority_and_the_token() {
        let text = kubeconfig("https://127.0.0.1:1", Some("PEM"), "secret");
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("k1s"));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
        assert!(!kubeconfig("http://127.0.0.1:1", None, "secret").contains("certificate-authority"));
    }
}
