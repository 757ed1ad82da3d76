//! The three stores side by side.
//!
//! Each backend runs at each size in its own process, so that memory can be attributed; etcd is a real one, started for
//! the run, on the same disk.
//!
//! All are measured through the `Store` trait. A store on etcd watches it all the time, which etcd has to work
//! for; `etcd.put.*-raw` is what the same etcd does for a client that only writes. `memory.put.*-map` is a hash map under
//! a lock, without revisions, order or history: the least that anything in memory has to do for a write.

mod backend;
mod part;
mod work;

use std::path::PathBuf;

use clap::Args;
use k1s_store_etcd::testing::EtcdServer;

use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit, quantile},
};
use backend::Backend;
pub(crate) use backend::short;
use part::Part;
pub(crate) use part::{PartOptions, run_part};

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

/// Turns of each store at writing. They alternate because a machine's speed drifts from one minute to the next.
const TURNS: usize = 15;

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (sizes, seconds) = if options.quick { (vec![10_000], 1.0) } else { (options.sizes.clone(), 4.0) };
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let start = |backend: Backend, position: usize, measurements: &mut Vec<Measurement>| {
        let size = sizes[position];
        report::progress(&format!("{backend} with {} objects …", backend::short(size)));
        Part::start(&PartOptions { backend, size, seconds, base: position == 0 }, &folder, measurements)
    };
    let turn = seconds / 10.0;

    let mut measurements = Vec::new();
    let mut first = Vec::new();
    for &backend in &options.backends {
        if backend == Backend::Etcd && !EtcdServer::is_installed()? {
            report::progress("no etcd on the PATH: it is left out, and there are no ratios");
            continue;
        }
        first.push((backend, start(backend, 0, &mut measurements)?));
    }
    report::progress("writes, in turns …");
    let mut turns = Turns::default();
    for _ in 0..TURNS {
        for (what, writers) in [("put.w1", 1), ("put.w64", 64)] {
            for (_, part) in &mut first {
                turns.add(part.turn(what, writers, turn)?);
            }
        }
    }
    measurements.extend(turns.rates());
    for (backend, part) in first {
        let mut parts = vec![part];
        for position in 1..sizes.len() {
            parts.push(start(backend, position, &mut measurements)?);
        }
        report::progress(&format!("{backend}: writes with more and more objects, in turns …"));
        let mut turns = Turns::default();
        for _ in 0..TURNS {
            for (part, size) in parts.iter_mut().zip(&sizes) {
                turns.add(part.turn(&format!("put.w64-{}", backend::short(*size)), 64, turn)?);
            }
        }
        measurements.extend(turns.rates());
        measurements.extend(turns.costs(backend, &sizes));
        report::progress(&format!("{backend}: the rest …"));
        for part in parts {
            part.finish(&mut measurements)?;
        }
    }
    let place = |name: &str| options.backends.iter().position(|backend| name.starts_with(backend.name()));
    measurements.sort_by_key(|measurement| place(&measurement.name));
    report::show(&measurements, Beside::peer(Backend::Etcd.name()), options.json);
    Ok(())
}

/// Measurements taken in turns, in the order of the turns.
#[derive(Default)]
struct Turns(Vec<(Measurement, Vec<f64>)>);

impl Turns {
    fn add(&mut self, measured: Vec<Measurement>) {
        for measurement in measured {
            match self.0.iter_mut().find(|(first, _)| first.name == measurement.name) {
                Some((_, values)) => values.push(measurement.value),
                None => self.0.push((measurement.clone(), vec![measurement.value])),
            }
        }
    }

    /// The median of each.
    fn rates(&self) -> impl Iterator<Item = Measurement> {
        self.0
            .iter()
            .map(|(first, values)| Measurement { value: quantile(&mut values.clone(), 0.5), ..first.clone() })
    }

    /// What a write costs with the most objects, in writes with the fewest: 1 if it does not matter how many there are. The
    /// two are compared turn by turn.
    fn costs(&self, backend: Backend, sizes: &[u64]) -> Vec<Measurement> {
        let (Some(fewest), Some(most)) = (sizes.iter().min(), sizes.iter().max()) else { return Vec::new() };
        if fewest == most {
            return Vec::new();
        }
        let name = |size: &u64, who: &str| format!("{backend}.put.w64-{}{who}", backend::short(*size));
        let values = |name: &str| Some(&self.0.iter().find(|(first, _)| first.name == name)?.1);
        let cost = |who: &&str| {
            let (few, many) = (values(&name(fewest, who))?, values(&name(most, who))?);
            let mut costs: Vec<_> = few.iter().zip(many).map(|(few, many)| few / many).collect();
            let name = format!("{}-cost", name(most, who));
            Some(Measurement::new(name, quantile(&mut costs, 0.5), Unit::TimesTheSmallest))
        };
        ["", "-map"].iter().filter_map(cost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_write_is_compared_turn_by_turn_between_the_smallest_and_the_largest_store() {
        let rate = |name: &str, value| Measurement::new(name, value, Unit::PerSecond);
        let mut turns = Turns::default();
        // As on a machine that slows down.
        for (few, many) in [(300.0, 200.0), (30.0, 20.0), (3.0, 2.5)] {
            turns.add(vec![rate("disk.put.w64-10k", few)]);
            turns.add(vec![rate("disk.put.w64-100k", 1.0)]);
            turns.add(vec![rate("disk.put.w64-1m", many)]);
        }
        let rates: Vec<_> = turns.rates().map(|rate| (rate.name, rate.value)).collect();
        assert_eq!(rates[0], ("disk.put.w64-10k".to_owned(), 30.0));
        assert_eq!(rates.len(), 3);
        let costs = turns.costs(Backend::Disk, &[10_000, 1_000_000, 100_000]);
        assert_eq!(costs.len(), 1);
        assert_eq!((costs[0].name.as_str(), costs[0].value), ("disk.put.w64-1m-cost", 1.5));
        assert!(turns.costs(Backend::Disk, &[10_000]).is_empty());
        assert!(turns.costs(Backend::Memory, &[10_000, 1_000_000]).is_empty());
    }
}
