//! A backend at one size, in a process of its own.
//!
//! The process prints a line of JSON per measurement. When its store is filled it reports that it is ready, and writes
//! for a while on each command, in turn with other processes. When its standard input ends it measures the rest.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use clap::Args;
use k1s_env::Env;

use super::{
    backend::{self, Backend, Map, Opened, Writer},
    work,
};
use crate::{
    Failure,
    report::{self, Measurement, Unit},
};

/// The line by which a part reports that it is ready for its turns.
const READY: &str = "ready";

#[derive(Args)]
pub(crate) struct PartOptions {
    #[arg(value_enum)]
    pub(super) backend: Backend,
    pub(super) size: u64,
    pub(super) seconds: f64,
    /// Whether to measure what does not depend on the size
    #[arg(long)]
    pub(super) base: bool,
}

/// A process that measures a part.
pub(super) struct Part {
    name: String,
    process: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Part {
    /// Starts a process and waits until it is ready. What it measured until then goes to `measurements`.
    pub(super) fn start(
        options: &PartOptions,
        folder: &Path,
        measurements: &mut Vec<Measurement>,
    ) -> Result<Self, Failure> {
        let PartOptions { backend, size, seconds, base } = options;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["store-part", backend.name(), &size.to_string(), &seconds.to_string()])
            .args(base.then_some("--base"))
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let name = format!("{backend} with {} objects", backend::short(*size));
        let mut process = command.spawn()?;
        let (Some(orders), Some(lines)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Failure(format!("{name}: it has no pipes")));
        };
        let mut part = Self { name, process, orders, lines: BufReader::new(lines) };
        loop {
            match part.line()? {
                None => return Err(part.failed()),
                Some(line) if line == READY => return Ok(part),
                Some(line) => measurements.push(serde_json::from_str(&line)?),
            }
        }
    }

    /// Lets it write for `seconds` with `writers` writers; the writes per second are reported as `what`.
    pub(super) fn turn(
        &mut self,
        what: &str,
        writers: u64,
        seconds: f64,
    ) -> Result<Vec<Measurement>, Failure> {
        writeln!(self.orders, "{}", serde_json::to_string(&(what, writers, seconds))?)?;
        match self.line()? {
            None => Err(self.failed()),
            Some(line) => Ok(serde_json::from_str(&line)?),
        }
    }

    /// Lets it measure the rest, and waits for its end.
    pub(super) fn finish(self, measurements: &mut Vec<Measurement>) -> Result<(), Failure> {
        let Self { name, mut process, orders, lines } = self;
        drop(orders);
        for line in lines.lines() {
            measurements.push(serde_json::from_str(&line?)?);
        }
        let status = process.wait()?;
        if status.success() { Ok(()) } else { Err(Failure(format!("{name}: {status}"))) }
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end().to_owned()))
    }

    /// The error for a process that ended early; it printed the reason itself.
    fn failed(&mut self) -> Failure {
        let ended = self.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        Failure(format!("{}: {ended}", self.name))
    }
}

/// The part's own process.
pub(crate) async fn run_part(options: PartOptions) -> Result<(), Failure> {
    let PartOptions { backend, size, seconds, base } = options;
    let env = Env::system();
    let named = |what: &str, value: f64, unit: Unit| Measurement {
        expected: expected(backend, what),
        ..Measurement::new(format!("{backend}.{what}"), value, unit)
    };
    let say = |what: &str, value: f64, unit: Unit| {
        report::print(&serde_json::to_string(&named(what, value, unit))?);
        Ok::<_, Failure>(())
    };

    if base && backend == Backend::Disk {
        say("open.small", backend::open_small(&env).await?, Unit::Milliseconds)?;
    }
    let mut opened = Opened::open(&env, backend).await?;
    let empty = opened.resident_bytes()?;
    let store = Writer::Store(opened.store.clone());
    work::fill(&env, &store, size).await?;

    let label = backend::short(size);
    let per_object = |bytes: u64| bytes as f64 / size as f64;
    let grown = opened.resident_bytes()?.saturating_sub(empty);
    say(&format!("rss.{label}"), per_object(grown), Unit::BytesPerObject)?;
    if let Some(bytes) = opened.disk_bytes().await? {
        say(&format!("size.{label}"), per_object(bytes), Unit::BytesPerObject)?;
    }

    let mut stores = vec![("", store)];
    if backend == Backend::Memory {
        let map = Writer::Map(Map::default());
        work::fill(&env, &map, size).await?;
        stores.push(("-map", map));
    }
    report::print(READY);
    let mut order = String::new();
    while std::io::stdin().read_line(&mut order)? > 0 {
        let (what, writers, seconds) = serde_json::from_str::<(String, u64, f64)>(&order)?;
        let mut rates = Vec::new();
        for (suffix, store) in &stores {
            let rate = work::puts(&env, store, writers, size, seconds).await?;
            rates.push(named(&format!("{what}{suffix}"), rate, Unit::PerSecond));
        }
        report::print(&serde_json::to_string(&rates)?);
        order.clear();
    }
    drop(stores);

    if base {
        let store = &opened.store;
        say("put.w1-listing", work::puts_beside_lists(&env, store, size, seconds).await?, Unit::PerSecond)?;
        say("get.c1", work::gets(&env, store, 1, size, seconds).await?, Unit::PerSecond)?;
        say("get.c64", work::gets(&env, store, 64, size, seconds).await?, Unit::PerSecond)?;
        say("range.10k", work::range(&env, store, 10_000).await?, Unit::Milliseconds)?;
        say("watch.w1000", work::fan_out(&env, store, 1000, seconds).await?, Unit::PerSecond)?;
    }
    if base && let Some(writer) = opened.without_store().await? {
        say("put.w1-raw", work::puts(&env, &writer, 1, size, seconds).await?, Unit::PerSecond)?;
        say("put.w64-raw", work::puts(&env, &writer, 64, size, seconds).await?, Unit::PerSecond)?;
    }
    if let Some(reopened) = opened.reopen(&env).await? {
        say(&format!("open.{label}"), reopened, Unit::Milliseconds)?;
    }
    opened.store.close().await?;
    Ok(())
}

/// Absolute targets. (The disk store's targets of three times etcd's writes with one writer, and four times with 64, are
/// ratios.)
fn expected(backend: Backend, what: &str) -> Option<f64> {
    match (backend, what) {
        (Backend::Memory, "put.w1-listing") => Some(100_000.0),
        (Backend::Memory, "get.c64") => Some(400_000.0),
        (Backend::Disk, "open.small") => Some(10.0),
        _ => None,
    }
}
