//! `k1s migrate`: in a folder, on a server, over etcd.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use k1s::{
    env::Env,
    kube::{
        Client, Config,
        config::{KubeConfigOptions, Kubeconfig},
    },
};
use k1s_store_etcd::testing::EtcdServer;

/// Two versions with the same schema, of which one is stored.
fn definition(storage: &str) -> String {
    let version = |name: &str| {
        format!(
            "  - name: {name}\n    served: true\n    storage: {}\n    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n",
            name == storage
        )
    };
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: notes.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{plural: notes, kind: Note}}\n  versions:\n{}{}",
        version("v1"),
        version("v2")
    )
}

fn notes() -> String {
    let note = |number: usize| {
        format!(
            "---\napiVersion: example.com/v1\nkind: Note\nmetadata: {{name: n{number}}}\nspec: {{text: t{number}}}\n"
        )
    };
    (0..5).map(note).collect()
}

/// Runs the program: its exit code, and what it prints.
fn k1s(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_k1s"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Applies files; the command has to succeed.
fn apply(folder: &Path, place: &[&str], text: &str) {
    fs::write(folder.join("objects.yaml"), text).unwrap();
    let arguments = [&["apply", "-f", "objects.yaml"], place].concat();
    let (code, _, error) = k1s(folder, &arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
}

/// Notes that are stored in v1, which is no longer the storage version.
fn outdate(folder: &Path, place: &[&str]) {
    apply(folder, place, &definition("v1"));
    apply(folder, place, &notes());
    apply(folder, place, &definition("v2"));
}

const DONE: &str = "notes.example.com: v1, v2 -> v2: Migration completed";

#[test]
fn a_folder_is_migrated_in_all_tenants() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = ["--data-dir", "data"];
    let team = ["--data-dir", "data", "--tenant", "team-a"];
    let (code, _, error) = k1s(folder, &["migrate", "--data-dir", "data"]);
    assert_eq!((code, error.as_str()), (2, "k1s: there is no data folder data\n"));
    outdate(folder, &data);
    outdate(folder, &team);
    let (code, out, error) = k1s(folder, &["migrate", "--data-dir", "data", "--dry-run"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(
        out,
        "default: notes.example.com: v1, v2 -> v2\nteam-a: notes.example.com: v1, v2 -> v2\n2 resources in 2 tenants would be migrated.\n"
    );
    let (code, out, error) = k1s(folder, &["migrate", "--data-dir", "data", "--tenant", "team-a"]);
    assert_eq!((code, out), (0, format!("{DONE}\n1 resource migrated.\n")), "{error}");
    let (code, out, error) = k1s(folder, &["migrate", "--data-dir", "data"]);
    assert_eq!((code, out), (0, format!("default: {DONE}\n1 resource migrated.\n")), "{error}");
    let (code, out, _) = k1s(folder, &["migrate", "--data-dir", "data"]);
    assert_eq!((code, out.as_str()), (0, "Everything is stored in the storage versions.\n"));
    // Resources by their names, also built-in ones.
    let (code, out, error) = k1s(
        folder,
        &["migrate", "--data-dir", "data", "--tenant", "default", "configmaps", "notes.example.com"],
    );
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            "configmaps: Migration completed\nnotes.example.com: v2 -> v2: Migration completed\n2 resources migrated.\n"
        ),
        "{error}"
    );
    let (code, out, error) =
        k1s(folder, &["migrate", "--data-dir", "data", "configmaps", "nothing.example.com"]);
    assert_eq!(
        (code, out.as_str(), error.as_str()),
        (2, "", "k1s: nothing.example.com: there is no such resource\n")
    );
    let (code, _, error) = k1s(folder, &["migrate", "--data-dir", "data", "--tenant", "no-such"]);
    assert_eq!(code, 2, "{error}");
    let (code, out, _) =
        k1s(folder, &["get", "notes", "--data-dir", "data", "--tenant", "team-a", "-o", "name"]);
    assert_eq!((code, out.lines().count()), (0, 5), "{out}");
}

#[test]
fn a_migration_that_fails_is_an_exit_code_and_the_others_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = ["--data-dir", "data"];
    outdate(folder, &data);
    outdate(folder, &["--data-dir", "data", "--tenant", "team-a"]);
    let policy = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: ['*'], operations: [UPDATE], resources: [notes]}]
  validations: [{expression: 'false', message: notes are frozen}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
";
    apply(folder, &data, policy);
    let (code, out, error) = k1s(folder, &["migrate", "--data-dir", "data"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines.len()), (1, 3), "{out}{error}");
    assert!(lines[0].starts_with("default: notes.example.com: v1, v2 -> v2: "), "{out}");
    assert!(lines[0].contains("notes are frozen"), "{out}");
    assert_eq!(lines[1], format!("team-a: {DONE}"));
    assert_eq!(
        lines[2],
        "1 of 2 migrations in 2 tenants failed; nothing is lost, and they can be tried again."
    );
    // It can be repeated once the reason is gone.
    let (code, _, error) =
        k1s(folder, &["delete", "validatingadmissionpolicybinding", "frozen", "--data-dir", "data"]);
    assert_eq!(code, 0, "{error}");
    let (code, out, error) = k1s(folder, &["migrate", "--data-dir", "data"]);
    assert_eq!((code, out), (0, format!("default: {DONE}\n1 resource migrated.\n")), "{error}");
}

/// A running `k1s serve`. It is killed when the test ends.
struct Server(Child);

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k1s"));
        command.args(["serve", "--port", "0", "--kubeconfig", "config"]).args(arguments).current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().expect("it ends before it is ready").unwrap().contains("Ctrl-C stops it") {}
        Server(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_is_migrated_through_its_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _server = Server::start(folder, &[]);
    let config = ["--kubeconfig", "config"];
    outdate(folder, &config);
    let tenant = r#"{"metadata": {"name": "team-a"}}"#;
    let request = http::Request::post("/k1s/v1/tenants").body(tenant.into()).unwrap();
    let kubeconfig = Kubeconfig::read_from(folder.join("config")).unwrap();
    let config_of = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config_of).unwrap().request_text(request).await.unwrap();
    outdate(folder, &["--kubeconfig", "config", "--tenant", "team-a"]);
    let (code, out, error) = k1s(folder, &["migrate", "--kubeconfig", "config"]);
    assert_eq!(
        (code, out),
        (0, format!("default: {DONE}\nteam-a: {DONE}\n2 resources in 2 tenants migrated.\n")),
        "{error}"
    );
}

#[tokio::test]
async fn an_etcd_is_migrated_while_a_server_runs_and_without_one() {
    let Some(etcd) = EtcdServer::start(&Env::system()).await.unwrap() else { return };
    let (temporary, endpoint) = (tempfile::tempdir().unwrap(), etcd.endpoint());
    let folder = temporary.path();
    let server = Server::start(folder, &["--etcd", &endpoint]);
    let config = ["--kubeconfig", "config"];
    outdate(folder, &config);
    let (code, out, error) = k1s(folder, &["migrate", "--etcd", &endpoint]);
    assert_eq!((code, out), (0, format!("{DONE}\n1 resource migrated.\n")), "{error}");
    apply(folder, &config, &definition("v1"));
    drop(server);
    let (code, out, error) = k1s(folder, &["migrate", "--etcd", &endpoint]);
    let done = "notes.example.com: v2, v1 -> v1: Migration completed\n1 resource migrated.\n";
    assert_eq!((code, out.as_str()), (0, done), "{error}");
}
