//! `metav1.Status`, the response to a failed request.

use std::{collections::HashSet, fmt};

use serde_json::{Map, Value, json};

use crate::field::{Errors, FieldError, MAX_ERRORS};

/// A cause of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// A machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
    /// The field, if any.
    pub field: String,
}

/// The subject of a Status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The group of its kind.
    pub group: String,
    /// Its kind, or its resource.
    pub kind: String,
    /// Its uid.
    pub uid: String,
    /// The individual causes.
    pub causes: Vec<Cause>,
    /// Seconds to wait before a retry.
    pub retry_after_seconds: u32,
}

impl Details {
    /// Details that name an object or, with an empty name, a resource.
    pub fn of(group: &str, kind: &str, name: &str) -> Details {
        Details { name: name.into(), group: group.into(), kind: kind.into(), ..Details::default() }
    }

    fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, text: &str| {
            if !text.is_empty() {
                map.insert(key.into(), text.into());
            }
        };
        put("name", &self.name);
        put("group", &self.group);
        put("kind", &self.kind);
        put("uid", &self.uid);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut map = Map::new();
                let parts = [("reason", &cause.reason), ("message", &cause.message), ("field", &cause.field)];
                for (key, text) in parts {
                    if !text.is_empty() {
                        map.insert(key.into(), text.as_str().into());
                    }
                }
                Value::Object(map)
            });
            map.insert("causes".into(), causes.collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(map)
    }
}

/// A failure as `metav1.Status`; also the error type of request handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// A machine-readable reason; empty where Kubernetes has none.
    pub reason: &'static str,
    /// A human-readable message.
    pub message: String,
    /// The details. `Some` of empty details is encoded as `{}`.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of an expired list, to resume it.
    pub continue_token: String,
}

impl Status {
    /// A failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: None, continue_token: String::new() }
    }

    /// The same with details.
    #[must_use]
    pub fn with(mut self, details: Details) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// 400
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 401
    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: `configmaps "a" is forbidden: why`, or without a name `configmaps is forbidden: why`.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Status {
        let what = qualified(group, resource);
        let message = match (what.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (_, true) => format!("{what} is forbidden: {why}"),
            _ => format!("{what} {name:?} is forbidden: {why}"),
        };
        Status::new(403, "Forbidden", message).with(Details::of(group, resource, name))
    }

    /// 404: `configmaps "a" not found`.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Status {
        Status::new(404, "NotFound", format!("{} {name:?} not found", qualified(group, resource)))
            .with(Details::of(group, resource, name))
    }

    /// 404 for an unknown path.
    pub fn no_such_resource() -> Status {
        Status::new(404, "NotFound", "the server could not find the requested resource")
            .with(Details::default())
    }

    /// 405
    pub fn method_not_allowed() -> Status {
        Status::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(Details::default())
    }

    /// 405: `delete is not supported on resources of kind "widgets.example.com"`.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Status {
        let why = format!("{verb} is not supported on resources of kind {:?}", qualified(group, resource));
        Status::new(405, "MethodNotAllowed", why).with(Details::of(group, resource, ""))
    }

    /// 409: `configmaps "a" already exists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Status {
        Status::new(409, "AlreadyExists", format!("{} {name:?} already exists", qualified(group, resource)))
            .with(Details::of(group, resource, name))
    }

    /// 409: `Operation cannot be fulfilled on configmaps "a": why`.
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Status {
        let what = qualified(group, resource);
        Status::new(409, "Conflict", format!("Operation cannot be fulfilled on {what} {name:?}: {why}"))
            .with(Details::of(group, resource, name))
    }

    /// 410: the requested revision is compacted.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// 422: the errors in fields. `kind` is the name of the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Status {
        let mut details = Details::of(group, kind, name);
        let capped = capped(errors);
        let errors = capped.as_deref().unwrap_or(errors);
        details.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().into(),
                message: error.body(),
                field: error.field.clone(),
            })
            .collect();
        let what = qualified(group, kind);
        let message = format!("{what} {name:?} is invalid: {}", together(errors));
        Status::new(422, "Invalid", message).with(details)
    }

    /// 500
    pub fn internal(message: impl fmt::Display) -> Status {
        let mut details = Details::default();
        details.causes.push(Cause { message: message.to_string(), ..Cause::default() });
        Status::new(500, "InternalError", format!("Internal error occurred: {message}")).with(details)
    }

    /// The Status as JSON.
    pub fn to_json(&self) -> Value {
        let mut metadata = Map::new();
        if !self.continue_token.is_empty() {
            metadata.insert("continue".into(), self.continue_token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status["code"] = self.code.into();
        status
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `deployments.apps`, or `configmaps` for the core group.
pub fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// The errors within the limit, if there are more.
fn capped(errors: &[FieldError]) -> Option<Vec<FieldError>> {
    if errors.len() <= MAX_ERRORS + 1 {
        return None;
    }
    let mut reported = Errors::new();
    reported.extend(errors.iter().take(MAX_ERRORS).cloned());
    reported.omit(errors.len() - MAX_ERRORS);
    Some(reported.into_vec())
}

/// Joins errors: a single one as it is, several in brackets, without duplicates.
fn together(errors: &[FieldError]) -> String {
    let mut seen = HashSet::with_capacity(errors.len());
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.retain(|text| seen.insert(text.clone()));
    match texts.len() {
        0 => String::new(),
        1 => texts.remove(0),
        _ => format!("[{}]", texts.join(", ")),
    }
}
