//! Examples of the guides that are no sequence of commands: configurations, units, and single lines. Each is given to the program, in a
//! folder with the files that it names.

use std::{fs, path::Path, process::Command};

use crate::{
    declared,
    player::{Shell, has},
};

/// The blocks of a language.
fn blocks(guide: &str, language: &str) -> Vec<String> {
    let of_language = declared::blocks(guide).into_iter().filter(|block| block.0 == language);
    of_language.map(|(_, text)| text + "\n").collect()
}

/// Starts a server as a line of a guide does, in the place of the one before, and waits until it is ready.
pub(crate) fn serve(shell: &mut Shell, line: &str) {
    let command = line.trim().trim_start_matches("$ ");
    assert!(command.starts_with("k1s serve "), "{command}");
    assert_eq!(shell.play(&format!("```console\n$ {command}\n```\n")), 1);
}

/// An authority `NAME.crt`, which has issued the client certificate `client`.
fn authority(shell: &mut Shell, name: &str, client: &str) {
    shell.prepare(&format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.crt -subj /CN={name} -days 2 2>/dev/null"
    ));
    shell.prepare(&format!(
        "openssl req -newkey rsa:2048 -nodes -keyout {client}.key -out {client}.csr -subj /CN={client} 2>/dev/null"
    ));
    shell.prepare(&format!("echo subjectAltName=DNS:{client} > {client}.ext"));
    shell.prepare(&format!(
        "openssl x509 -req -in {client}.csr -CA {name}.crt -CAkey {name}.key -CAcreateserial -out {client}.crt -days 2 \
         -extfile {client}.ext 2>/dev/null"
    ));
}

/// A kubeconfig that leads nowhere.
const NOWHERE: &str = "\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1/'}}]
users: [{name: a, user: {}}]
";

fn folder() -> (tempfile::TempDir, Shell) {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::start(folder.path());
    (folder, shell)
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn the_flags_of_authentication_work_as_printed() {
    let (folder, mut shell) = folder();
    authority(&mut shell, "proxy-ca", "front");
    write(folder.path(), "webhook.kubeconfig", NOWHERE);
    assert_eq!(shell.play(include_str!("../../../../docs/authentication.md")), 4);
}

#[test]
fn the_flags_and_files_of_auditing_are_taken() {
    const GUIDE: &str = include_str!("../../../../docs/audit.md");
    let (folder, mut shell) = folder();
    authority(&mut shell, "ca", "k1s");
    let [policy, receiver] = &blocks(GUIDE, "yaml")[..] else { panic!("a policy and a kubeconfig") };
    write(folder.path(), "policy.yaml", policy);
    write(folder.path(), "receiver.kubeconfig", receiver);
    let lines = blocks(GUIDE, "console");
    let [to_a_file, to_a_receiver] = &lines[..] else { panic!("two commands: {lines:?}") };
    serve(&mut shell, to_a_file);
    shell.prepare("k1s create configmap audited --kubeconfig k1s.kubeconfig");
    // A server that is stopped has written all its events.
    serve(&mut shell, to_a_receiver);
    shell.prepare(r#"grep -q '"name":"audited"' audit/audit.log"#);
}

#[test]
fn the_configuration_of_authorizers_is_taken() {
    let (folder, mut shell) = folder();
    let policy = folder.path().join("policy.kubeconfig");
    write(folder.path(), "policy.kubeconfig", NOWHERE);
    let yaml = blocks(include_str!("../../../../docs/authorization.md"), "yaml");
    assert_eq!(yaml.len(), 1);
    assert!(yaml[0].contains("/etc/k1s/policy.kubeconfig"));
    let yaml = yaml[0].replace("/etc/k1s/policy.kubeconfig", policy.to_str().unwrap());
    write(folder.path(), "authorizers.yaml", &yaml);
    serve(&mut shell, "k1s serve --authorization-config authorizers.yaml");
    shell.prepare("k1s get namespaces --kubeconfig k1s.kubeconfig");
}

/// The fragment about KMS is read in `crates/encryption/tests/store.rs`.
#[test]
fn the_configuration_of_encryption_is_taken() {
    let (folder, mut shell) = folder();
    let yaml = &blocks(include_str!("../../../../docs/encryption.md"), "yaml")[0];
    // 32 bytes each.
    let yaml = yaml.replace("…32 bytes in base64…", &format!("{}=", "A".repeat(43)));
    let yaml = yaml.replace('…', &format!("{}BBA=", "A".repeat(40)));
    write(folder.path(), "encryption.yaml", &yaml);
    serve(&mut shell, "k1s serve --data-dir data --encryption-provider-config encryption.yaml");
    shell.prepare(
        "k1s create configmap hidden --from-literal=word=battery-staple --kubeconfig k1s.kubeconfig",
    );
    shell.stop_server();
    shell.prepare("grep -rqaF k8s:enc:aesgcm:v1:key2: data/store");
    shell.prepare("! grep -rqaF battery-staple data/store");
}

#[test]
fn the_address_of_a_service_and_its_api_service_are_taken() {
    const GUIDE: &str = include_str!("../../../../docs/aggregation.md");
    let (folder, mut shell) = folder();
    let console = blocks(GUIDE, "console");
    serve(&mut shell, console.iter().find(|block| block.contains("k1s serve")).unwrap());
    let yaml = blocks(GUIDE, "yaml");
    assert_eq!(yaml.len(), 1);
    write(folder.path(), "service.yaml", &yaml[0]);
    shell.prepare("k1s create -f service.yaml --kubeconfig k1s.kubeconfig");
}

#[test]
fn a_certificate_from_elsewhere_is_taken() {
    let (_folder, mut shell) = folder();
    authority(&mut shell, "clients", "tls");
    let console = blocks(include_str!("../../../../docs/security.md"), "console");
    serve(&mut shell, console.iter().find(|block| block.starts_with("k1s serve")).unwrap());
}

#[test]
fn the_request_for_a_migration_migrates() {
    let (folder, mut shell) = folder();
    let yaml = blocks(include_str!("../../../../docs/versions.md"), "yaml");
    assert_eq!(yaml.len(), 1);
    write(folder.path(), "migration.yaml", &yaml[0]);
    let sites = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sites, kind: Site}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";
    write(folder.path(), "sites.yaml", sites);
    serve(&mut shell, "k1s serve --data-dir data");
    shell.prepare("export KUBECONFIG=k1s.kubeconfig");
    shell.prepare("k1s create -f sites.yaml");
    shell.prepare("k1s wait crd/sites.example.com --for=condition=Established");
    shell.prepare("k1s create -f migration.yaml");
    shell.prepare("k1s wait storageversionmigration/sites --for=condition=Succeeded --timeout=60s");
}

#[test]
fn the_units_of_an_edge_box_start_what_they_say() {
    let units = blocks(include_str!("../../../../docs/edge.md"), "ini");
    let [unit, before] = &units[..] else { panic!("a unit and a part of one: {units:?}") };
    let (folder, mut shell) = folder();
    let line =
        |text: &str, name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    let here = |command: &str| command.replace("/usr/local/bin/k1s", "k1s").replace("/var/lib/k1s", "box");
    let (start, repair) = (line(unit, "ExecStart="), line(before, "ExecStartPre=-"));
    assert!(unit.contains("StateDirectory=k1s\n") && start.contains(" /var/lib/k1s "), "{start}");
    // Like `StateDirectory`.
    shell.prepare("mkdir -m 700 box");
    serve(&mut shell, &here(&start));
    shell.prepare("k1s create configmap kept --kubeconfig box/admin.kubeconfig");
    shell.stop_server();
    shell.prepare(&here(&repair));
    serve(&mut shell, &here(&start));
    shell.prepare("k1s get configmap kept --kubeconfig box/admin.kubeconfig");
    if has("systemd-analyze") {
        let program = env!("CARGO_BIN_EXE_k1s");
        let whole = unit.replace("[Service]\n", before).replace("/usr/local/bin/k1s", program);
        assert!(whole.contains("ExecStartPre=-") && whole.contains(&format!("ExecStart={program} serve")));
        write(folder.path(), "k1s.service", &whole);
        let verified = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(folder.path().join("k1s.service"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains("k1s.service"), "{said}");
    }
}
