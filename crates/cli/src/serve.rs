//! `k1s serve`: a control plane for kubectl and everybody else.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use k1s::{
    ControllersOptions, Election, Runtime, RuntimeBuilder, StartError, StopError,
    controller::leader::LeaderElectionOptions,
    env::Env,
    server::{ServerOptions, TlsFiles, Tokens},
    write_kubeconfig,
};

use crate::process::{Stop, raise_open_files};

/// What `k1s serve` can be told.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The port to listen at; 0 takes any that is free.
    #[arg(long, default_value_t = 6443)]
    pub(crate) port: u16,
    /// The address to listen at. Another than loopback needs --allow-remote.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub(crate) bind: IpAddr,
    /// Listens at an address that other machines can reach. Whoever has the admin token may do everything:
    /// there is no finer authorisation yet.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Where to write a kubeconfig for kubectl, with the admin token, which may do everything.
    #[arg(long, value_name = "FILE", default_value = "k1s.kubeconfig")]
    pub(crate) kubeconfig: PathBuf,
    /// Keeps everything in this folder, certificates and the admin token in its `pki`. Without it (and without --etcd)
    /// everything is in memory and gone at the end.
    #[arg(long, value_name = "DIR", conflicts_with = "etcd")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keeps everything in etcd, at these addresses: `http://127.0.0.1:2379`. Servers that share an etcd share the
    /// certificate authority and the admin token in it, unless --cert-dir says otherwise.
    #[arg(long, value_name = "URL", num_args = 1..)]
    pub(crate) etcd: Vec<String>,
    /// Serves plain HTTP instead of HTTPS.
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub(crate) http: bool,
    /// Where the generated certificates and the admin token are kept: `ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key`,
    /// `admin.token`. What is there is used, what is not is made; `apiserver.crt` and `apiserver.key` by another authority are
    /// never replaced. [default: `pki` in the data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cert_dir: Option<PathBuf>,
    /// The server's certificate, as PEM, with those that lead to its authority. Without it, one is generated.
    #[arg(long, visible_alias = "tls-cert-file", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    #[arg(long, visible_alias = "tls-private-key-file", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// More names and addresses that the generated certificate is for.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,
    /// More users: a CSV file with lines of `token,user,uid,"group1,group2"`, as kube-apiserver takes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// With --etcd: for how long other servers leave it to this one to run the controllers after it was last heard of. One that
    /// is stopped hands over at once.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// With --etcd: for how long this server runs the controllers without a successful renewal of its lease.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// With --etcd: the time between two attempts to get the lease, or to renew it.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// Leaves the dependents of deleted objects alone, as a bare kube-apiserver (an envtest) does.
    #[arg(long)]
    pub(crate) disable_garbage_collection: bool,
}

/// Why the server does not start, or ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
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
    /// Nobody could stop it in good order.
    #[error("signals cannot be listened to: {0}")]
    Signals(io::Error),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It did not stop as it should.
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// Serves until Ctrl-C or SIGTERM.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    if !options.bind.is_loopback() && !options.allow_remote {
        return Err(Error::Remote(options.bind));
    }
    let env = Env::system();
    raise_open_files();
    // From here on a signal ends it in good order.
    let stop = Stop::on_signals(&env, || say("stopped")).map_err(Error::Signals)?;
    let (mut builder, kept) = store(&options);
    if let Some(folder) = &options.cert_dir {
        builder = builder.cert_dir(folder);
    }
    let builder = transport(builder, &options)?
        .env(env)
        .listen(SocketAddr::new(options.bind, options.port))
        .server_options(server_options(&options)?)
        .election(Election::IfSharedWith(LeaderElectionOptions {
            lease_duration: options.leader_elect_lease_duration,
            renew_deadline: options.leader_elect_renew_deadline,
            retry_period: options.leader_elect_retry_period,
            ..LeaderElectionOptions::default()
        }))
        .controllers(ControllersOptions {
            garbage_collection: !options.disable_garbage_collection,
            ..ControllersOptions::default()
        });
    let runtime = builder.start().await?;
    if let (Some(kubeconfig), Some(url)) = (runtime.kubeconfig(), runtime.url()) {
        let path = &options.kubeconfig;
        write_kubeconfig(path, kubeconfig).map_err(|error| Error::File { path: path.clone(), error })?;
        say(&welcome(url, &kept, path));
    }
    stop.asked().await;
    tracing::info!("stopping");
    runtime.stop().await?;
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

/// Where everything is kept, and how that is told.
fn store(options: &Options) -> (RuntimeBuilder, String) {
    let builder = Runtime::builder();
    if let Some(folder) = &options.data_dir {
        return (builder.disk(folder), format!("Everything is kept in {}.", folder.display()));
    }
    if !options.etcd.is_empty() {
        let kept = format!("Everything is kept in etcd at {}.", options.etcd.join(", "));
        return (builder.etcd(options.etcd.clone()), kept);
    }
    (builder, "Everything is in memory and gone when it stops; --data-dir DIR keeps it.".into())
}

fn transport(builder: RuntimeBuilder, options: &Options) -> Result<RuntimeBuilder, Error> {
    if options.http {
        return Ok(builder.plain_http());
    }
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let certificate = read(certificate)?;
        return Ok(builder.tls(TlsFiles { authority: certificate.clone(), certificate, key: read(key)? }));
    }
    Ok(builder.tls_names(options.tls_san.clone()))
}

fn server_options(options: &Options) -> Result<ServerOptions, Error> {
    let mut server = ServerOptions::default();
    if let Some(path) = &options.token_auth_file {
        server.tokens =
            Tokens::parse(&read(path)?).map_err(|reason| Error::Tokens { path: path.clone(), reason })?;
    }
    Ok(server)
}

/// `15s`, `500ms`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{text:?} is no duration; write a number and its unit: 500ms, 15s, 2m")),
    };
    let number: u32 = number.parse().map_err(|error| format!("{text:?} is no duration: {error}"))?;
    Ok(Duration::from_millis(u64::from(number) * milliseconds))
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })
}

/// Speaks to the user; one who does not listen any more is no reason to stop.
fn say(text: &str) {
    let _ = io::Write::write_all(&mut io::stdout().lock(), format!("{text}\n").as_bytes());
}
