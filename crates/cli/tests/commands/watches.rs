//! Commands that show changes as they happen.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::Stdio,
    sync::{Arc, Mutex},
};

use k1s::env::Env;

use super::{Here, Server};

#[test]
fn a_watch_sees_what_other_commands_change() {
    let here = Here::folder();
    here.ok(&["create", "configmap", "a"]);
    let mut watch = here
        .command(&["watch", "cm", "--output-watch-events", "-o", "jsonpath={.type} {.object.metadata.name};"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(watch.stdout.take().unwrap())
        .split(b';')
        .map(|part| String::from_utf8(part.unwrap()).unwrap());
    assert_eq!(out.next().unwrap(), "ADDED a");
    assert_eq!(out.next().unwrap(), "ADDED kube-root-ca.crt");
    here.ok(&["create", "configmap", "b"]);
    assert_eq!(out.next().unwrap(), "ADDED b");
    here.ok(&["label", "cm", "b", "x=y"]);
    assert_eq!(out.next().unwrap(), "MODIFIED b");
    here.ok(&["delete", "cm", "b"]);
    assert_eq!(out.next().unwrap(), "DELETED b");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

fn event(name: &str, type_: &str, about: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Event\nmetadata: {{name: {name}}}\ntype: {type_}\nreason: Seen\nmessage: it is {name}\n\
         involvedObject: {{apiVersion: v1, kind: ConfigMap, name: {about}, namespace: default}}\n\
         firstTimestamp: '2020-01-01T00:00:00Z'\nlastTimestamp: '2020-01-01T00:00:00Z'\ncount: 1\n"
    )
}

/// Lines without what depends on time: type, reason, object and message.
fn told(line: &str) -> String {
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn events_are_shown_as_they_happen() {
    let folder = Here::folder();
    let mut remote = Here::folder();
    let server = Server::start(remote.dir.path(), &[]);
    remote.place = vec!["--kubeconfig".into(), server.kubeconfig.to_string_lossy().into_owned()];
    for here in [&folder, &remote] {
        let create = |name: &str, type_: &str, about: &str| {
            here.write("event.yaml", &event(name, type_, about));
            here.ok(&["create", "-f", "event.yaml"]);
        };
        create("first", "Normal", "a");
        create("other", "Normal", "b");
        let mut watch = here
            .command(&["events", "--watch", "--for=configmap/a", "--types=Normal"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap().split_whitespace().last(), Some("MESSAGE"));
        assert_eq!(told(&lines.next().unwrap()), "Normal Seen ConfigMap/a it is first");
        // Neither about another object nor of another type.
        create("third", "Normal", "b");
        create("fourth", "Warning", "a");
        create("fifth", "Normal", "a");
        assert_eq!(told(&lines.next().unwrap()), "Normal Seen ConfigMap/a it is fifth");
        // It happened again.
        here.ok(&["patch", "event", "first", "--type=merge", "-p", r#"{"count":2,"message":"once more"}"#]);
        let again = lines.next().unwrap();
        assert!(again.contains("(x2 over ") && again.ends_with("ConfigMap/a   once more"), "{again}");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    server.stop();
}

/// Connections to a server that can be broken.
struct Proxy {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let kept = open.clone();
        let accepting = move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(upstream) = TcpStream::connect(&server) else { return };
                kept.lock().unwrap().extend([client.try_clone().unwrap(), upstream.try_clone().unwrap()]);
                pipe(client.try_clone().unwrap(), upstream.try_clone().unwrap());
                pipe(upstream, client);
            }
        };
        drop(Env::system().spawn_thread("proxy", accepting).unwrap());
        Proxy { port, open }
    }

    fn break_all(&self) {
        for connection in self.open.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn pipe(mut from: TcpStream, mut to: TcpStream) {
    let copying = move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    };
    drop(Env::system().spawn_thread("proxy", copying).unwrap());
}

/// A table is told the revision by its rows, not only by bookmarks.
#[test]
fn a_broken_connection_repeats_no_rows() {
    let mut here = Here::folder();
    let server = Server::start(here.dir.path(), &["--http"]);
    let config = std::fs::read_to_string(&server.kubeconfig).unwrap();
    let address = config.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let proxy = Proxy::to(address.trim_matches(|c: char| c == '"' || c == '/').to_owned());
    here.place = vec!["--kubeconfig".into(), server.kubeconfig.to_string_lossy().into_owned()];
    here.ok(&["create", "configmap", "a"]);
    for (run, command, last) in [
        ("table", &["get", "cm", "-w"][..], "kube-root-ca.crt"),
        ("word", &["get", "cm", "-w", "-o", "name"], "table-2"),
    ] {
        let mut watch = here
            .command(command)
            .args(["--server", &format!("http://127.0.0.1:{}", proxy.port)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut name = || {
            let line = lines.next().unwrap();
            line.split_whitespace().next().unwrap().trim_start_matches("configmap/").to_owned()
        };
        while name() != last {}
        for number in 0..3 {
            let created = format!("{run}-{number}");
            here.ok(&["create", "configmap", &created]);
            assert_eq!(name(), created);
            proxy.break_all();
        }
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    server.stop();
}
