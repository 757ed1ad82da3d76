//! The three stores side by side.
//!
//! Each backend runs at each size in a process of its own, so that memory can be told apart; the etcd
//! is a real one, started for the run, on the same disk.
//!
//! All are measured through the `Store` trait. A store on etcd watches it all the time, which etcd has to work
//! for; `etcd.put.*-raw` is what the same etcd does for a client that only writes.

mod backend;
mod work;

use std::{path::PathBuf, process::Command};

use clap::Args;
use k1s_env::Env;
use k1s_store_etcd::testing::EtcdServer;

use crate::{
    Failure,
    report::{self, Measurement, Unit},
};
use backend::{Backend, Opened, Writer};

#[derive(Args)]
pub(crate) struct Options {
    /// A line of JSON per measurement instead of a table
    #[arg(long)]
    json: bool,
    /// A shorter run: 10,000 objects only, and less time for each measurement
    #[arg(long)]
    quick: bool,
    /// The numbers of objects to measure memory, disk and writes at
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    sizes: Vec<u64>,
    /// Only these backends
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Backend::Memory, Backend::Disk, Backend::Etcd])]
    backends: Vec<Backend>,
    /// Where to put the stores: on the kind of disk that is to be measured
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

#[derive(Args)]
pub(crate) struct PartOptions {
    #[arg(value_enum)]
    backend: Backend,
    size: u64,
    seconds: f64,
    /// Whether to measure what does not depend on the size
    #[arg(long)]
    base: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (sizes, seconds) = if options.quick { (vec![10_000], 1.0) } else { (options.sizes.clone(), 4.0) };
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let mut measurements = Vec::new();
    for backend in &options.backends {
        if *backend == Backend::Etcd && !EtcdServer::is_installed()? {
            report::progress("no etcd on the PATH: it is left out, and there are no ratios");
            continue;
        }
        for (position, size) in sizes.iter().enumerate() {
            report::progress(&format!("{} with {} objects …", backend.name(), backend::short(*size)));
            let mut part = Command::new(std::env::current_exe()?);
            part.args(["store-part", backend.name(), &size.to_string(), &seconds.to_string()])
                .args((position == 0).then_some("--base"))
                .env("TMPDIR", &folder)
                .stderr(std::process::Stdio::inherit());
            let output = part.output()?;
            if !output.status.success() {
                return Err(Failure(format!("{} at {size}: {}", backend.name(), output.status)));
            }
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                measurements.push(serde_json::from_str::<Measurement>(line)?);
            }
        }
        measurements.extend(growth(*backend, &sizes, &measurements));
    }
    report::show(&measurements, Backend::Etcd.name(), options.json);
    Ok(())
}

/// What a write costs with the most objects, in writes with the fewest: 1 if it does not matter how many there are.
fn growth(backend: Backend, sizes: &[u64], measurements: &[Measurement]) -> Option<Measurement> {
    let (fewest, most) =
        (sizes.iter().min()?, sizes.iter().max().filter(|most| Some(*most) != sizes.iter().min())?);
    let rate = |size: &u64| {
        let name = format!("{}.put.w64-{}", backend.name(), backend::short(*size));
        measurements.iter().find(|measurement| measurement.name == name).map(|measurement| measurement.value)
    };
    Some(Measurement {
        name: format!("{}.put.w64-{}-cost", backend.name(), backend::short(*most)),
        value: rate(fewest)? / rate(most)?,
        unit: Unit::TimesTheSmallest,
        expected: None,
    })
}

/// One backend at one size: prints its measurements, a line of JSON each.
pub(crate) async fn run_part(options: PartOptions) -> Result<(), Failure> {
    let PartOptions { backend, size, seconds, base } = options;
    let env = Env::system();
    let say = |what: &str, value: f64, unit: Unit| {
        let name = format!("{}.{what}", backend.name());
        let text = serde_json::to_string(&Measurement { name, value, unit, expected: None })?;
        report::print(&text);
        Ok::<_, Failure>(())
    };

    if base && backend == Backend::Disk {
        say("open.small", backend::open_small(&env).await?, Unit::Milliseconds)?;
    }
    let mut opened = Opened::open(&env, backend).await?;
    let empty = opened.resident_bytes()?;
    work::fill(&env, &opened.store, size).await?;

    let label = backend::short(size);
    let per_object = |bytes: u64| bytes as f64 / size as f64;
    let grown = opened.resident_bytes()?.saturating_sub(empty);
    say(&format!("rss.{label}"), per_object(grown), Unit::BytesPerObject)?;
    if let Some(bytes) = opened.disk_bytes().await? {
        say(&format!("size.{label}"), per_object(bytes), Unit::BytesPerObject)?;
    }

    let writer = Writer::Store(opened.store.clone());
    if base {
        say("put.w1", work::puts(&env, &writer, 1, size, seconds).await?, Unit::PerSecond)?;
        say("put.w64", work::puts(&env, &writer, 64, size, seconds).await?, Unit::PerSecond)?;
    }
    // The cost of a write as the store grows.
    say(&format!("put.w64-{label}"), work::puts(&env, &writer, 64, size, seconds).await?, Unit::PerSecond)?;
    drop(writer);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_write_is_compared_between_the_smallest_and_the_largest_store() {
        let rate = |name: &str, value| Measurement {
            name: name.to_owned(),
            value,
            unit: Unit::PerSecond,
            expected: None,
        };
        let measured =
            [rate("disk.put.w64-10k", 300.0), rate("disk.put.w64-100k", 1.0), rate("disk.put.w64-1m", 200.0)];
        let cost = growth(Backend::Disk, &[10_000, 1_000_000, 100_000], &measured).unwrap();
        assert_eq!((cost.name.as_str(), cost.value), ("disk.put.w64-1m-cost", 1.5));
        assert!(growth(Backend::Disk, &[10_000], &measured).is_none());
        assert!(growth(Backend::Memory, &[10_000, 1_000_000], &measured).is_none());
    }
}
