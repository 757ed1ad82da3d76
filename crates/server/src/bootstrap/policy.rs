//! The roles and bindings that every cluster has.
//!
//! There are 141 of them, and most tenants are only used by administrators, who need none. So they are written when they are
//! first needed: for a request of somebody else, or one for the policy kinds. Then they are also reconciled, as kube-apiserver
//! does when it starts: what is missing in an existing one is added, unless its annotation
//! `rbac.authorization.kubernetes.io/autoupdate` is `false`.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use k1s_kinds::bootstrap;
use k1s_object::gvk::GroupVersionResource;
use k1s_store::{Error as StoreError, Precondition, Txn};
use serde_json::{Map, Value};

use crate::{
    aggregation,
    errors::Error,
    managed::{self, SERVER},
    objectmeta::{meta_text, metadata_mut},
    rbac::{GROUP, RESOURCES, Rule, uncovered},
    resource::Resource,
    tenant::{MAX_OPS, Tenant},
};

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Maximum attempts while other servers, or users, change the same objects.
const ATTEMPTS: usize = 10;

/// Writes the initial policy of a tenant, unless this server has done so.
pub(crate) async fn ensure_policy(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let policies = &tenant.policies;
    // Boxed, so that requests which find it written do not carry the state of writing it.
    if policies.is_bootstrapped() { Ok(()) } else { Box::pin(write_policy(tenant)).await }
}

async fn write_policy(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let policies = &tenant.policies;
    let _turn = policies.bootstrap.lock().await;
    if policies.is_bootstrapped() {
        return Ok(());
    }
    for attempt in 1.. {
        match reconcile(tenant).await {
            Err(Error::Store(StoreError::Conflict(_))) if attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    policies.set_bootstrapped();
    Ok(())
}

/// The objects of a resource.
fn expected(plural: &str) -> Vec<Value> {
    match plural {
        "clusterroles" => bootstrap::cluster_roles(),
        "roles" => bootstrap::roles(),
        "clusterrolebindings" => bootstrap::cluster_role_bindings(),
        _ => bootstrap::role_bindings(),
    }
}

async fn reconcile(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let namespaces = tenant.shared.catalog.require(GroupVersionResource::new("", "v1", "namespaces"))?;
    let mut exists: HashMap<String, bool> = HashMap::new();
    let mut txn = Txn::new();
    let mut added_to_existing = false;
    for plural in RESOURCES {
        let resource = tenant.shared.catalog.require(GroupVersionResource::new(GROUP, "v1", plural))?;
        let snapshot = tenant.cache(&resource).now().await?;
        added_to_existing |= plural == "clusterroles" && snapshot.entries.len() > 0;
        let (mut keys, mut new): (Vec<Bytes>, Vec<Value>) = (Vec::new(), Vec::new());
        for object in expected(plural) {
            let namespace = meta_text(&object, "namespace").to_owned();
            if !namespace.is_empty() && !exists.contains_key(&namespace) {
                let found = tenant.get(&tenant.key(&namespaces, "", &namespace)).await?;
                exists.insert(namespace.clone(), found.is_some());
            }
            if exists.get(&namespace) == Some(&false) {
                continue;
            }
            let key = tenant.key(&resource, &namespace, meta_text(&object, "name"));
            let Some(entry) = snapshot.entries.get(&key) else {
                let mut object = object;
                managed::on_own_create(&resource, tenant.env(), SERVER, &mut object);
                keys.push(key);
                new.push(object);
                continue;
            };
            let (value, condition) = match resource.read_to_write(&entry.stored) {
                Ok(old) if is_protected(&old) => continue,
                Ok(old) => match reconciled(&old, &object) {
                    Reconciled::Same => continue,
                    Reconciled::Changed(new) => {
                        (resource.encode(&finished(&resource, new))?, entry.stored.revision)
                    }
                    Reconciled::Replaced => {
                        (resource.encode_new(tenant.env(), object)?, entry.stored.revision)
                    }
                },
                // It grants nothing, and its name is needed.
                Err(_) => (resource.encode_new(tenant.env(), object)?, entry.stored.revision),
            };
            txn = put(tenant, txn, key, value, Precondition::Revision(condition)).await?;
        }
        if plural == "clusterroles" {
            aggregation::aggregate_new(&mut new, &crate::time::stamp(tenant.env()));
        }
        for (key, object) in keys.into_iter().zip(new) {
            let value = resource.encode_new(tenant.env(), object)?;
            txn = put(tenant, txn, key, value, Precondition::Absent).await?;
        }
    }
    if !txn.ops().is_empty() {
        tenant.txn(txn).await?;
    }
    if added_to_existing {
        aggregation::aggregate(tenant).await?;
    }
    Ok(())
}

/// Adds an operation to a transaction; runs it when it is full.
async fn put(
    tenant: &Tenant,
    txn: Txn,
    key: Bytes,
    value: Bytes,
    condition: Precondition,
) -> Result<Txn, Error> {
    let txn = txn.put(key, value, condition);
    if txn.ops().len() < MAX_OPS {
        return Ok(txn);
    }
    tenant.txn(txn).await?;
    Ok(Txn::new())
}

fn finished(resource: &Resource, mut object: Value) -> Value {
    resource.finish(&mut object);
    resource.set_type(&mut object);
    object
}

fn is_protected(object: &Value) -> bool {
    object["metadata"]["annotations"][AUTO_UPDATE] == "false"
}

/// What is to be done about an existing object.
#[derive(Debug, PartialEq)]
pub(super) enum Reconciled {
    Same,
    Changed(Value),
    /// The role of a binding cannot be changed: it is created again.
    Replaced,
}

/// An existing object, completed by what is expected of it.
pub(super) fn reconciled(old: &Value, expected: &Value) -> Reconciled {
    if old.get("roleRef").is_some_and(|role| Some(role) != expected.get("roleRef")) {
        return Reconciled::Replaced;
    }
    let mut new = old.clone();
    for name in ["labels", "annotations"] {
        let Some(wanted) = expected["metadata"][name].as_object() else { continue };
        let known = metadata_mut(&mut new).entry(name).or_insert_with(|| Value::Object(Map::new()));
        if let Some(known) = known.as_object_mut() {
            for (key, value) in wanted {
                // What the user has set stays.
                known.entry(key.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
    let missing_rules = uncovered(&Rule::list(&old["rules"]), &Rule::list(&expected["rules"]));
    append(&mut new, "rules", missing_rules.iter().map(Rule::to_json));
    let has = |list: &Value, one: &Value| list.as_array().is_some_and(|list| list.contains(one));
    let mut missing_subjects: Vec<Value> = Vec::new();
    for subject in expected["subjects"].as_array().into_iter().flatten() {
        if !has(&old["subjects"], subject) && !missing_subjects.contains(subject) {
            missing_subjects.push(subject.clone());
        }
    }
    append(&mut new, "subjects", missing_subjects.into_iter());
    match (expected.get("aggregationRule"), new.as_object_mut()) {
        (Some(wanted), Some(role)) => {
            let known = old["aggregationRule"]["clusterRoleSelectors"].clone();
            let wanted = wanted["clusterRoleSelectors"].as_array().into_iter().flatten();
            let mut missing = wanted.filter(|one| !has(&known, one)).cloned().peekable();
            if missing.peek().is_some() {
                let rule = role.entry("aggregationRule").or_insert_with(|| Value::Object(Map::new()));
                append(rule, "clusterRoleSelectors", missing);
            }
        }
        (None, Some(role)) => drop(role.shift_remove("aggregationRule")),
        (_, None) => {}
    }
    if new == *old { Reconciled::Same } else { Reconciled::Changed(new) }
}

fn append(object: &mut Value, field: &str, more: impl Iterator<Item = Value>) {
    let mut more = more.peekable();
    let Some(map) = object.as_object_mut().filter(|_| more.peek().is_some()) else { return };
    match map.get_mut(field).and_then(Value::as_array_mut) {
        Some(list) => list.extend(more),
        None => drop(map.insert(field.into(), more.collect())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(name: &str) -> Value {
        bootstrap::cluster_roles().into_iter().find(|role| role["metadata"]["name"] == name).unwrap()
    }

    #[test]
    fn what_is_missing_is_added_and_the_rest_is_left_alone() {
        let expected = role("system:discovery");
        assert_eq!(reconciled(&expected, &expected), Reconciled::Same);
        let mut old = expected.clone();
        old["rules"][0]["nonResourceURLs"] = json!(["/api", "/mine"]);
        old["metadata"]["labels"] = json!({"kubernetes.io/bootstrapping": "mine", "a": "b"});
        let Reconciled::Changed(new) = reconciled(&old, &expected) else { panic!() };
        assert_eq!(new["rules"][0], old["rules"][0]);
        assert_eq!(new["rules"][1], json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}));
        assert_eq!(new["rules"].as_array().unwrap().len(), 11);
        assert_eq!(new["metadata"]["labels"], old["metadata"]["labels"]);
        assert_eq!(reconciled(&new, &expected), Reconciled::Same);
    }

    #[test]
    fn a_rule_that_covers_what_is_expected_is_enough() {
        let expected = role("system:basic-user");
        let mut old = expected.clone();
        old["rules"] = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        assert_eq!(reconciled(&old, &expected), Reconciled::Same);
    }

    #[test]
    fn aggregation_rules_are_added_and_removed() {
        let mut old = role("view");
        old["aggregationRule"]["clusterRoleSelectors"] = json!([{"matchLabels": {"mine": "yes"}}]);
        let Reconciled::Changed(new) = reconciled(&old, &role("view")) else { panic!() };
        assert_eq!(new["aggregationRule"]["clusterRoleSelectors"].as_array().unwrap().len(), 2);
        let mut old = role("cluster-admin");
        old["aggregationRule"] = json!({"clusterRoleSelectors": []});
        let Reconciled::Changed(new) = reconciled(&old, &role("cluster-admin")) else { panic!() };
        assert_eq!(new.get("aggregationRule"), None);
    }

    #[test]
    fn a_binding_gets_its_subjects_back_and_is_replaced_if_its_role_is_another() {
        let mut all = bootstrap::cluster_role_bindings().into_iter();
        let expected = all.find(|binding| binding["metadata"]["name"] == "system:discovery").unwrap();
        let mut old = expected.clone();
        let mine = json!({"kind": "User", "apiGroup": GROUP, "name": "me"});
        old["subjects"] = json!([mine]);
        let Reconciled::Changed(new) = reconciled(&old, &expected) else { panic!() };
        assert_eq!(new["subjects"], json!([mine, expected["subjects"][0]]));
        old["roleRef"]["name"] = "view".into();
        assert_eq!(reconciled(&old, &expected), Reconciled::Replaced);
        old["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
        assert!(is_protected(&old) && !is_protected(&expected));
    }
}
