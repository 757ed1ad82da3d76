//! Admission webhooks: which ones concern a request, and what follows from their answers.

mod matching;
mod object;
mod review;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use k1s_object::{Status, decode, field::quote, names, patch};
use serde_json::{Value, json};

pub(super) use matching::{find, selects};
pub(super) use object::Views;
use review::Verdict;
pub(super) use review::request;

use super::{Admission, Attributes};
use crate::{
    audit::Level,
    errors::{Error, Rejected},
    hooks::{Hook, Match, Phase},
    metrics::admission::Outcome,
    webhook::CallError,
};

/// What is remembered of the webhooks of a request.
#[derive(Default)]
pub(super) struct State {
    /// Whether the chain runs for the second time.
    reinvoking: bool,
    /// Whether a webhook has changed the object, so that the chain has to run for a second time.
    wanted: bool,
    /// Webhooks that were called, and want to be called again if the object changes afterwards.
    invoked: Vec<Arc<Hook>>,
    /// Webhooks to call again.
    due: Vec<Arc<Hook>>,
    /// The object after the last webhook.
    output: Option<Value>,
    /// The labels of the namespace.
    labels: Option<Value>,
    /// The last object that all validating webhooks have allowed.
    allowed: Option<Value>,
}

impl State {
    /// Before the chain changes an object, or the same one after another write.
    pub(super) fn begin(&mut self) {
        let (labels, allowed) = (self.labels.take(), self.allowed.take());
        *self = State { labels, allowed, ..State::default() };
    }

    /// Whether the chain runs once more.
    pub(super) fn begin_reinvocation(&mut self) -> bool {
        let again = self.wanted && !self.reinvoking;
        self.reinvoking |= again;
        again
    }

    /// Whether the chain runs for the second time.
    pub(super) fn is_reinvoking(&self) -> bool {
        self.reinvoking
    }

    /// Makes the chain run for a second time: a policy has changed the object.
    pub(super) fn want_reinvocation(&mut self) {
        self.wanted = true;
    }

    fn require_reinvocation(&mut self) {
        self.due.append(&mut self.invoked);
    }

    fn is_due(&self, hook: &Arc<Hook>) -> bool {
        self.due.iter().any(|due| Arc::ptr_eq(due, hook))
    }
}

/// Why a webhook does not let a request pass.
enum Failure {
    /// It could not be called, or its answer is invalid.
    Calling { why: String, code: u16 },
    /// It has denied the request.
    Denied(Error, u16),
    /// Any other reason, which no failure policy ignores.
    Other(Error),
}

impl Failure {
    fn calling(why: impl Into<String>, code: u16) -> Failure {
        Failure::Calling { why: why.into(), code }
    }

    fn internal(why: impl std::fmt::Display) -> Failure {
        Failure::Other(Status::internal(why).into())
    }
}

/// Calls the mutating webhooks of a request, one after the other. Returns whether the object has changed.
pub(super) async fn mutate(
    admission: &mut Admission<'_>,
    mut object: Option<&mut Value>,
    old: Option<&Value>,
) -> Result<bool, Error> {
    let Some(matches) = admission.matches.clone() else { return Ok(false) };
    if matches.mutating.is_empty() {
        return Ok(false);
    }
    if admission.webhooks.reinvoking && admission.webhooks.output.as_ref() != object.as_deref() {
        // The server's own plugins have changed the object after the webhooks.
        admission.webhooks.require_reinvocation();
    }
    let round = u8::from(admission.webhooks.reinvoking);
    let mut views = Views::default();
    let mut changed = false;
    for one in &matches.mutating {
        let (hook, index) = (&one.hook, one.index);
        if !matching::is_called(admission, (one, "admit"), &mut views, object.as_deref(), old).await? {
            continue;
        }
        // A webhook that was not called in the first round is not called in the second.
        if admission.webhooks.reinvoking && !admission.webhooks.is_due(hook) {
            continue;
        }
        let left = admission.time_left()?;
        let a = &admission.attributes;
        let env = a.cx.tenant.env();
        let started = env.now();
        let key = |kind: &str| format!("{kind}.webhook.admission.k8s.io/round_{round}_index_{index}");
        let patch_key = key("patch");
        let called = call_mutating(a, one, &mut views, object.as_deref_mut(), old, left, patch_key).await;
        observe(a, hook, Phase::Mutating, &called, env.now() - started);
        let mutated = matches!(called, Ok(true));
        a.annotate(
            key("mutation"),
            json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated})
                .to_string(),
        );
        if mutated {
            changed = true;
            admission.webhooks.wanted = true;
            admission.webhooks.require_reinvocation();
        }
        if hook.reinvoke {
            admission.webhooks.invoked.push(hook.clone());
        }
        match called.map_err(|failure| settle(hook, failure)) {
            Ok(_) => {}
            Err(Settled::Ignored(why)) => {
                tracing::warn!(webhook = hook.name, why, "failed calling a webhook, failing open");
                admission.attributes.annotate(key("failed-open.mutation"), hook.name.clone());
                admission.time_left()?;
            }
            Err(Settled::Failed(error)) => return Err(error),
        }
    }
    admission.webhooks.output = object.as_deref().filter(|_| admission.webhooks.wanted).cloned();
    Ok(changed)
}

/// What a failure means for the request.
enum Settled {
    Ignored(String),
    Failed(Error),
}

fn settle(hook: &Hook, failure: Failure) -> Settled {
    match failure {
        Failure::Calling { why, .. } => {
            let why = format!("failed calling webhook {}: {why}", quote(&hook.name));
            match hook.ignores_failure {
                true => Settled::Ignored(why),
                false => Settled::Failed(Status::internal(why).into()),
            }
        }
        Failure::Denied(error, _) | Failure::Other(error) => Settled::Failed(error),
    }
}

/// Calls a mutating webhook and applies its patch. Returns whether the object has changed.
async fn call_mutating(
    a: &Attributes<'_>,
    one: &Match,
    views: &mut Views,
    object: Option<&mut Value>,
    old: Option<&Value>,
    left: Duration,
    patch_key: String,
) -> Result<bool, Failure> {
    check_dry_run(a, &one.hook)?;
    views.show(a, &one.resource, object.as_deref(), old).await.map_err(Failure::Other)?;
    let verdict = call(a, one, views, Phase::Mutating, left).await?;
    if verdict.patch.is_empty() {
        return Ok(false);
    }
    let patch = patch::json::parse(&verdict.patch, false).map_err(|why| {
        // What is no JSON is said as Go says it.
        let why = decode::json(&verdict.patch).err().map_or_else(|| why.to_string(), |why| why.to_string());
        Failure::calling(format!("received undecodable patch in webhook response: {why}"), 503)
    })?;
    if patch.is_empty() {
        return Ok(false);
    }
    let Some(object) = object else {
        return Err(Failure::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            quote(&one.hook.name)
        )));
    };
    if verdict.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {}", quote(&verdict.patch_type));
        return Err(Failure::calling(why, 400));
    }
    let changed = views.patch(a, &one.resource, object, &patch).await.map_err(Failure::Other)?;
    a.cx.audit(|trail| {
        trail.annotate_from(Level::Request, patch_key, || shown_patch(&one.hook, &verdict.patch))
    });
    if let Some(changed) = changed {
        *object = changed;
        return Ok(true);
    }
    Ok(false)
}

/// A patch as an annotation.
fn shown_patch(hook: &Hook, patch: &[u8]) -> String {
    let patch: Value = serde_json::from_slice(patch).unwrap_or_default();
    json!({"configuration": hook.configuration, "webhook": hook.name, "patch": patch, "patchType": "JSONPatch"})
        .to_string()
}

/// Calls the validating webhooks of a request, all at once.
pub(super) async fn validate(
    admission: &mut Admission<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Error> {
    let Some(matches) = admission.matches.clone() else { return Ok(()) };
    if matches.validating.is_empty() {
        return Ok(());
    }
    // A create that was retried because of something else.
    if object.is_some() && admission.webhooks.allowed.as_ref() == object {
        return Ok(());
    }
    let mut called = Vec::new();
    let mut views = Views::default();
    for one in &matches.validating {
        if matching::is_called(admission, (one, "validating"), &mut views, object, old).await? {
            views.show(&admission.attributes, &one.resource, object, old).await?;
            called.push(one);
        }
    }
    if called.is_empty() {
        return Ok(());
    }
    let left = admission.time_left()?;
    let (a, views) = (&admission.attributes, &views);
    let calls = called.iter().enumerate().map(|(index, one)| async move {
        let env = a.cx.tenant.env();
        let started = env.now();
        let done = match check_dry_run(a, &one.hook) {
            Ok(()) => call(a, one, views, Phase::Validating, left).await.map(drop),
            Err(failure) => Err(failure),
        };
        observe(a, &one.hook, Phase::Validating, &done, env.now() - started);
        match done.map_err(|failure| settle(&one.hook, failure)) {
            Ok(()) => Ok(()),
            Err(Settled::Ignored(why)) => {
                tracing::warn!(webhook = one.hook.name, why, "failed calling a webhook, failing open");
                let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
                a.annotate(key, one.hook.name.clone());
                Ok(())
            }
            Err(Settled::Failed(error)) => Err(error),
        }
    });
    let outcomes = join_all(calls).await;
    for outcome in outcomes {
        outcome?;
    }
    if a.operation == crate::hooks::Operation::Create {
        admission.webhooks.allowed = object.cloned();
    }
    Ok(())
}

fn check_dry_run(a: &Attributes<'_>, hook: &Hook) -> Result<(), Failure> {
    if a.dry_run && !hook.allows_dry_run {
        let why = format!("admission webhook {} does not support dry run", quote(&hook.name));
        return Err(Failure::Other(Status::bad_request(why).into()));
    }
    Ok(())
}

/// Calls a webhook with the views of the object that it wants. The verdict is that it allows the request.
async fn call(
    a: &Attributes<'_>,
    one: &Match,
    views: &Views,
    phase: Phase,
    left: Duration,
) -> Result<Verdict, Failure> {
    let hook = &one.hook;
    let Some(version) = hook.review else {
        let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(Failure::calling(why, 400));
    };
    let uid = a.cx.tenant.env().uuid().to_string();
    let body = review::encode(a, one, views, version, &uid).map_err(Failure::internal)?;
    let tenant = &a.cx.tenant;
    // A slow webhook must not occupy what other large requests are waiting for.
    let lent = a.cx.lend_turn();
    let called = tenant.shared.caller.call(&tenant.name, &hook.client, body, hook.timeout.min(left)).await;
    lent.take_back(a.cx).await.map_err(|status| Failure::Other(status.into()))?;
    let answer = match called {
        Ok(answer) => answer,
        Err(error) => {
            let code = error.code();
            let why = match &error {
                CallError::Unresolved { url } => unresolved(a, hook, url).await,
                other => other.to_string(),
            };
            return Err(Failure::calling(format!("failed to call webhook: {why}"), code));
        }
    };
    let verdict = review::read(&answer.body, version, phase, &uid).map_err(|wrong| match wrong {
        review::Wrong::Undecodable(why) => Failure::calling(format!("failed to call webhook: {why}"), 503),
        review::Wrong::Invalid(why) => {
            Failure::calling(format!("received invalid webhook response: {why}"), 503)
        }
    })?;
    for (key, value) in &verdict.annotations {
        let key = format!("{}/{key}", hook.name);
        if names::is_qualified_name(&key).is_empty() {
            a.annotate(key, value.clone());
        } else {
            tracing::warn!(webhook = hook.name, key, "an audit annotation of a webhook has no valid key");
        }
    }
    for warning in &verdict.warnings {
        a.cx.warn(warning.as_str());
    }
    if verdict.allowed { Ok(verdict) } else { Err(denied(hook, verdict.status)) }
}

/// Why a Service cannot be called whose address is not configured.
async fn unresolved(a: &Attributes<'_>, hook: &Hook, url: &str) -> String {
    let Some(service) = &hook.client.service else { return String::new() };
    let tenant = &a.cx.tenant;
    let key = tenant.keys_of("", "services", &service.namespace) + &service.name;
    let why = match tenant.get(key.as_bytes()).await {
        Ok(None) => "not found",
        _ => "has no address that this server knows",
    };
    format!("Post {}: service {} {why}", quote(url), quote(&service.name))
}

/// The refusal of a webhook, with its status.
fn denied(hook: &Hook, status: Option<Value>) -> Failure {
    let by = format!("admission webhook {} denied the request", quote(&hook.name));
    let mut status = status.filter(Value::is_object).unwrap_or_else(|| json!({}));
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let code = if (400..1000).contains(&code) { code } else { 400 };
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let message = match (text("message"), text("reason")) {
        (message, _) if !message.is_empty() => format!("{by}: {message}"),
        (_, reason) if !reason.is_empty() => format!("{by}: {reason}"),
        _ => format!("{by} without explanation"),
    };
    let outcome = match text("status").as_str() {
        "" | "Success" => "Failure".to_owned(),
        other => other.to_owned(),
    };
    let mut sent = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome});
    if status["metadata"].is_object() {
        sent["metadata"] = status["metadata"].take();
    }
    sent["message"] = message.into();
    for field in ["reason", "details"] {
        if status[field].is_string() && field == "reason" || status[field].is_object() && field == "details" {
            sent[field] = status[field].take();
        }
    }
    sent["code"] = code.into();
    Failure::Denied(Error::Rejected(Box::new(Rejected { code, status: sent })), code)
}

fn observe<T>(a: &Attributes<'_>, hook: &Hook, phase: Phase, called: &Result<T, Failure>, took: Duration) {
    let outcome = match called {
        Ok(_) => Outcome::Allowed,
        Err(Failure::Calling { code, .. }) if hook.ignores_failure => Outcome::FailedOpen(*code),
        Err(Failure::Calling { code, .. }) => Outcome::NotCalled(*code),
        Err(Failure::Denied(_, code)) => Outcome::Denied(*code),
        Err(Failure::Other(_)) => Outcome::InternalError,
    };
    let metrics = &a.cx.tenant.shared.metrics.admission;
    metrics.webhook(&hook.name, phase.metric(), a.operation, outcome, took);
}
