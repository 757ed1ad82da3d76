//! The API server as its clients see it: `k1s serve` in a process of its own, over HTTP and HTTPS.
//!
//! The client is in this process and shares the processors with the server, so rates are of both together; `cpu`
//! lines tell the server's part, which other programs on the machine hardly disturb. `inside` is the server as a
//! Service in this process, without sockets. With `--peer`, another API server does the same work. The floor, hyper alone,
//! answers with the same bytes: how close k1s is to it says what is left to gain.

mod admission;
pub(crate) mod child;
pub(crate) mod client;
mod floor;
mod inside;
mod notes;
pub(crate) mod objects;
mod parts;
pub(crate) mod process;
mod scale;
mod sealed;
mod secure;
pub(crate) mod work;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use k1s_env::Env;
use k1s_store_etcd::testing::EtcdServer;

use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit, quantile},
};
use child::{Child, Kept};
use client::Target;
use floor::{Answers, FLOORS, Recording};
use notes::{Measured, Notes};

pub(crate) use floor::{Options as FloorOptions, run as run_floor};

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
    /// Only what security costs: roles, auditing, encryption
    #[arg(long, conflicts_with = "parts")]
    secure: bool,
    /// Another API server to measure beside: http://host:port or https://host:port
    #[arg(long, value_name = "URL", requires = "token")]
    peer: Option<String>,
    /// A bearer token of the peer that may do everything
    #[arg(long)]
    token: Option<String>,
    /// A bearer token of the peer's user `user-7`, whose rights are those of the roles that are created there; by default, what
    /// is measured of security is asked by the other token
    #[arg(long, requires = "peer")]
    reader_token: Option<String>,
    /// What the peer was started with: it is shown beside servers that have the same
    #[arg(long, value_delimiter = ',', value_enum, requires = "peer")]
    peer_has: Vec<Security>,
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
    Apply,
    Watch,
    Crds,
    Tenants,
    Https,
    Inside,
    Roles,
    Audit,
    Encryption,
    Admission,
    Scale,
}

/// What a server of somebody else may have been started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Security {
    /// An audit log at level Metadata
    Audit,
    /// Encryption of `ConfigMaps` with aesgcm
    Encryption,
}

/// How much is done.
struct Sizes {
    /// Repetitions of what is measured in milliseconds.
    times: usize,
    /// For measurements of a rate.
    limit: Duration,
    tenants: u64,
    writes: u64,
    /// The numbers of objects that costs must not depend on.
    scale: &'static [u64],
}

const OBJECTS: u64 = 10_000;
const PAGE: usize = 500;
const SCALE: [u64; 4] = [1000, 10_000, 100_000, 1_000_000];
const WATCHERS: u64 = 1000;
const CRDS: u64 = 100;
const GROUP: &str = "bench.k1s.dev";
/// After work, until memory is looked at: time for what is done in the background.
const SETTLE: Duration = Duration::from_millis(500);

struct Run<'a> {
    env: &'a Env,
    program: PathBuf,
    folder: PathBuf,
    sizes: Sizes,
    parts: Vec<Part>,
    /// Whether the servers in which security is measured serve HTTPS: as the peer that they are shown beside.
    secure_tls: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let program = match &options.k1s {
        Some(program) => program.clone(),
        None => child::program()?,
    };
    std::fs::create_dir_all(&options.folder)?;
    let sizes = if options.quick {
        Sizes { times: 5, limit: Duration::from_secs(1), tenants: 200, writes: 50, scale: &SCALE[..3] }
    } else {
        Sizes { times: 21, limit: Duration::from_secs(4), tenants: 1000, writes: 200, scale: &SCALE }
    };
    let folder = options.folder.canonicalize()?;
    let parts =
        if options.secure { vec![Part::Roles, Part::Audit, Part::Encryption] } else { options.parts.clone() };
    let secure_tls = options.peer.as_ref().is_some_and(|url| url.starts_with("https://"));
    let run = Run { env: &env, program, folder, sizes, parts, secure_tls };
    let (mut all, mut floors) = (Vec::new(), Vec::new());
    for kept in &options.stores {
        if *kept == Kept::Etcd && !EtcdServer::is_installed()? {
            report::progress("no etcd on the PATH: it is left out");
            continue;
        }
        let notes = &mut Notes { subject: kept.name(), all: &mut all };
        run.store(*kept, notes, &mut floors).await?;
    }
    if let (Some(url), Some(token)) = (&options.peer, &options.token) {
        let target = Target::parse(url, token).await?;
        let notes = &mut Notes { subject: "peer", all: &mut all };
        run.peer(&target, notes).await?;
        let reader = options.reader_token.clone().map(|token| Target { token, ..target.clone() });
        run.secure_peer(&target, reader, &options.peer_has, notes).await?;
    }
    all.append(&mut floors);
    report::show(&all, Beside { peer: "peer", floors: &FLOORS }, options.json);
    Ok(())
}

impl Run<'_> {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    async fn child(&self, kept: Kept, tls: bool) -> Result<Child, Failure> {
        Child::start(self.env, &self.program, kept, tls, &self.folder).await
    }

    /// Everything that is measured of a server with this store. Its floor goes first in each part, so that both find the
    /// machine in the same state.
    async fn store(
        &self,
        kept: Kept,
        notes: &mut Notes<'_>,
        floors: &mut Vec<Measurement>,
    ) -> Result<(), Failure> {
        let name = kept.name();
        let tell = |what: &str| report::progress(&format!("{name}: {what} …"));
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
            notes.add("start.ready", quantile(&mut times, 0.5), Unit::Milliseconds, notes.in_memory(50.0));
            self.env.sleep(SETTLE).await;
            let idle = child.process.resident_bytes()? as f64 / 1e6;
            notes.add("rss.idle", idle, Unit::Megabytes, notes.in_memory(20.0));
        }
        let floor = self.floor(kept, floors).await?;
        if self.wants(Part::Objects) {
            tell("objects");
            if let Some(floor) = &floor {
                self.objects(Measured::floor(&floor.start(false)?), &mut floor.notes(floors)).await?;
            }
            let child = self.child(kept, false).await?;
            self.objects(Measured::child(&child), notes).await?;
        }
        if self.wants(Part::Status) {
            tell("status");
            if let Some(floor) = &floor {
                self.status(Measured::floor(&floor.start(false)?), &mut floor.notes(floors)).await?;
            }
            let child = self.child(kept, false).await?;
            self.status(Measured::child(&child), notes).await?;
        }
        if self.wants(Part::Apply) {
            tell("apply");
            if let Some(floor) = &floor {
                self.apply(Measured::floor(&floor.start(false)?), &mut floor.notes(floors)).await?;
            }
            let child = self.child(kept, false).await?;
            self.apply(Measured::child(&child), notes).await?;
            let child = self.child(kept, false).await?;
            self.applied_memory(&child.process, &child.target, notes).await?;
        }
        if self.wants(Part::Watch) {
            tell("watch");
            if let Some(floor) = &floor {
                self.watch(Measured::floor(&floor.start(false)?), &mut floor.notes(floors)).await?;
            }
            let child = self.child(kept, false).await?;
            self.watch(Measured::child(&child), notes).await?;
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
            if let Some(floor) = &floor {
                self.https(&floor.start(true)?.target, &mut floor.notes(floors)).await?;
            }
            let child = self.child(kept, true).await?;
            self.https(&child.target, notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Inside) {
            tell("in this process");
            self.inside(notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Roles) {
            tell("roles");
            self.roles(notes).await?;
        }
        // The floors of security are those of a server in memory.
        let secure_floor = floor.as_ref().filter(|_| kept == Kept::Memory);
        if self.wants(Part::Roles) {
            tell("roles over HTTP");
            if let Some(floor) = secure_floor {
                self.roles_of_floor(&floor.start_with_rules()?, &mut floor.notes(floors)).await?;
            }
            self.roles_over_http(kept, notes).await?;
            if kept == Kept::Etcd {
                floor::etcd::measure(self.env, self.turns(), self.sizes.limit / 2, floors).await?;
            }
        }
        if kept == Kept::Memory && self.wants(Part::Audit) {
            tell("auditing");
            if let Some(floor) = secure_floor {
                let pair = (floor.start(false)?, floor.start_with_audit()?);
                self.audit_of_floor([&pair.0, &pair.1], &mut floor.notes(floors)).await?;
            }
            self.audit(notes).await?;
        }
        if self.wants(Part::Encryption) {
            tell("encryption");
            if let Some(floor) = secure_floor {
                let pair = (floor.start(false)?, floor.start_with_encryption()?);
                self.encryption_of_floor([&pair.0, &pair.1], &mut floor.notes(floors)).await?;
            }
            self.encryption(kept, notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Admission) {
            tell("admission");
            self.admission(notes).await?;
            self.admission_here(notes).await?;
            tell("admission over HTTP");
            let child = self.child(kept, false).await?;
            self.admission_of(Measured::child(&child), notes).await?;
        }
        if kept == Kept::Memory && self.wants(Part::Scale) {
            tell("costs by the number of objects");
            scale::run(self.env, self.sizes.scale, notes).await?;
        }
        Ok(())
    }

    /// The floor of servers with this store, unless it was measured with another one.
    async fn floor(&self, kept: Kept, floors: &[Measurement]) -> Result<Option<Recording>, Failure> {
        let secure: &[Part] =
            if kept == Kept::Memory { &[Part::Roles, Part::Audit, Part::Encryption] } else { &[] };
        let is_needed = [Part::Objects, Part::Status, Part::Apply, Part::Watch, Part::Https]
            .iter()
            .chain(secure)
            .any(|part| self.wants(*part));
        let floor = FLOORS.into_iter().find(|(subject, _)| *subject == kept.name());
        let Some((_, subject)) = floor.filter(|_| is_needed) else { return Ok(None) };
        if floors.iter().any(|measurement| measurement.name.split('.').next() == Some(subject)) {
            return Ok(None);
        }
        report::progress(&format!("{subject}: answers to repeat …"));
        let child = self.child(Kept::Memory, false).await?;
        let answers = Answers::record(self.env, &child.target, OBJECTS, PAGE).await?;
        Ok(Some(Recording::new(subject, &answers, &self.folder)?))
    }

    /// What can be measured of a server that somebody else has started.
    async fn peer(&self, target: &Target, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let tell = |what: &str| report::progress(&format!("peer: {what} …"));
        if self.wants(Part::Objects) {
            tell("objects");
            self.objects(Measured::peer(target), notes).await?;
        }
        if self.wants(Part::Status) {
            tell("status");
            self.status(Measured::peer(target), notes).await?;
        }
        if self.wants(Part::Apply) {
            tell("apply");
            self.apply(Measured::peer(target), notes).await?;
        }
        if self.wants(Part::Watch) {
            tell("watch");
            self.watch(Measured::peer(target), notes).await?;
        }
        if self.wants(Part::Admission) {
            tell("admission");
            self.admission_of(Measured::peer(target), notes).await?;
        }
        if target.tls && self.wants(Part::Https) {
            tell("HTTPS");
            self.https(target, notes).await?;
        }
        Ok(())
    }

    /// What security costs a server that somebody else has started, with what it has.
    async fn secure_peer(
        &self,
        target: &Target,
        reader: Option<Target>,
        has: &[Security],
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        if self.wants(Part::Roles) {
            match &reader {
                Some(reader) => {
                    report::progress("peer: roles …");
                    self.roles_of(Measured::peer(target), reader.clone(), None, notes).await?;
                }
                None => report::progress("peer: roles are left out without --reader-token"),
            }
        }
        let reader = reader.unwrap_or_else(|| target.clone());
        if self.wants(Part::Audit) {
            report::progress("peer: auditing …");
            self.audit_of(target, reader, has.contains(&Security::Audit), notes).await?;
        }
        if self.wants(Part::Encryption) {
            report::progress("peer: encryption …");
            self.encryption_of(target, has.contains(&Security::Encryption), notes).await?;
        }
        Ok(())
    }
}
