//! Runs the program as users do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

fn k1s(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_k1s"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running program. It is killed if the test fails.
struct Running {
    child: Option<Child>,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Running {
        Running::started(&mut k1s(folder, arguments))
    }

    fn started(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child: Some(child), lines, seen: Vec::new() }
    }

    /// Reads output until a line contains this text.
    fn read_until(&mut self, text: &str) -> String {
        while let Some(Ok(line)) = self.lines.next() {
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
        panic!("it never printed {text:?}: {:#?}", self.seen);
    }

    /// Sends a signal and waits for the exit.
    fn end(mut self, signal: Signal) -> Output {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        self.read_until("stopped");
        child.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_demo_rolls_an_application_out_and_stops_at_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["demo", "--port", "0", "--step-ms", "1"];
    // A port that was asked for is taken, or refused.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = k1s(folder.path(), &arguments).env("PORT", &port).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains(&format!("cannot listen at port {port}")), "{why}");
    drop(taken);
    let mut demo = Running::started(k1s(folder.path(), &arguments).env("PORT", &port));
    demo.read_until("https://127.0.0.1:");
    demo.read_until(&format!("over HTTP      http://localhost:{port} "));
    let export = demo.read_until("export KUBECONFIG=");
    let file = export.split_once('=').unwrap().1;
    let kubeconfig = fs::read_to_string(file).unwrap();
    assert!(
        kubeconfig.contains("certificate-authority-data") && kubeconfig.contains("token"),
        "{kubeconfig}"
    );
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "it contains a secret");
    demo.read_until("application default/web created");
    demo.read_until("Running    ■■■ 3/3");
    let ended = demo.end(Signal::INT);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

/// The body of an answer of the demo's HTTP door, with its status line.
fn get(url: &str, path: &str) -> String {
    let address =
        url.strip_prefix("http://localhost:").unwrap().parse().map(|port: u16| ("127.0.0.1", port)).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", address.1)
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_demo_keeps_as_many_changes_as_it_is_told() {
    for limit in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        let limit_text = limit.to_string();
        let arguments =
            ["demo", "--port", "0", "--http-port", "0", "--step-ms", "1", "--event-limit", &limit_text];
        let mut demo = Running::start(folder.path(), &arguments);
        let url = demo.read_until("over HTTP").split_whitespace().nth(2).unwrap().to_owned();
        // Many changes later.
        demo.read_until("Running    ■■■ 3/3");
        let answer = get(&url, "/events");
        if limit == 0 {
            assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("--event-limit is 0"), "{answer}");
        } else {
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert_eq!(answer.matches("\"changed\":").count(), limit, "{answer}");
        }
        demo.end(Signal::INT);
    }
}

#[test]
fn completion_is_for_five_shells() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, begins) in [
        ("bash", "complete -F _k1s"),
        ("elvish", "set edit:completion:arg-completer[k1s]"),
        ("fish", "complete -c k1s "),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName 'k1s'"),
        ("zsh", "#compdef k1s"),
    ] {
        let output = k1s(folder.path(), &["completion", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for text in [begins, "api-resources", "sort-by", "repair"] {
            assert!(script.contains(text), "{shell}: no {text:?} in\n{script}");
        }
    }
    let refused = k1s(folder.path(), &["completion", "tcsh"]).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("bash, elvish, fish, powershell, zsh"), "{why}");
}

#[test]
fn serve_prints_its_address_and_stops_at_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--port", "0", "--data-dir", "data", "--kubeconfig", "config"];
    for _ in 0..2 {
        let mut serve = Running::start(folder.path(), &arguments);
        serve.read_until("k1s serves Kubernetes' API at https://127.0.0.1:");
        serve.read_until("Everything is kept in data.");
        let second = k1s(folder.path(), &arguments).output().unwrap();
        assert!(!second.status.success());
        let why = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(why.contains("the data folder data is in use by"), "{why}");
        let ended = serve.end(Signal::TERM);
        assert!(ended.status.success(), "{ended:?}");
    }
    assert!(folder.path().join("config").exists());
}

#[test]
fn serve_raises_the_open_file_limit_and_a_second_signal_exits_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--http", "--port", "0", "--kubeconfig", "config"];
    let mut serve = Running::start(folder.path(), &arguments);
    let url = serve.read_until("k1s serves Kubernetes' API at http://127.0.0.1:");
    serve.read_until("Ctrl-C stops it.");
    let child = serve.child.take().unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(files[0], files[1], "{limits}");

    // A request whose body never arrives delays the shutdown.
    let kubeconfig = fs::read_to_string(folder.path().join("config")).unwrap();
    let token = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
    let address = url.rsplit_once("http://").unwrap().1.trim();
    let mut slow = TcpStream::connect(address).unwrap();
    let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\nexpect: 100-continue";
    write!(slow, "{head}\r\nauthorization: Bearer {}\r\n\r\n", token.trim_matches('"')).unwrap();
    // The server asks for the body, so the request is in flight.
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    serve.read_until("stopped");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn serve_keeps_its_identity_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = |folder: &Path| fs::read_to_string(folder.join("config")).unwrap();
    // The kubeconfig without the port.
    let known = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("server:")).map(str::to_owned).collect()
    };
    let mut seen = Vec::new();
    for more in [&["--data-dir", "data"][..], &["--data-dir", "data", "--tls-san", "k1s.example.com"][..]] {
        let arguments = [&["serve", "--port", "0", "--kubeconfig", "config"], more].concat();
        let mut serve = Running::start(folder.path(), &arguments);
        serve.read_until("k1s serves Kubernetes' API at https://127.0.0.1:");
        serve.read_until("Ctrl-C stops it.");
        let ended = serve.end(Signal::TERM);
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
        seen.push(known(&kubeconfig(folder.path())));
    }
    assert_eq!(seen[0], seen[1]);
    let pki = folder.path().join("data/pki");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&pki), 0o700);
    for name in ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.token"] {
        assert_eq!(mode(&pki.join(name)), 0o600, "{name}");
    }

    fs::write(pki.join("ca.key"), "nonsense").unwrap();
    let refused = k1s(folder.path(), &["serve", "--port", "0", "--data-dir", "data"]).output().unwrap();
    assert!(!refused.status.success());
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.starts_with("k1s: data/pki/ca.key: it is not a private key"), "{why}");
}

#[test]
fn a_secret_readable_by_others_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--port", "0", "--cert-dir", "certs", "--kubeconfig", "config"];
    for told in [false, true] {
        let mut serve = Running::start(folder.path(), &arguments);
        serve.read_until("Ctrl-C stops it.");
        let ended = serve.end(Signal::TERM);
        let says = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(says.contains("certs/ca.key can be read by others (mode 644)"), told, "{says}");
        fs::set_permissions(folder.path().join("certs/ca.key"), fs::Permissions::from_mode(0o644)).unwrap();
    }
}

#[test]
fn an_address_other_machines_can_reach_needs_https_and_rbac() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--port", "0", "--bind", "0.0.0.0"];
    for open in [&["--http"][..], &["--authorization-mode", "AlwaysAllow"]] {
        let refused = k1s(folder.path(), &[&arguments, open].concat()).output().unwrap();
        assert!(!refused.status.success());
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(why.contains("--allow-remote"), "{why}");
    }
    let mut serve = Running::start(folder.path(), &arguments);
    serve.read_until("Ctrl-C stops it.");
    assert!(serve.end(Signal::TERM).status.success());
}

#[test]
fn serve_records_requests_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let audited = ["--audit-policy-file", "policy.yaml", "--audit-log-path", "audit/audit.log"];
    let arguments = [&["serve", "--http", "--port", "0", "--kubeconfig", "config"][..], &audited].concat();
    fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metdata}]\n").unwrap();
    let refused = k1s(folder.path(), &arguments).output().unwrap();
    assert!(!refused.status.success());
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        why.contains("loading audit policy file: rules[0].level: Unsupported value: \"Metdata\""),
        "{why}"
    );
    assert!(why.contains("from file policy.yaml"), "{why}");

    let rules = "[{level: Metadata, nonResourceURLs: [/version], omitStages: [RequestReceived]}]";
    fs::write(&policy, format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n")).unwrap();
    let mut serve = Running::start(folder.path(), &arguments);
    let url = serve.read_until("k1s serves Kubernetes' API at http://127.0.0.1:");
    serve.read_until("Ctrl-C stops it.");
    let address = url.rsplit_once("http://").unwrap().1.trim();
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\naudit-id: mine\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("audit-id: mine\r\n"), "{answer}");
    assert!(serve.end(Signal::TERM).status.success());
    let log = fs::read_to_string(folder.path().join("audit/audit.log")).unwrap();
    let event: serde_json::Value = serde_json::from_str(&log).unwrap();
    assert_eq!((&event["auditID"], &event["sourceIPs"][0]), (&"mine".into(), &"127.0.0.1".into()), "{log}");
    assert_eq!(event["user"]["username"], "system:anonymous");
}

#[test]
fn a_user_is_given_a_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let issue =
        ["pki", "issue", "--data-dir", "data", "--user", "alice", "--group", "devs", "--kubeconfig", "alice"];
    let early = k1s(folder.path(), &issue).output().unwrap();
    let why = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(!early.status.success() && why.contains("data/pki: there is no ca.crt"), "{why}");
    let mut serve = Running::start(folder.path(), &["serve", "--port", "0", "--data-dir", "data"]);
    serve.read_until("Ctrl-C stops it.");
    // While the server runs.
    let issued = k1s(folder.path(), &issue).output().unwrap();
    assert!(issued.status.success(), "{}", String::from_utf8_lossy(&issued.stderr));
    let path = folder.path().join("alice");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let kubeconfig = fs::read_to_string(&path).unwrap();
    assert!(
        kubeconfig.contains("client-certificate-data")
            && kubeconfig.contains("server: https://127.0.0.1:6443")
    );
    assert!(serve.end(Signal::TERM).status.success());
}

#[test]
fn a_backup_can_be_served_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = k1s(folder.path(), arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code().unwrap(), text.concat())
    };
    let serve = |data: &str| {
        let serve = ["serve", "--port", "0", "--data-dir", data, "--kubeconfig", "config"];
        let mut running = Running::start(folder.path(), &serve);
        running.read_until("Ctrl-C stops it.");
        running
    };
    let running = serve("data");
    let (code, text) = run(&["store", "backup", "data", "copy"]);
    assert!(code == 2 && text.contains("is in use by"), "{code}: {text}");
    running.end(Signal::TERM);
    let (code, text) = run(&["store", "backup", "data", "copy"]);
    assert!(code == 0 && text.contains("The store in data was backed up to copy: "), "{code}: {text}");
    assert!(text.contains("Certificates and tokens (data/pki) were not copied."), "{text}");
    let counts =
        |text: &str| text.split_once(": ").map(|(_, counts)| counts.lines().next().unwrap().to_owned());
    let backed_up = counts(&text);
    assert!(backed_up.as_ref().is_some_and(|counts| counts.contains(" keys, ")), "{text}");

    let (code, text) = run(&["store", "restore", "copy", "data"]);
    assert!(code == 2 && text.contains("there is a store already"), "{code}: {text}");
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    let (code, text) = run(&["store", "restore", "copy", "data"]);
    assert!(code == 0 && text.contains("The store in copy was restored to data: "), "{code}: {text}");
    assert_eq!(counts(&text), backed_up);
    for data in ["data", "copy"] {
        serve(data).end(Signal::TERM);
    }

    let segment = folder.path().join("copy/store/log/000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[400] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (code, text) = run(&["store", "restore", "copy", "elsewhere"]);
    assert!(code == 1 && text.contains("Nothing was copied."), "{code}: {text}");
    let (code, text) = run(&["store", "backup", "nowhere", "elsewhere"]);
    assert!(code == 2 && text.contains("nowhere: there is no such folder"), "{code}: {text}");
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_damaged_store_is_refused_checked_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["serve", "--port", "0", "--data-dir", "data", "--kubeconfig", "config"];
    let run = |arguments: &[&str]| {
        let output = k1s(folder.path(), arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code().unwrap(), text.concat())
    };
    let mut running = Running::start(folder.path(), &serve);
    running.read_until("Ctrl-C stops it.");
    let (code, text) = run(&["store", "check", "data"]);
    assert!(code == 2 && text.contains("is in use by"), "{code}: {text}");
    running.end(Signal::TERM);
    let (code, text) = run(&["store", "check", "data"]);
    assert!(code == 0 && text.contains("The store in data is sound: "), "{code}: {text}");

    let segment = folder.path().join("data/store/log/000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[400] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let refused = k1s(folder.path(), &serve).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("`k1s store check data`") && why.contains("`k1s store repair data`"), "{why}");
    for name in ["data", "data/store"] {
        let (code, text) = run(&["store", "check", name]);
        assert!(code == 1 && text.contains("This would be lost by a repair:\n  key \""), "{code}: {text}");
    }
    let (code, text) = run(&["store", "repair", "data"]);
    assert!(code == 1 && text.contains("This was lost:\n  key \""), "{code}: {text}");
    assert!(fs::read(folder.path().join("data/store.damaged-1/log/000000000001.log")).unwrap() == bytes);
    let (code, text) = run(&["store", "repair", "data"]);
    assert!(code == 0 && text.contains("is sound"), "{code}: {text}");
    let mut running = Running::start(folder.path(), &serve);
    running.read_until("Ctrl-C stops it.");
    running.end(Signal::TERM);

    let (code, text) = run(&["store", "check", "nowhere"]);
    assert!(code == 2 && text.contains("nowhere: there is no such folder"), "{code}: {text}");
}

/// Whether any file of a folder contains these bytes.
fn contains(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains(&path, bytes);
        }
        fs::read(&path).is_ok_and(|text| text.windows(bytes.len()).any(|window| window == bytes))
    })
}

#[test]
fn secrets_are_encrypted_in_a_folder_whose_server_is_killed_and_in_its_backups() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = k1s(folder.path(), arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code().unwrap(), text.concat())
    };
    // What is in the data is in base64 in the store: "hunter2 " three times.
    let (plain, stored) = ("hunter2 hunter2 hunter2 ", b"aHVudGVyMiBodW50ZXIyIGh1bnRlcjIg");
    let mut options =
        vec!["serve", "--port", "0", "--data-dir", "data", "--kubeconfig", "config", "--encrypt-secrets"];
    for round in 0..3 {
        let mut serve = Running::start(folder.path(), &options);
        serve.read_until("Ctrl-C stops it.");
        let literal = format!("--from-literal=password={plain}");
        let name = format!("s{round}");
        let (code, text) = run(&["create", "secret", "generic", &name, &literal, "--kubeconfig", "config"]);
        assert!(code == 0, "{code}: {text}");
        let mut child = serve.child.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(!contains(&folder.path().join("data/store"), stored), "round {round}");
        // The folder is encrypted from now on, whatever the options.
        options.retain(|option| *option != "--encrypt-secrets");
    }
    // The commands find the key, too.
    let (code, text) = run(&["get", "secret", "s0", "-o", "jsonpath={.data.password}", "--data-dir", "data"]);
    assert!(code == 0 && text.trim().as_bytes() == stored, "{code}: {text}");
    let (code, text) = run(&["store", "check", "data"]);
    assert!(code == 0, "{code}: {text}");
    let (code, text) = run(&["store", "backup", "data", "copy"]);
    assert!(code == 0, "{code}: {text}");
    assert!(!contains(&folder.path().join("copy"), stored));
    // A backup is readable with the key only.
    let get = ["get", "secret", "s2", "-o", "jsonpath={.data.password}", "--data-dir", "copy"];
    let (code, text) = run(&get);
    assert!(code != 0 && text.contains("it is encrypted"), "{code}: {text}");
    fs::create_dir_all(folder.path().join("copy/pki")).unwrap();
    fs::copy(folder.path().join("data/pki/encryption.yaml"), folder.path().join("copy/pki/encryption.yaml"))
        .unwrap();
    let (code, text) = run(&get);
    assert!(code == 0 && text.trim().as_bytes() == stored, "{code}: {text}");
}
