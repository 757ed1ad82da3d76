//! Plays the commands of the README, in a folder of their own.

use std::fs;

use crate::player::{Shell, free_port, has};

const README: &str = include_str!("../../../../README.md");

/// The file that the README assumes.
const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
";

/// What needs a checkout and its tools. What `cargo test` runs includes this test; the quickstart is compared with the README in
/// `examples/quickstart`, and the benchmarks are checked when they are built.
fn needs_a_checkout(command: &str) -> bool {
    command == "cargo test" || command.starts_with("cargo run --release -p k1s-bench -- ")
}

#[test]
fn the_commands_of_the_readme_work() {
    let has_kubectl = has("kubectl");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("web.yaml"), WEB).unwrap();
    let mut shell = Shell::start(folder.path());
    let (mut played, mut server) = (0, None);
    for block in README.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let command = line.replace("cargo run --release --", "k1s");
            played += 1;
            if needs_a_checkout(line) || (command.starts_with("kubectl") && !has_kubectl) {
                continue;
            }
            assert!(!command.starts_with("cargo"), "the test does not know what {line:?} does");
            if let Some(rest) = command.strip_prefix("k1s serve").or_else(|| command.strip_prefix("k1s demo"))
            {
                // The README uses the default ports, and stops one server before it starts the next.
                if server.take().is_some() {
                    assert_eq!(shell.run("kill %% && wait %%; rm -rf k1s.kubeconfig").0, 0);
                }
                let (name, port) = (&command[..command.len() - rest.len()], free_port());
                let http = if name.ends_with("demo") { " --http-port 0" } else { "" };
                shell.run(&format!("{name}{rest} --port {port}{http} > server.log 2>&1 &"));
                // It writes the kubeconfig when it is ready.
                let (code, lines) = shell.run(
                    "timeout 60 sh -c 'until [ -s k1s.kubeconfig ]; do sleep 0.05; done'; cat server.log",
                );
                assert_eq!(code, 0, "{command}: {lines:#?}");
                server = Some(port);
            } else if let Some(watch) = command.strip_suffix(" --watch") {
                let (code, lines) = shell.run(&format!("timeout 3 {watch} --watch"));
                assert_eq!(code, 124, "{command}: {lines:#?}");
                assert!(lines.iter().any(|line| line.starts_with("hello")), "{lines:#?}");
            } else {
                let (code, lines) = shell.run(&command);
                assert_eq!(code, 0, "{command}: {lines:#?}");
            }
        }
    }
    assert!(played > 20, "{played}");
}
