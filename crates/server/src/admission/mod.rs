//! The admission chain: what changes and checks the object of a request between its decoding and the store.
//!
//! One list, read from top to bottom:
//!
//! 1. [`Plugin`]s that mutate, in the order of [`plugin::MUTATING`], with mutating policies and webhooks at its end. If a
//!    webhook has changed the object, they all run a second time, and so do the webhooks that asked for it.
//! 2. Preparation of the object and validation of its schema (`write`).
//! 3. Plugins that validate, in the order of [`plugin::VALIDATING`]: the server's own, policies, webhooks, and the quota last.
//!
//! A request has one [`Admission`], which knows its [`Attributes`] and which webhooks concern it. What an object allocates
//! (addresses, ports, quota) is written in the same transaction as the object, so that nothing is allocated twice: plugins
//! return preconditions and operations of that transaction, and read nothing that is known.

mod accounts;
mod allowance;
mod attributes;
mod classes;
mod limits;
mod lookup;
mod namespaces;
mod nodes;
mod owners;
mod plugin;
mod pods;
mod policies;
mod questions;
mod quota;
mod security;
mod services;
mod signers;
mod webhooks;

use std::{sync::Arc, time::Duration};

use k1s_env::Instant;
use k1s_kinds::rules::certificates::certificate_signing_request as csr;
use k1s_object::{Status, gvk::GroupVersionKind};
use k1s_store::{Action, Op, Precondition};
use serde_json::Value;

use allowance::Allowance;
pub(crate) use attributes::Attributes;
use lookup::{cached_others, is_dry_run, namespace_of, other, stored_namespace};
pub(crate) use lookup::{kind, left_out, others};

use crate::{
    context::Cx,
    errors::Error,
    hooks::{Matches, Operation},
    objectmeta::meta_text,
    parts::Part,
    plugins::Plugin,
};

/// The write that a check is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    /// Its transaction fails if the namespace has changed.
    Create,
    Update,
}

/// Length of the suffix of a generated name.
const SUFFIX_LEN: usize = 5;

/// 403 for the object of the request, by its generateName if the name was or is to be generated.
fn forbidden(cx: &Cx, object: &Value, why: impl Into<String>) -> Status {
    let (name, base) = (meta_text(object, "name"), meta_text(object, "generateName"));
    let generated = !base.is_empty() && name.len() == base.len() + SUFFIX_LEN && name.starts_with(base);
    refused(cx, if generated || name.is_empty() { base } else { name }, why)
}

/// 403 for the object of this name.
fn refused(cx: &Cx, name: &str, why: impl Into<String>) -> Status {
    Status::forbidden(&cx.resource.group, &cx.resource.plural, name, why.into())
}

fn is(cx: &Cx, group: &str, kind: &str) -> bool {
    cx.resource.group == group && cx.resource.kind == kind
}

/// Maximum time that a request spends on admission, whatever the timeouts of its webhooks are.
const MAX_TIME: Duration = Duration::from_secs(34);

/// A request in the chain.
pub(crate) struct Admission<'a> {
    pub(crate) attributes: Attributes<'a>,
    /// The webhooks that concern the request.
    matches: Option<Arc<Matches>>,
    /// When the time of the request is up; set with the webhooks.
    deadline: Option<Instant>,
    /// The precondition that the namespace of a new object still is as it was.
    namespace: Option<Op>,
    webhooks: webhooks::State,
    policies: policies::State,
    /// What the expressions of policies and webhooks may still work.
    allowance: Allowance,
    /// When the last plugin was done.
    last: Instant,
}

/// The request that an [`Admission`] is for.
#[derive(Clone, Copy)]
pub(crate) struct Begin<'a> {
    pub(crate) operation: Operation,
    pub(crate) part: Part,
    pub(crate) dry_run: bool,
    /// The name of a new object.
    pub(crate) name: &'a str,
}

impl<'a> Admission<'a> {
    /// Of a request for an object, or for a part of it. What a subresource with a kind of its own makes of its object is not
    /// shown to users: they have seen the body of the request ([`Admission::begin_own`]).
    pub(crate) async fn begin(cx: &'a Cx, begin: Begin<'_>) -> Result<Admission<'a>, Error> {
        let mut admission = Admission::new(cx, begin, cx.resource.gvk());
        if !has_own_kind(cx) {
            admission.find_webhooks().await?;
        }
        Ok(admission)
    }

    /// Of a request that only the server's own plugins look at.
    pub(crate) fn begin_plain(cx: &'a Cx, begin: Begin<'_>) -> Admission<'a> {
        Admission::new(cx, begin, cx.resource.gvk())
    }

    /// Of a request for a subresource whose body has a kind of its own, such as a Scale: only webhooks and policies of users
    /// look at it.
    pub(crate) async fn begin_own(
        cx: &'a Cx,
        operation: Operation,
        kind: GroupVersionKind<&'a str>,
        dry_run: bool,
    ) -> Result<Admission<'a>, Error> {
        let begin = Begin { operation, part: Part::Internal, dry_run, name: "" };
        let mut admission = Admission::new(cx, begin, kind);
        admission.find_webhooks().await?;
        Ok(admission)
    }

    /// Changes and checks the body of such a request.
    pub(crate) async fn admit_own(&mut self, body: &mut Value, old: Option<&Value>) -> Result<(), Error> {
        if self.is_seen_by_users() || nodes::concerns(&self.attributes) {
            self.mutate(Some(body), old).await?;
        }
        if self.is_seen_by_users() {
            self.validate(Some(body), old, true).await?;
        }
        Ok(())
    }

    fn new(cx: &'a Cx, begin: Begin<'_>, kind: GroupVersionKind<&'a str>) -> Admission<'a> {
        let name = if cx.name.is_empty() { begin.name } else { &cx.name }.to_owned();
        let namespace = match is(cx, "", "Namespace") {
            true => name.clone(),
            false => cx.namespace.clone(),
        };
        let attributes = Attributes {
            cx,
            operation: begin.operation,
            part: begin.part,
            kind,
            name,
            namespace,
            dry_run: begin.dry_run,
            delete_options: None,
        };
        let last = cx.tenant.env().now();
        let (matches, deadline, namespace, webhooks, policies, allowance) = Default::default();
        Admission { attributes, matches, deadline, namespace, webhooks, policies, allowance, last }
    }

    async fn find_webhooks(&mut self) -> Result<(), Error> {
        self.matches = webhooks::find(&self.attributes).await?;
        if self.matches.is_some() {
            self.deadline = Some(self.last + allowed(self.attributes.cx));
        }
        Ok(())
    }

    /// Whether webhooks or policies of users see the request, even if it changes nothing.
    pub(crate) fn is_seen_by_users(&self) -> bool {
        self.matches.is_some()
    }

    /// The time that is left for calls.
    fn time_left(&self) -> Result<Duration, Error> {
        let now = self.attributes.cx.tenant.env().now();
        match self.deadline.map(|deadline| deadline - now) {
            Some(left) if left.is_zero() => Err(out_of_time().into()),
            left => Ok(left.unwrap_or(MAX_TIME)),
        }
    }

    /// Changes the object of a request. Returns whether webhooks or policies have changed it.
    pub(crate) async fn mutate(
        &mut self,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<bool, Error> {
        let env = self.attributes.cx.tenant.env();
        let started = env.now();
        let done = self.mutate_all(object, old, started).await;
        let metrics = &self.attributes.cx.tenant.shared.metrics.admission;
        let operation = self.attributes.operation;
        metrics.step(true, operation, done.is_err(), [started, self.last]);
        done
    }

    async fn mutate_all(
        &mut self,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        started: Instant,
    ) -> Result<bool, Error> {
        self.last = started;
        if self.matches.is_some() {
            self.webhooks.begin();
            self.policies.begin();
        }
        let mut changed = false;
        let cx = self.attributes.cx;
        let enabled = &cx.tenant.options().admission_plugins;
        loop {
            for plugin in plugin::MUTATING {
                if !enabled.has(plugin) {
                    continue;
                }
                if plugin.is_users_own() {
                    if self.matches.is_some() {
                        let done = Box::pin(plugin.admit_users_own(self, object.as_deref_mut(), old)).await;
                        changed |= self.observe(plugin, true, done)?;
                    }
                } else if (self.attributes.part != Part::Internal || plugin.sees_other_bodies())
                    && plugin.admits(&self.attributes)
                {
                    let done = plugin.admit(self, object.as_deref_mut(), old).await;
                    self.observe(plugin, true, done)?;
                }
            }
            if !self.webhooks.begin_reinvocation() {
                return Ok(changed);
            }
        }
    }

    /// Measures a plugin from the end of the one before it.
    fn observe<T>(&mut self, plugin: Plugin, mutating: bool, done: Result<T, Error>) -> Result<T, Error> {
        let shared = &self.attributes.cx.tenant.shared;
        let now = shared.env.now();
        let took = now - self.last;
        self.last = now;
        shared.metrics.admission.plugin(
            plugin.name(),
            mutating,
            self.attributes.operation,
            done.is_err(),
            took,
        );
        done
    }

    /// The precondition of a new object, after [`Admission::mutate`]: that its namespace still exists. `again`: the last one
    /// has failed.
    pub(crate) async fn namespace(&mut self, object: &Value, again: bool) -> Result<Option<Op>, Error> {
        if again && self.namespace.is_some() {
            self.namespace = Some(namespaces::require(self.attributes.cx, object).await?);
        }
        Ok(self.namespace.clone())
    }

    /// Whether one of the server's own plugins looks at updates that change nothing.
    fn has_for_unchanged(&self, plugins: &[Plugin], concerns: impl Fn(Plugin) -> bool) -> bool {
        let enabled = &self.attributes.cx.tenant.options().admission_plugins;
        let looks = |plugin: Plugin| plugin.sees_unchanged() && enabled.has(plugin) && concerns(plugin);
        plugins.iter().any(|plugin| looks(*plugin))
    }

    fn validates_unchanged(&self) -> bool {
        self.has_for_unchanged(&plugin::VALIDATING, |plugin| plugin.validates(&self.attributes))
    }

    /// Checks a valid object; there is none for a DELETE. `unchanged`: the update changes nothing, which only users' own
    /// plugins and few others look at. Returns further operations of the transaction.
    pub(crate) async fn validate(
        &mut self,
        object: Option<&Value>,
        old: Option<&Value>,
        unchanged: bool,
    ) -> Result<Vec<Op>, Error> {
        if unchanged && self.matches.is_none() && !self.validates_unchanged() {
            return Ok(Vec::new());
        }
        let started = self.attributes.cx.tenant.env().now();
        self.last = started;
        let done = self.validate_all(object, old, unchanged).await;
        let metrics = &self.attributes.cx.tenant.shared.metrics.admission;
        metrics.step(false, self.attributes.operation, done.is_err(), [started, self.last]);
        done
    }

    async fn validate_all(
        &mut self,
        object: Option<&Value>,
        old: Option<&Value>,
        unchanged: bool,
    ) -> Result<Vec<Op>, Error> {
        let mut ops = Vec::new();
        let enabled = &self.attributes.cx.tenant.options().admission_plugins;
        for plugin in plugin::VALIDATING {
            if !enabled.has(plugin) {
                continue;
            }
            if plugin.is_users_own() {
                if self.matches.is_some() {
                    let done = Box::pin(plugin.validate_users_own(self, object, old)).await;
                    self.observe(plugin, false, done)?;
                }
            } else if (!unchanged || plugin.sees_unchanged())
                && let Some(object) = object
                && plugin.validates(&self.attributes)
            {
                let done = plugin.validate(&self.attributes, object, old).await;
                ops.extend(self.observe(plugin, false, done)?);
            }
        }
        Ok(ops)
    }
}

/// Whether the body of the requested subresource is of another kind than the object.
fn has_own_kind(cx: &Cx) -> bool {
    let sub = cx.resource.subresources.iter().find(|sub| sub.name == cx.subresource);
    sub.is_some_and(|sub| sub.kind != cx.resource.kind)
}

/// The time that a request may take: what its sender allows, within the limit.
fn allowed(cx: &Cx) -> Duration {
    let asked = cx.query.find("timeout").and_then(|text| k1s_object::time::Duration::parse(text).ok());
    let asked = asked.and_then(|asked| u64::try_from(asked.0).ok()).filter(|asked| *asked > 0);
    asked.map_or(MAX_TIME, |asked| MAX_TIME.min(Duration::from_nanos(asked)))
}

/// 504
fn out_of_time() -> Status {
    Status::new(504, "Timeout", "Timeout: request did not complete within requested timeout")
        .with(k1s_object::status::Details::default())
}

/// Whether updates of the requested object go through the chain even if they change nothing: webhooks and policies of users
/// may change it themselves, and some plugins look at who sends what.
pub(crate) async fn sees_unchanged(cx: &Cx, part: Part) -> Result<bool, Error> {
    let begin = Begin { operation: Operation::Update, part, dry_run: false, name: "" };
    let admission = Admission::begin(cx, begin).await?;
    let attributes = &admission.attributes;
    let admits = admission.has_for_unchanged(&plugin::MUTATING, |plugin| plugin.admits(attributes));
    Ok(admission.is_seen_by_users() || admits || admission.validates_unchanged())
}

/// Why the object of a DELETE may never be deleted: system priority classes. A deletion of the collection removes them, as upstream.
pub(crate) fn keeps(cx: &Cx) -> Option<Status> {
    let system = is(cx, "scheduling.k8s.io", "PriorityClass")
        && matches!(&*cx.name, "system-cluster-critical" | "system-node-critical");
    system.then(|| refused(cx, &cx.name, "this is a system priority class and cannot be deleted"))
}

/// Rejects a new object of a custom resource whose definition is being deleted.
pub(crate) fn check_definition(cx: &Cx, object: &Value) -> Result<(), Status> {
    match &cx.resource.source {
        crate::resource::Source::Custom(custom) if custom.is_terminating() => {
            Err(forbidden(cx, object, "create not allowed while custom resource definition is terminating"))
        }
        _ => Ok(()),
    }
}

/// Sets the fields that the server fills in from the request, after an object was prepared.
pub(crate) fn prepared(cx: &Cx, object: &mut Value) {
    if is(cx, "certificates.k8s.io", "CertificateSigningRequest") {
        csr::stamp(object, &cx.user.name, &cx.user.groups, &cx.user.uid, &cx.user.extra);
    }
}

/// Whether [`reserve`] may change objects of the request's kind.
pub(crate) fn reserves(cx: &Cx) -> bool {
    is(cx, "", "Service")
}

/// Allocates and releases what an object holds (cluster IPs, node ports), and sets what the client left to the server.
/// Returns further operations of its transaction.
pub(crate) async fn reserve(cx: &Cx, object: &mut Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    if reserves(cx) { services::reserve(cx, object, old).await } else { Ok(Vec::new()) }
}

/// Releases what an object holds when it is removed. Returns further operations of its transaction.
pub(crate) async fn release(cx: &Cx, old: &Value) -> Result<Vec<Op>, Status> {
    let mut ops = quota::give_back(cx, old).await?;
    if reserves(cx) {
        services::release(cx, old, &mut ops);
    } else if is(cx, "", "Namespace") {
        let key = cx.tenant.quota_mark(&cx.name);
        ops.push(Op { key, precondition: Precondition::Any, action: Action::Delete });
    }
    Ok(ops)
}

/// Updates the usage of a quota that was created or changed.
pub(crate) async fn after_write(cx: &Cx) -> Result<(), Status> {
    if is(cx, "", "ResourceQuota") && cx.subresource.is_empty() {
        quota::count(&cx.tenant, &cx.namespace).await?;
        quota::count_later(&cx.tenant, &cx.namespace);
    }
    Ok(())
}
