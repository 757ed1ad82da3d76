//! `authentication.k8s.io`. Its kinds are never stored: the server validates the body and responds.

mod self_subject_review;
pub(super) mod token_request;
mod token_review;

pub use self::{
    self_subject_review::self_subject_review,
    token_request::{check_token_request, validate_token_request_names},
    token_review::validate_token_review,
};
use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "TokenRequest" => &token_request::RULES,
        _ => return None,
    })
}
