//! The top-level modules of a crate have no dependency cycles, so that each can be read before the modules
//! that use it.
//!
//! The check reads paths, not syntax trees: `crate::x::…`, `crate::{x::…, …}` and `super::…` that reach the
//! crate root, and names re-exported by the root. Test code is not checked.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

/// Existing cycles: the crate's folder, the modules, the reason. To be reduced over time.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "env",
        &["activity", "clock", "virtual_clock"],
        "a clock may be virtual, and the virtual one asks what is active",
    ),
    (
        "k1s",
        &["control_plane", "election", "embedded"],
        "the control plane runs the election, which calls it back",
    ),
    ("runtime", &["cache", "client", "panics"], "the client reads the cache, whose informers use the client"),
    (
        "runtime",
        &["cluster", "controller", "manager", "reconcile"],
        "a manager runs controllers, which are built for a manager; a run is given its cluster, which may have a manager",
    ),
    (
        "runtime",
        &["handler", "owners", "source"],
        "sources are given handlers, which are given a source's context",
    ),
    (
        "store",
        &["error", "txn", "types"],
        "an error carries the entry in conflict; transactions and types fail with errors",
    ),
    ("store-disk", &["batch", "writer"], "the writer puts its writes into batches"),
    (
        "store-disk",
        &["error", "lock"],
        "taking a lock fails with an error that asks whether the holder is gone",
    ),
    ("store-etcd", &["compactor", "history", "store"], "the store starts both, and both call it"),
    ("store-etcd", &["marks", "shared", "sync"], "the shared state holds parts that are given all of it"),
];

/// The modules that a module uses, and in which files.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Checks every crate in a folder of crates.
pub(crate) fn check(crates: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crates).map_err(|error| format!("{}: {error}", crates.display()))? {
        let entry = entry.map_err(|error| format!("{}: {error}", crates.display()))?;
        if entry.path().join("src").is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    for name in names {
        let cycles = cycles(&uses(&crates.join(&name).join("src"))?);
        report(&name, &cycles, KNOWN, problems);
    }
    Ok(())
}

/// A cycle: the modules in it, and one path around it with the files.
#[derive(Debug, PartialEq, Eq)]
struct Cycle {
    modules: BTreeSet<String>,
    way: String,
}

fn report(name: &str, cycles: &[Cycle], known: &[(&str, &[&str], &str)], problems: &mut Vec<String>) {
    let known: Vec<BTreeSet<String>> = known
        .iter()
        .filter(|(folder, _, _)| *folder == name)
        .map(|(_, modules, _)| modules.iter().map(|module| (*module).to_owned()).collect())
        .collect();
    let is_known = |cycle: &Cycle| known.iter().any(|modules| cycle.modules.is_subset(modules));
    for cycle in cycles.iter().filter(|cycle| !is_known(cycle)) {
        let modules: Vec<&str> = cycle.modules.iter().map(String::as_str).collect();
        problems.push(format!(
            "crates/{name}: modules form a dependency cycle: {}; all modules in it: {}",
            cycle.way,
            modules.join(", ")
        ));
    }
    let is_left = |modules: &BTreeSet<String>| cycles.iter().any(|cycle| cycle.modules.is_subset(modules));
    for modules in known.iter().filter(|modules| !is_left(modules)) {
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        problems.push(format!(
            "crates/{name}: {} no longer form a cycle; remove them from xtask/src/modules.rs",
            modules.join(", ")
        ));
    }
}

/// Reads the sources of a crate.
fn uses(src: &Path) -> Result<Uses, String> {
    let mut files = Vec::new();
    collect(src, &mut Vec::new(), &mut files)?;
    let tops: BTreeSet<String> = files
        .iter()
        .filter_map(|(path, _)| path.first())
        .map(|top| top.trim_end_matches(".rs").to_owned())
        .collect();
    let exported: BTreeMap<String, String> = files
        .iter()
        .filter(|(path, _)| matches!(path.as_slice(), [file] if file == "lib.rs" || file == "main.rs"))
        .flat_map(|(_, text)| exports(text, &tops))
        .collect();
    let mut uses = Uses::new();
    for (path, text) in &files {
        let Some(module) = path.first().map(|top| top.trim_end_matches(".rs")) else { continue };
        if matches!(path.as_slice(), [file] if file == "lib.rs" || file == "main.rs") || is_test(path) {
            continue;
        }
        // The number of `super::` that reaches the root.
        let depth = path.len() - usize::from(path.last().is_some_and(|file| file == "mod.rs"));
        for name in roots(&without_tests(text), depth) {
            let used = exported.get(&name).unwrap_or(&name);
            if tops.contains(used) && used != module {
                let files = uses.entry(module.to_owned()).or_default().entry(used.clone()).or_default();
                files.insert(path.join("/"));
            }
        }
    }
    Ok(uses)
}

fn collect(
    folder: &Path,
    path: &mut Vec<String>,
    out: &mut Vec<(Vec<String>, String)>,
) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let file = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        path.push(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
        if file.is_dir() {
            collect(&file, path, out)?;
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            out.push((path.clone(), text));
        }
        path.pop();
    }
    Ok(())
}

fn is_test(path: &[String]) -> bool {
    path.iter().any(|part| {
        let name = part.trim_end_matches(".rs");
        name == "tests" || name.ends_with("_tests")
    })
}

/// The text without comments, and without the trailing test module.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The first segment of all paths from the crate root.
fn roots(code: &str, depth: usize) -> Vec<String> {
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for prefix in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code.get(..at).unwrap_or_default();
            // Part of a longer `super::` path, or of another word.
            if before.ends_with("::") || before.ends_with(|last: char| last.is_alphanumeric() || last == '_')
            {
                continue;
            }
            found.extend(first_names(code.get(at + prefix.len()..).unwrap_or_default()));
        }
    }
    found
}

/// `a` of `a::b`; `a` and `c` of `{a::{b}, c}`.
fn first_names(path: &str) -> Vec<String> {
    let path = path.trim_start();
    let Some(group) = path.strip_prefix('{') else {
        return Vec::from_iter(name(path));
    };
    let (mut names, mut nesting, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => nesting += 1,
            '}' if nesting == 0 => {
                names.extend(name(group.get(start..at).unwrap_or_default()));
                break;
            }
            '}' => nesting -= 1,
            ',' if nesting == 0 => {
                names.extend(name(group.get(start..at).unwrap_or_default()));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

fn name(text: &str) -> Option<String> {
    let name: String =
        text.trim_start().chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The names re-exported by the root, each with its module.
fn exports(text: &str, tops: &BTreeSet<String>) -> Vec<(String, String)> {
    let code = without_tests(text);
    let mut found = Vec::new();
    for statement in code.split(';').filter_map(|statement| statement.trim().split_once("use ")) {
        let Some((module, rest)) = statement.1.trim().split_once("::") else { continue };
        let module = module.trim_start_matches("crate::");
        if tops.contains(module) {
            found.extend(first_names(rest).into_iter().map(|name| (name, module.to_owned())));
        }
    }
    found
}

/// All cycles, each once.
fn cycles(uses: &Uses) -> Vec<Cycle> {
    let mut found: Vec<Cycle> = Vec::new();
    for start in uses.keys() {
        if found.iter().any(|cycle| cycle.modules.contains(start)) {
            continue;
        }
        let Some(way) = shortest(uses, start, start) else { continue };
        let modules =
            reachable(uses, start).into_iter().filter(|other| reachable(uses, other).contains(start));
        let steps = way.windows(2).filter_map(|step| {
            let [from, to] = step else { return None };
            let file = uses.get(from)?.get(to)?.first()?;
            Some(format!("{from} → {to} ({file})"))
        });
        found.push(Cycle { modules: modules.collect(), way: steps.collect::<Vec<_>>().join(", ") });
    }
    found
}

fn reachable(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from.to_owned()];
    while let Some(module) = left.pop() {
        for used in uses.get(&module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(used.clone()) {
                left.push(used.clone());
            }
        }
    }
    seen
}

/// The shortest path of at least one step.
fn shortest(uses: &Uses, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for used in uses.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let mut next = way.clone();
            next.push(used.clone());
            if used == to {
                return Some(next);
            }
            if seen.insert(used.clone()) {
                ways.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[(&str, &str)]) -> Uses {
        let src = std::env::temp_dir().join(format!("k1s-modules-{name}-{}", std::process::id()));
        for (path, text) in files {
            let file = src.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let uses = uses(&src).unwrap();
        fs::remove_dir_all(&src).unwrap();
        uses
    }

    #[test]
    fn a_cycle_is_reported_with_its_files() {
        let uses = tree(
            "cycle",
            &[
                ("lib.rs", "mod a; mod b; mod c; mod d;\npub use c::{Thing, Other};\n"),
                ("a.rs", "use crate::{\n    b::{self, X},\n    d,\n};\n"),
                ("b/mod.rs", "mod inner;\n"),
                ("b/inner.rs", "use super::super::c::Y;\n"),
                ("c.rs", "fn f() { super::a::g() }\n"),
                ("d.rs", "fn f(_: crate::Thing) {}\n"),
            ],
        );
        let found = cycles(&uses);
        assert_eq!(found.len(), 1, "{found:?}");
        let modules: Vec<&str> = found[0].modules.iter().map(String::as_str).collect();
        assert_eq!(modules, ["a", "b", "c", "d"]);
        assert_eq!(found[0].way, "a → b (a.rs), b → c (b/inner.rs), c → a (c.rs)");
    }

    #[test]
    fn a_tree_without_cycles_is_clean() {
        let uses = tree(
            "clean",
            &[
                ("lib.rs", "mod a; mod b;\npub use b::Thing;\n"),
                ("a/mod.rs", "mod x;\nmod y;\nuse crate::b::Thing;\n"),
                // Within a module, cycles are allowed.
                ("a/x.rs", "use super::y::Z;\n"),
                ("a/y.rs", "use super::x::Z;\n"),
                ("b.rs", "// crate::a::f\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::f;\n}\n"),
                ("b_tests.rs", "use crate::a::f;\n"),
            ],
        );
        assert_eq!(cycles(&uses), []);
        assert!(uses["a"].contains_key("b"));
    }

    #[test]
    fn a_known_cycle_is_allowed_and_reported_when_it_is_gone() {
        let cycle = Cycle {
            modules: ["a", "b"].map(str::to_owned).into(),
            way: "a → b (a.rs), b → a (b.rs)".into(),
        };
        let check = |cycles: &[Cycle], known| {
            let mut problems = Vec::new();
            report("x", cycles, known, &mut problems);
            problems
        };
        let known: &[(&str, &[&str], &str)] = &[("x", &["a", "b"], "because")];
        assert!(check(&[cycle], known).is_empty());
        assert!(check(&[], known)[0].contains("no longer form a cycle"));
        let other = Cycle { modules: ["a", "c"].map(str::to_owned).into(), way: "a → c (a.rs)".into() };
        assert!(check(&[other], &[])[0].contains("a → c (a.rs)"));
    }
}
