//! The listener, and the kubeconfig that leads to it.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k1s_controllers::SharedSigner;
use k1s_env::{Env, Task};
use k1s_server::{
    ApiServer, ClientTrust, Listener, ServedCertificate, ServerOptions, TlsFiles, TlsOptions, TlsProtocol,
    User, serve,
};
use k1s_store::Store;

use super::{
    super::{StartError, store::StoreChoice},
    authority::OwnAuthority,
    front_proxy,
    identity::{Identity, Keep, Renewal},
    reach::Reach,
    reload::{ClientAuthorities, Contents, Files, Reload},
    signer,
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
    /// Authorities of client certificates besides the own one, as PEM.
    pub(super) client_authorities: String,
    /// Certificates and authorities that are reloaded from files.
    pub(super) files: Files,
    pub(super) reload_interval: Option<Duration>,
    pub(super) protocol: TlsProtocol,
}

/// How often files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

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
    /// Issues certificates to clients.
    pub(super) own: OwnAuthority,
    /// The kubeconfig in the data folder, for programs on this machine.
    pub(super) reach: Option<Reach>,
    /// The authority of its certificate for aggregated API servers.
    pub(super) front_proxies: Option<String>,
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
    client_authorities: String,
    files: Files,
    contents: Contents,
    reload_interval: Duration,
    protocol: TlsProtocol,
    folder: Option<PathBuf>,
}

/// A listener that is ready, and the tasks that keep its certificates up to date.
pub(in super::super) struct Ready {
    endpoint: Endpoint,
    listener: Listener,
    renewal: Option<(Renewal, TlsFiles, ServedCertificate)>,
    clients: ClientAuthorities,
    reload: Option<(Reload, ServedCertificate)>,
    folder: Option<PathBuf>,
    /// The names in the generated certificate.
    own_names: Vec<String>,
}

impl ListenOptions {
    /// Binds the address. Nothing is served yet.
    pub(in super::super) async fn bind(self, store: &StoreChoice) -> Result<Option<Bound>, StartError> {
        let ListenOptions {
            address,
            transport,
            names,
            token,
            cert_dir,
            client_authorities,
            files,
            reload_interval,
            protocol,
        } = self;
        let folder = store.folder().map(Path::to_owned);
        let keep = cert_dir.map_or_else(|| store.keep(), Keep::Folder);
        let Some(wanted) = address else { return Ok(None) };
        let contents = files.read()?;
        let transport = contents.serving().map_or(transport, Transport::Https);
        let bound = match &transport {
            Transport::Https(files) => Listener::https(wanted, files).await,
            Transport::Http | Transport::Generated => Listener::http(wanted).await,
        };
        let listener = bound.map_err(|error| StartError::listen(wanted, error))?;
        let address = listener.address().map_err(|error| StartError::listen(wanted, error))?;
        Ok(Some(Bound {
            listener,
            address,
            wanted,
            transport,
            names,
            token,
            keep,
            client_authorities,
            files,
            contents,
            reload_interval: reload_interval.unwrap_or(RELOAD_INTERVAL),
            protocol,
            folder,
        }))
    }
}

impl Bound {
    /// Loads certificate and token, or creates them, and adds them to the server's options.
    pub(in super::super) async fn identify(
        self,
        env: &Env,
        store: &Arc<dyn Store>,
        server: &mut ServerOptions,
    ) -> Result<Ready, StartError> {
        let Bound {
            mut listener,
            address,
            wanted,
            transport,
            names,
            token,
            keep,
            client_authorities,
            files,
            contents,
            reload_interval,
            protocol,
            folder,
        } = self;
        let names = matches!(transport, Transport::Generated).then(|| all_names(wanted.ip(), names));
        let own_names = names.clone().unwrap_or_default();
        let Identity { token, tls, own } = keep.identity(env, store, names, token).await?;
        let own_authority = own.get().map_or_else(String::new, |authority| authority.trusted(env.wall()));
        let authentication = &mut server.authentication;
        let mut trust = ClientTrust::default();
        if let Some(proxies) = &authentication.request_header {
            trust.front_proxies.clone_from(&proxies.authorities);
            trust.front_proxy_names.clone_from(&proxies.allowed_names);
        }
        let given = format!("{client_authorities}\n{}", authentication.client_authorities);
        let file = contents.client_authorities.clone();
        let authorities = ClientAuthorities::new(trust, own_authority, given, file);
        let trust = authorities.trust();
        if matches!(transport, Transport::Https(_)) || tls.is_some() {
            authentication.client_authorities.clone_from(&trust.users);
        }
        let mut tls_options = TlsOptions::default();
        tls_options.protocol = protocol;
        tls_options.named = contents.named();
        let with_tls = |listener: Listener, files: &TlsFiles| {
            let set = match trust.users.trim().is_empty() && trust.front_proxies.trim().is_empty() {
                true => listener.with_tls(files),
                false => listener.with_client_authorities(files, &trust),
            };
            set.and_then(|listener| listener.with_tls_options(&tls_options))
                .map_err(|error| StartError::listen(wanted, error))
        };
        let mut renewal = None;
        let authority = match (transport, tls) {
            (Transport::Https(files), _) => {
                listener = with_tls(listener, &files)?;
                Some(files.authority)
            }
            (_, Some((files, how))) => {
                listener = with_tls(listener, &files)?;
                let authority = files.authority.clone();
                let how = how.map(|how| how.every(reload_interval));
                renewal = how.zip(listener.served_certificate()).map(|(how, slot)| (how, files, slot));
                Some(authority)
            }
            (_, None) => None,
        };
        let scheme = if authority.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", reachable(address));
        let kubeconfig = kubeconfig(&url, authority.as_deref(), "admin", &format!("token: {token}"));
        server.advertise_address.get_or_insert_with(|| advertised(address));
        server.tokens.insert(token.clone(), User::admin());
        if server.root_ca.is_empty() {
            server.root_ca = authority.clone().unwrap_or_default();
        }
        // A certificate that was given stays.
        let proxy_client = &server.aggregation.proxy_client;
        let front_proxies = match proxy_client.is_set() {
            true => None,
            false => Some(front_proxy::issue(env, &**store, proxy_client).await?),
        };
        // Published for aggregated API servers. This server itself lets in the front proxies of its options alone.
        if let Some(authorities) = &front_proxies {
            server.authentication.request_header.get_or_insert_with(|| front_proxy::published(authorities));
        }
        let endpoint =
            Endpoint { address, url, token, authority, kubeconfig, own, reach: None, front_proxies };
        let reload = Reload { files, contents, clients: authorities.clone(), interval: reload_interval };
        let reload = (!reload.files.is_empty()).then_some(reload).zip(listener.served_certificate());
        Ok(Ready { endpoint, listener, renewal, clients: authorities, reload, folder, own_names })
    }
}

/// The listener's task, and the task that keeps its certificates up to date.
type Serving = (Option<Endpoint>, Option<Task<io::Result<()>>>, Option<Task<()>>);

impl Ready {
    /// Who signs `CertificateSigningRequests`; `None` without an own authority, or without HTTPS.
    pub(in super::super) fn signer(&self, env: &Env, host: &str) -> Option<SharedSigner> {
        let own = &self.endpoint.own;
        own.get()?;
        Some(signer::shared(env, own.clone(), self.own_names.clone(), host))
    }

    /// Starts to serve.
    pub(in super::super) fn serve(self, env: &Env, server: &ApiServer) -> Serving {
        let Ready { mut endpoint, listener, renewal, clients, reload, folder, own_names: _ } = self;
        if let Some(folder) = folder {
            match Reach::write(&folder, &endpoint.kubeconfig) {
                Ok(reach) => endpoint.reach = Some(reach),
                Err(error) => tracing::warn!(
                    folder = %folder.display(), %error, "commands on the data folder will not find this server"
                ),
            }
        }
        let serving = env.spawn("listener", serve(server.clone(), listener));
        let (renewing, reloading) = (env.clone(), env.clone());
        let is_kept = renewal.is_some() || reload.is_some();
        let keeping = async move {
            let renew = async {
                if let Some((renewal, files, slot)) = renewal {
                    renewal.run(renewing, files, slot, clients).await;
                }
            };
            let reload = async {
                if let Some((reload, slot)) = reload {
                    reload.run(reloading, slot).await;
                }
            };
            tokio::join!(renew, reload);
        };
        let keeping = is_kept.then(|| env.spawn("certificate renewal", keeping));
        (Some(endpoint), Some(serving), keeping)
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

/// A kubeconfig; `credential` is a line of YAML, or several.
pub(super) fn kubeconfig(url: &str, authority: Option<&str>, user: &str, credential: &str) -> String {
    let authority = authority.map_or_else(String::new, |authority| {
        format!("\n    certificate-authority-data: {}", in_base64(authority.as_bytes()))
    });
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: k1s\n\
         clusters:\n- name: k1s\n  cluster:\n    server: {url}{authority}\n\
         users:\n- name: {user}\n  user:\n    {credential}\n\
         contexts:\n- name: k1s\n  context:\n    cluster: k1s\n    user: {user}\n"
    )
}

pub(super) fn in_base64(bytes: &[u8]) -> String {
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
        let text = kubeconfig("https://127.0.0.1:1", Some("PEM"), "admin", "token: secret");
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("k1s"));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
        let plain = kubeconfig("http://127.0.0.1:1", None, "admin", "token: secret");
        assert!(!plain.contains("certificate-authority"));
    }
}
