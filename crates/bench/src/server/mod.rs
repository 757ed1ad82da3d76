//! The API server as its clients see it: `k1s serve` in a process of its own, over HTTP and HTTPS.
//!
//! The client is in this process and shares the processors with the server, so rates are of both together; `cpu`
//! lines tell the server's part, which other programs on the machine hardly disturb. `inside` is the server as a
//! Service in this process, without sockets. With `--peer`, another API server does the same work.

pub(crate) mod child;
pub(crate) mod client;
mod inside;
pub(crate) mod objects;
pub(crate) mod work;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use http::Method;
use k1s_env::Env;
use k1s_store_etcd::testing::EtcdServer;

use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit, quantile},
};
use child::{Child, Kept};
use client::{Client, Content, Target};
use work::{Done, Watchers};

#[derive(Args)]
pub(crate) struct Options {
    /// A line of JSON per measurement instead of a table
    #[arg(long)]
    json: bool,
    /// A shorter run
    #[arg(long)]
    quick: bool,
    /// Where the measured servers keep their objects
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Kept::Memory, Kept::Disk, Kept::Etcd])]
    stores: Vec<Kept>,
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// Another API server to measure beside: http://host:port or https://host:port
    #[arg(long, value_name = "URL", requires = "token")]
    peer: Option<String>,
    /// A bearer token of the peer that may do everything
    #[arg(long)]
    token: Option<String>,
    /// The program to measure, instead of the k1s of this build
    #[arg(long, value_name = "FILE")]
    k1s: Option<PathBuf>,
    /// Where to put the stores: on the kind of disk that is to be measured
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// What can be measured on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Start,
    Objects,
    Status,
    Watch,
    Crds,
    Tenants,
    Https,
    Inside,
}

/// How much is done.
struct Sizes {
    /// Repetitions of what is measured in milliseconds.
    times: usize,
    /// For measurements of a rate.
    limit: Duration,
    tenants: u64,
    writes: u64,
}

const OBJECTS: u64 = 10_000;
const WATCHERS: u64 = 1000;
const CRDS: u64 = 100;
const GROUP: &str = "bench.k1s.dev";
/// After work, until memory is looked at: time for what is done in the background.
const SETTLE: Duration = Duration::from_millis(500);

/// The measurements of one subject.
struct Notes<'a> {
    subject: &'static str,
    all: &'a mut Vec<Measurement>,
}

impl Notes<'_> {
    fn add(&mut self, what: &str, value: f64, unit: Unit, expected: Option<f64>) {
        let name = format!("{}.{what}", self.subject);
        self.all.push(Measurement { expected, ..Measurement::new(name, value, unit) });
    }

    fn rate(&mut self, what: &str, done: Done, expected: Option<f64>) {
        self.add(what, done.per_second(), Unit::PerSecond, expected);
    }
}

struct Run<'a> {
    env: &'a Env,
    program: PathBuf,
    folder: PathBuf,
    sizes: Sizes,
    parts: Vec<Part>,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let program = match &options.k1s {
        Some(program) => program.clone(),
        None => child::program()?,
    };
    std::fs::create_dir_all(&options.folder)?;
    let sizes = if options.quick {
        Sizes { times: 5, limit: Duration::from_secs(1), tenants: 200, writes: 50 }
    } else {
        Sizes { times: 21, limit: Duration::from_secs(4), tenants: 1000, writes: 200 }
    };
    let folder = options.folder.canonicalize()?;
    let run = Run { env: &env, program, folder, sizes, parts: options.parts.clone() };
    let mut all = Vec::new();
    for kept in &options.stores {
        if *kept == Kept::Etcd && !EtcdServer::is_installed()? {
            report::progress("no etcd on the PATH: it is left out");
            continue;
        }
        run.store(*kept, &mut Notes { subject: kept.name(), all: &mut all }).await?;
    }
    if let (Some(url), Some(token)) = (&options.peer, &options.token) {
        let target = Target::parse(url, token).await?;
        run.peer(&target, &mut Notes { subject: "peer", all: &mut all }).await?;
    }
    report::show(&all, Beside::peer("peer"), options.json);
    Ok(())
}

impl Run<'_> {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    async fn child(&self, kept: Kept, tls: bool) -> Result<Child, Failure> {
        Child::start(self.env, &self.program, kept, tls, &self.folder).await
    }

    /// Everything that is measured of a server with this store.
    async fn store(&self, kept: Kept, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let name = kept.name();
        let tell = |what: &str| report::progress(&format!("{name}: {what} …"));
        let in_memory = |number: f64| (kept == Kept::Memory).then_some(number);
        if self.wants(Part::Start) {
            tell("start");
            let mut times = Vec::new();
            let mut child = self.child(kept, false).await?;
            times.push(child.ready.as_secs_f64() * 1e3);
            for _ in 1..self.sizes.times.min(11) {
                drop(child);
                child = self.child(kept, false).await?;
                times.push(child.ready.as_secs_f64() * 1e3);
            }
            notes.add("start.ready", quantile(&mut times, 0.5), Unit::Milliseconds, in_memory(50.0));
            self.env.sleep(SETTLE).await;
            let idle = child.resident_bytes()? as f64 / 1e6;
            notes.add("rss.idle", idle, Unit::Megabytes, in_memory(20.0));
        }
        if self.wants(Part::Objects) {
            tell("objects");
            let child = self.child(kept, false).await?;
            self.objects(&child.target, Some(&child), kept == Kept::Memory, notes).await?;
        }
        if self.wants(Part::Status) {
            tell("status");
            self.status(&self.child(kept, false).await?.target, notes).await?;
        }
        if self.wants(Part::Watch) {
            tell("watch");
            let child = self.child(kept, false).await?;
            self.watch(&child.target, Some(&child), notes).await?;
        }
        if self.wants(Part::Crds) {
            tell("definitions");
            self.definitions(&self.child(kept, false).await?, notes).await?;
        }
        if self.wants(Part::Tenants) {
            tell("tenants");
            self.tenants(&self.child(kept, false).await?, notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Https) {
            tell("HTTPS");
            let child = self.child(kept, true).await?;
            self.https(&child.target, notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Inside) {
            tell("in this process");
            self.inside(notes).await?;
        }
        Ok(())
    }

    /// What can be measured of a server that somebody else has started.
    async fn peer(&self, target: &Target, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let tell = |what: &str| report::progress(&format!("peer: {what} …"));
        if self.wants(Part::Objects) {
            tell("objects");
            self.objects(target, None, false, notes).await?;
        }
        if self.wants(Part::Status) {
            tell("status");
            self.status(target, notes).await?;
        }
        if self.wants(Part::Watch) {
            tell("watch");
            self.watch(target, None, notes).await?;
        }
        if target.tls && self.wants(Part::Https) {
            tell("HTTPS");
            self.https(target, notes).await?;
        }
        Ok(())
    }

    /// A namespace of this name, unique to the run: a peer may have been measured before.
    async fn namespace(&self, client: &mut Client, name: &str) -> Result<String, Failure> {
        let namespace = format!("bench-{name}-{}", self.env.name_suffix());
        work::make_namespace(client, &namespace).await?;
        Ok(namespace)
    }

    async fn objects(
        &self,
        target: &Target,
        child: Option<&Child>,
        expect: bool,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let (env, limit) = (self.env, self.sizes.limit);
        let expected = |number: f64| expect.then_some(number);
        let mut client = Client::connect(env, target).await?;
        let [one, fill, more] = [
            self.namespace(&mut client, "one").await?,
            self.namespace(&mut client, "fill").await?,
            self.namespace(&mut client, "more").await?,
        ];
        self.env.sleep(SETTLE).await;
        let empty = child.map(Child::resident_bytes).transpose()?.unwrap_or_default();
        // All of them are created whatever time it takes: they are what is listed.
        let patience = Duration::from_secs(300);
        let cpu = self.cpu(child)?;
        let filled = work::create(env, target, 32, &fill, OBJECTS, patience).await?;
        notes.rate("create.c32", filled, expected(10_000.0));
        self.cpu_per("create.c32", child, cpu, filled, notes)?;
        self.env.sleep(SETTLE).await;
        let stored = child.map(Child::resident_bytes).transpose()?.unwrap_or_default();

        let path = work::config_maps(&fill);
        let (seconds, bytes) =
            work::list(env, &mut client, self.sizes.times, &path, OBJECTS as usize).await?;
        notes.add("list.10k", seconds * 1e3, Unit::Milliseconds, expected(30.0));
        notes.add("list.10k-speed", bytes as f64 / 1e6 / seconds, Unit::MegabytesPerSecond, None);
        self.env.sleep(SETTLE).await;
        if let Some(child) = child {
            let listed = child.resident_bytes()?;
            let times = |after: u64| after.saturating_sub(empty) as f64 / bytes as f64;
            notes.add("rss.objects", times(stored), Unit::TimesTheJson, Some(2.0));
            notes.add("rss.objects-listed", times(listed), Unit::TimesTheJson, Some(2.0));
        }
        let paged = work::pages(env, &mut client, self.sizes.times, &path, 500, OBJECTS as usize).await?;
        notes.add("list.10k-pages", paged * 1e3, Unit::Milliseconds, None);
        let selected = format!("{path}?labelSelector=shard%3D7");
        let (seconds, _) =
            work::list(env, &mut client, self.sizes.times, &selected, OBJECTS as usize / 100).await?;
        notes.add("list.10k-selector", seconds * 1e3, Unit::Milliseconds, None);

        let cpu = self.cpu(child)?;
        let got = work::by_name(env, target, Method::GET, &fill, OBJECTS, u64::MAX, limit).await?;
        notes.rate("get.c32", got, None);
        self.cpu_per("get.c32", child, cpu, got, notes)?;

        notes.rate("create.c1", work::create(env, target, 1, &one, u64::MAX, limit).await?, None);
        // From here on the cache is there and follows, as it does wherever a controller runs.
        let cpu = self.cpu(child)?;
        let created = work::create(env, target, 32, &more, u64::MAX, limit).await?;
        notes.rate("create.c32-cached", created, expected(10_000.0));
        self.cpu_per("create.c32-cached", child, cpu, created, notes)?;
        let deleted = work::by_name(env, target, Method::DELETE, &fill, OBJECTS, OBJECTS, patience).await?;
        notes.rate("delete.c32", deleted, None);
        Ok(())
    }

    fn cpu(&self, child: Option<&Child>) -> Result<f64, Failure> {
        child.map(Child::cpu_seconds).transpose().map(Option::unwrap_or_default)
    }

    fn cpu_per(
        &self,
        what: &str,
        child: Option<&Child>,
        before: f64,
        done: Done,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        if let Some(child) = child {
            let seconds = child.cpu_seconds()? - before;
            notes.add(&format!("{what}-cpu"), seconds * 1e6 / done.count as f64, Unit::Microseconds, None);
        }
        Ok(())
    }

    async fn status(&self, target: &Target, notes: &mut Notes<'_>) -> Result<(), Failure> {
        const CLIENTS: u64 = 32;
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "status").await?;
        let group = format!("{}.{GROUP}", self.env.name_suffix());
        work::define(self.env, &mut client, &group, "Widget").await?;
        let widgets = format!("/apis/{group}/v1/namespaces/{namespace}/widgets");
        let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        for number in 0..CLIENTS {
            let name = objects::name("o", number);
            let widget = objects::widget(&group, "Widget", &name);
            client.call(Method::POST, &widgets, Content::json(widget)).await?;
            client.call(Method::POST, &deployments, Content::json(objects::deployment(&name))).await?;
        }
        for (what, path) in [("status.custom", widgets), ("status.deployment", deployments)] {
            let done =
                work::spread(self.env, target, CLIENTS as usize, u64::MAX, self.sizes.limit, move |number| {
                    let path = format!("{path}/{}/status", objects::name("o", number % CLIENTS));
                    let generation = number / CLIENTS;
                    let patch = format!(
                        r#"{{"status":{{"replicas":{},"observedGeneration":{generation}}}}}"#,
                        generation % 100
                    );
                    (Method::PATCH, path, Content::merge_patch(patch))
                });
            notes.rate(&format!("{what}.c32"), done.await?, None);
        }
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
        client.call(Method::DELETE, &path, Content::none()).await?;
        Ok(())
    }

    async fn watch(
        &self,
        target: &Target,
        child: Option<&Child>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "watch").await?;
        let path = work::config_maps(&namespace);
        let body = objects::ConfigMaps::new().get("watched", 1);
        client.call(Method::POST, &path, Content::json(body)).await?;
        // A peer may put objects of its own into a namespace: only ours is watched.
        let selected = format!("{path}?labelSelector=app%3Dbench");
        let before = child.map(Child::resident_bytes).transpose()?;
        let watchers = Watchers::open(self.env, target, &selected, WATCHERS).await?;
        if let (Some(child), Some(before)) = (child, before) {
            self.env.sleep(SETTLE).await;
            let grown = child.resident_bytes()?.saturating_sub(before) as f64 / 1e3 / WATCHERS as f64;
            notes.add("rss.watcher", grown, Unit::Kilobytes, None);
        }
        let object = format!("{path}/watched");
        let out = work::fan_out(self.env, target, &watchers, &object, self.sizes.writes).await?;
        notes.add("watch.w1000", out.per_second, Unit::PerSecond, None);
        notes.add("watch.w1000-p50", out.p50 * 1e3, Unit::Milliseconds, None);
        notes.add("watch.w1000-p99", out.p99 * 1e3, Unit::Milliseconds, None);
        Ok(())
    }

    async fn definitions(&self, child: &Child, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, &child.target).await?;
        // The first is also the first use of all that definitions need.
        work::define(self.env, &mut client, GROUP, "First").await?;
        self.env.sleep(SETTLE).await;
        let before = child.resident_bytes()?;
        let began = self.env.now();
        for number in 0..CRDS {
            work::define(self.env, &mut client, GROUP, &format!("Widget{number}")).await?;
        }
        let seconds = (self.env.now() - began).as_secs_f64();
        notes.add("crd.served", seconds * 1e3 / CRDS as f64, Unit::Milliseconds, None);
        self.env.sleep(SETTLE).await;
        let per_crd = |after: u64| after.saturating_sub(before) as f64 / 1e3 / CRDS as f64;
        notes.add("rss.crd", per_crd(child.resident_bytes()?), Unit::Kilobytes, Some(100.0));
        for number in 0..CRDS {
            let path = format!("/apis/{GROUP}/v1/{}", objects::plural(&format!("Widget{number}")));
            client.call(Method::GET, &path, Content::none()).await?;
        }
        self.env.sleep(SETTLE).await;
        notes.add("rss.crd-listed", per_crd(child.resident_bytes()?), Unit::Kilobytes, Some(100.0));
        Ok(())
    }

    async fn tenants(&self, child: &Child, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, &child.target).await?;
        let tenant = |name: &str| Content::json(format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}"));
        client.call(Method::POST, "/k1s/v1/tenants", tenant("first")).await?;
        self.env.sleep(SETTLE).await;
        let before = child.resident_bytes()?;
        let began = self.env.now();
        for number in 0..self.sizes.tenants {
            let name = objects::name("tenant", number);
            client.call(Method::POST, "/k1s/v1/tenants", tenant(&name)).await?;
        }
        let seconds = (self.env.now() - began).as_secs_f64();
        notes.add("tenant.made", seconds * 1e3 / self.sizes.tenants as f64, Unit::Milliseconds, None);
        self.env.sleep(SETTLE).await;
        let grown = child.resident_bytes()?.saturating_sub(before) as f64 / 1e3 / self.sizes.tenants as f64;
        notes.add("rss.tenant", grown, Unit::Kilobytes, Some(100.0));
        Ok(())
    }

    /// HTTP/2 over TLS, all clients on one connection: as client-go does it.
    async fn https(&self, target: &Target, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let (env, limit) = (self.env, self.sizes.limit);
        let mut client = Client::connect(env, target).await?;
        let namespace = self.namespace(&mut client, "https").await?;
        let created = work::create(env, target, 32, &namespace, OBJECTS, Duration::from_secs(300)).await?;
        notes.rate("https.create.c32", created, None);
        let path = work::config_maps(&namespace);
        let (seconds, bytes) =
            work::list(env, &mut client, self.sizes.times, &path, OBJECTS as usize).await?;
        notes.add("https.list.10k", seconds * 1e3, Unit::Milliseconds, None);
        notes.add("https.list.10k-speed", bytes as f64 / 1e6 / seconds, Unit::MegabytesPerSecond, None);
        let got = work::by_name(env, target, Method::GET, &namespace, OBJECTS, u64::MAX, limit).await?;
        notes.rate("https.get.c32", got, None);
        Ok(())
    }

    async fn inside(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut inside = inside::Inside::start(self.env).await?;
        notes.rate("inside.create.c1", inside.create(OBJECTS).await?, None);
        notes.rate("inside.get.c1", inside.get(OBJECTS, 5 * OBJECTS).await?, None);
        notes.add("inside.list.10k", inside.list(self.sizes.times).await? * 1e3, Unit::Milliseconds, None);
        Ok(())
    }
}
