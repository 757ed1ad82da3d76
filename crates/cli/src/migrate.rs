//! `migrate`: stores the objects of custom resources in their storage versions.

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use http::Request;
use k1s::{
    Runtime,
    env::{Env, Instant},
    kube::{
        self, Client, Config,
        config::{KubeConfigOptions, Kubeconfig},
    },
    migration::{self, MigrateError, Stored},
};
use serde_json::Value;

use crate::say;

/// How long a server may take to begin a migration: another one may have to become the leader first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Minimum interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Tenants per page of their list.
const PAGE: usize = 500;

/// Exit code: some migrations failed.
const SOME_FAILED: u8 = 1;
/// Exit code: there is nothing that could be migrated.
const FAILED: u8 = 2;

/// The options of `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The data folder of a server that is not running.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The addresses of an etcd, separated by commas. Servers may run on it meanwhile.
    #[cfg(feature = "program")]
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with = "data_dir")]
    etcd: Vec<String>,
    /// The kubeconfig of a server. By default the files in `KUBECONFIG`, or `~/.kube/config`.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    kubeconfig: Option<PathBuf>,
    /// Only this tenant. By default all tenants of the folder, of the etcd, or of a server whose tenants you may list.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Rewrites these resources, whatever their definitions say of what is stored. Also built-in ones (`secrets`), of which no
    /// release has changed the storage version: for another key of encryption.
    #[arg(value_name = "PLURAL[.GROUP]")]
    resources: Vec<String>,
    /// Only says what would be rewritten.
    #[arg(long)]
    dry_run: bool,
}

/// Why there is nothing to migrate.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Start(#[from] k1s::StartError),
    #[error(transparent)]
    Stop(#[from] k1s::StopError),
    #[error("{0}")]
    Connect(String),
    #[error("tenant {0}: {1}")]
    Tenant(String, String),
    #[error("{0}: there is no such resource")]
    Unknown(String),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Error {
        Error::Migrate(error.into())
    }
}

/// Runs the command.
pub(crate) async fn run(program: &str, args: &MigrateArgs) -> ExitCode {
    let done = match open(args).await {
        Ok(place) => {
            let done = Migrations::new(&place).all(args).await;
            match (done, place.close().await) {
                (Ok(done), Ok(())) => Ok(done),
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => SOME_FAILED.into(),
        Err(error) => {
            say::complain(&format!("{program}: {error}"), true);
            FAILED.into()
        }
    }
}

/// Where the objects are.
enum Place {
    /// A server in this process.
    Here(Box<Runtime>),
    /// The server of a kubeconfig.
    Server(Box<Config>),
}

async fn open(args: &MigrateArgs) -> Result<Place, Error> {
    let builder = Runtime::builder();
    let builder = match &args.data_dir {
        // A server would create the folder.
        Some(folder) if !folder.exists() => {
            return Err(Error::Connect(format!("there is no data folder {}", folder.display())));
        }
        Some(folder) => Some(builder.disk(folder)),
        #[cfg(feature = "program")]
        None if !args.etcd.is_empty() => Some(builder.etcd(args.etcd.clone())),
        None => None,
    };
    if let Some(builder) = builder {
        return Ok(Place::Here(Box::new(builder.start().await?)));
    }
    let failed = |error: &dyn std::fmt::Display| Error::Connect(format!("cannot connect: {error}"));
    let config = match &args.kubeconfig {
        Some(file) => {
            let config = Kubeconfig::read_from(file).map_err(|error| failed(&error))?;
            Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
                .await
                .map_err(|error| failed(&error))?
        }
        None => Config::infer().await.map_err(|error| failed(&error))?,
    };
    Ok(Place::Server(Box::new(config)))
}

impl Place {
    /// A client of a tenant; `None`: of the one that is meant without a name.
    async fn client(&self, tenant: Option<&str>) -> Result<Client, Error> {
        match (self, tenant) {
            (Place::Here(runtime), None) => Ok(runtime.client()),
            (Place::Here(runtime), Some(tenant)) => {
                // A client of a tenant that does not exist would create it.
                let found = runtime.server().find_tenant(tenant).await;
                let client = match found {
                    Ok(_) => runtime.tenant_client(tenant).await,
                    Err(status) => Err(status),
                };
                client.map_err(|status| Error::Tenant(tenant.to_owned(), status.message))
            }
            (Place::Server(config), tenant) => {
                let mut config = Config::clone(config);
                if let Some(tenant) = tenant {
                    let url = config.cluster_url.to_string();
                    let url = format!("{}/clusters/{tenant}", url.trim_end_matches('/'));
                    config.cluster_url =
                        url.parse().map_err(|why| Error::Tenant(tenant.to_owned(), format!("{why}")))?;
                }
                Ok(Client::try_from(config)?)
            }
        }
    }

    /// All tenants that can be used; `None` if there is no list of them: in another server, or for somebody who may not list
    /// them.
    async fn tenants(&self) -> Result<Option<Vec<String>>, Error> {
        if let Place::Here(runtime) = self {
            let stored = runtime.server().stored_tenants().await;
            return stored.map(Some).map_err(|status| Error::Connect(status.message));
        }
        let client = self.client(None).await?;
        let (mut names, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("/k1s/v1/tenants?limit={PAGE}&continue={token}");
            let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            let page: Value = match client.request(request).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let active = |one: &&Value| one["status"]["phase"] == "Active";
            let items = page["items"].as_array().into_iter().flatten().filter(active);
            names.extend(items.filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)));
            token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Ok(Some(names));
            }
        }
    }

    async fn close(self) -> Result<(), Error> {
        match self {
            Place::Here(runtime) => Ok(runtime.stop().await?),
            Place::Server(_) => Ok(()),
        }
    }
}

/// The migrations of a run.
struct Migrations<'p> {
    place: &'p Place,
    env: Env,
    /// When progress was last reported.
    reported: Instant,
    done: usize,
    failed: usize,
    tenants: BTreeSet<String>,
}

impl<'p> Migrations<'p> {
    fn new(place: &'p Place) -> Migrations<'p> {
        let env = Env::system();
        let reported = env.now();
        Migrations { place, env, reported, done: 0, failed: 0, tenants: BTreeSet::new() }
    }

    /// Migrates what the arguments say. Returns the number of migrations that failed.
    async fn all(mut self, args: &MigrateArgs) -> Result<usize, Error> {
        let tenants: Vec<Option<String>> = match &args.tenant {
            Some(tenant) => vec![Some(tenant.clone())],
            None => match self.place.tenants().await? {
                Some(tenants) => tenants.into_iter().map(Some).collect(),
                None => vec![None],
            },
        };
        let several = tenants.len() > 1;
        let mut unknown: BTreeSet<&String> = args.resources.iter().collect();
        let mut work = Vec::new();
        for tenant in tenants {
            let client = self.place.client(tenant.as_deref()).await?;
            let all = migration::stored(&client).await?;
            let wanted = if args.resources.is_empty() {
                all.into_iter().filter(Stored::is_outdated).collect()
            } else {
                named(&client, &all, &args.resources, &mut unknown).await?
            };
            let tenant = tenant.unwrap_or_default();
            work.extend(wanted.into_iter().map(|one| (tenant.clone(), client.clone(), one)));
        }
        // A mistake in a name is reported before anything is rewritten.
        if let Some(name) = unknown.first() {
            return Err(Error::Unknown((*name).clone()));
        }
        for (tenant, client, one) in &work {
            let of = if several { format!("{tenant}: ") } else { String::new() };
            let what = match one.versions.is_empty() {
                true => format!("{of}{one}"),
                false => format!("{of}{one}: {} -> {}", one.versions.join(", "), one.storage),
            };
            self.tenants.insert(tenant.clone());
            if args.dry_run {
                say::line(&what);
                continue;
            }
            self.migrate(client, one, &what).await?;
        }
        self.report(args.dry_run, work.len());
        Ok(self.failed)
    }

    async fn migrate(&mut self, client: &Client, one: &Stored, what: &str) -> Result<(), Error> {
        let resource = (one.group.as_str(), one.plural.as_str());
        let (env, reported) = (&self.env, &mut self.reported);
        let progress = |message: &str| {
            if env.now() - *reported >= PROGRESS_INTERVAL {
                *reported = env.now();
                say::note(&format!("{what}: {message}"));
            }
        };
        match migration::migrate_with(client, env, resource, PATIENCE, progress).await {
            Ok(message) => {
                self.done += 1;
                say::line(&format!("{what}: {message}"));
            }
            // The others may be in order.
            Err(error @ (MigrateError::Failed(_) | MigrateError::NotBegun(_))) => {
                self.failed += 1;
                say::line(&format!("{what}: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn report(&self, dry_run: bool, all: usize) {
        let count = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let of = match self.tenants.len() {
            0 | 1 => String::new(),
            tenants => format!(" in {}", count(tenants, "tenant")),
        };
        say::line(&match (all, dry_run) {
            (0, _) => "Everything is stored in the storage versions.".to_owned(),
            (all, true) => format!("{}{of} would be migrated.", count(all, "resource")),
            (all, _) if self.failed > 0 => {
                format!(
                    "{} of {}{of} failed; nothing is lost, and they can be tried again.",
                    self.failed,
                    count(all, "migration")
                )
            }
            _ => format!("{}{of} migrated.", count(self.done, "resource")),
        });
    }
}

/// The resources of these names that a tenant has: custom ones, or built-in ones. Those that are found are no longer unknown.
async fn named<'n>(
    client: &Client,
    custom: &[Stored],
    names: &'n [String],
    unknown: &mut BTreeSet<&'n String>,
) -> Result<Vec<Stored>, Error> {
    let mut found = Vec::new();
    for name in names {
        let one = match custom.iter().find(|one| one.to_string() == *name) {
            Some(one) => Some(one.clone()),
            None => built_in(client, name).await?,
        };
        if let Some(one) = one {
            unknown.remove(name);
            found.push(one);
        }
    }
    Ok(found)
}

/// A resource of the server itself.
async fn built_in(client: &Client, name: &str) -> Result<Option<Stored>, Error> {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let resources = match group {
        "" => client.list_core_api_resources("v1").await?.resources,
        _ => {
            let groups = client.list_api_groups().await?.groups;
            let Some(served) = groups.into_iter().find(|one| one.name == group) else { return Ok(None) };
            let version = served.preferred_version.or_else(|| served.versions.into_iter().next());
            let Some(version) = version else { return Ok(None) };
            client.list_api_group_resources(&version.group_version).await?.resources
        }
    };
    // What cannot be listed is not stored.
    let is_stored =
        resources.iter().any(|one| one.name == plural && one.verbs.iter().any(|verb| verb == "list"));
    Ok(is_stored.then(|| Stored {
        plural: plural.to_owned(),
        group: group.to_owned(),
        storage: String::new(),
        versions: Vec::new(),
    }))
}
