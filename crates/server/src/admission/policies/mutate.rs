//! Mutating policies.

use std::sync::Arc;

use k1s_cel::Work;
use k1s_kinds::{
    admission::policy::{MutatingPolicy, Mutation},
    expressions::{Input, OUT_OF_BUDGET},
};
use k1s_object::{Status, field::quote, status::Cause};
use serde_json::Value;

use super::{Allowance, SeenVersions, forbidden, is_bound, matched, message, params, patch};
use crate::{
    admission::{Admission, Attributes, webhooks::Views},
    errors::Error,
    hooks::{Matches, Policy},
    resource::Resource,
};

/// A policy, one of its bindings, and the namespace and name of a parameter.
type Key = (String, String, String);

/// What is remembered of the policies of a request.
#[derive(Default)]
pub(in crate::admission) struct State {
    /// Policies that were evaluated, and want to be evaluated again if the object changes afterwards.
    invoked: Vec<Key>,
    /// Policies to evaluate again.
    due: Vec<Key>,
    /// The object after the last policy.
    output: Option<Value>,
}

impl State {
    /// Before the chain changes an object, or the same one after another write.
    pub(in crate::admission) fn begin(&mut self) {
        *self = State::default();
    }

    fn require_reinvocation(&mut self) {
        self.due.append(&mut self.invoked);
    }
}

/// A policy to evaluate with a parameter.
struct Invocation<'p> {
    policy: &'p Arc<Policy<MutatingPolicy>>,
    binding: &'p str,
    /// The version that the policy matches.
    resource: Arc<Resource>,
    params: Value,
}

impl Invocation<'_> {
    fn key(&self) -> Key {
        let text = |field: &str| self.params["metadata"][field].as_str().unwrap_or_default();
        (self.policy.name.clone(), self.binding.to_owned(), format!("{}/{}", text("namespace"), text("name")))
    }
}

/// The errors of the policies that do not ignore them: their messages and reasons.
#[derive(Default)]
struct Failures(Vec<(String, &'static str)>);

impl Failures {
    /// Unlike its own budget, that of the request is not the policy's to ignore.
    fn exhausted(&mut self, one: &Invocation<'_>) {
        self.0.push((denied(one.policy, Some(one.binding), OUT_OF_BUDGET), "Invalid"));
    }

    fn add(
        &mut self,
        policy: &Policy<MutatingPolicy>,
        binding: Option<&str>,
        why: &str,
        reason: &'static str,
    ) {
        if policy.ignores_failures {
            tracing::warn!(policy = policy.name, binding, why, "a mutating policy failed, failing open");
            return;
        }
        self.0.push((denied(policy, binding, why), reason));
    }

    fn into_result(self, a: &Attributes<'_>, object: Option<&Value>) -> Result<(), Error> {
        let Some((first, reason)) = self.0.first() else { return Ok(()) };
        let mut status: Status = forbidden(a, object, "");
        status.message = first.clone();
        if !reason.is_empty() {
            status.reason = reason;
        }
        if let Some(details) = &mut status.details {
            let cause =
                |(message, _): &(String, &str)| Cause { message: message.clone(), ..Cause::default() };
            details.causes.extend(self.0.iter().map(cause));
        }
        Err(status.into())
    }
}

fn denied(policy: &Policy<MutatingPolicy>, binding: Option<&str>, why: &str) -> String {
    match binding {
        Some(binding) => format!("policy '{}' with binding '{binding}' denied request: {why}", policy.name),
        None => format!("policy {} denied request: {why}", quote(&policy.name)),
    }
}

/// Changes an object by all policies that match it. Returns whether it has changed.
pub(in crate::admission) async fn mutate(
    admission: &mut Admission<'_>,
    mut object: Option<&mut Value>,
    old: Option<&Value>,
) -> Result<bool, Error> {
    let Some(matches) = admission.matches.clone() else { return Ok(false) };
    if matches.mutating_policies.is_empty() {
        return Ok(false);
    }
    let mut failures = Failures::default();
    let invocations = find(admission, &matches, object.as_deref(), old, &mut failures).await;
    let again = admission.webhooks.is_reinvoking();
    if again && admission.policies.output.as_ref() != object.as_deref() {
        // Something else has changed the object after the policies.
        admission.policies.require_reinvocation();
    }
    let mut round = Round::default();
    let mut changed = false;
    for one in &invocations {
        admission.time_left()?;
        let a = &admission.attributes;
        let matched = round.matches((a, &mut admission.allowance), one, object.as_deref(), old).await?;
        if admission.allowance.is_exhausted() {
            failures.exhausted(one);
            break;
        }
        match matched {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                failures.add(one.policy, Some(one.binding), &why, "Invalid");
                continue;
            }
        }
        let key = one.key();
        if again && !admission.policies.due.contains(&key) {
            continue;
        }
        let mut changed_now = false;
        if let Some(object) = object.as_deref_mut() {
            for index in 0..one.policy.compiled().len() {
                let env = a.cx.tenant.env();
                let began = env.now();
                let done = round.run((a, &mut admission.allowance), one, index, object, old).await?;
                if admission.allowance.is_exhausted() {
                    failures.exhausted(one);
                    break;
                }
                let error = done.as_ref().err().map(String::as_str);
                let names = [one.policy.name.as_str(), one.binding];
                a.cx.tenant.shared.metrics.policies.mutation(names, error, env.now() - began);
                match done {
                    Ok(changed) => changed_now |= changed,
                    Err(why) => failures.add(one.policy, Some(one.binding), &why, "Invalid"),
                }
            }
        }
        if changed_now {
            changed = true;
            admission.policies.require_reinvocation();
            admission.webhooks.want_reinvocation();
        }
        if one.policy.compiled().reinvoked {
            admission.policies.invoked.push(key);
        }
    }
    if changed {
        // As upstream: also the policy that made the last change runs again, if it asks for it.
        admission.policies.require_reinvocation();
    }
    admission.policies.output = object.as_deref().cloned();
    failures.into_result(&admission.attributes, object.as_deref())?;
    Ok(changed)
}

/// The policies to evaluate, with the parameters of their bindings.
async fn find<'p>(
    admission: &mut Admission<'_>,
    matches: &'p Matches,
    object: Option<&Value>,
    old: Option<&Value>,
    failures: &mut Failures,
) -> Vec<Invocation<'p>> {
    let mut found = Vec::new();
    for policy in &matches.mutating_policies {
        let misconfigured = |why: String| format!("failed to configure policy: {why}");
        let resource = match matched(admission, matches, &policy.criteria, object, old).await {
            Ok(Some(resource)) => resource,
            Ok(None) => continue,
            Err(why) => {
                failures.add(policy, None, &misconfigured(why), "");
                continue;
            }
        };
        let kind = match &policy.param_kind {
            None => None,
            Some(kind) => match params::resource_of(&admission.attributes, kind).await {
                Ok(kind) => Some(kind),
                Err(why) => {
                    failures.add(policy, None, &misconfigured(why), "");
                    continue;
                }
            },
        };
        for binding in &policy.bindings {
            let bound = match is_bound(admission, matches, binding, object, old).await {
                Ok(false) => continue,
                Ok(true) => params::collect(&admission.attributes, kind.as_ref(), binding).await,
                Err(why) => Err(why),
            };
            match bound {
                Ok(params) => found.extend(params.into_iter().map(|params| Invocation {
                    policy,
                    binding: &binding.name,
                    resource: resource.clone(),
                    params,
                })),
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    failures.add(policy, Some(&binding.name), &why, "");
                }
            }
        }
    }
    found
}

/// The object in the versions that policies match, while they change it one after the other. The inner errors are those of a
/// policy.
#[derive(Default)]
struct Round {
    views: Views,
    seen: SeenVersions,
}

impl Round {
    /// Whether the match conditions of a policy hold.
    async fn matches(
        &mut self,
        (a, allowance): (&Attributes<'_>, &mut Allowance),
        one: &Invocation<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Result<bool, String>, Error> {
        if let Err(why) = self.views.show(a, &one.resource, object, old).await {
            return Ok(Err(message(why)));
        }
        let seen = self.seen.of(a, &one.resource).await?;
        let (object, old) = self.views.in_version(&one.resource);
        let policy = one.policy.clone();
        let matches = move |input: Input<'_>, work: &Work| policy.compiled().matches(input, work);
        seen.evaluate(a, allowance, [object, old], &one.params, matches).await
    }

    /// Runs one mutation of a policy. Returns whether it has changed the object.
    async fn run(
        &mut self,
        (a, allowance): (&Attributes<'_>, &mut Allowance),
        one: &Invocation<'_>,
        index: usize,
        current: &mut Value,
        old: Option<&Value>,
    ) -> Result<Result<bool, String>, Error> {
        if let Err(why) = self.views.show(a, &one.resource, Some(current), old).await {
            return Ok(Err(message(why)));
        }
        let seen = self.seen.of(a, &one.resource).await?;
        let (object, old) = self.views.in_version(&one.resource);
        let Some(object) = object else { return Ok(Ok(false)) };
        let policy = one.policy.clone();
        let evaluate = move |input: Input<'_>, work: &Work| policy.compiled().evaluate(index, input, work);
        let mutation = seen.evaluate(a, allowance, [Some(object), old], &one.params, evaluate).await?;
        let patched = match mutation {
            Ok(Mutation::Apply(config)) => patch::apply(a, &one.resource, object, config),
            Ok(Mutation::Patch(operations)) => match patch::json(object, &operations) {
                Ok(patched) => Ok(patch::strict(patched)?),
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        match patched {
            Err(why) => Ok(Err(why)),
            Ok(patched) => {
                let replaced = self.views.replace(a, &one.resource, current, patched).await?;
                let changed = replaced.is_some();
                if let Some(object) = replaced {
                    *current = object;
                }
                Ok(Ok(changed))
            }
        }
    }
}
