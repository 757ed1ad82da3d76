//! `Eviction`, the body of a POST to `pods/eviction`.

use k1s_object::{field::FieldError, status::Status};
use serde_json::Value;

/// Validates the eviction of the pod `name`.
pub fn validate_eviction(eviction: &Value, name: &str) -> Result<(), Status> {
    let text = eviction.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if text != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let unsafe_delete = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let options = eviction.get("deleteOptions");
    if options.and_then(|options| options.get(unsafe_delete)).and_then(Value::as_bool) == Some(true) {
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(format!("deleteOptions.{unsafe_delete}"), true, why);
        return Err(Status::invalid("policy", "Eviction", name, &[error]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_eviction_names_its_pod() {
        assert!(validate_eviction(&json!({"metadata": {"name": "p"}}), "p").is_ok());
        let wrong = validate_eviction(&json!({"metadata": {"name": "q"}}), "p").unwrap_err();
        assert_eq!(wrong.message, "name in URL does not match name in Eviction object");
    }
}
