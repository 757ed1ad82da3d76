//! JSON, YAML and protobuf in requests and responses, and their negotiation.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use k1s_kinds::protobuf;
use serde_json::{Value, json};

use crate::common::{self, Client, config_map};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

fn encode(object: &Value) -> Vec<u8> {
    protobuf::encode(k1s_kinds::type_by_name(CONFIG_MAP).unwrap(), object, "v1", "ConfigMap")
}

fn decode(bytes: &[u8]) -> Value {
    let lookup = |version: &str, kind: &str| match kind {
        "Status" => k1s_kinds::type_by_name(STATUS),
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            k1s_kinds::body(group, version, kind)
        }
    };
    assert_eq!(bytes.get(..4), Some(&b"k8s\0"[..]), "{}", bytes.escape_ascii());
    protobuf::decode(bytes, lookup).unwrap()
}

async fn get(client: &Client, path: &str, accept: &str) -> common::Answer {
    client.send("GET", path, &[("accept", accept)], "").await
}

#[tokio::test]
async fn built_in_kinds_are_encoded_and_decoded_as_protobuf() {
    let client = common::client(&common::server().await);
    let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}, "binaryData": {"b": "AAE="}});
    let both =
        [("content-type", PROTOBUF), ("accept", "application/vnd.kubernetes.protobuf,application/json")];
    let created = client.send("POST", MAPS, &both, encode(&object)).await;
    assert_eq!((created.status, created.header("content-type")), (201, PROTOBUF));
    let created = decode(&created.body);
    assert_eq!((&created["data"], &created["binaryData"]), (&object["data"], &object["binaryData"]));
    let json = client.get(&format!("{MAPS}/a")).await;
    assert_eq!(
        decode(&get(&client, &format!("{MAPS}/a"), PROTOBUF).await.body)["metadata"],
        json["metadata"]
    );

    let mut changed = json.clone();
    changed["data"]["k"] = "w".into();
    let updated = client.send("PUT", &format!("{MAPS}/a"), &both, encode(&changed)).await;
    assert_eq!(decode(&updated.body)["data"]["k"], "w");
    let conflict = client.send("PUT", &format!("{MAPS}/a"), &both, encode(&changed)).await;
    assert_eq!((conflict.status, conflict.header("content-type")), (409, PROTOBUF));
    assert_eq!(decode(&conflict.body)["reason"], "Conflict");

    let list = get(&client, MAPS, PROTOBUF).await;
    assert_eq!(list.header("content-type"), PROTOBUF);
    let kinds = |_: &str, _: &str| k1s_kinds::type_by_name("io.k8s.api.core.v1.ConfigMapList");
    let list = protobuf::decode(&list.body, kinds).unwrap();
    assert_eq!(common::names(&list), ["a", "kube-root-ca.crt"]);
    let options = protobuf::encode(
        k1s_kinds::type_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").unwrap(),
        &json!({"preconditions": {"uid": "wrong"}}),
        "v1",
        "DeleteOptions",
    );
    let refused = client.send("DELETE", &format!("{MAPS}/a"), &[("content-type", PROTOBUF)], options).await;
    assert_eq!((refused.status, &refused.json()["reason"]), (409, &json!("Conflict")));
    for broken in [&b"k8s\0"[..], b"k8s", b"k8s\0\xff\xff\xff", b"{}", b""] {
        let answer = client.send("POST", MAPS, &[("content-type", PROTOBUF)], broken).await;
        assert!(matches!(answer.status, 400 | 422), "{}: {}", broken.escape_ascii(), answer.text());
    }
}

#[tokio::test]
async fn a_protobuf_watch_is_a_stream_of_frames() {
    let client = common::client(&common::server().await);
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=60"
    );
    let accept = "application/vnd.kubernetes.protobuf;stream=watch,application/json";
    let answer = client.open("GET", &path, &[("accept", accept)], Bytes::new()).await;
    assert_eq!(answer.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let mut body = answer.into_body();
    client.post(MAPS, json!({"metadata": {"name": "new"}, "data": {"k": "v"}})).await;
    let mut read: Vec<u8> = Vec::new();
    let mut events = Vec::new();
    while events.len() < 3 {
        while let Some(length) = read.first_chunk::<4>().map(|head| u32::from_be_bytes(*head) as usize)
            && read.len() >= 4 + length
        {
            events.push(event(&read[4..4 + length]));
            read.drain(..4 + length);
        }
        if events.len() < 3 {
            read.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
    }
    let brief: Vec<(&str, &Value)> =
        events.iter().map(|(kind, object)| (&**kind, &object["metadata"]["name"])).collect();
    assert_eq!(brief[0], ("ADDED", &json!("kube-root-ca.crt")));
    assert_eq!(brief[2], ("ADDED", &json!("new")));
    assert_eq!(events[1].0, "BOOKMARK");
    assert_eq!(events[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(events[2].1["data"], json!({"k": "v"}));
}

/// A `meta.v1.WatchEvent`: its type, and the object in the bytes of a `RawExtension`.
fn event(mut bytes: &[u8]) -> (String, Value) {
    fn field<'a>(bytes: &mut &'a [u8]) -> (u8, &'a [u8]) {
        let tag = bytes[0];
        let (mut length, mut shift, mut at) = (0_usize, 0, 1);
        loop {
            let byte = bytes[at];
            length |= usize::from(byte & 0x7f) << shift;
            (at, shift) = (at + 1, shift + 7);
            if byte < 0x80 {
                break;
            }
        }
        let value = &bytes[at..at + length];
        *bytes = &bytes[at + length..];
        (tag, value)
    }
    let (tag, kind) = field(&mut bytes);
    assert_eq!(tag, 0x0a);
    let (tag, mut raw) = field(&mut bytes);
    assert_eq!(tag, 0x12);
    assert!(bytes.is_empty());
    let (tag, object) = field(&mut raw);
    assert_eq!(tag, 0x0a);
    (String::from_utf8(kind.to_vec()).unwrap(), decode(object))
}

#[tokio::test]
async fn yaml_is_encoded_and_decoded() {
    let client = common::client(&common::server().await);
    let yaml = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    let body = "metadata:\n  name: a\ndata:\n  number: \"1\"\n  text: |\n    two\n    lines\n";
    let created = client.send("POST", MAPS, &yaml, body).await;
    assert_eq!((created.status, created.header("content-type")), (201, "application/yaml"));
    assert!(created.text().starts_with("apiVersion: v1\ndata:\n"), "{}", created.text());
    assert_eq!(
        client.get(&format!("{MAPS}/a")).await["data"],
        json!({"number": "1", "text": "two\nlines\n"})
    );
    let missing = client.send("GET", &format!("{MAPS}/none"), &yaml, "").await;
    assert!(missing.text().contains("reason: NotFound"), "{}", missing.text());
    let wrong = client.send("POST", MAPS, &yaml, "a: [").await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn clients_get_the_encoding_they_accept() {
    let client = common::client(&common::server().await);
    client
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", common::definition("enc.k1s.dev"))
        .await;
    let things = "/apis/enc.k1s.dev/v1/namespaces/default/things";
    client.post(MAPS, config_map("a")).await;
    let thing = json!({"apiVersion": "enc.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "t"}});
    client.post(things, thing).await;
    let map = &*format!("{MAPS}/a");
    let thing = &*format!("{things}/t");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (path, accept, status, content_type, kind) in [
        (map, "*/*", 200, "application/json", "ConfigMap"),
        (map, "application/json", 200, "application/json", "ConfigMap"),
        (map, "text/html;q=0.9,application/json;q=0.1", 200, "application/json", "ConfigMap"),
        (map, table, 200, "application/json", "Table"),
        (MAPS, table, 200, "application/json", "Table"),
        (
            map,
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            200,
            "application/json",
            "PartialObjectMetadata",
        ),
        (
            MAPS,
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            200,
            "application/json",
            "PartialObjectMetadataList",
        ),
        (map, "application/json;as=Table;v=v9;g=meta.k8s.io", 406, "application/json", "Status"),
        (map, "text/html", 406, "application/json", "Status"),
        (thing, "application/vnd.kubernetes.protobuf,application/json", 200, "application/json", "Thing"),
        (
            things,
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            200,
            "application/json",
            "PartialObjectMetadataList",
        ),
        (thing, table, 200, "application/json", "Table"),
    ] {
        let answer = get(&client, path, accept).await;
        assert_eq!((answer.status, answer.header("content-type")), (status, content_type), "{path} {accept}");
        assert_eq!(answer.json()["kind"], kind, "{path} {accept}");
    }
    assert_eq!(get(&client, thing, PROTOBUF).await.status, 406);
    let refused = client.send("POST", things, &[("content-type", PROTOBUF)], "k8s\0").await;
    assert_eq!(refused.status, 400);
    let refused = client.send("POST", MAPS, &[("content-type", "text/plain")], "{}").await;
    assert_eq!((refused.status, &refused.json()["reason"]), (415, &json!("UnsupportedMediaType")));
    assert_eq!(get(&client, &format!("{MAPS}?watch=true"), "application/yaml").await.status, 406);
}

#[tokio::test]
async fn only_the_first_table_of_a_watch_has_columns() {
    let client = common::client(&common::server().await);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1&includeObject=None");
    let answer = client.open("GET", &path, &[("accept", table)], Bytes::new()).await;
    client.post(MAPS, config_map("a")).await;
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let events: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(events[1]["object"]["columnDefinitions"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "a");
    assert!(events[1]["object"]["rows"][0].get("object").is_none_or(Value::is_null));
}
