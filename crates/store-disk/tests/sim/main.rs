//! Random schedules on a simulated disk: transactions, compaction, cleaning, backups and restarts, with power
//! cuts, failing calls and full disks. The store must always open again without repair, with every
//! acknowledged write at its revision, and without partial transactions.
//!
//! `K1S_SIM_SEEDS=5000` runs that many seeds per test instead of a few; `K1S_SIM_SEED=7` reruns one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod model;
mod run;

use run::{Kind, Outcomes, run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs the requested number of seeds; returns their combined statistics, without schedules.
fn seeds(test: &'static str, few: u64, kind: Kind) -> Outcomes {
    let seeds = match (number("K1S_SIM_SEED"), number("K1S_SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, many) => 0..many.unwrap_or(few),
    };
    let mut all = Outcomes::default();
    for seed in seeds.clone() {
        let one = run(test, seed, kind);
        all.acknowledged += one.acknowledged;
        all.failed += one.failed;
        all.unknown += one.unknown;
        all.cuts += one.cuts;
        all.mid_call += one.mid_call;
        all.backups += one.backups;
        all.cleaned += one.cleaned;
        all.calls += one.calls;
    }
    println!("{test}: {} seeds: {all:?}", seeds.end - seeds.start);
    all
}

fn is_one_seed() -> bool {
    std::env::var_os("K1S_SIM_SEED").is_some()
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let all =
        seeds("power_cuts_lose_nothing_that_was_acknowledged", 100, Kind { cuts: true, ..Kind::default() });
    assert!(
        is_one_seed() || (all.mid_call > 100 && all.unknown > 30 && all.cleaned > 50 && all.backups > 20)
    );
}

#[test]
fn calls_that_fail_lose_nothing_that_was_acknowledged() {
    let all = seeds(
        "calls_that_fail_lose_nothing_that_was_acknowledged",
        60,
        Kind { cuts: true, fails: true, ..Kind::default() },
    );
    assert!(is_one_seed() || (all.failed > 100 && all.unknown > 30 && all.mid_call > 50));
}

#[test]
fn full_disks_lose_nothing_that_was_acknowledged() {
    let all = seeds(
        "full_disks_lose_nothing_that_was_acknowledged",
        60,
        Kind { cuts: true, fills: true, ..Kind::default() },
    );
    assert!(is_one_seed() || (all.failed > 100 && all.mid_call > 50));
}

#[test]
fn nothing_is_lost_when_segments_are_cleaned_by_a_thread() {
    let kind = Kind { cuts: true, fails: true, fills: true, threads: true };
    let all = seeds("nothing_is_lost_when_segments_are_cleaned_by_a_thread", 15, kind);
    assert!(is_one_seed() || (all.failed > 100 && all.mid_call > 20));
}

#[test]
fn a_seed_decides_every_call() {
    let many = number("K1S_SIM_SEEDS").unwrap_or(2);
    for kind in [
        Kind { cuts: true, ..Kind::default() },
        Kind { cuts: true, fails: true, ..Kind::default() },
        Kind { cuts: true, fills: true, ..Kind::default() },
        Kind::default(),
    ] {
        for seed in 1_000_000..1_000_000 + many {
            let [one, other] = [(); 2].map(|()| run("a_seed_decides_every_call", seed, kind));
            for (of_one, of_other) in [(&one.trace, &other.trace), (&one.schedule, &other.schedule)] {
                let differ = of_one.iter().zip(of_other).find(|(line, again)| line != again);
                assert_eq!(differ, None, "seed {seed}, {kind:?}");
            }
            assert_eq!(one, other, "seed {seed}, {kind:?}");
        }
    }
}
