//! The same commands in a folder and on a server.

use std::process::Stdio;

use super::{Here, Server, Told, WEB, told};

const TEAMS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teams.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: teams, singular: team, kind: Team, shortNames: [tm]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: integer, description: How many people there are.}}
---
apiVersion: example.dev/v1
kind: Team
metadata: {name: red, labels: {app: web}}
spec: {size: 3}
";

/// Old enough that their ages do not change while the test runs.
const EVENTS: &str = "apiVersion: v1
kind: Event
metadata: {name: web.1}
type: Warning
reason: TooFew
message: not enough replicas
involvedObject: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}
firstTimestamp: '2020-01-01T00:00:00Z'
lastTimestamp: '2020-01-02T00:00:00Z'
count: 3
---
apiVersion: v1
kind: Event
metadata: {name: settings.1}
type: Normal
reason: Read
message: somebody has read it
involvedObject: {apiVersion: v1, kind: ConfigMap, name: settings, namespace: default}
firstTimestamp: '2020-01-01T00:00:00Z'
lastTimestamp: '2020-01-01T00:00:00Z'
";

/// An owner, and what it owns by name: its uid is filled in.
const CHILD: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: UID, blockOwnerDeletion: true}]
";

/// Commands whose output does not depend on where they work.
const SAME: &[&[&str]] = &[
    &["apply", "-f", "web.yaml"],
    &["apply", "-f", "web.yaml"],
    &["get", "cm", "settings", "-o", "jsonpath={.data}"],
    &["get", "cm,deploy", "-o", "name"],
    &[
        "get",
        "deploy,cm",
        "-l",
        "app=web",
        "-o",
        "custom-columns=KIND:.kind,NAME:.metadata.name,SPEC:.spec.strategy",
    ],
    &["get", "nodes"],
    &["get", "deploy,cm"],
    &["get", "deploy,cm", "-A", "-l", "app=web"],
    &["get", "cm", "--field-selector", "metadata.name=settings", "-o", "name"],
    &["get", "cm", "--field-selector", "nope=x"],
    &["get", "deploy", "-o", "wide", "--show-labels"],
    &["get", "deploy", "web", "-o", "yaml"],
    &["get", "cm,deploy", "-l", "app=web", "-o", "json", "--show-managed-fields"],
    &["describe", "deploy", "web"],
    &["describe", "cm", "settings"],
    &["tree", "deploy/web"],
    &["diff", "-f", "web.yaml"],
    &["wait", "deploy/web", "--for=jsonpath={.spec.replicas}=2", "--timeout=5s"],
    &["wait", "deploy/web", "--for=condition=Available", "--timeout=0s"],
    &["annotate", "cm", "settings", "c=d"],
    &["edit", "cm", "settings"],
    &["get", "cm/settings", "-o", "jsonpath={.data.colour}"],
    &["edit", "cm", "settings"],
    &["get", "cm", "nope", "settings", "-o", "name"],
    &["get", "nope"],
    &["get", "cm", "-n", "default", "-o", "name", "--sort-by", ".metadata.name"],
    &["api-resources"],
    &["api-resources", "-o", "wide", "--sort-by=name"],
    &["explain", "deployment.spec.strategy"],
    &["label", "cm", "settings", "a=b"],
    &["patch", "cm", "settings", "--type=json", "-p", r#"[{"op":"test","path":"/data/colour","value":"x"}]"#],
    &["create", "-f", "web.yaml"],
    &["scale", "deploy", "web", "--replicas=-1"],
    &["events"],
    // Dry runs.
    &["patch", "deploy", "web", "-p", r#"{"spec":{"replicas":9}}"#, "--dry-run=client", "-o", "yaml"],
    &["patch", "deploy", "web", "-p", r#"{"spec":{"replicas":9}}"#, "--dry-run=server", "-o", "yaml"],
    &["apply", "-f", "web.yaml", "--dry-run=server"],
    &["create", "configmap", "dry", "--from-literal=a=b", "--dry-run=client", "-o", "yaml"],
    &["label", "cm", "settings", "x=y", "--dry-run=client", "-o", "yaml"],
    &["delete", "cm", "settings", "--dry-run=server"],
    // Objects of the command line.
    &["create", "namespace", "shop"],
    &["create", "sa", "robot", "-n", "shop"],
    &["create", "secret", "generic", "hidden", "--from-literal=a=b"],
    &["create", "deployment", "made", "--image=nginx:1", "--replicas=2", "--port=80", "--", "sleep", "1"],
    &["create", "job", "once", "--image=busybox:1", "-n", "shop"],
    &["create", "service", "clusterip", "made", "--tcp=80:8080"],
    &["create", "role", "reader", "--verb=get,list", "--resource=pods,deploy"],
    &["create", "clusterrole", "reader", "--verb=get", "--non-resource-url=/healthz"],
    &["create", "rolebinding", "reads", "--role=reader", "--user=alice"],
    &["create", "clusterrolebinding", "reads", "--clusterrole=reader", "--serviceaccount=shop:robot"],
    &["create", "quota", "few", "--hard=pods=2", "-n", "shop"],
    &["create", "ingress", "door", "--rule=shop.example/*=made:80"],
    &["create", "role", "reader", "--verb=get", "--resource=nope"],
    &["create", "deployment", "made", "--image=nginx:1"],
    &["get", "deploy/made", "role/reader", "rolebinding/reads", "ingress/door", "-o", "yaml"],
    &["get", "job/once", "quota/few", "-n", "shop", "-o", "yaml"],
    // Custom resources.
    &["apply", "-f", "teams.yaml"],
    &["get", "tm"],
    &["get", "team", "red", "-o", "yaml"],
    &["describe", "team", "red"],
    &["explain", "team.spec"],
    &["patch", "team", "red", "--type=merge", "-p", r#"{"spec":{"size":4}}"#],
    &["patch", "team", "red", "--type=merge", "-p", r#"{"spec":{"size":"x"}}"#],
    &["patch", "team", "red", "-p", r#"{"spec":{"size":5}}"#],
    &["delete", "team", "red"],
    // Events.
    &["create", "-f", "events.yaml"],
    &["events"],
    &["events", "-A"],
    &["events", "--for", "deploy/web"],
    &["events", "--types=Warning", "-o", "name"],
    &["describe", "deploy", "web"],
    // Folders of files, conflicts, pruning.
    &["apply", "-f", "files"],
    &["apply", "-f", "files", "-R"],
    &["apply", "-k", "files"],
    &["apply", "--server-side", "--field-manager=other", "-f", "changed.yaml"],
    &["apply", "--server-side", "--field-manager=other", "-f", "changed.yaml", "--force-conflicts"],
    &["apply", "-f", "files", "--prune", "-l", "set=x", "--dry-run=client"],
    &["apply", "-f", "files", "--prune", "-l", "set=x"],
    &["get", "cm", "-l", "set=x", "-o", "name"],
    &["run", "-f", "web.yaml"],
    // Owners and dependents.
    &["get", "cm", "child", "-o", "name"],
    &["delete", "cm", "owner", "--cascade=orphan"],
    &["get", "cm", "child", "-o", "name"],
    &["delete", "namespace", "shop", "--cascade=foreground"],
    &["wait", "namespace/shop", "--for=delete", "--timeout=60s"],
    &["delete", "deploy", "web", "nope"],
    &["delete", "cm,deploy", "--all"],
    &["version", "-o", "json"],
];

/// Runs a command with an editor.
fn run(place: &Here, command: &[&str]) -> Told {
    told(&place.command(command).env("KUBE_EDITOR", "sed -i s/blue/teal/").output().unwrap())
}

fn prepare(place: &Here) {
    for (name, text) in [
        ("teams.yaml", TEAMS),
        ("events.yaml", EVENTS),
        ("changed.yaml", &WEB.replace("blue", "red")),
        ("files/kustomization.yaml", "resources: [a.yaml]\n"),
        ("files/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {set: x}}\n"),
        ("files/sub/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {set: x}}\n"),
    ] {
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, text);
    }
    place.ok(&["create", "configmap", "owner"]);
    let uid = place.ok(&["get", "cm/owner", "-o", "jsonpath={.metadata.uid}"]);
    place.write("child.yaml", &CHILD.replace("UID", &uid));
    place.ok(&["create", "-f", "child.yaml"]);
}

#[test]
fn a_folder_and_a_server_answer_the_same() {
    let folder = Here::folder();
    let mut remote = Here::folder();
    let server = Server::start(remote.dir.path(), &["--data-dir", "served"]);
    remote.place = vec!["--kubeconfig".into(), server.kubeconfig.to_string_lossy().into_owned()];
    prepare(&folder);
    prepare(&remote);
    for command in SAME {
        let (here, there) = (run(&folder, command), run(&remote, command));
        assert_eq!((here.code, &*here.err), (there.code, &*there.err), "{command:?}");
        let (here, there) = (plain(&here.out), plain(&there.out));
        let first = here.iter().zip(&there).find(|(here, there)| here != there);
        assert_eq!((first, here.len()), (None, there.len()), "{command:?}");
    }
    // Watches do not end.
    for command in [&["get", "quota,ns", "-w"][..], &["watch", "ns", "default", "-o", "name"]] {
        let first = |place: &Here| {
            let mut child =
                place.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(
                &mut std::io::BufReader::new(child.stdout.take().unwrap()),
                &mut line,
            )
            .unwrap();
            child.kill().unwrap();
            (line, told(&child.wait_with_output().unwrap()).err)
        };
        assert_eq!(first(&folder), first(&remote), "{command:?}");
    }
    server.stop();
}

/// Lines without ages, and the widths of columns that depend on them, times, ids, revisions, and what controllers of a folder
/// report.
fn plain(text: &str) -> Vec<String> {
    let shape = |word: &str| {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let shape: String =
            word.bytes().map(|byte| if is_digit(&byte) { '0' } else { char::from(byte) }).collect();
        let age = word.trim_end_matches(['s', 'm']);
        let bare = word.trim_matches(['"', ',']);
        let uid = bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4;
        if uid {
            "UID".to_owned()
        } else if shape.contains("0000-00-00T00:00:00Z") {
            shape
        } else if age.len() < word.len() && !age.is_empty() && age.bytes().all(|byte| is_digit(&byte)) {
            "AGE".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| match line.split_once("esource") {
        Some((indent, rest)) if rest.trim_start().starts_with("Version") => format!("{indent}esourceVersion"),
        _ => line.split_whitespace().map(shape).collect::<Vec<_>>().join(" "),
    };
    let without_controllers =
        |line: &str| line.split("; control plane").next().unwrap_or_default().to_owned();
    text.lines().map(line).map(|line| without_controllers(&line)).collect()
}
