//! `SelfSubjectReview`.

use serde_json::{Map, Value, json};

/// The status of the response to a `SelfSubjectReview`.
pub fn self_subject_review(
    username: &str,
    uid: &str,
    groups: &[String],
    extra: &[(String, Vec<String>)],
) -> Value {
    let mut user = Map::new();
    for (name, text) in [("username", username), ("uid", uid)] {
        if !text.is_empty() {
            user.insert(name.into(), text.into());
        }
    }
    if !groups.is_empty() {
        user.insert("groups".into(), groups.to_vec().into());
    }
    if !extra.is_empty() {
        let extra: Map<String, Value> =
            extra.iter().cloned().map(|(key, values)| (key, values.into())).collect();
        user.insert("extra".into(), extra.into());
    }
    json!({"userInfo": user})
}
