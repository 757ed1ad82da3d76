//! Converters that fail, hang, or answer what they may not.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    common::{config_map, definition, names},
    world::{Mode, World, host, path},
};

const OF: &str = "conversion webhook for example.com/v1, Kind=Host";

#[tokio::test]
async fn a_failing_converter_is_named_and_loses_nothing() {
    let world = World::new().await;
    let client = &world.client;
    world.fill(2).await;
    world.hook.set(Mode::Fail("no time"));
    let message = format!("{OF} failed: no time");
    let beta = format!("{}/h0000", path("v1beta1"));
    for (method, place, body) in [
        ("GET", &beta, Value::Null),
        ("GET", &path("v1beta1"), Value::Null),
        ("GET", &format!("{beta}/scale"), Value::Null),
        ("PATCH", &beta, json!({"spec": {"hostPort": "x:1"}})),
        ("PATCH", &format!("{beta}/status"), json!({"status": {"phase": "up"}})),
    ] {
        let (code, answer) = client.call(method, place, body).await;
        assert_eq!((code, answer["message"].as_str().unwrap()), (500, &*message), "{method} {place}");
        assert_eq!(answer["kind"], "Status");
    }
    let (code, answer) = client.call("POST", &path("v1beta1"), host("v1beta1", "new")).await;
    let expected = "conversion webhook for example.com/v1beta1, Kind=Host failed: no time";
    assert_eq!((code, answer["message"].as_str().unwrap()), (500, expected));
    // In the storage version everything goes on.
    assert_eq!(names(&client.get(&path("v1")).await), ["h0000", "h0001"]);
    let changed = client.call("PATCH", &format!("{}/h0000", path("v1")), json!({"spec": {"port": 81}})).await;
    assert_eq!(changed.0, 200);
    // Deleting works in any version.
    let (code, answer) = client.call("DELETE", &format!("{}/h0001", path("v1beta1")), Value::Null).await;
    assert_eq!((code, &answer["status"]), (200, &json!("Success")), "{answer}");
    // Failures are not remembered.
    world.hook.set(Mode::Convert);
    assert_eq!(client.get(&beta).await["spec"], json!({"hostPort": "a.b:81"}));
}

#[tokio::test]
async fn an_answer_that_cannot_be_converted_back_is_not_stored() {
    let world = World::new().await;
    // The way to the storage works, the way back does not.
    world.hook.set(Mode::Change(|answer| {
        if answer["response"]["convertedObjects"][0]["apiVersion"] == "example.com/v1beta1" {
            answer["response"] = json!({"uid": answer["response"]["uid"], "result": {"status": "Failure"}});
        }
    }));
    let (code, answer) = world.client.call("POST", &path("v1beta1"), host("v1beta1", "a")).await;
    let expected = format!("{OF} failed: response.result.status was 'Failure', not 'Success'");
    assert_eq!((code, answer["message"].as_str().unwrap()), (500, &*expected));
    assert_eq!(world.client.get(&path("v1")).await["items"], json!([]));
}

#[tokio::test]
async fn what_a_converter_may_not_change_is_refused() {
    let world = World::new().await;
    world.fill(1).await;
    fn object(answer: &mut Value) -> &mut Value {
        &mut answer["response"]["convertedObjects"][0]
    }
    for (mode, expected) in [
        (
            Mode::Change(|answer| object(answer)["metadata"]["uid"] = "other".into()),
            "returned invalid object: must have the same UID: ",
        ),
        (
            Mode::Change(|answer| object(answer)["metadata"]["name"] = "other".into()),
            "returned invalid object: must have the same name: h0000 != other",
        ),
        (
            Mode::Change(|answer| object(answer)["kind"] = "Other".into()),
            "returned invalid object at index 0: invalid kind (expected Host, received Other)",
        ),
        (
            Mode::Change(|answer| object(answer)["apiVersion"] = "example.com/v1".into()),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v1beta1, received example.com/v1)",
        ),
        (
            Mode::Change(|answer| object(answer)["metadata"]["labels"] = json!({"a b": "c"})),
            "returned invalid metadata: metadata.labels: Invalid value: \"a b\"",
        ),
        (
            Mode::Change(|answer| answer["response"]["convertedObjects"] = json!([])),
            "returned 0 objects, expected 1",
        ),
        (Mode::Change(|answer| answer["response"]["uid"] = "x".into()), "failed: expected response.uid="),
        (
            Mode::Answer("{}"),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
        (Mode::Answer("<html>"), "failed: couldn't get version/kind; json parse error"),
        (Mode::Answer(""), "failed: "),
    ] {
        world.hook.set(mode.clone());
        let (code, answer) =
            world.client.call("GET", &format!("{}/h0000", path("v1beta1")), Value::Null).await;
        let message = answer["message"].as_str().unwrap();
        assert!(code == 500 && message.starts_with(&format!("{OF} {expected}")), "{mode:?}: {message}");
    }
}

#[tokio::test]
async fn a_watch_ends_with_an_error_and_continues_where_it_was() {
    let world = World::new().await;
    world.fill(1).await;
    let mut watch = world.client.watch(&path("v1beta1")).await;
    let first = watch.event().await;
    let revision = first["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    world.hook.set(Mode::Fail("down"));
    world.client.call("PATCH", &format!("{}/h0000", path("v1")), json!({"spec": {"port": 81}})).await;
    let error = watch.event().await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(
        (&error["object"]["code"], error["object"]["message"].as_str().unwrap()),
        (&json!(500), &*format!("{OF} failed: down"))
    );
    assert_eq!(watch.next().await, None);
    // A new watch begins, and ends the same way while the converter is down.
    let from = format!("{}?resourceVersion={revision}", path("v1beta1"));
    assert_eq!(world.client.watch(&from).await.event().await["type"], "ERROR");
    assert_eq!(world.client.watch(&path("v1beta1")).await.event().await["type"], "ERROR");
    // Those of other versions and other kinds go on meanwhile.
    let mut stored = world.client.watch(&path("v1")).await;
    assert_eq!(stored.brief().await.0, "ADDED");
    world.hook.set(Mode::Convert);
    let missed = world.client.watch(&from).await.event().await;
    assert_eq!(
        (&missed["type"], &missed["object"]["spec"]["hostPort"]),
        (&json!("MODIFIED"), &json!("a.b:81"))
    );
}

#[tokio::test]
async fn a_converter_that_hangs_delays_nobody_else() {
    let world = World::new().await;
    world.fill(300).await;
    world.hook.set(Mode::Hang);
    let hung: Vec<_> = (0..20)
        .map(|_| {
            let client = world.client.clone();
            world
                .client
                .env
                .spawn("hung", async move { client.call("GET", &path("v1beta1"), Value::Null).await.0 })
        })
        .collect();
    while world.hook.calls() == 0 {
        world.client.env.sleep(Duration::from_millis(2)).await;
    }
    // Large lists need permits, which those who wait for the converter do not hold.
    let work = async {
        for number in 0..20 {
            world
                .client
                .post("/api/v1/namespaces/default/configmaps", config_map(&format!("c{number}")))
                .await;
            assert_eq!(world.client.get(&path("v1")).await["items"].as_array().unwrap().len(), 300);
            let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
            let table = world.client.send("GET", &path("v1"), &accept, "").await;
            assert_eq!(table.status, 200);
        }
    };
    world.client.env.timeout(Duration::from_secs(20), work).await.expect("it is not delayed");
    assert!(hung.iter().all(|task| !task.is_finished()));
    for task in hung {
        task.abort();
    }
    // Nobody is left waiting for a call that was given up.
    world.hook.set(Mode::Convert);
    assert_eq!(world.client.get(&path("v1beta1")).await["items"].as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_is_an_error_with_its_address() {
    let world = World::new().await;
    world.fill(1).await;
    let config = json!({"spec": {"conversion": {"webhook": {"clientConfig": {
        "service": null, "url": "https://127.0.0.1:1/convert"}}}}});
    assert_eq!(world.client.call("PATCH", crate::world::CRD, config).await.0, 200);
    let (code, answer) = world.client.call("GET", &path("v1beta1"), Value::Null).await;
    let expected = format!(
        "{OF} failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
    assert_eq!((code, answer["message"].as_str().unwrap()), (500, &*expected));
    let versions = json!({"spec": {"conversion": {"webhook": {"conversionReviewVersions": ["v2"]}}}});
    let (code, answer) = world.client.call("PATCH", crate::world::CRD, versions).await;
    assert_eq!(code, 422, "{answer}");
}

#[tokio::test]
async fn a_failing_converter_ends_no_watch_that_does_not_need_it() {
    const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
    let world = World::new().await;
    world.fill(2).await;
    let client = &world.client;
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("things.dev")).await;
    let things = "/apis/things.dev/v1/namespaces/default/things";
    let thing =
        |name: &str| json!({"apiVersion": "things.dev/v1", "kind": "Thing", "metadata": {"name": name}});
    let storage = path("v1");
    let mut watches = Vec::new();
    for of in [CONFIGMAPS, things, &storage] {
        let list = client.get(of).await;
        let from = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        watches.push((of, client.watch(&format!("{of}?resourceVersion={from}")).await));
    }
    let mut converted = client.watch(&path("v1beta1")).await;
    assert_eq!(converted.event().await["type"], "ADDED");
    assert_eq!(converted.event().await["type"], "ADDED");
    for (round, mode) in [Mode::Fail("down"), Mode::Answer("<html>"), Mode::Hang].into_iter().enumerate() {
        world.hook.set(mode.clone());
        let name = format!("n{round}");
        client.post(CONFIGMAPS, config_map(&name)).await;
        client.post(things, thing(&name)).await;
        client.post(&storage, host("v1", &name)).await;
        for (of, watch) in &mut watches {
            let (what, of_name, _) = watch.brief().await;
            assert_eq!((&*what, &*of_name), ("ADDED", &*name), "{mode:?}: {of}");
            // A list can be continued by a watch, meanwhile.
            let list = client.get(of).await;
            assert!(names(&list).contains(&name), "{mode:?}: {of}");
            let from = list["metadata"]["resourceVersion"].as_str().unwrap();
            drop(client.watch(&format!("{of}?resourceVersion={from}")).await);
        }
        if round == 0 {
            assert_eq!(converted.event().await["type"], "ERROR");
        }
    }
}
