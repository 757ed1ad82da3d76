//! Every example of the README and of docs/ has a test: a new one without fails here.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::{
    player::{Shell, steps},
    snippets::serve,
};

/// An example of a page, as its language and its first line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Example {
    page: String,
    language: String,
    first: String,
}

/// Blocks that are neither doctests nor played from top to bottom, and what tests each: the path of a file, and a function in it.
const TESTED: &[(&str, &str, &str, &str, &str)] = &[
    (
        "README.md",
        "toml",
        "[dependencies]",
        "examples/quickstart/tests/runs.rs",
        "the_readme_names_the_dependencies_of_this_program",
    ),
    ("README.md", "console", "cargo test", GUIDES_CHECKOUT, LEFT_OUT),
    ("README.md", "console", "cargo run --release -p k1s-bench -- server --quick", GUIDES_CHECKOUT, LEFT_OUT),
    ("aggregation.md", "console", "$ kubectl get usages", AGGREGATED, "the_page_shows_what_kubectl_prints"),
    (
        "aggregation.md",
        "yaml",
        "apiVersion: apiregistration.k8s.io/v1",
        AGGREGATED,
        "the_page_shows_what_kubectl_prints",
    ),
    (
        "aggregation.md",
        "console",
        "$ k1s serve --service-address usage/remote=10.1.2.3:8443",
        SNIPPETS,
        "the_address_of_a_service_and_its_api_service_are_taken",
    ),
    (
        "architecture.md",
        "text",
        "   kubectl · client-go · kopf · helm · browser                 your controllers",
        DECLARED,
        "drawings_are_of_what_is_there",
    ),
    (
        "architecture.md",
        "text",
        "Cargo.toml          the workspace: one table of dependencies, the lints, the build profiles",
        DECLARED,
        "drawings_are_of_what_is_there",
    ),
    (
        "audit.md",
        "console",
        "k1s serve --data-dir data --audit-policy-file policy.yaml --audit-log-path audit/audit.log",
        SNIPPETS,
        "the_flags_and_files_of_auditing_are_taken",
    ),
    (
        "audit.md",
        "yaml",
        "apiVersion: audit.k8s.io/v1",
        "crates/server/tests/audit/example.rs",
        "the_example_records_what_it_says",
    ),
    (
        "audit.md",
        "console",
        "k1s serve --audit-policy-file policy.yaml --audit-webhook-config-file receiver.kubeconfig",
        SNIPPETS,
        "the_flags_and_files_of_auditing_are_taken",
    ),
    ("audit.md", "yaml", "apiVersion: v1", SNIPPETS, "the_flags_and_files_of_auditing_are_taken"),
    (
        "authentication.md",
        "yaml",
        "apiVersion: apiserver.config.k8s.io/v1",
        "crates/server/tests/auth/oidc.rs",
        "the_example_of_the_guide_works",
    ),
    (
        "authorization.md",
        "yaml",
        "apiVersion: apiserver.config.k8s.io/v1",
        SNIPPETS,
        "the_configuration_of_authorizers_is_taken",
    ),
    (
        "controllers.md",
        "console",
        "curl http://127.0.0.1:6060/debug/pprof/goroutine",
        "crates/runtime/tests/pprof.rs",
        "a_profile_shows_where_the_time_goes",
    ),
    (
        "disk-format.md",
        "text",
        "LOCK               names the holder; locked (flock) while the store is open, like the folder itself and `store`",
        DECLARED,
        "drawings_are_of_what_is_there",
    ),
    (
        "edge.md",
        "ini",
        "# /etc/systemd/system/k1s.service",
        SNIPPETS,
        "the_units_of_an_edge_box_start_what_they_say",
    ),
    ("edge.md", "ini", "[Service]", SNIPPETS, "the_units_of_an_edge_box_start_what_they_say"),
    (
        "encryption.md",
        "yaml",
        "apiVersion: apiserver.config.k8s.io/v1",
        SNIPPETS,
        "the_configuration_of_encryption_is_taken",
    ),
    (
        "encryption.md",
        "yaml",
        "  providers:",
        "crates/encryption/tests/store.rs",
        "the_examples_of_the_guide_are_read",
    ),
    (
        "from-go.md",
        "go",
        "// report keeps a ConfigMap with the image of each widget.",
        MAIN,
        "the_go_code_of_the_guides_is_that_of_the_suite",
    ),
    (
        "security.md",
        "console",
        "k1s serve --data-dir data --bind 0.0.0.0 --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file clients.crt",
        SNIPPETS,
        "a_certificate_from_elsewhere_is_taken",
    ),
    (
        "testing.md",
        "go",
        "// The control plane is that of KUBECONFIG: a k1s serve, started before the tests. Nothing is downloaded.",
        MAIN,
        "the_go_code_of_the_guides_is_that_of_the_suite",
    ),
    (
        "versions.md",
        "yaml",
        "apiVersion: storagemigration.k8s.io/v1",
        SNIPPETS,
        "the_request_for_a_migration_migrates",
    ),
];

const GUIDES_CHECKOUT: &str = "crates/cli/tests/guides/checkout.rs";
const LEFT_OUT: &str = "what_is_not_played_is_the_test_command_and_the_benchmarks";
const AGGREGATED: &str = "examples/aggregated/tests/runs.rs";
const SNIPPETS: &str = "crates/cli/tests/guides/snippets.rs";
const MAIN: &str = "crates/cli/tests/guides/main.rs";
const DECLARED: &str = "crates/cli/tests/guides/declared.rs";

/// The files whose tests play the `$ ` lines of whole pages.
const PLAYERS: &[&str] = &[MAIN, GUIDES_CHECKOUT, SNIPPETS];

/// The files that make pages doctests.
const DOCTESTS: &[&str] = &["crates/k1s/src/lib.rs", "crates/cli/src/lib.rs"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The README and all pages: names and texts.
fn pages() -> Vec<(String, String)> {
    let mut pages = vec![("README.md".to_owned(), read("README.md"))];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&format!("docs/{name}"));
        pages.push((name, text));
    }
    assert!(pages.len() > 20);
    pages
}

/// The blocks of a page: language and text, without indentation.
pub(crate) fn blocks(text: &str) -> Vec<(String, String)> {
    let (mut blocks, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| line.trim_start() != "```");
            let text =
                inside.map(|line| line.get(indent..).unwrap_or_default()).collect::<Vec<_>>().join("\n");
            blocks.push((language.to_owned(), text));
        }
    }
    blocks
}

#[test]
fn every_example_has_a_test() {
    let include = |page: &str| format!("include_str!(\"../../../{page}\")");
    let doctests: String = DOCTESTS.iter().map(|file| read(file)).collect();
    let players: String = PLAYERS.iter().map(|file| read(file)).collect();
    let (mut missing, mut found) = (Vec::new(), BTreeSet::new());
    for (page, text) in pages() {
        let path = if page == "README.md" { page.clone() } else { format!("docs/{page}") };
        let is_doctest = doctests.contains(&format!("#[doc = {}]", include(&path)));
        let is_played = players.contains(&include(&format!("../{path}")));
        for (language, block) in blocks(&text) {
            let first = block.lines().next().unwrap_or_default().to_owned();
            let mut words = language.split(',');
            let declared =
                TESTED.iter().any(|known| (known.0, known.1, known.2) == (&page, &language, &first));
            let tested = if words.next() == Some("rust") {
                is_doctest && words.all(|word| matches!(word, "no_run" | "compile_fail"))
            } else if language == "console" && !declared {
                is_played && !steps(&format!("```console\n{block}\n```\n")).is_empty()
            } else {
                declared
            };
            let example = Example { page: page.clone(), language, first };
            if !tested {
                missing.push(example);
            } else if declared {
                found.insert(example);
            }
        }
    }
    assert!(missing.is_empty(), "examples without a test; see `TESTED` in {DECLARED}: {missing:#?}");
    assert_eq!(found.len(), TESTED.len(), "`TESTED` has examples that are in no page; these are: {found:#?}");
}

#[test]
fn the_tests_of_examples_exist_and_read_their_page() {
    for (page, _, first, file, test) in TESTED {
        let text = read(file);
        assert!(text.contains(&format!("fn {test}(")), "{page}, {first}: there is no {test} in {file}");
        let name = page.strip_suffix(".md").unwrap();
        assert!(text.contains(&format!("{name}.md")), "{page}, {first}: {file} does not read it");
    }
}

/// The crates and folders of docs/architecture.md, and the files of docs/disk-format.md.
#[test]
fn drawings_are_of_what_is_there() {
    let drawn = |page: &str| -> Vec<String> {
        let texts = blocks(&read(page)).into_iter().filter(|block| block.0 == "text");
        texts.map(|block| block.1).collect()
    };
    let first_word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let architecture = drawn("docs/architecture.md");
    let [drawing, tree] = &architecture[..] else { panic!("a drawing and a tree") };
    let crates: Vec<&str> = drawing.split([' ', ':']).filter_map(|word| word.strip_prefix("k1s-")).collect();
    assert!(crates.len() > 5, "{crates:?}");
    let folders = tree.lines().filter_map(|line| line.strip_prefix("├── ").or(line.strip_prefix("└── ")));
    let folders: Vec<String> = folders.map(first_word).collect();
    assert!(folders.len() > 15, "{folders:?}");
    for name in crates.into_iter().chain(folders.iter().map(String::as_str)) {
        assert!(root().join("crates").join(name).exists(), "there is no crates/{name}");
    }
    for line in tree
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic() || first == '.'))
    {
        assert!(root().join(first_word(line)).exists(), "there is no {line}");
    }

    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    serve(&mut shell, "k1s serve --data-dir data");
    let files: Vec<String> = drawn("docs/disk-format.md")[0].lines().map(first_word).collect();
    assert!(files.len() > 5, "{files:?}");
    for name in files {
        assert!(folder.path().join("data").join(&name).exists(), "a data folder has no {name}");
    }
}

#[test]
fn the_kinds_of_create_are_listed() {
    let output = Command::new(env!("CARGO_BIN_EXE_k1s")).args(["create", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().map_while(|line| line.split_whitespace().next());
    let known: BTreeSet<String> = commands.filter(|name| *name != "help").map(str::to_owned).collect();
    let page = read("docs/command-line.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `create "));
    let listed: BTreeSet<String> =
        rows.map(|row| row.split([' ', '`']).next().unwrap_or_default().to_owned()).collect();
    assert_eq!(listed, known);
}
