//! Random schedules on a simulated disk: transactions, compaction, cleaning, backups and restarts, with the power cut in the middle, calls
//! that fail, and disks that fill up. Whatever happens, the store opens again without repair, with everything that was acknowledged,
//! each with its value and revision, and nothing of a transaction that is not whole.
//!
//! `K1S_SIM_SEEDS=5000` tries that many seeds in each test instead of a few; `K1S_SIM_SEED=7` runs one again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod model;
mod run;

use run::{Kind, Outcomes, run};

/// Runs as many seeds as were asked for; returns what they came to together, without their schedules.
fn seeds(test: &'static str, few: u64, kind: Kind) -> Outcomes {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
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
        seeds("power_cuts_lose_nothing_that_was_acknowledged", 120, Kind { cuts: true, ..Kind::default() });
    assert!(
        is_one_seed() || (all.mid_call > 100 && all.unknown > 30 && all.cleaned > 100 && all.backups > 20)
    );
}

#[test]
fn calls_that_fail_lose_nothing_that_was_acknowledged() {
    let all = seeds(
        "calls_that_fail_lose_nothing_that_was_acknowledged",
        80,
        Kind { cuts: true, fails: true, ..Kind::default() },
    );
    assert!(is_one_seed() || (all.failed > 100 && all.unknown > 30 && all.mid_call > 50));
}

#[test]
fn full_disks_lose_nothing_that_was_acknowledged() {
    let all = seeds(
        "full_disks_lose_nothing_that_was_acknowledged",
        80,
        Kind { cuts: true, fills: true, ..Kind::default() },
    );
    assert!(is_one_seed() || (all.failed > 100 && all.mid_call > 50));
}

#[test]
fn nothing_is_lost_when_segments_are_cleaned_by_a_thread() {
    let kind = Kind { cuts: true, fails: true, fills: true, threads: true };
    let all = seeds("nothing_is_lost_when_segments_are_cleaned_by_a_thread", 40, kind);
    assert!(is_one_seed() || (all.failed > 100 && all.mid_call > 30));
}

#[test]
fn a_seed_decides_every_call() {
    for kind in [
        Kind { cuts: true, ..Kind::default() },
        Kind { cuts: true, fails: true, ..Kind::default() },
        Kind { cuts: true, fills: true, ..Kind::default() },
        Kind::default(),
    ] {
        for seed in 1_000_000..1_000_005 {
            let [one, other] = [(); 2].map(|()| run("a_seed_decides_every_call", seed, kind));
            let lines = one.schedule.iter().zip(&other.schedule);
            for (number, (line, again)) in lines.enumerate() {
                assert_eq!(line, again, "seed {seed}, {kind:?}, line {number}");
            }
            assert_eq!(one, other, "seed {seed}, {kind:?}");
        }
    }
}
