//! The final state of the server, and checks of it.

use std::collections::{BTreeMap, BTreeSet};

use k1s_runtime::{
    Client, Object,
    client::{Error, ListOptions},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::operator::{BRANCH, NAMESPACE, TREE, Tree, TreeSpec};

/// All objects of the operator by kind and name, without fields that differ between runs.
pub(crate) type State = BTreeMap<String, Value>;

/// Reads the state and reports violations that the state alone shows.
pub(crate) async fn read(client: &Client, complaints: &mut Vec<String>) -> Result<State, Error> {
    let (mut all, mut living) = (Vec::new(), BTreeSet::new());
    collect::<Tree>(client, |_| true, &mut all).await?;
    collect::<ConfigMap>(client, |map| map.labels().contains_key(TREE), &mut all).await?;
    collect::<Secret>(client, |secret| secret.labels().contains_key(BRANCH), &mut all).await?;
    collect::<Deployment>(client, |_| true, &mut all).await?;
    for (_, object) in &all {
        living.insert(object["metadata"]["uid"].as_str().unwrap().to_owned());
    }
    let mut state = State::new();
    for (name, mut object) in all {
        let owners = object["metadata"]["ownerReferences"].as_array_mut();
        for owner in owners.into_iter().flatten() {
            if !living.contains(owner["uid"].as_str().unwrap()) {
                complaints.push(format!("{name} is an orphan of {owner}"));
            }
            owner["uid"] = Value::Null;
        }
        if !object["metadata"]["deletionTimestamp"].is_null() {
            complaints.push(format!("{name} is not deleted: {}", object["metadata"]["finalizers"]));
        }
        let observed = &object["status"]["observedGeneration"];
        if name.starts_with("Tree") && *observed != object["metadata"]["generation"] {
            complaints.push(format!(
                "{name} is at generation {}, observed {observed}",
                object["metadata"]["generation"]
            ));
        }
        if name.starts_with("Tree") && object["status"]["complete"] != json!(true) {
            complaints.push(format!("{name} is not complete: {}", object["status"]));
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        for differs in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(differs);
        }
        if let Some(status) = object["status"].as_object_mut() {
            status.remove("observedGeneration");
        }
        state.insert(name, object);
    }
    Ok(state)
}

async fn collect<K: Object<DynamicType: Default>>(
    client: &Client,
    ours: impl Fn(&K) -> bool,
    all: &mut Vec<(String, Value)>,
) -> Result<(), Error> {
    let list = client.live().list::<K>(ListOptions::in_namespace(NAMESPACE)).await?;
    for object in list.items.iter().filter(|object| ours(object)) {
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        all.push((format!("{kind} {}", object.name_any()), serde_json::to_value(object).unwrap()));
    }
    Ok(())
}

/// Compares the state with the trees of the script: enough to see that the run without faults did something.
pub(crate) fn compare_with_script(state: &State, trees: &BTreeMap<String, TreeSpec>) -> Vec<String> {
    let mut expected = BTreeSet::new();
    for (name, spec) in trees {
        expected.insert(format!("Tree {name}"));
        expected.insert(format!("Deployment {name}"));
        for branch in 0..spec.branches {
            expected.insert(format!("ConfigMap {name}-{branch}"));
            expected.extend((0..spec.leaves).map(|leaf| format!("Secret {name}-{branch}-{leaf}")));
        }
    }
    let there: BTreeSet<String> = state.keys().cloned().collect();
    let missing = expected.difference(&there).map(|name| format!("{name} is missing"));
    let extra = there.difference(&expected).map(|name| format!("{name} should not be there"));
    missing.chain(extra).collect()
}

/// The differences between two states.
pub(crate) fn differences(without: &State, with: &State) -> Vec<String> {
    let names: BTreeSet<&String> = without.keys().chain(with.keys()).collect();
    let differ = names.into_iter().filter(|name| without.get(*name) != with.get(*name));
    differ
        .map(|name| {
            let show = |state: &State| state.get(name).map_or("nothing".to_owned(), ToString::to_string);
            format!("{name}\n  without faults: {}\n  with faults:    {}", show(without), show(with))
        })
        .collect()
}
