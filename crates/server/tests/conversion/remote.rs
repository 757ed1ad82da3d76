//! Converters over HTTPS, from well-behaved to hostile.

use std::{sync::atomic::Ordering, time::Duration};

use k1s_env::Env;
use k1s_server::Authority;
use serde_json::{Value, json};

use crate::{
    common::config_map,
    https::{Remote, Way},
    world::{CRD, World, convert_review, host, path},
};

const OF: &str = "conversion webhook for example.com/v1, Kind=Host";

/// No hostile converter holds up a request for so long, even on a busy machine: it has 30 seconds for a call.
const PATIENCE: Duration = Duration::from_secs(30);

/// A world with some hosts, whose converter is at this server.
async fn world(remote: &Remote) -> World {
    let world = World::new().await;
    world.fill(3).await;
    register(&world, &remote.url("127.0.0.1"), &remote.bundle()).await;
    world
}

async fn register(world: &World, url: &str, bundle: &str) {
    let config = json!({"spec": {"conversion": {"webhook": {"clientConfig": {
        "service": null, "url": url, "caBundle": bundle}}}}});
    let (code, body) = world.client.call("PATCH", CRD, config).await;
    assert_eq!(code, 200, "{body}");
}

fn beta() -> String {
    format!("{}/h0000", path("v1beta1"))
}

#[tokio::test]
async fn hostile_converters_are_given_up_while_others_are_served() {
    for (way, why) in [
        (Way::Garbage, " failed: couldn't get version/kind; json parse error: "),
        (Way::WrongUid, " failed: expected response.uid="),
        (Way::Flood, " failed: the answer of the webhook is larger than 16777216 bytes"),
        (Way::Announce, " failed: the answer of the webhook is larger than 16777216 bytes"),
        (Way::CloseMidway, "unexpected EOF"),
        (Way::Close, "EOF"),
    ] {
        let remote = Remote::start(&["127.0.0.1"], way, convert_review).await;
        let world = world(&remote).await;
        let (client, env) = (&world.client, Env::system());
        let began = env.now();
        let hostile = async {
            for (method, place, body) in [
                ("GET", beta(), Value::Null),
                ("GET", path("v1beta1"), Value::Null),
                ("PATCH", beta(), json!({"spec": {"hostPort": "x:1"}})),
                ("POST", path("v1beta1"), host("v1beta1", "new")),
            ] {
                let (code, answer) = client.call(method, &place, body).await;
                let message = answer["message"].as_str().unwrap();
                let of = OF.trim_end_matches("v1, Kind=Host");
                assert!(code == 500 && message.starts_with(of), "{way:?} {method} {place}: {message}");
                assert!(message.contains(why), "{way:?} {method} {place}: {message}");
            }
        };
        let others = async {
            for number in 0..20 {
                client.post("/api/v1/namespaces/default/configmaps", config_map(&format!("c{number}"))).await;
                let storage = client.get(&path("v1")).await;
                assert_eq!(storage["items"].as_array().unwrap().len(), 3);
            }
            env.now() - began
        };
        let ((), others) = tokio::join!(hostile, others);
        let took = env.now() - began;
        assert!(took < PATIENCE && others < PATIENCE / 2, "{way:?}: {took:?}, others {others:?}");
        let sent = remote.sent.load(Ordering::SeqCst);
        assert!(sent < 4 * (24 << 20), "{way:?}: {sent} bytes were taken");
        // Nothing was stored, and nothing is lost.
        remote.set(Way::Answer);
        let list = client.get(&path("v1beta1")).await;
        assert_eq!(list["items"].as_array().unwrap().len(), 3, "{way:?}");
        assert_eq!(list["items"][0]["spec"], json!({"hostPort": "a.b:80"}), "{way:?}");
    }
}

/// What a converter does with metadata.
type Change = fn(&mut Value);

#[tokio::test]
async fn a_converter_over_https_may_not_change_what_identifies_an_object() {
    fn changed(review: &Value, change: Change) -> Value {
        let mut answer = convert_review(review);
        change(&mut answer["response"]["convertedObjects"][0]["metadata"]);
        answer
    }
    let changes: [(Change, &str); 3] = [
        (|metadata| metadata["uid"] = "other".into(), "returned invalid object: must have the same UID: "),
        (|metadata| metadata["name"] = "other".into(), "returned invalid object: must have the same name: "),
        (
            |metadata| metadata["namespace"] = "other".into(),
            "returned invalid object: must have the same namespace: default != other",
        ),
    ];
    for (change, why) in changes {
        let remote = Remote::start(&["127.0.0.1"], Way::Answer, move |review| changed(review, change)).await;
        let world = world(&remote).await;
        let (code, answer) = world.client.call("GET", &beta(), Value::Null).await;
        let message = answer["message"].as_str().unwrap();
        assert!(code == 500 && message.starts_with(&format!("{OF} {why}")), "{message}");
    }
}

#[tokio::test]
async fn a_converter_over_https_that_hangs_delays_nobody_else() {
    for way in [Way::Hang, Way::HangMidway] {
        let remote = Remote::start(&["127.0.0.1"], way, convert_review).await;
        let world = world(&remote).await;
        let client = &world.client;
        let hung: Vec<_> = (0..10)
            .map(|number| {
                let (client, method) = (client.clone(), if number % 2 == 0 { "GET" } else { "PATCH" });
                let body = if method == "GET" { Value::Null } else { json!({"spec": {"hostPort": "x:1"}}) };
                client.env.clone().spawn("hung", async move { client.call(method, &beta(), body).await.0 })
            })
            .collect();
        crate::common::eventually("the converter is called", || async {
            remote.requests.load(Ordering::SeqCst) > 0
        })
        .await;
        let work = async {
            for number in 0..20 {
                client.post("/api/v1/namespaces/default/configmaps", config_map(&format!("c{number}"))).await;
                assert_eq!(client.get(&path("v1")).await["items"].as_array().unwrap().len(), 3);
            }
        };
        client.env.timeout(PATIENCE / 2, work).await.expect("others are not delayed");
        assert!(hung.iter().all(|task| !task.is_finished()), "{way:?}");
        hung.iter().for_each(k1s_env::Task::abort);
        remote.set(Way::Answer);
        let read = client.env.timeout(PATIENCE / 2, client.get(&beta())).await.expect("it is called again");
        assert_eq!(read["spec"], json!({"hostPort": "a.b:80"}));
    }
}

/// As cert-manager's injector does it: the bundle is written after the definition.
#[tokio::test]
async fn an_injected_bundle_counts_for_the_next_call() {
    let remote = Remote::start(&["127.0.0.1"], Way::Answer, convert_review).await;
    let world = world(&remote).await;
    let client = &world.client;
    assert_eq!(client.get(&beta()).await["spec"], json!({"hostPort": "a.b:80"}));
    let other = Authority::generate(Env::system().wall()).unwrap();
    let inject = async |bundle: &[u8]| {
        use base64::{Engine as _, prelude::BASE64_STANDARD};
        let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {
            "caBundle": BASE64_STANDARD.encode(bundle)}}}}});
        let (code, body) = client.call("PATCH", CRD, patch).await;
        assert_eq!(code, 200, "{body}");
    };
    inject(other.certificate().as_bytes()).await;
    // What was converted before is remembered; another object needs a call.
    let (code, answer) = client.call("GET", &format!("{}/h0001", path("v1beta1")), Value::Null).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 500, "{answer}");
    assert!(message.ends_with("x509: certificate signed by unknown authority"), "{message}");
    inject(remote.authority.certificate().as_bytes()).await;
    let read = client.get(&format!("{}/h0001", path("v1beta1"))).await;
    assert_eq!(read["spec"], json!({"hostPort": "a.b:80"}));
}
