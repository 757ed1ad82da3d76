//! The multi-cluster manager over the tenants of one server, in its own process or behind HTTPS: what each engaged cluster
//! costs, beside a manager for each; reconciles over many clusters beside one; and how soon a new project is worked in.
//!
//! Each measurement is a process of its own, so that none pays for another's memory.

mod fleet;
mod part;
mod projects;
mod rates;
mod sockets;
mod tally;

use std::path::{Path, PathBuf};

use clap::Args;
use k1s_env::Env;

pub(crate) use self::part::{Options as PartOptions, run as run_part};
use self::part::{Subject, What};
use crate::{
    Failure,
    report::{self, Beside, Measurement},
    runtime::child,
    server::child::{self as servers, Kept},
};

#[derive(Args)]
pub(crate) struct Options {
    /// A line of JSON per measurement instead of tables
    #[arg(long)]
    json: bool,
    /// A shorter run, with fewer clusters and objects
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// The program to serve with, instead of the k1s of this build
    #[arg(long, value_name = "FILE")]
    k1s: Option<PathBuf>,
    /// The folder for stores
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// The parts of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Memory and start time for each cluster, in process
    Clusters,
    /// The same over HTTPS, and connections
    Https,
    /// Reconciles in a second
    Rates,
    /// New projects
    Projects,
}

/// The size of a run.
struct Sizes {
    clusters: u64,
    /// Over HTTPS, where separate managers need a connection for each watch.
    https: u64,
    /// Of all clusters together, for rates.
    objects: u64,
    projects: u64,
}

/// Clusters that share the objects of the rates.
const SHARING: u64 = 1000;

/// Reconciles at the same time.
const WORKERS: [usize; 2] = [1, 16];

/// Targets, by measurement.
const EXPECTED: [(&str, f64); 5] = [
    ("fleet.memory", 150.0),
    ("fleet.start", 2.0),
    ("fleet.https.connections", 1.0),
    ("fleet.https.connections-3-kinds", 1.0),
    ("fleet.project.p50", 20.0),
];

/// Target: reconciles over many clusters, as a share of those of one.
const OF_ONE: f64 = 0.8;

/// Explanations of the first table's rows.
const CLUSTERS: &str = "
fleet              a multi-cluster manager with one controller of one kind (connections-3-kinds: of three)
managers           a manager with such a controller for each cluster
informers          a cache with an informer of that kind for each cluster, without a controller: the floor
watches            a list and a watch of that kind for each cluster, without a cache
memory             growth of the process (VmRSS) for each cluster; in process with the server's share of it
start              from the first engaged cluster to the first reconcile in the last one, for each
start-single       from one more cluster to its first reconcile, median
https.*            the same with a server in another process
connections        to that server, with all clusters engaged
project            from the create of a Project to the first reconcile in it, in process. Managers: a tenant is created, and a
                   manager started for it. Floor: a tenant is created, and an informer lists it";

/// Explanations of the second table's rows.
const RATES: &str = "
fleet              1,000 clusters, of an embedded server
managers           the same clusters with a manager for each
one                one cluster with as many objects, and a manager for it: 0.8 of it is expected of fleet
informers          1,000 clusters without a controller, the floor of fleet: a task for each reads the objects from its cache when
                   it is told to by a channel; the informers' handlers count the changes
informer           the same with one cluster: what is lost between the two is the server's, the caches' and the processor's
requeue            reconciles in a second of objects that channel sources send; a reconcile reads its object from the cache
follow             all objects are changed by 16 writers: reconciles in a second, from the first write to the last reconcile
.w1, .w16          reconciles at the same time";

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let sizes = if options.quick {
        Sizes { clusters: 300, https: 100, objects: 4000, projects: 50 }
    } else {
        Sizes { clusters: 1000, https: 300, objects: 20_000, projects: 300 }
    };
    let wants = |part: Part| options.parts.is_empty() || options.parts.contains(&part);
    let run = Run { env: &env };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let subjects = [Subject::Fleet, Subject::Managers, Subject::Informers, Subject::Watches];
    if wants(Part::Clusters) {
        for subject in subjects {
            first.extend(run.clusters(subject, What::Clusters, sizes.clusters, None).await?);
        }
    }
    if wants(Part::Https) {
        let program = match &options.k1s {
            Some(program) => program.clone(),
            None => servers::program()?,
        };
        let all = subjects.map(|subject| (subject, What::Clusters));
        for (subject, what) in all.into_iter().chain([(Subject::Fleet, What::Kinds)]) {
            // Each has its own server, so that none pays for the others' watches.
            let server = servers::Child::start(&env, &program, Kept::Memory, true, &folder).await?;
            let kubeconfig = server.kubeconfig();
            first.extend(run.clusters(subject, what, sizes.https, Some(&kubeconfig)).await?);
        }
    }
    if wants(Part::Projects) {
        let clusters = sizes.projects.to_string();
        first.extend(run.part(Subject::Fleet, What::Projects, &["--clusters", &clusters]).await?);
    }
    if wants(Part::Rates) {
        for workers in WORKERS {
            for subject in
                [Subject::Fleet, Subject::Managers, Subject::One, Subject::Informers, Subject::Informer]
            {
                second.extend(run.rates(subject, sizes.objects, workers).await?);
            }
        }
    }
    expect(&mut first, &mut second);
    let clusters = Beside { peer: "managers", floors: &[("fleet", "informers")] };
    let rates = Beside { peer: "managers", floors: &[("fleet", "informers"), ("one", "informer")] };
    for (lines, beside, about) in [(&first, clusters, CLUSTERS), (&second, rates, RATES)] {
        if lines.is_empty() {
            continue;
        }
        report::show(lines, beside, options.json);
        if !options.json {
            report::print(&format!("{about}\n"));
        }
    }
    Ok(())
}

fn expect(first: &mut [Measurement], second: &mut [Measurement]) {
    for one in first {
        one.expected = EXPECTED.iter().find(|(name, _)| *name == one.name).map(|(_, expected)| *expected);
    }
    let of_one: Vec<(String, f64)> = second
        .iter()
        .filter_map(|one| Some((one.name.strip_prefix("one.")?.to_owned(), one.value)))
        .collect();
    for one in second {
        let Some(what) = one.name.strip_prefix("fleet.") else { continue };
        one.expected = of_one.iter().find(|(name, _)| name == what).map(|(_, value)| OF_ONE * value);
    }
}

struct Run<'a> {
    env: &'a Env,
}

impl Run<'_> {
    async fn part(&self, subject: Subject, what: What, args: &[&str]) -> Result<Vec<Measurement>, Failure> {
        report::progress(&format!("{}: {} …", subject.name(), what.name()));
        let mut command = child::this_program()?;
        command.args(["fleet-part", subject.name(), what.name()]).args(args);
        child::ask(self.env, command).await
    }

    async fn clusters(
        &self,
        subject: Subject,
        what: What,
        clusters: u64,
        kubeconfig: Option<&Path>,
    ) -> Result<Vec<Measurement>, Failure> {
        let clusters = clusters.to_string();
        let mut args = vec!["--clusters", &clusters];
        let kubeconfig = kubeconfig.map(|file| file.display().to_string());
        if let Some(file) = &kubeconfig {
            args.extend(["--kubeconfig", file]);
        }
        let place = if kubeconfig.is_some() { "https." } else { "" };
        let found = self.part(subject, what, &args).await?;
        Ok(found.into_iter().map(|one| named(&format!("{}.{place}", subject.name()), one)).collect())
    }

    async fn rates(
        &self,
        subject: Subject,
        objects: u64,
        workers: usize,
    ) -> Result<Vec<Measurement>, Failure> {
        let (clusters, objects, workers) = (SHARING.to_string(), objects.to_string(), workers.to_string());
        let args = ["--clusters", &clusters, "--objects", &objects, "--workers", &workers];
        let found = self.part(subject, What::Rates, &args).await?;
        Ok(found.into_iter().map(|one| named(&format!("{}.", subject.name()), one)).collect())
    }
}

/// A measurement with the name of its subject.
fn named(prefix: &str, mut one: Measurement) -> Measurement {
    one.name.insert_str(0, prefix);
    one
}
