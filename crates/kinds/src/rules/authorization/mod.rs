//! `authorization.k8s.io`. Its kinds are never stored: the server validates the body and responds.

mod self_subject_rules_review;
mod subject_access_review;

pub use self::{
    self_subject_rules_review::validate_self_subject_rules_review,
    subject_access_review::{
        invalid_access_review, validate_local_subject_access_review, validate_self_subject_access_review,
        validate_subject_access_review,
    },
};
use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "SubjectAccessReview" => &subject_access_review::ACCESS,
        "SelfSubjectAccessReview" => &subject_access_review::SELF_ACCESS,
        "LocalSubjectAccessReview" => &subject_access_review::LOCAL_ACCESS,
        _ => return None,
    })
}
