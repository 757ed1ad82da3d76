//! Parameters of admission policies that a webhook converts.

use serde_json::{Value, json};

use crate::{
    common::Client,
    world::{Mode, World, host, path},
};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const FAILED: &str =
    "failed to configure binding: conversion webhook for example.com/v1, Kind=Host failed: down";

/// Policies of both kinds whose parameters are hosts in v1beta1: one denies a Secret without the label that the other sets.
async fn policies(client: &Client, reference: &Value) {
    let rules = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}]});
    let kind = json!({"apiVersion": "example.com/v1beta1", "kind": "Host"});
    let set = "Object{metadata: Object.metadata{labels: {params.metadata.name: params.spec.hostPort.replace(':', '_')}}}";
    let check = "object.metadata.labels[params.metadata.name] == params.spec.hostPort.replace(':', '_')";
    for (lower, upper, own, more) in [
        (
            "mutating",
            "Mutating",
            json!({"reinvocationPolicy": "Never",
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": set}}]}),
            json!({}),
        ),
        (
            "validating",
            "Validating",
            json!({"validations": [{"expression": check}]}),
            json!({"validationActions": ["Deny"]}),
        ),
    ] {
        let mut spec = json!({"matchConstraints": rules, "paramKind": kind});
        spec.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let mut binding = json!({"policyName": "p", "paramRef": reference});
        binding.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for (suffix, end, spec) in [("ies", "", spec), ("ybindings", "Binding", binding)] {
            let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": format!("{upper}AdmissionPolicy{end}"), "metadata": {"name": "p"}, "spec": spec});
            client.post(&format!("{ADMISSION}/{lower}admissionpolic{suffix}"), object).await;
        }
    }
}

async fn secret(client: &Client, name: &str) -> (u16, Value) {
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    client.call("POST", SECRETS, body).await
}

async fn ignore_failures(client: &Client, kind: &str) {
    let path = format!("{ADMISSION}/{kind}admissionpolicies/p");
    assert_eq!(client.call("PATCH", &path, json!({"spec": {"failurePolicy": "Ignore"}})).await.0, 200);
}

/// Policies with parameters in another version, whose converter goes down.
async fn converted(reference: Value) {
    let world = World::new().await;
    let client = &world.client;
    for (name, port, tier) in [("one", 80, "x"), ("two", 81, "x"), ("three", 82, "y")] {
        let mut host = host("v1", name);
        host["metadata"]["labels"] = json!({"tier": tier});
        host["spec"]["port"] = port.into();
        client.post(&path("v1"), host).await;
    }
    policies(client, &reference).await;
    world.hook.calls();
    let (code, made) = secret(client, "a").await;
    assert_eq!(code, 201, "{made}");
    let expected = match reference.get("name") {
        Some(_) => json!({"one": "a.b_80"}),
        None => json!({"one": "a.b_80", "two": "a.b_81"}),
    };
    assert_eq!(made["metadata"]["labels"], expected);
    assert_eq!(world.hook.calls(), 1, "one call converts all parameters, which both policies use");
    // What was converted before is remembered, and anything else fails both policies: none of them is left out.
    world.hook.set(Mode::Fail("down"));
    assert_eq!(secret(client, "b").await.0, 201);
    let changed = json!({"spec": {"host": "c.d"}});
    assert_eq!(client.call("PATCH", &format!("{}/one", path("v1")), changed).await.0, 200);
    let (code, refused) = secret(client, "c").await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (403, &*format!("policy 'p' with binding 'p' denied request: {FAILED}"))
    );
    ignore_failures(client, "mutating").await;
    let (code, refused) = secret(client, "c").await;
    let by = "secrets \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request:";
    assert_eq!((code, refused["message"].as_str().unwrap()), (422, &*format!("{by} {FAILED}")));
    ignore_failures(client, "validating").await;
    assert_eq!(secret(client, "c").await.0, 201);
    world.hook.set(Mode::Convert);
    let (_, made) = secret(client, "d").await;
    assert_eq!(made["metadata"]["labels"]["one"], "c.d_80");
}

#[tokio::test]
async fn parameters_by_name_are_converted_or_fail_the_binding() {
    converted(json!({"name": "one", "parameterNotFoundAction": "Allow"})).await;
}

#[tokio::test]
async fn parameters_by_selector_are_converted_or_fail_the_binding() {
    let selector = json!({"matchLabels": {"tier": "x"}});
    converted(json!({"selector": selector, "parameterNotFoundAction": "Allow"})).await;
}

#[tokio::test]
async fn a_selector_of_parameters_sees_the_labels_that_their_converter_sets() {
    let world = World::new().await;
    let client = &world.client;
    client.post(&path("v1"), host("v1", "one")).await;
    world.hook.set(Mode::Change(|answer| {
        answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"tier": "x"});
    }));
    let selector = json!({"matchLabels": {"tier": "x"}});
    policies(client, &json!({"selector": selector, "parameterNotFoundAction": "Deny"})).await;
    let (code, made) = secret(client, "a").await;
    assert_eq!((code, &made["metadata"]["labels"]), (201, &json!({"one": "a.b_80"})), "{made}");
}
