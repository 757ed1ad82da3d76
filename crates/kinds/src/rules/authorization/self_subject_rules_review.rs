//! `SelfSubjectRulesReview`.

use k1s_object::status::Status;
use serde_json::Value;

/// The namespace is required.
pub fn validate_self_subject_rules_review(review: &Value) -> Result<(), Status> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    Ok(())
}
