//! The controller runtime beside kube-rs' `Controller` and Go's controller-runtime: the same operator, written with each,
//! on the same `k1s serve`, over HTTPS; and k1s' also with the server in its own process.
//!
//! Server, operators and the writer share the machine's processors, so what needs the server is a rate of both together;
//! `cpu` lines show the operator's share.

pub(crate) mod child;
mod k1s;
mod kube_rs;
mod memory;
mod operator;
mod queue;
pub(crate) mod widget;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use http::Method;
use k1s_env::Env;
use tokio::process::Command;

use self::{
    child::Child,
    memory::{Answer, Form, What},
    operator::Mode,
};
pub(crate) use self::{
    memory::{Options as CacheOptions, run as run_cache},
    operator::{Options as OperatorOptions, run as run_operator},
};
use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit, quantile},
    server::{
        child::{self as servers, Kept},
        client::Content,
        work,
    },
};

#[derive(Args)]
pub(crate) struct Options {
    /// A line of JSON per measurement instead of tables
    #[arg(long)]
    json: bool,
    /// A shorter run, with fewer objects
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// Only these operators
    #[arg(long, value_delimiter = ',', value_enum)]
    operators: Vec<Subject>,
    /// The program to serve with, instead of the k1s of this build
    #[arg(long, value_name = "FILE")]
    k1s: Option<PathBuf>,
    /// The folder for built programs and stores
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// The parts of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Operators,
    Queue,
    Cache,
}

/// An operator that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Subject {
    /// k1s-runtime, server in another process
    K1s,
    /// k1s-runtime, server in the same process
    Embedded,
    /// kube-rs' Controller
    KubeRs,
    /// Go's controller-runtime
    Go,
}

impl Subject {
    const ALL: [Subject; 4] = [Subject::K1s, Subject::Embedded, Subject::KubeRs, Subject::Go];

    fn name(self) -> &'static str {
        match self {
            Subject::K1s => "k1s",
            Subject::Embedded => "embedded",
            Subject::KubeRs => "kube-rs",
            Subject::Go => "go",
        }
    }
}

/// The size of a run.
struct Sizes {
    objects: u64,
    /// Of these, how many are written.
    written: u64,
    times: usize,
    timed: u64,
    keys: u64,
    cached: u64,
    /// Runs per cache; the median is reported.
    caches: usize,
}

/// Concurrent writes.
const WRITERS: usize = 16;
const WORKERS: [u16; 2] = [1, 16];

/// Explanations of the first table's rows.
const OPERATORS: &str = "
start.synced       from the start of the operator until its cache holds all widgets
start.reconciled   until each of them was reconciled once
requeue.noop       reconciles in a second of widgets that a channel source sends; a reconcile does nothing. No server involved
requeue.read       the same; a reconcile reads its widget from the cache (kube-rs always does)
requeue.status     the same; a reconcile reads its widget from the cache, and patches its status
follow             all widgets are changed, by 16 clients of another process (embedded: by the operator): reconciles in a
                   second, from the first write to the last reconcile
follow-cpu         the operator's CPU time for each of them (embedded: with the writers and the server)
latency            from the moment the operator sends a write until the reconcile begins that it causes
queue.*            the queue alone, with a million keys: adding, adding again, handing out and ending, adding with delays
.w1, .w16          reconciles at the same time";

/// Explanations of the second table's rows.
const CACHES: &str = "
memory             growth of the process (VmRSS) by a cache of so many objects, for each (Go: after a collection)
sync               from an empty cache until all of them are in it
typed, lean, metadata   the forms of a k1s cache";

/// The measurements so far.
struct Notes<'a> {
    all: &'a mut Vec<Measurement>,
}

impl Notes<'_> {
    fn add(&mut self, subject: &str, what: &str, value: f64, unit: Unit) {
        self.all.push(Measurement::new(format!("{subject}.{what}"), value, unit));
    }
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let program = match &options.k1s {
        Some(program) => program.clone(),
        None => servers::program()?,
    };
    let go = child::go_operator(&folder).await?;
    if go.is_none() {
        report::progress("no Go on the PATH: controller-runtime is left out");
    }
    let sizes = if options.quick {
        Sizes {
            objects: 2000,
            written: 500,
            times: 3,
            timed: 200,
            keys: 1_000_000,
            cached: 20_000,
            caches: 1,
        }
    } else {
        Sizes {
            objects: 10_000,
            written: 2000,
            times: 7,
            timed: 1000,
            keys: 1_000_000,
            cached: 100_000,
            caches: 3,
        }
    };
    let wants = |part: Part| options.parts.is_empty() || options.parts.contains(&part);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let run = Run { env: &env, program, folder, sizes, go };
    let mut notes = Notes { all: &mut first };
    if wants(Part::Operators) {
        for subject in Subject::ALL {
            if options.operators.is_empty() || options.operators.contains(&subject) {
                run.operator(subject, &mut notes).await?;
            }
        }
    }
    if wants(Part::Queue) {
        report::progress("queue …");
        queue::run(&env, run.sizes.keys, run.go.as_deref(), &mut notes).await?;
    }
    expect(&mut first);
    if wants(Part::Cache) {
        run.caches(&mut Notes { all: &mut second }).await?;
        expect_lean(&mut second);
    }
    for (lines, peer, about) in [(&first, "go", OPERATORS), (&second, "kube-rs", CACHES)] {
        if lines.is_empty() {
            continue;
        }
        report::show(lines, Beside::peer(peer), options.json);
        if !options.json {
            report::print(&format!("{about}\n"));
        }
    }
    Ok(())
}

/// Targets: three times the reconciles of Go's, and a millisecond from a write to its reconcile.
fn expect(all: &mut [Measurement]) {
    let of_go: Vec<(String, f64)> =
        all.iter().filter_map(|one| Some((one.name.strip_prefix("go.")?.to_owned(), one.value))).collect();
    for one in all {
        if let Some(what) = one.name.strip_prefix("k1s.").filter(|what| what.starts_with("requeue.")) {
            // With a write, the server is the limit.
            let go = of_go.iter().find(|(of_go, _)| of_go == what && !what.contains("status"));
            one.expected = go.map(|(_, value)| 3.0 * value);
        }
        if one.name.starts_with("embedded.latency.p50") {
            one.expected = Some(1000.0);
        }
    }
}

/// Target: a fifth of kube-rs' memory.
fn expect_lean(all: &mut [Measurement]) {
    let find = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.value);
    let expected = find("kube-rs.memory.deployment").map(|bytes| bytes / 5.0);
    for one in all.iter_mut().filter(|one| one.name == "lean.memory.deployment") {
        one.expected = expected;
    }
}

struct Run<'a> {
    env: &'a Env,
    program: PathBuf,
    folder: PathBuf,
    sizes: Sizes,
    go: Option<PathBuf>,
}

impl Run<'_> {
    async fn server(&self) -> Result<servers::Child, Failure> {
        servers::Child::start(self.env, &self.program, Kept::Memory, true, &self.folder).await
    }

    /// The command that starts an operator; none if its toolchain is not installed.
    fn command(
        &self,
        subject: Subject,
        workers: u16,
        kubeconfig: Option<&Path>,
    ) -> Result<Option<Command>, Failure> {
        let mut command = match (subject, &self.go) {
            (Subject::Go, None) => return Ok(None),
            (Subject::Go, Some(go)) => {
                let mut command = Command::new(go);
                command.arg("bench");
                command
            }
            (Subject::KubeRs, _) => {
                let mut command = child::this_program()?;
                command.args(["operator", "kube-rs"]);
                command
            }
            (Subject::K1s | Subject::Embedded, _) => {
                let mut command = child::this_program()?;
                command.args(["operator", "k1s"]);
                command
            }
        };
        command.args(["--workers", &workers.to_string(), "--objects", &self.sizes.objects.to_string()]);
        match (subject, kubeconfig) {
            (Subject::Go, Some(file)) => drop(command.env("KUBECONFIG", file)),
            (_, Some(file)) => drop(command.arg("--kubeconfig").arg(file)),
            (_, None) => {}
        }
        Ok(Some(command))
    }

    async fn operator(&self, subject: Subject, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let name = subject.name();
        for workers in WORKERS {
            report::progress(&format!("{name}: {workers} at the same time …"));
            // Each operator has its own server, so that none sees the others' objects.
            let server = match subject {
                Subject::Embedded => None,
                _ => Some(self.server().await?),
            };
            if let Some(server) = &server {
                let client = operator::client(self.env, Some(&server.kubeconfig())).await?;
                widget::fill(self.env, &client, self.sizes.objects).await?;
            }
            let kubeconfig = server.as_ref().map(servers::Child::kubeconfig);
            let Some(command) = self.command(subject, workers, kubeconfig.as_deref())? else { return Ok(()) };
            let mut operator = Child::start(self.env, command).await?;
            self.measure(subject, workers, &mut operator, server.as_ref(), notes).await?;
            operator.end().await?;
        }
        Ok(())
    }

    async fn measure(
        &self,
        subject: Subject,
        workers: u16,
        operator: &mut Child,
        server: Option<&servers::Child>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let (name, sizes) = (subject.name(), &self.sizes);
        let milliseconds = |seconds: Option<f64>| seconds.unwrap_or_default() * 1e3;
        if workers == WORKERS[0] {
            notes.add(name, "start.synced", milliseconds(operator.started.synced), Unit::Milliseconds);
            notes.add(name, "start.reconciled", milliseconds(operator.started.first), Unit::Milliseconds);
        }
        for mode in Mode::ALL {
            // kube-rs has read the object before it calls the reconciler.
            if subject == Subject::KubeRs && mode == Mode::Noop {
                continue;
            }
            let count = if mode == Mode::Status { sizes.written } else { sizes.objects };
            let what = format!("requeue {} {count}", mode.name());
            operator.tell(&what).await?;
            let mut rates = Vec::new();
            for _ in 0..sizes.times {
                let said = operator.tell(&what).await?;
                rates.push(count as f64 / said.seconds.unwrap_or(f64::INFINITY));
            }
            let what = format!("requeue.{}.w{workers}", mode.name());
            notes.add(name, &what, quantile(&mut rates, 0.5), Unit::PerSecond);
        }
        let (mut rates, mut cpu) = (Vec::new(), Vec::new());
        for round in 0..sizes.times.min(3) {
            let before = operator.cpu_seconds()?;
            let seconds = self.follow(operator, server, round).await?;
            let used = operator.cpu_seconds()? - before;
            rates.push(sizes.objects as f64 / seconds);
            cpu.push(used * 1e6 / sizes.objects as f64);
        }
        notes.add(name, &format!("follow.w{workers}"), quantile(&mut rates, 0.5), Unit::PerSecond);
        notes.add(name, &format!("follow-cpu.w{workers}"), quantile(&mut cpu, 0.5), Unit::Microseconds);
        if workers == WORKERS[0] {
            operator.tell("time 50").await?;
            let said = operator.tell(&format!("time {}", sizes.timed)).await?;
            let micros = |seconds: Option<f64>| seconds.unwrap_or_default() * 1e6;
            notes.add(name, "latency.p50", micros(said.p50), Unit::Microseconds);
            notes.add(name, "latency.p99", micros(said.p99), Unit::Microseconds);
        }
        Ok(())
    }

    /// Changes every widget once; the seconds until the last of them was reconciled.
    async fn follow(
        &self,
        operator: &mut Child,
        server: Option<&servers::Child>,
        round: usize,
    ) -> Result<f64, Failure> {
        let count = self.sizes.objects;
        let Some(server) = server else {
            return Ok(operator.tell(&format!("write {count}")).await?.seconds.unwrap_or_default());
        };
        operator.tell(&format!("expect {count}")).await?;
        let began = self.env.now();
        let path = |number: u64| {
            let name = widget::name(number);
            format!("/apis/runtime.bench.k1s.dev/v1/namespaces/{}/widgets/{name}", widget::NAMESPACE)
        };
        let writes =
            work::spread(self.env, &server.target, WRITERS, count, Duration::from_secs(300), move |number| {
                let patch = format!(r#"{{"spec":{{"size":{}}}}}"#, 1000 + round);
                (Method::PATCH, path(number), Content::merge_patch(patch))
            });
        writes.await?;
        operator.hear().await?;
        Ok((self.env.now() - began).as_secs_f64())
    }

    async fn caches(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let count = self.sizes.cached;
        for what in What::ALL {
            report::progress(&format!("caches of {count} {}s …", what.name()));
            let server = self.server().await?;
            let kubeconfig = server.kubeconfig();
            let client = operator::client(self.env, Some(&kubeconfig)).await?;
            let json = memory::fill(&client, what, count).await?;
            let mut subjects: Vec<(&str, Option<Form>)> =
                Form::ALL.iter().map(|form| (form.name(), Some(*form))).collect();
            subjects.push(("go", None));
            notes.add("json", &format!("memory.{}", what.name()), json, Unit::BytesPerObject);
            for (name, form) in subjects {
                let (mut bytes, mut seconds) = (Vec::new(), Vec::new());
                for _ in 0..self.sizes.caches {
                    let mut command = match (form, &self.go) {
                        (Some(form), _) => {
                            let mut command = child::this_program()?;
                            command
                                .args(["cache-part", form.name(), what.name(), "--kubeconfig"])
                                .arg(&kubeconfig);
                            command
                        }
                        (None, Some(go)) => {
                            let mut command = Command::new(go);
                            command.args(["cache", "--kind", what.name()]).env("KUBECONFIG", &kubeconfig);
                            command
                        }
                        (None, None) => break,
                    };
                    command.args(["--objects", &count.to_string()]);
                    let answer: Answer = child::ask(self.env, command).await?;
                    bytes.push(answer.bytes);
                    seconds.push(answer.seconds * 1e3);
                }
                if bytes.is_empty() {
                    continue;
                }
                let (bytes, seconds) = (quantile(&mut bytes, 0.5), quantile(&mut seconds, 0.5));
                notes.add(name, &format!("memory.{}", what.name()), bytes, Unit::BytesPerObject);
                notes.add(name, &format!("sync.{}", what.name()), seconds, Unit::Milliseconds);
            }
        }
        Ok(())
    }
}
