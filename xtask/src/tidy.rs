//! Rules about crates and files that the compiler does not enforce. They are also run as a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{modules, print};

/// The workspace crates that each crate may depend on. A new crate gets a line here and a place in
/// docs/architecture.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("k1s-env", &[]),
    ("k1s-apply", &[]),
    ("k1s-cel", &["k1s-object"]),
    ("k1s-object", &[]),
    ("k1s-kinds", &["k1s-apply", "k1s-cel", "k1s-object"]),
    ("k1s-schema", &["k1s-apply", "k1s-cel", "k1s-object"]),
    ("k1s-store", &["k1s-env"]),
    ("k1s-store-conformance", &["k1s-env", "k1s-store"]),
    ("k1s-encryption", &["k1s-env", "k1s-object", "k1s-store"]),
    ("k1s-store-disk", &["k1s-env", "k1s-store"]),
    ("k1s-store-etcd", &["k1s-env", "k1s-store"]),
    (
        "k1s-server",
        &["k1s-apply", "k1s-cel", "k1s-env", "k1s-kinds", "k1s-object", "k1s-schema", "k1s-store"],
    ),
    ("k1s-runtime", &["k1s-env", "k1s-object"]),
    ("k1s-controllers", &["k1s-env", "k1s-object", "k1s-runtime"]),
    ("k1s-multicluster", &["k1s-env", "k1s-object", "k1s-runtime"]),
    (
        "k1s",
        &[
            "k1s-controllers",
            "k1s-encryption",
            "k1s-env",
            "k1s-multicluster",
            "k1s-object",
            "k1s-runtime",
            "k1s-server",
            "k1s-store",
            "k1s-store-disk",
            "k1s-store-etcd",
        ],
    ),
    ("k1s-example-aggregated", &["k1s"]),
    ("k1s-example-application", &["k1s"]),
    ("k1s-example-cli", &["k1s", "k1s-cli"]),
    ("k1s-example-fleet", &["k1s"]),
    ("k1s-example-quickstart", &["k1s"]),
    ("k1s-example-webhook", &["k1s"]),
    // `k1s demo` is an example with a control plane.
    ("k1s-cli", &["k1s", "k1s-example-application", "k1s-kinds", "k1s-object"]),
    (
        "k1s-bench",
        &[
            "k1s",
            "k1s-env",
            "k1s-kinds",
            "k1s-object",
            "k1s-runtime",
            "k1s-server",
            "k1s-store",
            "k1s-store-disk",
            "k1s-store-etcd",
        ],
    ),
    ("xtask", &[]),
];

/// Maximum number of lines per file; a longer one has more than one concern.
const MAX_LINES: usize = 800;

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn run() -> Result<(), String> {
    let mut problems = Vec::new();
    check_graph(&metadata()?, &mut problems)?;
    check_features(&mut problems)?;
    check_manifests(&mut problems)?;
    check_sources(&mut problems)?;
    modules::check(&root().join("crates"), &mut problems)?;
    check_commands(&mut problems)?;
    if problems.is_empty() {
        print("crates, manifests, sources, modules and commands are tidy");
        Ok(())
    } else {
        Err(format!("not tidy:\n  {}", problems.join("\n  ")))
    }
}

fn metadata() -> Result<Value, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Checks that crates depend only on what they may.
fn check_graph(metadata: &Value, problems: &mut Vec<String>) -> Result<(), String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let members: BTreeSet<String> = packages.iter().map(name).collect();
    let may_use: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for package in packages {
        let crate_name = name(package);
        let Some(allowed) = may_use.get(crate_name.as_str()) else {
            problems.push(format!("{crate_name} is not in the table of xtask/src/tidy.rs"));
            continue;
        };
        // Dev-dependencies are not restricted.
        let all = package["dependencies"].as_array().into_iter().flatten();
        for dependency in all.filter(|dependency| dependency["kind"] != "dev") {
            let dependency = name(dependency);
            if members.contains(&dependency)
                && dependency != crate_name
                && !allowed.contains(&dependency.as_str())
            {
                problems.push(format!("{crate_name} must not depend on {dependency}"));
            }
        }
    }
    for known in may_use.keys().filter(|known| !members.contains(**known)) {
        problems.push(format!("{known} is in the table of xtask/src/tidy.rs, but not in the workspace"));
    }
    Ok(())
}

/// Libraries that a program with the memory store alone must not build.
const OPTIONAL: &[&str] = &["rustls", "tonic"];

/// Checks that `k1s` without its default features builds neither TLS nor gRPC.
fn check_features(problems: &mut Vec<String>) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--package=k1s", "--no-default-features", "--features=latest"])
        .args(["--edges=normal", "--prefix=none", "--format={p}"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for name in OPTIONAL.iter().filter(|name| names.contains(**name)) {
        problems.push(format!("k1s without its default features depends on {name}"));
    }
    if !names.contains("k1s-store") {
        problems.push("cargo tree does not list the dependencies of k1s".to_owned());
    }
    Ok(())
}

/// Checks that every crate takes its dependencies and lints from the workspace.
fn check_manifests(problems: &mut Vec<String>) -> Result<(), String> {
    for path in files("Cargo.toml")? {
        if path == root().join("Cargo.toml") {
            continue;
        }
        let text = read(&path)?;
        // Fuzz targets are a workspace of their own.
        if text.contains("\n[workspace]\n") {
            continue;
        }
        let shown = show(&path);
        if !text.contains("[lints]\nworkspace = true") {
            problems.push(format!("{shown} does not take its lints from the workspace"));
        }
        let mut in_dependencies = false;
        for line in text.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            } else if in_dependencies && line.contains('=') && !line.contains("workspace = true") {
                // A crate may enable its own features for its tests.
                if !line.contains("path = \".\"") {
                    problems.push(format!("{shown}: not from the workspace's table: {line}"));
                }
            }
        }
    }
    Ok(())
}

/// Checks that files are short, crates have a description, and no test is ignored.
fn check_sources(problems: &mut Vec<String>) -> Result<(), String> {
    for path in files("rs")? {
        let text = read(&path)?;
        let lines = text.lines().count();
        let shown = show(&path);
        let generated = path.components().any(|part| part.as_os_str() == "generated");
        if lines > MAX_LINES && !generated {
            problems.push(format!("{shown} has {lines} lines, more than {MAX_LINES}"));
        }
        if !text.starts_with("//!") {
            problems.push(format!("{shown} does not begin with a description (//! …)"));
        }
        if text.lines().any(|line| line.trim_start().starts_with("#[ignore")) {
            problems.push(format!("{shown} has an ignored test"));
        }
    }
    Ok(())
}

/// Checks that the README and CI use the same test command.
fn check_commands(problems: &mut Vec<String>) -> Result<(), String> {
    let readme = read(&root().join("README.md"))?;
    let ci = read(&root().join(".ci/run"))?;
    if !readme.lines().any(|line| line.trim() == "cargo test") {
        problems.push("README.md does not give `cargo test` as the test command".to_owned());
    }
    if !ci.lines().any(|line| line.trim() == "cargo test") {
        problems.push(".ci/run does not run the README's test command, `cargo test`".to_owned());
    }
    Ok(())
}

/// The files of the workspace that end in `ending`.
fn files(ending: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = ["crates", "xtask", "examples"].map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        if !folder.exists() {
            continue;
        }
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", show(&folder)))?;
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", show(&folder)))?.path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", show(path)))
}

fn show(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        run().unwrap();
    }

    #[test]
    fn a_dependency_that_is_not_allowed_is_a_problem() {
        let metadata = serde_json::json!({"packages": [
            {"name": "k1s-env", "dependencies": [{"name": "k1s-store"}, {"name": "uuid"}]},
            {"name": "k1s-store", "dependencies": [{"name": "k1s-env"}]},
            {"name": "k1s-new", "dependencies": []},
        ]});
        let mut problems = Vec::new();
        check_graph(&metadata, &mut problems).unwrap();
        assert!(problems.contains(&"k1s-env must not depend on k1s-store".to_owned()), "{problems:?}");
        assert!(problems.iter().any(|problem| problem.starts_with("k1s-new is not in the table")));
        assert!(problems.iter().any(|problem| problem.starts_with("k1s-store-disk is in the table")));
        assert!(!problems.iter().any(|problem| problem.contains("uuid")));
    }
}
