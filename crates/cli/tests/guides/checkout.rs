//! Plays the README and docs/getting-started.md: in folders of their own, with free ports; or in a clean checkout, with the ports that
//! they name (`cargo xtask guides`).

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::player::{Shell, has, steps};

/// Names a checkout: the pages are read from it, and their commands are run in it.
const CHECKOUT: &str = "K1S_CHECKOUT";

/// In a checkout, both pages use the same ports.
static ALONE: Mutex<()> = Mutex::new(());

/// Plays a page; returns the folder.
fn plays(page: &str, text: &str, at_least: usize) -> (Option<tempfile::TempDir>, PathBuf) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (temporary, folder, text, mut shell) = match env::var_os(CHECKOUT).map(PathBuf::from) {
        None => {
            let folder = tempfile::tempdir().unwrap();
            let (shell, path) = (Shell::start(folder.path()), folder.path().to_owned());
            (Some(folder), path, text.to_owned(), shell)
        }
        Some(checkout) => {
            let shell = Shell::in_checkout(&checkout);
            let text = fs::read_to_string(checkout.join(page)).unwrap();
            (None, checkout, text, shell)
        }
    };
    let played = shell.play(&text);
    assert!(played >= at_least, "{played} steps");
    shell.stop_server();
    (temporary, folder)
}

#[test]
fn the_readme_works_as_printed() {
    let (_temporary, folder) = plays("README.md", README, 13);
    assert!(folder.join("alice.yaml").exists());
}

#[test]
fn the_getting_started_guide_works_as_printed() {
    assert!(has("curl"), "this test needs curl: install it");
    const GUIDE: &str = include_str!("../../../../docs/getting-started.md");
    let (_temporary, folder) = plays("docs/getting-started.md", GUIDE, 18);
    assert!(folder.join("k1s.kubeconfig").exists());
}

const README: &str = include_str!("../../../../README.md");

/// The only commands of the README that are not played: what runs all tests, this one among them, and what takes minutes.
#[test]
fn what_is_not_played_is_the_test_command_and_the_benchmarks() {
    let mut left_out: Vec<&str> = README
        .split("```console\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .filter(|block| steps(&format!("```console\n{block}```\n")).is_empty())
        .flat_map(str::lines)
        .collect();
    assert_eq!(left_out.remove(0), "cargo test");
    let options = bench_options();
    assert!(left_out.len() > 5, "{left_out:?}");
    for line in left_out {
        let arguments =
            line.strip_prefix("cargo run --release -p k1s-bench -- ").unwrap_or_else(|| panic!("{line}"));
        let mut words = arguments.split(' ');
        let suite = words.next().unwrap();
        let known = options(suite);
        for word in words.filter(|word| word.starts_with("--")) {
            assert!(known.contains(&word.to_owned()), "{line}: {suite} has {known:?}");
        }
    }
}

/// The options of a suite of benchmarks, from its source: to ask the program would be to build all its peers.
fn bench_options() -> impl Fn(&str) -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/src");
    let main = fs::read_to_string(sources.join("main.rs")).unwrap();
    move |suite| {
        let name = format!("{}{}", suite[..1].to_uppercase(), &suite[1..]);
        assert!(main.contains(&format!("\n    {name}({suite}::Options),")), "there is no suite {suite}");
        let (file, folder) = (sources.join(format!("{suite}.rs")), sources.join(suite).join("mod.rs"));
        let text = fs::read_to_string(if file.exists() { file } else { folder }).unwrap();
        let (_, options) = text.split_once("pub(crate) struct Options {").expect("its options");
        let fields = options.split("\n}").next().unwrap().split("#[arg(long").skip(1);
        let field = |text: &str| {
            text.split_once(")]\n").unwrap().1.trim().split(':').next().unwrap().replace('_', "-")
        };
        fields.map(|text| format!("--{}", field(text))).collect()
    }
}
