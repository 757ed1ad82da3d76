//! What a conversion webhook may answer: the cases of kube-apiserver's converter.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "a test fails by panicking")]

use k1s_schema::conversion::{Review, ReviewVersion};
use serde_json::{Value, json};

const DESIRED: &str = "example.com/v2";

fn original(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": name, "namespace": "n", "uid": "u", "finalizers": ["f"], "labels": {"a": "A", "b": "B"},
            "annotations": {"a": "1"}}, "spec": {"x": 1}})
}

fn converted(name: &str) -> Value {
    let mut object = original(name);
    object["apiVersion"] = DESIRED.into();
    object
}

fn answer_of(version: ReviewVersion, objects: &[Value], response: &Value) -> Result<Vec<Value>, String> {
    let review = Review { version, uid: "id", desired: DESIRED, objects };
    let sent: Value = serde_json::from_slice(&review.body()).unwrap();
    assert_eq!(sent["request"]["objects"], json!(objects));
    assert_eq!(sent["request"]["desiredAPIVersion"], DESIRED);
    review.answer(response.to_string().as_bytes())
}

fn answer(objects: &[Value], converted: &Value) -> Result<Vec<Value>, String> {
    let response = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": "id", "result": {"status": "Success"}, "convertedObjects": converted}});
    answer_of(ReviewVersion::V1, objects, &response)
}

fn one(converted: Value) -> Result<Value, String> {
    answer(&[original("a")], &json!([converted])).map(|mut all| all.remove(0))
}

#[test]
fn a_review_version_is_the_first_that_is_supported() {
    for (versions, expected) in [
        (&["v1", "v1beta1"][..], Some(ReviewVersion::V1)),
        (&["v1beta1", "v1"], Some(ReviewVersion::V1Beta1)),
        (&["foo", "v1"], Some(ReviewVersion::V1)),
        (&["foo"], None),
        (&[], None),
    ] {
        assert_eq!(ReviewVersion::choose(versions.iter().copied()), expected);
    }
}

#[test]
fn only_labels_and_annotations_of_the_metadata_are_the_converters() {
    let mut changed = converted("a");
    changed["spec"] = json!({"y": 2});
    changed["metadata"]["labels"] = json!({"a": "AA"});
    changed["metadata"]["annotations"] = json!({"b": "2"});
    changed["metadata"]["finalizers"] = json!(["other"]);
    changed["metadata"]["generation"] = json!(7);
    let found = one(changed).unwrap();
    let mut expected = converted("a");
    expected["spec"] = json!({"y": 2});
    expected["metadata"]["labels"] = json!({"a": "AA"});
    expected["metadata"]["annotations"] = json!({"b": "2"});
    assert_eq!(found, expected);
    for none in [json!(null), json!({})] {
        let mut changed = converted("a");
        changed["metadata"]["labels"] = none.clone();
        let found = one(changed).unwrap();
        let labels = found["metadata"].get("labels").cloned();
        assert_eq!(labels, (!none.is_null()).then_some(none));
    }
}

#[test]
fn metadata_that_a_converter_may_not_answer_is_named() {
    let of = |change: &dyn Fn(&mut Value)| {
        let mut object = converted("a");
        change(&mut object);
        one(object).unwrap_err()
    };
    let long = "x".repeat(64);
    for (change, expected) in [
        (
            (&|o: &mut Value| o["metadata"]["name"] = "b".into()) as &dyn Fn(&mut Value),
            " returned invalid object: must have the same name: a != b",
        ),
        (
            &|o: &mut Value| o["metadata"]["namespace"] = "m".into(),
            " returned invalid object: must have the same namespace: n != m",
        ),
        (
            &|o: &mut Value| o["metadata"]["uid"] = "w".into(),
            " returned invalid object: must have the same UID: u != w",
        ),
        (
            &|o: &mut Value| o["kind"] = "Other".into(),
            " returned invalid object at index 0: invalid kind (expected Thing, received Other)",
        ),
        (
            &|o: &mut Value| o["apiVersion"] = "example.com/v3".into(),
            " returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
        ),
        (
            &|o: &mut Value| o["metadata"]["labels"] = json!({"a": null}),
            " returned invalid metadata: metadata.labels[a] must be a string, but is <nil> in converted object",
        ),
        (
            &|o: &mut Value| o["metadata"]["annotations"] = json!(["a"]),
            " returned invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
        ),
    ] {
        assert_eq!(of(change), expected);
    }
    for (labels, part) in [
        (
            json!({"some/non-qualified/label": "x"}),
            "metadata.labels: Invalid value: \"some/non-qualified/label\"",
        ),
        (json!({"foo": "üäö"}), "metadata.labels: Invalid value: \"üäö\""),
        (json!({"foo": long}), "metadata.labels: Invalid value"),
    ] {
        let found = of(&|o: &mut Value| o["metadata"]["labels"] = labels.clone());
        assert!(found.starts_with(" returned invalid metadata: ") && found.contains(part), "{found}");
    }
    let found = of(&|o: &mut Value| o["metadata"]["annotations"] = json!({"a/b/c": "x"}));
    assert!(found.contains("metadata.annotation: Invalid value: \"a/b/c\""), "{found}");
}

#[test]
fn metadata_has_to_be_an_object() {
    let unnamed = json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {}});
    let with = |metadata: Option<Value>| {
        let mut object = json!({"apiVersion": DESIRED, "kind": "Thing", "spec": {}});
        if let Some(metadata) = metadata {
            object["metadata"] = metadata;
        }
        answer(std::slice::from_ref(&unnamed), &json!([object]))
    };
    assert_eq!(with(None).unwrap_err(), " returned invalid metadata: missing metadata in converted object");
    assert_eq!(
        with(Some(json!(["foo"]))).unwrap_err(),
        " returned invalid metadata: invalid metadata of type []interface {} in converted object"
    );
    assert_eq!(with(Some(json!({}))).unwrap()[0]["metadata"], json!({}));
}

#[test]
fn a_response_is_checked_before_its_objects() {
    let full = |change: &dyn Fn(&mut Value)| {
        let mut response = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": "id", "result": {"status": "Success"}, "convertedObjects": [converted("a")]}});
        change(&mut response);
        response
    };
    for (version, change, expected) in [
        (
            ReviewVersion::V1,
            (&|r: &mut Value| r["apiVersion"] = "apiextensions.k8s.io/v1beta1".into()) as &dyn Fn(&mut Value),
            " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
        ),
        (
            ReviewVersion::V1,
            &|r: &mut Value| r["response"]["uid"] = "other".into(),
            " failed: expected response.uid=\"id\", got \"other\"",
        ),
        (ReviewVersion::V1, &|r: &mut Value| r["response"] = Value::Null, " failed: no response provided"),
        (
            ReviewVersion::V1Beta1,
            &|r: &mut Value| r["response"] = Value::Null,
            " failed: no response provided",
        ),
        (
            ReviewVersion::V1,
            &|r: &mut Value| {
                r["response"]["result"] = json!({"status": "Failure", "message": "no such version"})
            },
            " failed: no such version",
        ),
        (
            ReviewVersion::V1,
            &|r: &mut Value| r["response"]["result"] = json!({"status": "Failure"}),
            " failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            ReviewVersion::V1Beta1,
            &|r: &mut Value| r["response"]["result"] = json!({}),
            " failed: response.result.status was '', not 'Success'",
        ),
        (
            ReviewVersion::V1,
            &|r: &mut Value| r["response"]["convertedObjects"] = json!([]),
            " returned 0 objects, expected 1",
        ),
        (
            ReviewVersion::V1,
            &|r: &mut Value| r["response"]["convertedObjects"] = json!([converted("a"), converted("b")]),
            " returned 2 objects, expected 1",
        ),
    ] {
        assert_eq!(answer_of(version, &[original("a")], &full(change)).unwrap_err(), expected);
    }
    // Reviews of v1beta1 are accepted with another uid, or none.
    let old = json!({"response": {"result": {"status": "Success"}, "convertedObjects": [converted("a")]}});
    assert_eq!(answer_of(ReviewVersion::V1Beta1, &[original("a")], &old).unwrap(), [converted("a")]);
    let garbage = Review { version: ReviewVersion::V1, uid: "id", desired: DESIRED, objects: &[] };
    assert!(
        garbage
            .answer(b"<html>")
            .unwrap_err()
            .starts_with(" failed: couldn't get version/kind; json parse error")
    );
}

#[test]
fn of_several_objects_the_wrong_one_is_named() {
    let objects = [original("a"), original("b")];
    let wrong = answer(&objects, &json!([converted("a"), converted("c")])).unwrap_err();
    assert_eq!(wrong, " returned invalid converted object at index 1: must have the same name: b != c");
    let mut bad = converted("b");
    bad["metadata"]["labels"] = json!({"a": 1});
    let wrong = answer(&objects, &json!([converted("a"), bad])).unwrap_err();
    assert_eq!(
        wrong,
        " returned invalid metadata in object at index 1: metadata.labels[a] must be a string, but is int64 in converted object"
    );
    assert_eq!(answer(&objects, &json!([converted("a")])).unwrap_err(), " returned 1 objects, expected 2");
    assert_eq!(answer(&objects, &json!([converted("a"), converted("b")])).unwrap().len(), 2);
}
