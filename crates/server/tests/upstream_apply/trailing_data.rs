//! `TestManagedFieldsTrailingData`: fields with something after their JSON, which only protobuf can carry.

use k1s_server::ServerOptions;
use serde_json::{Value, json};

use crate::{
    Outcome,
    cases::entries,
    common::{self, Client},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

const FIELDS: [(&str, &str); 3] = [
    (
        "after FieldsV1",
        r#"{"f:metadata":{"f:annotations":{"f:test.example.com/myannotation":{}}}}{"trailing":"data"}"#,
    ),
    (
        "after set value",
        r#"{"f:metadata":{"f:finalizers":{"v:\"example.com/foo\" {\"trailing\":\"data\"}":{}}}}"#,
    ),
    (
        "after map key",
        r#"{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"abc\"} {\"trailing\":\"data\"}":{}}}}"#,
    ),
];

pub(crate) async fn run() -> Vec<(String, Outcome)> {
    let (client, _clock) = common::simulated(ServerOptions::default()).await;
    let mut outcomes = Vec::new();
    for (number, (title, fields)) in FIELDS.into_iter().enumerate() {
        let title = |what: &str| format!("TestManagedFieldsTrailingData/{title}/{what}");
        let none = create(&client, &format!("empty-{number}"), fields, &[]).await;
        outcomes.push((title("create with empty data"), none.and_then(|name| is(&name, &json!([])))));
        let data = create(&client, &format!("data-{number}"), fields, &[("foo", "bar")]).await;
        let expected = json!([{"f:data": {".": {}, "f:foo": {}}}]);
        outcomes.push((title("create with data"), data.and_then(|name| is(&name, &expected))));
        outcomes.push((title("update with data"), update(&client, number, fields).await));
    }
    outcomes
}

type Fields = Vec<Value>;

fn is(found: &Fields, expected: &Value) -> Outcome {
    if json!(found) == *expected {
        Ok(())
    } else {
        Err(format!("the managers have {found:?}, not {expected}"))
    }
}

/// What the managers of an object own.
async fn owned(client: &Client, name: &str) -> Fields {
    let object = client.get(&format!("{CONFIG_MAPS}/{name}")).await;
    entries(&object).iter().map(|entry| entry["fieldsV1"].clone()).collect()
}

async fn create(client: &Client, name: &str, fields: &str, data: &[(&str, &str)]) -> Result<Fields, String> {
    send(client, "POST", CONFIG_MAPS, config_map(name, Some(fields), data)).await?;
    Ok(owned(client, name).await)
}

async fn update(client: &Client, number: usize, fields: &str) -> Outcome {
    let name = format!("update-{number}");
    send(client, "POST", CONFIG_MAPS, config_map(&name, None, &[("foo", "bar")])).await?;
    let changed = config_map(&name, Some(fields), &[("foo", "baz"), ("new-key", "new-value")]);
    send(client, "PUT", &format!("{CONFIG_MAPS}/{name}"), changed).await?;
    is(&owned(client, &name).await, &json!([{"f:data": {".": {}, "f:foo": {}, "f:new-key": {}}}]))
}

async fn send(client: &Client, method: &str, path: &str, body: Vec<u8>) -> Outcome {
    let headers = [("content-type", "application/vnd.kubernetes.protobuf"), ("accept", "application/json")];
    let answer = client.send(method, path, &headers, body).await;
    if answer.status < 300 { Ok(()) } else { Err(format!("{}: {}", answer.status, answer.text())) }
}

/// A length-delimited field of a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let varint = |mut value: usize| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    };
    [varint(usize::from(number) << 3 | 2), varint(content.len()), content.to_vec()].concat()
}

/// A ConfigMap as client-go sends it; `fields` are the raw fields of its one manager.
fn config_map(name: &str, fields: Option<&str>, data: &[(&str, &str)]) -> Vec<u8> {
    let mut metadata = [field(1, name.as_bytes()), field(3, b"default")].concat();
    if let Some(fields) = fields {
        let entry = [
            field(1, b"trailing-data-test"),
            field(2, b"Update"),
            field(3, b"v1"),
            field(6, b"FieldsV1"),
            field(7, &field(1, fields.as_bytes())),
        ];
        metadata.extend(field(17, &entry.concat()));
    }
    let mut object = field(1, &metadata);
    for (key, value) in data {
        object.extend(field(2, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat()));
    }
    let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, &object)].concat()
}
