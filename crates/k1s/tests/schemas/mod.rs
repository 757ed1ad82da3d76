//! docs/schemas.md: its struct, and the definition that is made of it, row by row.

#[allow(unused_imports, unreachable_pub, reason = "as a program has it: docs/schemas.md shows this file")]
mod kind;

use k1s::{
    Client, Runtime,
    controller::client::ClientOptions,
    kube::{CustomResourceExt as _, api::DynamicObject},
};
use serde_json::{Value, json};

use self::kind::{Shop, ShopSpec, ShopStatus, Strategy};

const GUIDE: &str = include_str!("../../../../docs/schemas.md");
const KIND: &str = include_str!("kind.rs");

/// Whether `value` has everything that `part` has. Numbers are equal by value; lists have the same length.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part)))
        }
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len() && value.iter().zip(part).all(|(value, part)| contains(value, part))
        }
        _ => value == part || value.as_f64().is_some_and(|number| part.as_f64() == Some(number)),
    }
}

#[test]
fn every_row_of_the_guide_is_in_the_definition() {
    let (_, kind) = KIND.split_once("\n\n").unwrap();
    assert!(GUIDE.contains(kind), "docs/schemas.md does not show crates/k1s/tests/schemas/kind.rs");
    let definition = serde_json::to_value(Shop::crd()).unwrap();
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut rows = 0;
    for line in GUIDE.lines().filter(|line| line.starts_with("| ") && line.contains("`: `{")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [marker, attribute, result] = cells[..] else { panic!("{line}") };
        // What is in code is in the struct.
        if let Some(attribute) =
            attribute.split('`').nth(1).filter(|code| code.contains(['(', '=']) && !code.contains("storage"))
        {
            assert!(KIND.contains(attribute), "{marker}: {attribute} is not in the struct");
        }
        let (name, expected) = result.trim().trim_matches('`').split_once("`: `").unwrap();
        let expected: Value =
            serde_json::from_str(expected).unwrap_or_else(|error| panic!("{marker}: {error}"));
        let found = match name {
            "definition" => &definition["spec"],
            "metadata" | "names" => definition.get(name).unwrap_or(&definition["spec"][name]),
            "version" => version,
            "schema" => schema,
            "spec" => &schema["properties"]["spec"],
            field => &schema["properties"]["spec"]["properties"][field],
        };
        assert!(contains(found, &expected), "{marker}\n  {expected}\nis not in\n  {found}");
        rows += 1;
    }
    assert!(rows > 28, "{rows}");
    let required = &schema["properties"]["spec"]["required"];
    assert_eq!(*required, json!(["currency", "price", "region", "replicas"]));
}

#[tokio::test]
async fn the_server_refuses_what_the_guide_says_that_it_refuses() {
    let runtime = Runtime::builder().start().await.unwrap();
    runtime.install::<Shop>().await.unwrap();
    let client = Client::new(runtime.client(), ClientOptions::default());
    let kind = k1s::controller::kind::Kind::<DynamicObject>::dynamic(Shop::api_resource());
    let shops = client.kind(kind);
    let shop = |name: &str, change: Value| -> DynamicObject {
        let mut spec = json!({"replicas": 3, "price": 1.5, "region": "eu-west", "currency": "EUR"});
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let object = json!({"apiVersion": "example.k1s.dev/v1", "kind": "Shop",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        serde_json::from_value(object).unwrap()
    };
    for (change, field) in [
        (json!({"replicas": 11}), "spec.replicas"),
        (json!({"price": 0}), "spec.price"),
        (json!({"step": 7}), "spec.step"),
        (json!({"region": "EU"}), "spec.region"),
        (json!({"region": ""}), "spec.region"),
        (json!({"owner": "nobody"}), "spec.owner"),
        (json!({"address": "1.2.3"}), "spec.address"),
        (json!({"mirrors": []}), "spec.mirrors"),
        (json!({"mirrors": [""]}), "spec.mirrors[0]"),
        (json!({"colours": {}}), "spec.colours"),
        (json!({"strategy": "Never"}), "spec.strategy"),
        (json!({"minReplicas": 4}), "spec.minReplicas"),
        (json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}), "spec.ports[1]"),
        (json!({"tags": ["a", "a"]}), "spec.tags[1]"),
        (json!({"maxUnavailable": true}), "spec.maxUnavailable"),
        (json!({"values": 3}), "spec.values"),
        (json!({"template": {"a": 1}}), "spec.template"),
        (json!({"currency": null}), "spec.currency"),
    ] {
        let error = shops.create(&shop("bad", change.clone())).await.unwrap_err().to_string();
        assert!(error.contains(field), "{change}: {error}");
    }
    let error = shops.create(&shop("a-name-that-is-too-long", json!({}))).await.unwrap_err().to_string();
    assert!(error.contains("a name has at most 20 characters"), "{error}");
    let mut stored =
        shops.create(&shop("good", json!({"note": null, "values": {"any": [1]}}))).await.unwrap();
    assert_eq!(stored.data["spec"]["strategy"], "RollingUpdate");
    assert_eq!(stored.data["spec"]["minReplicas"], 1);
    assert_eq!(stored.data["spec"]["values"], json!({"any": [1]}));
    stored.data["spec"]["currency"] = "USD".into();
    let error = shops.update(&stored).await.unwrap_err().to_string();
    assert!(error.contains("it cannot be changed"), "{error}");
    // The typed object reads what was stored.
    let typed: ShopSpec =
        serde_json::from_value(json!({"replicas": 1, "price": 1, "region": "a", "currency": "x"})).unwrap();
    assert!(matches!(typed.strategy, Strategy::RollingUpdate) && typed.min_replicas == 1);
    let _ = ShopStatus::default();
    runtime.stop().await.unwrap();
}
