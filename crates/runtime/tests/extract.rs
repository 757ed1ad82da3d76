//! Extraction from what a real kube-apiserver has stored, in the recordings of `oracle/apply.json.gz`: what a manager has
//! applied is what it owns.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs::File, path::Path};

use flate2::read::GzDecoder;
use k1s_runtime::client::ApplyConfiguration;
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// Scenarios in which some manager applies what it does not own afterwards, literally, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("uid-in-applied-object", "a uid is a precondition"),
    ("create-with-uid-or-resource-version", "a resource version is a precondition"),
    ("owner-references-by-uid", "the recording has placeholders for uids"),
    ("error-duplicate-keys-in-list-map", "items get their keys, of which the protocol was a default"),
    (
        "reapply-same-deployment-is-a-no-op",
        "items get their keys, and quantities are stored in another notation",
    ),
    ("create-service-defaults-are-not-owned", "items get their keys"),
    ("container-ports-composite-key-with-default-protocol", "items get their keys"),
    ("service-ports-by-port-and-protocol", "items get their keys"),
    ("selector-is-atomic", "items get their keys"),
    ("crd-list-map-with-defaulted-key", "items get their keys"),
    ("quantity-reapplied-in-other-notation-is-a-no-op", "quantities are stored in another notation"),
    ("crd-int-or-string-and-numbers", "numbers are stored in another notation"),
    ("error-invalid-field-manager", "a manager's name is escaped in the path"),
    ("create-custom-resource-with-preserve-unknown-fields", "a null is stored and owned"),
    ("null-values", "nulls are stored as defaults"),
    ("secret-data-and-string-data", "stringData is not stored"),
    ("secret-type-and-conflict", "stringData is not stored"),
    ("crd-list-type-set", "an empty set is not owned"),
    ("crd-nested-list-maps-and-sets", "an empty list is not owned"),
    ("crd-without-schema-details-two-managers", "an empty list is not owned"),
    ("managed-fields-rewritten-by-put", "an empty map is not stored"),
];

/// What was applied to an object, as which manager, and the object that was stored. `None` for other requests, failures,
/// and responses of another kind.
fn applied(step: &Value) -> Option<(Value, String, DynamicObject)> {
    let (path, query) = step["do"].as_str()?.strip_prefix("PATCH ")?.split_once('?')?;
    let applies = step["headers"]["Content-Type"].as_str().is_none_or(|kind| kind.contains("apply-patch"));
    if !applies || path.ends_with("/status") || path.ends_with("/scale") {
        return None;
    }
    let manager = query.split('&').find_map(|term| term.strip_prefix("fieldManager="))?;
    let (mut body, mut stored) = (step["body"].clone(), step["expect"]["body"].clone());
    if !body.is_object() || stored["kind"] != body["kind"] || stored["metadata"]["managedFields"].is_null() {
        return None;
    }
    // The recording has placeholders for times.
    stored["metadata"]["creationTimestamp"].take();
    stored["metadata"]["deletionTimestamp"].take();
    for entry in stored["metadata"]["managedFields"].as_array_mut()? {
        entry["time"].take();
    }
    // They may be in the path only.
    for name in ["name", "namespace"] {
        body["metadata"][name] = stored["metadata"][name].clone();
    }
    Some((body, manager.to_owned(), serde_json::from_value(stored).unwrap()))
}

#[test]
fn what_a_manager_has_applied_is_extracted() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/apply.json.gz");
    let recorded: Value = serde_json::from_reader(GzDecoder::new(File::open(recorded).unwrap())).unwrap();
    let (mut extracted, mut different) = (0, Vec::new());
    for scenario in recorded["scenarios"].as_array().unwrap() {
        let name = scenario["name"].as_str().unwrap();
        for (body, manager, stored) in scenario["steps"].as_array().unwrap().iter().filter_map(applied) {
            let mine = ApplyConfiguration::extract(&stored, &manager).unwrap();
            let mut wanted = ApplyConfiguration::from(json!({})).with(body);
            // The server ignores it here.
            wanted.remove("/status");
            if mine == wanted {
                extracted += 1;
            } else {
                println!("{name}: {manager} has applied\n{wanted:?}\nand owns\n{mine:?}");
                different.push(name);
            }
        }
    }
    different.dedup();
    different.sort_unstable();
    let mut expected: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(different, expected);
    assert!(extracted > 100, "{extracted}");
}
