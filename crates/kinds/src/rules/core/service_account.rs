//! `ServiceAccount`: only the names of secrets are kept.

use serde_json::{Map, Value};

use crate::rules::{Rules, helpers::json::find};

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) static RULES: Rules = Rules {
    prepare_create: clean_references,
    prepare_update: |new, _| clean_references(new),
    warnings,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn clean_references(account: &mut Value) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = secret.get_mut("name").map(Value::take);
        *secret = Value::Object(Map::from_iter(name.map(|name| ("name".to_owned(), name))));
    }
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let annotated =
        |account: &Value| find(account, &["metadata", "annotations", MOUNTABLE_SECRETS]).is_some();
    if annotated(new) && !old.is_some_and(annotated) {
        out.push(format!(
            "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to \
             isolate access to mounted secrets"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn only_names_of_secrets_are_kept() {
        let account = json!({"secrets": [{"name": "a", "namespace": "x", "uid": "1"}, {}]});
        assert_eq!(testing::created(&RULES, account), json!({"secrets": [{"name": "a"}, {}]}));
    }

    #[test]
    fn the_mountable_secrets_annotation_warns_once() {
        let account = json!({"metadata": {"annotations": {(MOUNTABLE_SECRETS): "true"}}});
        assert_eq!(testing::warnings(&RULES, account.clone()).len(), 1);
        let mut out = Vec::new();
        warnings(&account, Some(&account), &mut out);
        assert!(out.is_empty());
    }
}
