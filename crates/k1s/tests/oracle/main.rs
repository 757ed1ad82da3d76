//! Replays conversations recorded with a real kube-apiserver; see `oracle/README.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod normal;
mod player;
mod recording;

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::PathBuf};

use player::Difference;
use recording::Recording;

/// Selects the scenarios to play, by a part of `area/name`, and shows all their differences.
const ONLY: &str = "K1S_ORACLE";

/// Names of fields that are never compared.
const IGNORED_FIELDS: &[&str] = &[];

/// Maximum number of lines shown per answer of a failing step.
const SHOWN: usize = 30;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracle")
}

/// The scenarios that are expected to differ, with the reason: lines of `area/name` below a line `# reason`.
fn expected() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("differences.txt")).unwrap();
    let (mut reason, mut expected) = (String::new(), BTreeMap::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix('#') {
            Some(text) => reason = text.trim().to_owned(),
            None => {
                assert!(!reason.is_empty(), "{line} differs for no reason");
                let before = expected.insert(line.to_owned(), reason.clone());
                assert!(before.is_none(), "{line} is there twice");
            }
        }
    }
    expected
}

fn play(area: &str) {
    let only = env::var(ONLY).ok();
    let mut expected = expected();
    expected.retain(|name, _| name.split('/').next() == Some(area));
    let recording = Recording::read(&folder(), area);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut played, mut problems) = (0, String::new());
    for scenario in &recording.scenarios {
        let name = format!("{area}/{}", scenario.name);
        let reason = expected.remove(&name);
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        played += 1;
        let differences = runtime.block_on(player::play(scenario, IGNORED_FIELDS));
        match (differences.is_empty(), reason) {
            (false, None) => show(&mut problems, &name, &differences),
            (false, Some(reason)) if only.is_some() => {
                show(&mut problems, &format!("{name} (expected: {reason})"), &differences);
            }
            (true, Some(reason)) => {
                let _ = writeln!(problems, "{name} passes now; it was expected to differ: {reason}");
            }
            (true, None) | (false, Some(_)) => {}
        }
    }
    for name in expected.keys() {
        let _ = writeln!(problems, "{name} is expected to differ, but is not in the recording");
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(played > 0 || only.is_some(), "the recording of {area} has no scenarios");
}

fn show(problems: &mut String, name: &str, differences: &[Difference]) {
    let _ = writeln!(problems, "{name} differs from kube-apiserver:");
    for Difference { step, wanted, got } in differences {
        let _ = writeln!(problems, "  {step}");
        let (wanted, got): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), got.lines().collect());
        // Common lines at the start and end are omitted.
        let same = wanted.iter().zip(&got).take_while(|(one, other)| one == other).count();
        let rest = wanted.len().min(got.len()) - same;
        let tail = wanted.iter().rev().zip(got.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        for (mark, lines) in [("kube-apiserver", &wanted), ("k1s", &got)] {
            for line in lines[same..lines.len() - tail].iter().take(SHOWN) {
                let _ = writeln!(problems, "    {mark:>14} | {line}");
            }
        }
    }
}

#[test]
fn core_crud() {
    play("core-crud");
}

#[test]
fn list_watch() {
    play("list-watch");
}

#[test]
fn patch() {
    play("patch");
}

#[test]
fn crd() {
    play("crd");
}

#[test]
fn kinds() {
    play("kinds");
}

#[test]
fn apply() {
    play("apply");
}

#[test]
fn auth_admission() {
    play("auth-admission");
}

#[test]
fn definitions() {
    play("definitions");
}

#[test]
fn admission() {
    play("admission");
}
