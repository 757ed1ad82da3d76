//! Where a command works: flags, folders and kubeconfigs, in the order of the documentation.

use std::fs;

use serde_json::{Value, json};

use super::{Here, Server};

/// A server in memory over plain HTTP, with an object that names it; and its part of a kubeconfig.
fn named(here: &Here, name: &str) -> (Server, Value) {
    fs::create_dir_all(here.path(name)).unwrap();
    let server = Server::start(&here.path(name), &["--http"]);
    let text = fs::read_to_string(&server.kubeconfig).unwrap();
    let config = k1s_object::yaml::decode(text.as_bytes()).unwrap().value;
    let place = ["--kubeconfig".to_owned(), server.kubeconfig.to_string_lossy().into_owned()];
    mark(here, &place, name, "default");
    let part = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": config["clusters"][0]["cluster"]}],
        "users": [{"name": name, "user": config["users"][0]["user"]}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name}},
            {"name": format!("{name}-shop"), "context": {"cluster": name, "user": name, "namespace": "shop"}},
        ],
    });
    (server, part)
}

/// Leaves an object that names a place.
fn mark(here: &Here, place: &[String], name: &str, namespace: &str) {
    let literal = format!("--from-literal=name={name}");
    let mut command = here.command(&["create", "configmap", "place", &literal, "-n", namespace]);
    assert!(command.args(place).status().unwrap().success(), "{name}");
}

#[test]
fn a_place_is_found_in_the_documented_order() {
    let mut here = Here::folder();
    here.place.clear();
    let (one, first) = named(&here, "one");
    let (two, second) = named(&here, "two");
    let two_url = second["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
    let two_token = second["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    here.write("one.yaml", &first.to_string());
    here.write("two.yaml", &second.to_string());
    let shop = ["--kubeconfig", "one.yaml", "create", "namespace", "shop"];
    assert!(here.command(&shop[2..]).args(&shop[..2]).status().unwrap().success());
    mark(&here, &["--kubeconfig".into(), "one.yaml".into()], "one's shop", "shop");
    fs::create_dir_all(here.path(".kube")).unwrap();
    fs::copy(here.path("one.yaml"), here.path(".kube/config")).unwrap();
    for folder in ["given", "below/.k1s"] {
        fs::create_dir_all(here.path(folder)).unwrap();
        let place = here.path(folder).to_string_lossy().into_owned();
        mark(&here, &["--data-dir".into(), place], folder, "default");
    }
    fs::create_dir_all(here.path("below/some/where")).unwrap();

    /// Working directory, KUBECONFIG, arguments: what is found.
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], Result<&'a str, &'a str>);
    let nowhere: &[&str] = &[];
    let rows: &[Row<'_>] = &[
        // 1. A server that is named.
        ("below", "one.yaml", &["--kubeconfig", "../two.yaml"], Ok("two")),
        ("below", "one.yaml:two.yaml", &["--context", "two"], Ok("two")),
        (".", "one.yaml:two.yaml", &["--context", "one-shop"], Ok("one's shop")),
        (".", "one.yaml:two.yaml", &["--context", "one-shop", "-n", "default"], Ok("one")),
        ("below", "", &["--server", &two_url, "--token", &two_token], Ok("two")),
        (".", "two.yaml", &["--kubeconfig", "one.yaml", "--context", "one"], Ok("one")),
        // 2. A folder that is named.
        ("below", "one.yaml", &["--data-dir", "../given"], Ok("given")),
        // 3. A folder above.
        ("below", "one.yaml", nowhere, Ok("below/.k1s")),
        ("below/some/where", "", nowhere, Ok("below/.k1s")),
        // 4. The kubeconfig of the environment. The first file says which context is the current one.
        (".", "one.yaml:two.yaml", nowhere, Ok("one")),
        (".", "two.yaml:one.yaml", nowhere, Ok("two")),
        (".", "missing.yaml:two.yaml", nowhere, Ok("two")),
        (".", "", nowhere, Ok("one")),
        // What excludes each other, and what is not there.
        (".", "", &["--data-dir", "given", "--context", "one"], Err("cannot be used with")),
        (".", "one.yaml", &["--context", "three"], Err("three")),
        (".", "one.yaml", &["--kubeconfig", "missing.yaml"], Err("missing.yaml")),
        (".", "one.yaml", &["--data-dir", "missing"], Err("there is no data folder missing")),
    ];
    for (directory, kubeconfig, arguments, expected) in rows {
        let list: Vec<String> = kubeconfig
            .split(':')
            .filter(|name| !name.is_empty())
            .map(|name| here.path(name).to_string_lossy().into_owned())
            .collect();
        let mut command = here.command(&["get", "configmap", "place", "-o", "jsonpath={.data.name}"]);
        command.args(*arguments).current_dir(here.path(directory));
        if !list.is_empty() {
            command.env("KUBECONFIG", list.join(":"));
        }
        let told = super::told(&command.output().unwrap());
        let row = format!("{directory} {kubeconfig} {arguments:?}: {told:?}");
        match expected {
            Ok(place) => assert_eq!((told.code, told.out.as_str()), (0, *place), "{row}"),
            Err(part) => assert!(told.code == 1 && told.err.contains(part), "{row}"),
        }
    }
    one.stop();
    two.stop();
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let mut here = Here::folder();
    // A port that nobody listens on any more.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    here.place = vec!["--server".into(), format!("http://{address}")];
    assert_eq!(
        here.fails(&["get", "cm"]),
        format!(
            "The connection to the server {address} was refused - did you specify the right host or port?"
        )
    );
}
