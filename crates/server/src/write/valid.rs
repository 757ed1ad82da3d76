//! Validation of what is about to be written. Rules of a definition that take long are evaluated apart.

use std::time::Duration;

use k1s_env::Env;
use k1s_object::{Check, FieldError, meta};
use k1s_schema::structural::RULES_WORK;
use serde_json::Value;

use super::{check_finalizers, invalid};
use crate::{
    context::Cx,
    errors::Error,
    flow,
    parts::{self, Part},
    resource::{Resource, RuleRun},
};

/// Validates a new object of this name.
pub(super) async fn create(cx: &Cx, object: &Value, name: &str) -> Result<(), Error> {
    validate(cx, Part::Main, object, None, name).await
}

/// Validates a change of an object.
pub(super) async fn update(cx: &Cx, part: Part, new: &Value, old: &Value) -> Result<(), Error> {
    validate(cx, part, new, Some(old), &cx.name).await
}

/// Validates an object that stays as it is. It was valid when it was written, so only rules of a definition that compare it with
/// the object before can refuse it now: no built-in kind has any. Errors in what an earlier definition allowed would be
/// warnings, and are not looked for.
pub(super) async fn unchanged(cx: &Cx, part: Part, object: &Value) -> Result<(), Error> {
    if !cx.resource.compares_with_old() {
        return Ok(());
    }
    update(cx, part, object, object).await
}

/// What was found.
struct Found {
    errors: Vec<FieldError>,
    warnings: Vec<String>,
    /// How long rules took.
    took: Option<Duration>,
    /// Whether rules need more work than they were given.
    unfinished: bool,
}

async fn validate(cx: &Cx, part: Part, new: &Value, old: Option<&Value>, name: &str) -> Result<(), Error> {
    let env = cx.tenant.env();
    let here = if cx.holds_turn() { RULES_WORK } else { flow::HERE };
    let mut found = find(&cx.resource, part, new, old, &RuleRun::new(env, here));
    if found.unfinished && here < RULES_WORK {
        let (env, resource): (Env, _) = (env.clone(), cx.resource.clone());
        let (new, old) = (new.clone(), old.cloned());
        let again = move || find(&resource, part, &new, old.as_ref(), &RuleRun::new(&env, RULES_WORK));
        found = flow::compute(cx, again).await?;
    }
    cx.tenant.shared.metrics.policies.rules(found.took);
    found.warnings.into_iter().for_each(|warning| cx.warn(warning));
    if found.errors.is_empty() { Ok(()) } else { Err(invalid(cx, new, name, found.errors).into()) }
}

fn find(resource: &Resource, part: Part, new: &Value, old: Option<&Value>, run: &RuleRun<'_>) -> Found {
    let check = Check::new();
    let at = check.root(new);
    let metadata = at.get("metadata");
    match old {
        None => {
            meta::validate_create(metadata, resource.namespaced, &|name, prefix| {
                resource.name_errors(name, prefix)
            });
            check_finalizers(resource, metadata);
            resource.validate_create(at, run);
        }
        Some(old) => {
            let old = check.root(old);
            let old_metadata = old.get("metadata");
            meta::validate_common(metadata);
            meta::validate_update(metadata, old_metadata);
            if resource.is_custom() {
                // Kubernetes validates this twice for custom resources, and reports the errors twice.
                meta::validate_update(metadata, old_metadata);
            }
            check_finalizers(resource, metadata);
            match part {
                Part::Main => resource.validate_update(at, old, run),
                Part::Status => resource.validate_status(at, old, run),
                Part::Finalize | Part::Approval | Part::EphemeralContainers | Part::Resize => {
                    parts::validate(part, at, old);
                }
                Part::Internal => {}
            }
        }
    }
    Found {
        warnings: check.take_warnings(),
        errors: check.take(),
        took: run.took(),
        unfinished: run.work().is_exhausted(),
    }
}
