//! Validating policies.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k1s_cel::Work;
use k1s_kinds::{
    admission::policy::{Annotation, Denial, Outcome, ValidatingPolicy},
    expressions::{Input, OUT_OF_BUDGET},
};
use k1s_object::{Status, status::Cause};
use serde_json::{Value, json};

use super::{SeenVersions, forbidden, is_bound, matched, params};
use crate::{
    admission::{Admission, Attributes, webhooks::Views},
    errors::Error,
    hooks::{Binding, Matches, Policy},
    metrics::policies::Held,
};

/// Longer values of audit annotations are cut.
const MAX_ANNOTATION: usize = 10 << 10;
/// Maximum number of failures that an audit annotation lists.
const MAX_FAILURES: usize = 50;

/// Checks an object by all policies that match it.
pub(in crate::admission) async fn validate(
    admission: &mut Admission<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Error> {
    let Some(matches) = admission.matches.clone() else { return Ok(()) };
    let mut checks = Checks::default();
    for policy in &matches.validating_policies {
        admission.time_left()?;
        checks.policy(admission, &matches, policy, object, old).await?;
        if admission.allowance.is_exhausted() {
            break;
        }
    }
    let a = &admission.attributes;
    if !checks.failures.is_empty() {
        let value = Value::Array(std::mem::take(&mut checks.failures)).to_string();
        a.annotate("validation.policy.admission.k8s.io/validation_failure".into(), value);
    }
    match checks.denied {
        Some((why, reason)) => Err(denial(a, object, why, &reason).into()),
        None => Ok(()),
    }
}

/// The Status of a denial.
fn denial(a: &Attributes<'_>, object: Option<&Value>, why: String, reason: &str) -> Status {
    let mut status = forbidden(a, object, &why);
    (status.reason, status.code) = match reason {
        "Forbidden" => ("Forbidden", 403),
        "Unauthorized" => ("Unauthorized", 401),
        "RequestEntityTooLarge" => ("RequestEntityTooLarge", 413),
        _ => ("Invalid", 422),
    };
    if let Some(details) = &mut status.details {
        details.causes.push(Cause { message: why, ..Cause::default() });
    }
    status
}

/// What the policies of a request have found so far.
#[derive(Default)]
struct Checks {
    views: Views,
    seen: SeenVersions,
    /// The first denial: its message and reason.
    denied: Option<(String, String)>,
    /// Failed validations with the action Audit.
    failures: Vec<Value>,
}

impl Checks {
    fn deny(&mut self, policy: &str, binding: Option<&str>, why: &str, reason: &str) {
        if self.denied.is_none() {
            let by = match binding {
                Some(binding) => format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}'"),
                None => format!("ValidatingAdmissionPolicy '{policy}'"),
            };
            self.denied = Some((format!("{by} denied request: {why}"), reason.to_owned()));
        }
    }

    /// Denies the request for a policy or binding that is wrong itself, unless the policy ignores failures.
    fn misconfigured(&mut self, policy: &Policy<ValidatingPolicy>, binding: Option<&str>, why: &str) {
        if !policy.ignores_failures {
            let what = if binding.is_some() { "binding" } else { "policy" };
            self.deny(&policy.name, binding, &format!("failed to configure {what}: {why}"), "");
        }
    }

    async fn policy(
        &mut self,
        admission: &mut Admission<'_>,
        matches: &Matches,
        policy: &Arc<Policy<ValidatingPolicy>>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        let resource = match matched(admission, matches, &policy.criteria, object, old).await {
            Ok(Some(resource)) => resource,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let kind = match &policy.param_kind {
            None => None,
            Some(kind) => match params::resource_of(&admission.attributes, kind).await {
                Ok(kind) => Some(kind),
                Err(why) => {
                    self.misconfigured(policy, None, &why);
                    return Ok(());
                }
            },
        };
        let mut annotations = BTreeMap::new();
        for binding in &policy.bindings {
            match is_bound(admission, matches, binding, object, old).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    self.misconfigured(policy, Some(&binding.name), &why);
                    continue;
                }
            }
            let a = &admission.attributes;
            let params = match params::collect(a, kind.as_ref(), binding).await {
                Ok(params) => params,
                Err(why) => {
                    self.misconfigured(policy, Some(&binding.name), &why);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if let Err(why) = self.views.show(a, &resource, object, old).await {
                let why = format!("failed to convert object version: {}", super::message(why));
                self.misconfigured(policy, Some(&binding.name), &why);
                continue;
            }
            for params in &params {
                let seen = self.seen.of(a, &resource).await?;
                let (object, old) = self.views.in_version(&resource);
                let evaluated = policy.clone();
                let evaluate =
                    move |input: Input<'_>, work: &Work| evaluated.compiled().evaluate(input, work);
                let env = a.cx.tenant.env();
                let began = env.now();
                let allowance = &mut admission.allowance;
                let outcome = seen.evaluate(a, allowance, [object, old], params, evaluate).await?;
                let took = env.now() - began;
                if allowance.is_exhausted() {
                    // Unlike its own budget, that of the request is not the policy's to ignore.
                    self.deny(&policy.name, Some(&binding.name), OUT_OF_BUDGET, "");
                    return Ok(());
                }
                self.settle(a, (policy, binding), outcome, took, &mut annotations);
            }
        }
        for (key, values) in annotations {
            admission.attributes.annotate(format!("{}/{key}", policy.name), values.join(", "));
        }
        Ok(())
    }

    fn settle(
        &mut self,
        a: &Attributes<'_>,
        (policy, binding): (&Policy<ValidatingPolicy>, &Binding),
        outcome: Outcome,
        took: Duration,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        let metrics = &a.cx.tenant.shared.metrics.policies;
        let names = [policy.name.as_str(), binding.name.as_str()];
        if let Some(held) = outcome.conditions {
            let held = match held {
                Ok(true) => Held::Yes,
                Ok(false) => Held::No,
                Err(()) => Held::Failed,
            };
            metrics.conditions(names[0], ["policy", "validate"], a.operation, held, took);
        }
        for Denial { index, message, reason } in outcome.denials {
            for action in &binding.actions {
                let name = match action.as_str() {
                    "Deny" => "deny",
                    "Audit" => "audit",
                    _ => "warn",
                };
                metrics.validation(names, &message, name, took);
                match action.as_str() {
                    "Deny" => self.deny(&policy.name, Some(&binding.name), &message, &reason),
                    "Audit" if self.failures.len() < MAX_FAILURES => self.failures.push(json!({
                        "message": message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": index,
                        "validationActions": binding.actions,
                    })),
                    "Warn" => a.cx.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                        policy.name, binding.name
                    )),
                    _ => {}
                }
            }
        }
        for annotation in outcome.annotations {
            match annotation {
                Annotation::Failed(why) => {
                    metrics.validation(names, &why, "deny", took);
                    self.deny(&policy.name, Some(&binding.name), &why, "");
                }
                Annotation::Publish(key, mut value) => {
                    value.truncate(value.floor_char_boundary(MAX_ANNOTATION));
                    let values: &mut Vec<String> = annotations.entry(key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
            }
        }
    }
}
