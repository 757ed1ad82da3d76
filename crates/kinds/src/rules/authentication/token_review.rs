//! `TokenReview`.

use k1s_object::status::Status;
use serde_json::Value;

/// The token is required.
pub fn validate_token_review(review: &Value) -> Result<(), Status> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(())
}
