//! The cases of Kubernetes' integration tests of server-side apply (`test/integration/apiserver/apply`), as data:
//! `cases/*.json`. `crates/apply/tests/README.md` counts them and says which do not hold.
//!
//! A case has the name of the upstream test that it is from and is a list of requests, each with what upstream's test
//! checks of the answer. `kinds.json` has the objects that `TestApplyStatus` and `TestApplyResetFields` write.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod kinds;
mod known;
mod limited;
mod trailing_data;

use std::{collections::BTreeMap, fmt::Write as _};

/// What became of a case.
type Outcome = Result<(), String>;

/// Not of upstream: their objects, applied twice, are not validated the second time.
#[tokio::test]
async fn no_built_in_kind_refuses_or_warns_otherwise_when_nothing_changes() {
    let outcomes = kinds::again().await;
    assert!(outcomes.len() > 60, "only {} kinds", outcomes.len());
    let wrong: Vec<String> = outcomes
        .into_iter()
        .filter_map(|(name, outcome)| outcome.err().map(|why| format!("{name}: {why}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_cases_hold_but_for_known_differences() {
    let mut all: Vec<(&str, String, Outcome)> = Vec::new();
    for (file, text) in cases::FILES {
        for case in cases::read(text) {
            let outcome = cases::run(&case).await;
            all.push((file, case.name, outcome));
        }
    }
    for (file, outcomes) in [
        ("reset_fields_test.go", kinds::reset_fields().await),
        ("status_test.go", kinds::status().await),
        ("managedfields_parsing_test.go", trailing_data::run().await),
    ] {
        all.extend(outcomes.into_iter().map(|(name, outcome)| (file, name, outcome)));
    }

    let mut wrong = String::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (file, name, outcome) in &all {
        let count = counts.entry(file).or_default();
        count.0 += 1;
        let known = known::DIFFERENCES.contains(&name.as_str());
        count.1 += usize::from(known);
        match outcome {
            Err(why) if !known => drop(writeln!(wrong, "{name}: {why}")),
            Ok(()) if known => drop(writeln!(wrong, "{name} holds now: remove it from known.rs")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");

    let mut table = String::from("| from | cases | do not hold |\n|---|---|---|\n");
    let mut total = (0, 0);
    for (file, (cases, differ)) in counts {
        writeln!(table, "| apply/{file} | {cases} | {differ} |").unwrap();
        total = (total.0 + cases, total.1 + differ);
    }
    writeln!(table, "| all | {} | {} |", total.0, total.1).unwrap();
    let readme = include_str!("../../../apply/tests/README.md");
    assert!(readme.contains(&table), "crates/apply/tests/README.md should have:\n\n{table}");
    for name in known::DIFFERENCES {
        assert!(readme.contains(&format!("`{name}`")), "crates/apply/tests/README.md does not name {name}");
        assert!(all.iter().any(|(_, case, _)| case == name), "no case is named {name}");
    }
}
