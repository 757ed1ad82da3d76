//! The commands, through the program: in a folder, on a server, and both with the same result.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod changes;
mod places;
mod same;
mod watches;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

const WEB: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: \"nginx:1\"}]}
";

/// The program in a working directory, on a place.
struct Here {
    dir: tempfile::TempDir,
    place: Vec<String>,
}

/// What a command printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    out: String,
    err: String,
    code: i32,
}

impl Here {
    fn folder() -> Here {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("web.yaml"), WEB).unwrap();
        Here { dir, place: vec!["--data-dir".into(), "db".into()] }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k1s"));
        // What follows `--` is none of the options.
        let end = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
        command
            .args(&arguments[..end])
            .args(&self.place)
            .args(&arguments[end..])
            .current_dir(self.dir.path());
        command.env_remove("KUBECONFIG").env("HOME", self.dir.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Told {
        told(&self.command(arguments).output().unwrap())
    }

    /// Runs a command that succeeds and says nothing on stderr.
    fn ok(&self, arguments: &[&str]) -> String {
        let told = self.run(arguments);
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{arguments:?}: {told:?}");
        told.out
    }

    /// Runs a command that fails.
    fn fails(&self, arguments: &[&str]) -> String {
        let told = self.run(arguments);
        assert_eq!(told.code, 1, "{arguments:?}: {told:?}");
        told.err.trim_end().to_owned()
    }
}

fn told(output: &Output) -> Told {
    Told {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// `k1s serve`, killed at the end.
struct Server {
    child: Child,
    kubeconfig: PathBuf,
}

impl Server {
    fn start(dir: &Path, arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_k1s"))
            .args(["serve", "--port", "0", "--kubeconfig", "server.yaml"])
            .args(arguments)
            .current_dir(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let ready = out.lines().map_while(Result::ok).any(|line| line.contains("Ctrl-C stops it"));
        assert!(ready, "the server did not start");
        Server { child, kubeconfig: dir.join("server.yaml") }
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn objects_live_in_a_folder_without_a_server() {
    let here = Here::folder();
    let missing = here.fails(&["get", "cm"]);
    assert!(missing.contains("there is no data folder db") && missing.contains("apply -f"), "{missing}");
    assert_eq!(
        here.ok(&["apply", "-f", "web.yaml"]),
        "configmap/settings created\ndeployment.apps/web created\n"
    );
    assert_eq!(
        here.ok(&["apply", "-f", "web.yaml"]),
        "configmap/settings unchanged\ndeployment.apps/web unchanged\n"
    );
    here.write("web.yaml", &WEB.replace("blue", "red"));
    assert_eq!(
        here.ok(&["apply", "-f", "web.yaml"]),
        "configmap/settings configured\ndeployment.apps/web unchanged\n"
    );
    assert_eq!(here.ok(&["get", "cm/settings", "-o", "jsonpath={.data.colour}"]), "red");
    assert_eq!(
        here.ok(&["get", "cm,deploy", "-l", "app=web", "-o", "name"]),
        "configmap/settings\ndeployment.apps/web\n"
    );
    assert_eq!(
        here.ok(&["get", "deploy", "--no-headers", "-o", "custom-columns=N:.metadata.name,R:.spec.replicas"]),
        "web   2\n"
    );
    let table = here.ok(&["get", "deployments", "-L", "app"]);
    assert!(
        table.starts_with(
            "NAME   READY   UP-TO-DATE   AVAILABLE   AGE   APP\nweb    0/2     0            0           "
        ),
        "{table}"
    );
    assert_eq!(
        here.fails(&["get", "cm", "nope"]),
        "Error from server (NotFound): configmaps \"nope\" not found"
    );
    assert_eq!(here.fails(&["get", "nope"]), "error: the server doesn't have a resource type \"nope\"");
    let none = here.run(&["get", "pods"]);
    assert_eq!((none.code, none.err.as_str()), (0, "No resources found in default namespace.\n"));
    assert_eq!(
        here.ok(&["delete", "-f", "web.yaml"]),
        "configmap \"settings\" deleted from default namespace\ndeployment.apps \"web\" deleted from default namespace\n"
    );
}

#[test]
fn controllers_finish_their_work_before_a_command_ends() {
    let here = Here::folder();
    assert_eq!(here.ok(&["create", "namespace", "shop"]), "namespace/shop created\n");
    assert_eq!(
        here.ok(&["create", "configmap", "a", "-n", "shop", "--from-literal=k=v"]),
        "configmap/a created\n"
    );
    assert_eq!(here.ok(&["delete", "namespace", "shop"]), "namespace \"shop\" deleted\n");
    // Namespaces are emptied by a controller.
    assert_eq!(
        here.fails(&["get", "ns", "shop"]),
        "Error from server (NotFound): namespaces \"shop\" not found"
    );
}

#[test]
fn a_default_folder_is_found_from_below() {
    let mut here = Here::folder();
    here.place.clear();
    let nowhere = here.fails(&["get", "cm"]);
    assert!(nowhere.contains("mkdir .k1s") && nowhere.contains("--data-dir"), "{nowhere}");
    fs::create_dir_all(here.path(".k1s")).unwrap();
    fs::create_dir_all(here.path("some/where")).unwrap();
    here.ok(&["create", "configmap", "found"]);
    let output =
        here.command(&["get", "cm", "found", "-o", "name"]).current_dir(here.path("some/where")).output();
    assert_eq!(told(&output.unwrap()).out, "configmap/found\n");
}

#[test]
fn small_changes_are_told_in_the_words_of_kubectl() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    assert_eq!(here.ok(&["label", "cm", "settings", "tier=front"]), "configmap/settings labeled\n");
    assert_eq!(here.ok(&["label", "cm", "settings", "tier=front"]), "configmap/settings not labeled\n");
    assert_eq!(
        here.fails(&["label", "cm", "settings", "tier=back"]),
        "error: 'tier' already has a value (front), and --overwrite is false"
    );
    assert_eq!(here.ok(&["label", "cm", "settings", "tier-"]), "configmap/settings unlabeled\n");
    assert_eq!(here.ok(&["annotate", "cm/settings", "note=x"]), "configmap/settings annotated\n");
    assert_eq!(here.ok(&["scale", "deploy/web", "--replicas=5"]), "deployment.apps/web scaled\n");
    assert_eq!(
        here.fails(&["scale", "deploy/web", "--replicas=1", "--current-replicas=2"]),
        "error: Expected replicas to be 2, was 5"
    );
    assert_eq!(
        here.ok(&["patch", "deploy", "web", "-p", r#"{"spec":{"replicas":4}}"#]),
        "deployment.apps/web patched\n"
    );
    assert_eq!(
        here.ok(&["patch", "deploy", "web", "-p", r#"{"spec":{"replicas":4}}"#]),
        "deployment.apps/web patched (no change)\n"
    );
    assert_eq!(here.ok(&["get", "deploy/web", "-o", "jsonpath={.spec.replicas}"]), "4");
    let mut edit = here.command(&["edit", "cm", "settings"]);
    assert_eq!(
        told(&edit.env("KUBE_EDITOR", "sed -i s/blue/green/").output().unwrap()).out,
        "configmap/settings edited\n"
    );
    assert_eq!(here.ok(&["get", "cm/settings", "-o", "jsonpath={.data.colour}"]), "green");
    let mut edit = here.command(&["edit", "cm", "settings"]);
    assert_eq!(
        told(&edit.env("KUBE_EDITOR", "true").output().unwrap()).err,
        "Edit cancelled, no changes made.\n"
    );
    let dry = here.ok(&["delete", "cm", "settings", "--dry-run=server"]);
    assert_eq!(dry, "configmap \"settings\" deleted from default namespace (server dry run)\n");
    assert_eq!(
        here.ok(&["wait", "cm/settings", "--for=jsonpath={.data.colour}=green"]),
        "configmap/settings condition met\n"
    );
    let late = here.fails(&["wait", "deploy/web", "--for=condition=Available"]);
    assert_eq!(late, "error: timed out waiting for the condition on deployments/web");
}

#[test]
fn diff_shows_changes_and_exits_with_1() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    assert_eq!(here.ok(&["diff", "-f", "web.yaml"]), "");
    here.write("web.yaml", &WEB.replace("blue", "red"));
    let told = here.run(&["diff", "-f", "web.yaml"]);
    assert_eq!(told.code, 1);
    assert!(told.out.contains("-  colour: blue\n+  colour: red\n"), "{}", told.out);
    assert_eq!(
        here.ok(&["get", "cm/settings", "-o", "jsonpath={.data.colour}"]),
        "blue",
        "nothing was changed"
    );
    here.write("bad.yaml", "apiVersion: v1\nkind: Nope\nmetadata: {name: x}\n");
    assert_eq!(here.run(&["diff", "-f", "bad.yaml"]).code, 2);
}

#[test]
fn server_side_apply_names_conflicts() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    let other = ["apply", "--server-side", "--field-manager", "other", "-f", "web.yaml"];
    here.write("web.yaml", &WEB.replace("blue", "red"));
    let told = here.run(&other);
    assert_eq!(told.code, 1);
    assert!(
        told.err.contains("Apply failed with 1 conflict: conflict with \"k1s\": .data.colour"),
        "{}",
        told.err
    );
    assert!(told.err.contains("--force-conflicts"), "{}", told.err);
    let mut forced = other.to_vec();
    forced.push("--force-conflicts");
    assert_eq!(
        here.ok(&forced),
        "configmap/settings serverside-applied\ndeployment.apps/web serverside-applied\n"
    );
}

#[test]
fn definitions_and_their_objects_can_be_in_one_file() {
    let here = Here::folder();
    here.write(
        "teams.yaml",
        "apiVersion: apiextensions.k8s.io/v1
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
metadata: {name: red}
spec: {size: 3}
",
    );
    assert_eq!(
        here.ok(&["apply", "-f", "teams.yaml"]),
        "customresourcedefinition.apiextensions.k8s.io/teams.example.dev created\nteam.example.dev/red created\n"
    );
    assert_eq!(here.ok(&["get", "tm"]), "NAME   SIZE\nred    3\n");
    let explained = here.ok(&["explain", "team.spec"]);
    assert!(explained.contains("FIELD: spec <Object>"), "{explained}");
    assert!(
        explained.contains("  size\t<integer> -required-\n    How many people there are.\n"),
        "{explained}"
    );
    here.write("bad.yaml", "apiVersion: example.dev/v1\nkind: Team\nmetadata: {name: blue}\nspec: {}\n");
    let invalid = here.fails(&["apply", "-f", "bad.yaml"]);
    assert_eq!(invalid, "The Team \"blue\" is invalid: spec.size: Required value");
    here.write("no.yaml", "apiVersion: example.dev/v2\nkind: Team\nmetadata: {name: blue}\n");
    let unknown = here.fails(&["apply", "-f", "no.yaml"]);
    assert!(unknown.contains("no matches for kind \"Team\" in version \"example.dev/v2\""), "{unknown}");
}

#[test]
fn a_tree_has_owners_and_dependents() {
    let here = Here::folder();
    here.ok(&["create", "configmap", "top"]);
    let uid = here.ok(&["get", "cm/top", "-o", "jsonpath={.metadata.uid}"]);
    let child = |name: &str, owner: &str, uid: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  ownerReferences:\n  - {{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}}}\n"
        )
    };
    here.write("child.yaml", &format!("{}---\n{}", child("a", "top", &uid), child("b", "top", &uid)));
    here.ok(&["apply", "-f", "child.yaml"]);
    let names = |text: String| -> Vec<String> {
        text.lines().skip(1).map(|line| line[12..].split("   ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(here.ok(&["tree", "cm", "top"])), ["configmap/top", "├─secret/a", "└─secret/b"]);
    assert_eq!(names(here.ok(&["tree", "secret/b"])), ["configmap/top", "└─secret/b"]);
    here.ok(&["delete", "cm", "top"]);
    assert_eq!(here.ok(&["get", "secrets", "-o", "name"]), "", "the garbage was collected");
}

#[test]
fn run_reports_what_controllers_did_and_needs_no_place() {
    let mut here = Here::folder();
    here.place.clear();
    let out = here.ok(&["run", "-f", "web.yaml"]);
    assert!(out.starts_with("configmap/settings created\ndeployment.apps/web created\n"), "{out}");
    assert!(out.contains("0 errors"), "{out}");
    here.write("web.yaml", "apiVersion: v1\nkind: Nope\nmetadata: {name: x}\n");
    assert_eq!(here.run(&["run", "-f", "web.yaml"]).code, 1);
}

#[test]
fn a_folder_that_a_server_has_open_is_reached_through_it() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    here.ok(&["create", "configmap", "elsewhere", "--tenant", "other"]);
    let server = Server::start(here.dir.path(), &["--data-dir", "db"]);
    assert_eq!(here.ok(&["get", "cm/settings", "-o", "name"]), "configmap/settings\n");
    assert_eq!(here.ok(&["get", "cm/elsewhere", "--tenant", "other", "-o", "name"]), "configmap/elsewhere\n");
    assert_eq!(here.run(&["get", "cm/elsewhere"]).code, 1, "it is in another control plane");
    here.ok(&["create", "configmap", "live"]);
    let mut given = Here::folder();
    given.place = vec!["--kubeconfig".into(), server.kubeconfig.to_string_lossy().into_owned()];
    assert_eq!(given.ok(&["get", "cm/live", "-o", "name"]), "configmap/live\n");
    let printed = here.ok(&["kubeconfig"]);
    assert!(printed.contains("token: ") && printed.contains("certificate-authority-data"), "{printed}");
    server.stop();
    assert!(!here.path("db/server.kubeconfig").exists());
    assert_eq!(here.ok(&["get", "cm/live", "-o", "name"]), "configmap/live\n");

    // A killed server leaves its file behind.
    let server = Server::start(here.dir.path(), &["--data-dir", "db"]);
    drop(server);
    assert!(here.path("db/server.kubeconfig").exists());
    assert_eq!(here.ok(&["get", "cm/live", "-o", "name"]), "configmap/live\n");
    assert!(here.fails(&["kubeconfig"]).contains("no server has db open"));
}

#[test]
fn a_program_that_has_the_folder_open_is_waited_for_and_named() {
    let here = Here::folder();
    here.ok(&["create", "configmap", "a"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let holder = runtime.block_on(k1s::Runtime::builder().disk(here.path("db")).start()).unwrap();
    let error = here.fails(&["get", "cm"]);
    assert!(error.starts_with("waiting for process "), "{error}");
    let who = format!("the data folder db is in use by process {}", std::process::id());
    assert!(error.contains(&who) && error.contains("try again when it has ended"), "{error}");
    runtime.block_on(holder.stop()).unwrap();
    assert_eq!(here.ok(&["get", "cm/a", "-o", "name"]), "configmap/a\n");
}

#[test]
fn a_command_line_that_is_wrong_exits_as_kubectls_does() {
    let here = Here::folder();
    let error = here.fails(&["get", "cm", "--no-such-flag"]);
    assert!(error.contains("unexpected argument '--no-such-flag'"), "{error}");
    assert!(here.fails(&["no-such-command"]).contains("unrecognized subcommand"));
    let help = here.run(&["get", "--help"]);
    assert_eq!((help.code, &*help.err), (0, ""));
}

#[test]
fn a_token_comes_from_a_file_or_from_the_standard_input() {
    let mut here = Here::folder();
    here.write("users.csv", "alices-token,alice,1\n");
    let server = Server::start(here.dir.path(), &["--token-auth-file", "users.csv"]);
    here.place = vec!["--kubeconfig".into(), server.kubeconfig.to_string_lossy().into_owned()];
    here.write("token", "alices-token\n");
    here.write("wrong", "nobodys-token");
    here.write("empty", "\n");
    let list = ["get", "secrets", "--token-file"];
    let with = |file: &'static str| [&list[..], &[file]].concat();
    let forbidden = "User \"alice\" cannot list resource \"secrets\"";
    assert!(here.fails(&with("token")).contains(forbidden));
    assert!(here.fails(&["get", "secrets", "--token", "alices-token"]).contains(forbidden));
    assert!(here.fails(&with("wrong")).contains("Unauthorized"));
    assert_eq!(here.fails(&with("empty")), "error: --token-file empty: it is empty");
    assert_eq!(here.fails(&with("absent")), "error: the path \"absent\" does not exist");
    let file = fs::File::open(here.path("token")).unwrap();
    let told = told(&here.command(&with("-")).stdin(file).output().unwrap());
    assert!(told.code == 1 && told.err.contains(forbidden), "{told:?}");
    assert_eq!(here.run(&["get", "secrets", "--token", "a", "--token-file", "token"]).code, 1);
    server.stop();
}

/// The limit of connections is that of the flag: the connection that has been idle for the longest makes room.
#[test]
fn connections_are_limited_by_a_flag() {
    let here = Here::folder();
    let server = Server::start(here.dir.path(), &["--http", "--max-connections", "2"]);
    let config = fs::read_to_string(&server.kubeconfig).unwrap();
    let address = config.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let address = address.trim_matches(|c: char| c == '"' || c == '/');
    let mut first = TcpStream::connect(address).unwrap();
    first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let others = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    assert_eq!(first.read(&mut [0]).unwrap(), 0, "the third connection closes the first");
    drop(others);
    server.stop();
}

#[test]
fn many_commands_share_a_folder() {
    let here = Here::folder();
    here.ok(&["create", "configmap", "first"]);
    let names: Vec<String> = (0..6).map(|index| format!("c{index}")).collect();
    let create = |name: &String| {
        here.command(&["create", "configmap", name])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let running: Vec<Child> = names.iter().map(create).collect();
    for child in running {
        let told = told(&child.wait_with_output().unwrap());
        assert_eq!(told.code, 0, "{told:?}");
    }
    let all = here.ok(&["get", "cm", "-o", "name"]);
    for name in &names {
        assert!(all.contains(&format!("configmap/{name}\n")), "{all}");
    }
}

/// A line for each object is longer than a quarter of a kilobyte: the output does not fit a pipe, so a command whose output is not read
/// any more waits, and cannot end before it is killed.
#[test]
fn what_was_printed_before_a_kill_is_there() {
    const OBJECTS: usize = 1000;
    let here = Here::folder();
    let name = |index: usize| format!("c{index:04}-{}", "x".repeat(240));
    let object =
        |index: usize| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n", name(index));
    here.write("many.yaml", &(0..OBJECTS).map(object).collect::<String>());
    let kept = || -> std::collections::BTreeSet<String> {
        here.ok(&["get", "cm", "-o", "name"]).lines().map(str::to_owned).collect()
    };
    let mut before = 0;
    for kill_after in [1, 50, 300, 600] {
        let mut child = here.command(&["apply", "-f", "many.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut done: Vec<String> = lines.by_ref().take(kill_after).map(Result::unwrap).collect();
        child.kill().unwrap();
        assert_eq!(done.len(), kill_after);
        // What was printed until the kill. The last line may be half of one.
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        done.extend(
            rest.into_iter().filter(|line| line.ends_with(" created") || line.ends_with(" unchanged")),
        );
        assert!(!child.wait().unwrap().success(), "it ended before it was killed");
        assert!(done.len() < OBJECTS, "{} lines fit into a pipe", done.len());
        let there = kept();
        for (index, line) in done.iter().enumerate() {
            let (printed, done) = line.split_once(' ').unwrap();
            assert_eq!(printed, format!("configmap/{}", name(index)));
            assert!(there.contains(printed), "{line}, and is not there");
            // What an earlier apply has printed is not done again.
            assert!(index >= before || done == "unchanged", "{line}");
        }
        before = before.max(done.len());
    }
    // The next apply finishes the work.
    let rest = here.ok(&["apply", "-f", "many.yaml"]);
    assert_eq!(rest.lines().count(), OBJECTS);
    assert!(rest.lines().take(before).all(|line| line.ends_with(" unchanged")), "{rest}");
    assert_eq!(
        kept()
            .iter()
            .filter(|line| line.starts_with("configmap/c0") || line.starts_with("configmap/c1"))
            .count(),
        OBJECTS
    );
}

#[test]
fn kustomizations_go_templates_and_other_limits_are_named() {
    let here = Here::folder();
    here.write("kustomization.yaml", "resources: [web.yaml]\n");
    assert_eq!(here.ok(&["apply", "-k", "."]), "configmap/settings created\ndeployment.apps/web created\n");
    here.write("kustomization.yaml", "resources: [web.yaml]\nnamePrefix: x-\n");
    assert!(here.fails(&["apply", "-k", "."]).contains("kubectl kustomize"));
    assert!(
        here.fails(&["get", "cm", "-o", "go-template={{.x}}"]).contains("use jsonpath or custom-columns")
    );
    assert_eq!(here.fails(&["apply", "-f", "nope.yaml"]), "error: the path \"nope.yaml\" does not exist");
    here.write("empty.yaml", "# nothing\n");
    assert_eq!(here.fails(&["apply", "-f", "empty.yaml"]), "error: no objects passed to apply");
    let mut plain = Here::folder();
    plain.place.clear();
    assert!(plain.ok(&["completion", "bash"]).contains("--sort-by"));
    let help = plain.ok(&["get", "--help"]);
    assert!(help.contains("--data-dir") && help.contains("--sort-by"), "{help}");
}
