//! `k1s serve`: a control plane for kubectl and everybody else.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use k1s_env::Env;
use k1s_server::{ApiServer, Listener, ServerOptions, TlsFiles, Tokens, User, certificate, serve};
use k1s_store::{MemoryStore, Store};
use k1s_store_disk::{DiskOptions, DiskStore};
use k1s_store_etcd::{EtcdOptions, EtcdStore};

/// What `k1s serve` can be told.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The port to listen at; 0 takes any that is free.
    #[arg(long, default_value_t = 6443)]
    pub port: u16,
    /// The address to listen at. Another than loopback needs --allow-remote.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub bind: IpAddr,
    /// Listens at an address that other machines can reach. Whoever has the admin token may do everything:
    /// there is no finer authorisation yet.
    #[arg(long)]
    pub allow_remote: bool,
    /// Where to write a kubeconfig for kubectl, with a token of its own that may do everything.
    #[arg(long, value_name = "FILE", default_value = "k1s.kubeconfig")]
    pub kubeconfig: PathBuf,
    /// Keeps everything in this folder. Without it (and without --etcd) everything is in memory and gone at the end.
    #[arg(long, value_name = "DIR", conflicts_with = "etcd")]
    pub data_dir: Option<PathBuf>,
    /// Keeps everything in etcd, at these addresses: `http://127.0.0.1:2379`.
    #[arg(long, value_name = "URL", num_args = 1..)]
    pub etcd: Vec<String>,
    /// Serves plain HTTP instead of HTTPS.
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub http: bool,
    /// The server's certificate, as PEM, with those that lead to its authority. Without it, one is generated.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// More names and addresses that the generated certificate is for.
    #[arg(long, value_name = "NAME")]
    pub tls_san: Vec<String>,
    /// More users: lines of `token,user,uid,"group1,group2"`.
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Leaves the dependents of deleted objects alone, as a bare kube-apiserver (an envtest) does.
    #[arg(long)]
    pub disable_garbage_collection: bool,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Other machines could reach it.
    #[error(
        "--bind {0} can be reached by other machines, and whoever has the admin token may do everything; say --allow-remote if that is what you want"
    )]
    Remote(IpAddr),
    /// A file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The token file is not understood.
    #[error("{path}: {reason}", path = path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The port is taken, or the certificate of no use.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// The store does not open.
    #[error("{0}")]
    Store(String),
    /// The server does not start.
    #[error("{0}")]
    Server(#[from] k1s_server::Status),
}

/// Serves until Ctrl-C or SIGTERM.
pub async fn run(options: Options) -> Result<(), Error> {
    if !options.bind.is_loopback() && !options.allow_remote {
        return Err(Error::Remote(options.bind));
    }
    let env = Env::system();
    let tls = if options.http { None } else { Some(tls_files(&options)?) };
    let address = SocketAddr::new(options.bind, options.port);
    let listener = match &tls {
        Some(files) => Listener::https(address, files).await,
        None => Listener::http(address).await,
    };
    let listen = |error| Error::Listen { address, error };
    let listener = listener.map_err(listen)?;
    let address = listener.address().map_err(listen)?;
    let mut tokens = match &options.token_auth_file {
        None => Tokens::new(),
        Some(path) => {
            Tokens::parse(&read(path)?).map_err(|reason| Error::Tokens { path: path.clone(), reason })?
        }
    };
    let token = random_token(&env);
    tokens.insert(token.clone(), User::admin());
    let (store, kept) = open_store(&env, &options).await?;
    let mut server_options = ServerOptions::default();
    server_options.tokens = tokens;
    server_options.garbage_collection = !options.disable_garbage_collection;
    server_options.root_ca = tls.as_ref().map(|files| files.authority.clone()).unwrap_or_default();
    let server = ApiServer::new(env.clone(), store.clone(), server_options).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", reachable(address));
    write_kubeconfig(&options.kubeconfig, &url, tls.as_ref(), &token)?;
    say(&welcome(&url, &kept, &options.kubeconfig));
    let stopping = server.clone();
    let signals = env.spawn("signals", async move {
        interrupted().await;
        tracing::info!("stopping");
        stopping.shutdown();
    });
    let served = serve(server, listener).await.map_err(|error| Error::Listen { address, error });
    drop(signals);
    store.close().await.map_err(|error| Error::Store(error.to_string()))?;
    served?;
    say("stopped");
    Ok(())
}

fn welcome(url: &str, kept: &str, kubeconfig: &Path) -> String {
    let file = kubeconfig.display();
    format!(
        "k1s serves Kubernetes' API at {url}\n\
         {kept}\n\n\
         Try, in another terminal:\n\
         \n  export KUBECONFIG={file}\
         \n  kubectl get namespaces\
         \n  kubectl create configmap hello --from-literal=greeting=hi\n\n\
         Ctrl-C stops it."
    )
}

/// An address that a client on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), address.port())
        }
        _ => address,
    }
}

async fn open_store(env: &Env, options: &Options) -> Result<(Arc<dyn Store>, String), Error> {
    if let Some(folder) = &options.data_dir {
        let (env, path) = (env.clone(), folder.clone());
        let opened = env
            .clone()
            .spawn_blocking("open the store", move || DiskStore::open(env, &path, DiskOptions::default()))
            .await
            .map_err(|error| Error::Store(error.to_string()))?;
        let store = opened.map_err(|error| Error::Store(error.to_string()))?;
        return Ok((Arc::new(store), format!("Everything is kept in {}.", folder.display())));
    }
    if !options.etcd.is_empty() {
        let store = EtcdStore::connect(env.clone(), EtcdOptions::new(options.etcd.clone()))
            .await
            .map_err(|error| Error::Store(error.to_string()))?;
        return Ok((Arc::new(store), format!("Everything is kept in etcd at {}.", options.etcd.join(", "))));
    }
    let store = MemoryStore::new(env.clone(), k1s_store::MemoryOptions::default());
    Ok((Arc::new(store), "Everything is in memory and gone when it stops; --data-dir DIR keeps it.".into()))
}

fn tls_files(options: &Options) -> Result<TlsFiles, Error> {
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let certificate = read(certificate)?;
        return Ok(TlsFiles { authority: certificate.clone(), certificate, key: read(key)? });
    }
    let mut names: Vec<String> =
        ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
    if !options.bind.is_unspecified() && !options.bind.is_loopback() {
        names.push(options.bind.to_string());
    }
    names.extend(options.tls_san.iter().cloned());
    certificate(&names).map_err(|error| Error::Certificate(error.to_string()))
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })
}

fn random_token(env: &Env) -> String {
    let mut bytes = [0_u8; 24];
    env.fill_random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a kubeconfig that only its owner can read.
fn write_kubeconfig(path: &Path, url: &str, tls: Option<&TlsFiles>, token: &str) -> Result<(), Error> {
    let authority = tls.map_or_else(String::new, |files| {
        format!("\n    certificate-authority-data: {}", in_base64(files.authority.as_bytes()))
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: k1s\n\
         clusters:\n- name: k1s\n  cluster:\n    server: {url}{authority}\n\
         users:\n- name: admin\n  user:\n    token: {token}\n\
         contexts:\n- name: k1s\n  context:\n    cluster: k1s\n    user: admin\n"
    );
    let file = |error| Error::File { path: path.to_owned(), error };
    let mut open = fs::OpenOptions::new();
    open.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        open.mode(0o600);
    }
    let mut out = open.open(path).map_err(file)?;
    io::Write::write_all(&mut out, text.as_bytes()).map_err(file)
}

fn in_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Ctrl-C, or a polite request to end.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Speaks to the user; one who does not listen any more is no reason to stop.
fn say(text: &str) {
    let _ = io::Write::write_all(&mut io::stdout().lock(), format!("{text}\n").as_bytes());
}
