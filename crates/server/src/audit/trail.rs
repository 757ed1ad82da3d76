//! The trail of one request: what is known of it so far, and the events of its stages.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use jiff::Timestamp;
use k1s_object::Status;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Auditor, Delays,
    event::{Draft, Outcome, TRUNCATED, write, write_text, write_user},
    head::{Mark, Reference},
    origin::{self, Arrival, Remote},
    payload::Payload,
    policy::{Level, Stage, Verdict},
    recorded::{Capture, Recorded, media_of, outcome},
};
use crate::{
    authz::{Attributes, Decision, Target},
    body::Body,
    identity::User,
    negotiate::Media,
    objectmeta::meta_text,
};

/// The header with the id of a request, which a client may choose.
const HEADER: HeaderName = HeaderName::from_static("audit-id");
/// The tenant of a request, unless it is the default one.
const TENANT: &str = "k1s.dev/tenant";

/// What a request is for, beside its [`Attributes`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) version: &'a str,
    /// Whether it takes as long as the client wants.
    pub(crate) is_long: bool,
    /// The tenant, unless it is the default one.
    pub(crate) tenant: Option<&'a str>,
}

/// What is recorded of one request. Steps of the request that come before [`Trail::begin`] or after its end, or that the
/// policy does not ask for, leave nothing.
pub(crate) struct Trail {
    auditor: Arc<Auditor>,
    id: HeaderValue,
    uri: Uri,
    remote: Option<IpAddr>,
    received: Timestamp,
    state: Mutex<State>,
}

enum State {
    /// The sender is not known yet.
    Arrived,
    Recording(Box<Record>),
    /// There is nothing to record, or nothing any more.
    Done,
}

/// A request that is being recorded.
struct Record {
    verdict: Verdict,
    /// Whether there is an event when the response starts.
    is_long: bool,
    /// Whether the request failed before its sender was known: then its one event is that of the response.
    is_refused: bool,
    /// Whether responses are objects.
    has_objects: bool,
    draft: Draft,
}

impl Trail {
    pub(super) fn new<B>(auditor: Arc<Auditor>, request: &Request<B>) -> Trail {
        let sent = request.headers().get(HEADER).filter(|id| !id.is_empty());
        let id = sent.cloned().or_else(|| {
            let mut text = [0; 36];
            HeaderValue::from_str(auditor.env.uuid().hyphenated().encode_lower(&mut text)).ok()
        });
        Trail {
            id: id.unwrap_or_else(|| HeaderValue::from_static("")),
            uri: request.uri().clone(),
            remote: request.extensions().get::<Remote>().map(|remote| remote.0),
            received: crate::time::now(&auditor.env),
            state: Mutex::new(State::Arrived),
            auditor,
        }
    }

    fn now(&self) -> Timestamp {
        crate::time::now(&self.auditor.env)
    }

    /// Evaluates the policy for a request, once, and remembers what is known of it.
    fn open(&self, user: Option<&User>, headers: &HeaderMap, wanted: &Attributes<'_>, about: &About<'_>) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Arrived) {
            return;
        }
        let verdict = self.auditor.policy.evaluate(user, wanted);
        self.auditor.counters.level(verdict.level);
        *state = State::Done;
        if verdict.level == Level::None {
            return;
        }
        let (id, uri) = (self.id.as_bytes(), &self.uri);
        let arrival = Arrival { id, uri, remote: self.remote, received: self.received };
        let reference = reference(wanted, about.version);
        let head = origin::head(verdict.level, &arrival, wanted.verb, user, headers, reference.as_ref());
        let mut draft = Draft::new(head);
        if let Some(tenant) = about.tenant {
            draft.annotations.set(TENANT, tenant.to_owned());
        }
        let has_objects = match wanted.target {
            Target::Resource { .. } => true,
            Target::Path(path) => path.starts_with("/api"),
        };
        let is_refused = false;
        *state = State::Recording(Box::new(Record {
            verdict,
            is_long: about.is_long,
            is_refused,
            has_objects,
            draft,
        }));
    }

    /// Begins the record of a request whose sender is authenticated. Later calls do nothing.
    ///
    /// # Errors
    /// 500 if the request may only go on when its first event is written, and that has failed.
    pub(crate) async fn begin(
        &self,
        user: &User,
        headers: &HeaderMap,
        wanted: &Attributes<'_>,
        about: &About<'_>,
    ) -> Result<(), Status> {
        let first = matches!(*self.state.lock(), State::Arrived);
        if !first {
            return Ok(());
        }
        self.open(Some(user), headers, wanted, about);
        let recorded = self.with(|record| self.record_at(record, Stage::RequestReceived, self.received));
        let Some(delays) = recorded.flatten() else { return Ok(()) };
        if delays.wait().await {
            return Ok(());
        }
        *self.state.lock() = State::Done;
        self.auditor.counters.rejected();
        Err(Status::internal("failed to store audit event"))
    }

    /// Begins the record of a request that failed before its sender was known, unless it has begun.
    pub(crate) fn refuse(&self, headers: &HeaderMap, wanted: &Attributes<'_>, about: &About<'_>) {
        if matches!(*self.state.lock(), State::Arrived) {
            self.open(None, headers, wanted, about);
            self.with(|record| record.is_refused = true);
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        match &mut *self.state.lock() {
            State::Recording(record) => Some(change(record)),
            State::Arrived | State::Done => None,
        }
    }

    /// The user that the sender impersonates; `constraint` is the permission that allowed it, if it is a constrained one.
    pub(crate) fn impersonated(&self, user: &User, constraint: &str) {
        self.with(|record| {
            let mut text = br#","impersonatedUser":"#.to_vec();
            write_user(&mut text, user);
            if !constraint.is_empty() {
                text.extend_from_slice(br#","authenticationMetadata":{"impersonationConstraint":"#);
                write_text(&mut text, constraint);
                text.push(b'}');
            }
            record.draft.head.insert(Mark::Impersonated, &text);
        });
    }

    /// The decision of the authorizer.
    pub(crate) fn decided(&self, decision: &Decision) {
        const REASON: &str = "authorization.k8s.io/reason";
        self.with(|record| {
            let annotations = &mut record.draft.annotations;
            if decision.failure.is_some() {
                annotations.set(REASON, "internal error");
                return;
            }
            let verdict = if decision.allowed { "allow" } else { "forbid" };
            annotations.set("authorization.k8s.io/decision", verdict);
            annotations.set(REASON, decision.reason.clone());
        });
    }

    /// Adds an annotation; the first value of a key counts.
    pub(crate) fn annotate(&self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.annotate_from(Level::Metadata, key, || value.into());
    }

    /// Adds an annotation that only events of this level and those above it have.
    pub(crate) fn annotate_from(
        &self,
        level: Level,
        key: impl Into<Cow<'static, str>>,
        value: impl FnOnce() -> String,
    ) {
        self.with(|record| {
            if record.verdict.level >= level {
                record.draft.annotations.add(key, value);
            }
        });
    }

    /// The decoded object in the body of the request.
    pub(crate) fn request_object(&self, object: &Value) {
        self.with(|record| {
            for (mark, name) in [
                (Mark::Namespace, "namespace"),
                (Mark::Name, "name"),
                (Mark::Uid, "uid"),
                (Mark::ResourceVersion, "resourceVersion"),
            ] {
                record.draft.head.refer(mark, meta_text(object, name));
            }
            if record.verdict.level >= Level::Request {
                let bytes = object.to_string().into_bytes().into();
                record.draft.request =
                    Some(Payload::new(bytes, Media::Json, record.verdict.omit_managed_fields));
            }
        });
    }

    /// The decoded `DeleteOptions` in the body of the request, which have no metadata.
    pub(crate) fn request_options(&self, options: &Value) {
        self.with(|record| {
            if record.verdict.level >= Level::Request {
                let bytes = options.to_string().into_bytes().into();
                record.draft.request = Some(Payload::new(bytes, Media::Json, false));
            }
        });
    }

    /// The patch in the body of the request: JSON, or YAML for an apply.
    pub(crate) fn patch(&self, body: &Bytes, is_yaml: bool) {
        self.with(|record| {
            if record.verdict.level >= Level::Request {
                let media = if is_yaml { Media::Yaml } else { Media::Json };
                record.draft.request = Some(Payload::new(body.clone(), media, false));
            }
        });
    }

    fn take(&self) -> Option<Box<Record>> {
        match std::mem::replace(&mut *self.state.lock(), State::Done) {
            State::Recording(record) => Some(record),
            State::Arrived | State::Done => None,
        }
    }

    /// Ends the record with the response, or when its stream ends, and adds the id of the request to it.
    pub(crate) async fn finish(self: &Arc<Trail>, mut response: Response<Body>) -> Response<Body> {
        response.headers_mut().insert(HEADER, self.id.clone());
        let Some(mut record) = self.take() else { return response };
        let (parts, body) = response.into_parts();
        let (code, media) = (parts.status.as_u16(), media_of(&parts.headers));
        let max = self.auditor.max_response_bytes;
        let records = record.verdict.level >= Level::RequestResponse;
        let body = match body.into_bytes() {
            Ok(bytes) => {
                let outcome = outcome(code, media, &bytes);
                let is_object = record.has_objects || outcome.status.is_some();
                if let Some(media) = media.filter(|_| records && is_object && !bytes.is_empty()) {
                    let mut capture = Capture::new(media, max);
                    capture.add(&bytes);
                    record.respond(capture);
                }
                record.draft.outcome = Some(outcome);
                if record.is_long || record.is_refused {
                    self.record(&mut record, Stage::ResponseStarted).await;
                }
                if !record.is_refused {
                    self.record(&mut record, Stage::ResponseComplete).await;
                }
                bytes.into()
            }
            Err(chunks) => {
                record.draft.outcome = Some(Outcome { code, status: None });
                if record.is_long {
                    self.record(&mut record, Stage::ResponseStarted).await;
                }
                let wanted = records && record.has_objects && !record.is_long;
                let capture = media.filter(|_| wanted).map(|media| Capture::new(media, max));
                let ending = Ending { trail: self.clone(), record };
                Body::stream(Recorded::new(chunks, capture, ending))
            }
        };
        Response::from_parts(parts, body)
    }

    /// Records the event of a stage, unless the policy omits it. Returns what the request has to wait for.
    fn record_at(&self, record: &mut Record, stage: Stage, at: Timestamp) -> Option<Delays> {
        let omitted = record.verdict.omit_stages.contains(stage);
        (!omitted).then(|| self.auditor.record(&record.draft.event(stage, at)))
    }

    async fn record(&self, record: &mut Record, stage: Stage) {
        if let Some(delays) = self.record_at(record, stage, self.now()) {
            delays.wait().await;
        }
    }

    fn record_later(&self, record: &mut Record, stage: Stage) {
        if !record.verdict.omit_stages.contains(stage) {
            self.auditor.record_later(&record.draft.event(stage, self.now()));
        }
    }

    fn failed(code: u16, reason: &str, message: &str) -> Outcome {
        let mut status = br#""status":"Failure","message":"#.to_vec();
        write(&mut status, &message);
        if !reason.is_empty() {
            status.extend_from_slice(br#","reason":"#);
            write(&mut status, &reason);
        }
        Outcome { code, status: Some(String::from_utf8_lossy(&status).into()) }
    }

    /// Ends the record of a request on which the server has panicked.
    pub(crate) async fn panicked(&self, why: &str) {
        if let Some(mut record) = self.take() {
            let message = format!("APIServer panic'd: {why}");
            record.draft.outcome = Some(Trail::failed(500, "InternalError", &message));
            self.record(&mut record, Stage::Panic).await;
        }
    }

    /// Ends the record of a request that nobody waits for any more. Does nothing if it has ended.
    pub(crate) fn abandon(&self) {
        if let Some(mut record) = self.take() {
            record.draft.outcome = Some(Trail::failed(500, "", "context canceled"));
            self.record_later(&mut record, Stage::ResponseComplete);
        }
    }
}

impl Record {
    /// Adds the object of the response.
    fn respond(&mut self, capture: Capture) {
        self.draft.response = capture.finish(self.verdict.omit_managed_fields);
        if self.draft.response.is_none() {
            self.draft.annotations.set(TRUNCATED, "true");
        }
    }
}

/// The end of a streamed response.
pub(super) struct Ending {
    trail: Arc<Trail>,
    record: Box<Record>,
}

impl Ending {
    /// The stream has ended.
    pub(super) fn complete(mut self, capture: Option<Capture>) {
        if let Some(capture) = capture {
            self.record.respond(capture);
        }
        self.trail.record_later(&mut self.record, Stage::ResponseComplete);
    }
}

/// What a request for a resource is for.
fn reference<'a>(wanted: &Attributes<'a>, version: &'a str) -> Option<Reference<'a>> {
    match wanted.target {
        Target::Path(_) => None,
        Target::Resource { group, resource, subresource, namespace, name } => {
            Some(Reference { resource, namespace, name, group, version, subresource })
        }
    }
}
