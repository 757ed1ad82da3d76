//! The error of a call, with predicates for its causes.

use std::{error::Error as StdError, fmt, io, time::Duration};

use kube::core::{Status, response::reason};

use super::{ApplyConflict, Target, Verb, is_field_conflict};
use crate::{
    BoxError,
    cache::{CacheError, Problem},
};

/// Why a call of a client failed. Messages begin with the call: `update deployments.apps default/web: …`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server rejected the call. A cached read of a missing object fails with this error too, worded as by the server.
    #[error(transparent)]
    Api(#[from] Box<ApiError>),
    /// The request or its response was lost. A write may or may not have happened.
    #[error("{target}: {source}")]
    Transport {
        /// The call.
        target: Box<Target>,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// The response does not match the type.
    #[error("{target}: cannot decode {object}: {source}")]
    Decode {
        /// The call.
        target: Box<Target>,
        /// The object that cannot be decoded.
        object: Box<str>,
        /// The decoding error.
        source: serde_json::Error,
    },
    /// The object cannot be written as JSON.
    #[error("{target}: cannot encode the object: {source}")]
    Encode {
        /// The call.
        target: Box<Target>,
        /// The encoding error.
        source: serde_json::Error,
    },
    /// The request is invalid, and was not sent.
    #[error("{target}: {message}")]
    InvalidRequest {
        /// The call.
        target: Box<Target>,
        /// What is wrong with it, and how to correct it.
        message: Box<str>,
    },
    /// The cache could not answer.
    #[error("{target}: {source}")]
    Cache {
        /// The call.
        target: Box<Target>,
        /// The cache's error.
        source: Box<CacheError>,
    },
    /// The work tracker accepts no more work: the program is shutting down.
    #[error("{target}: {source}")]
    Refused {
        /// The call.
        target: Box<Target>,
        /// The tracker's error.
        source: k1s_env::Refused,
    },
    /// The server does not serve the kind (now).
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    NoKindMatch {
        /// `apps/v1`
        api_version: Box<str>,
        /// `Deployment`
        kind: Box<str>,
    },
    /// A selector is invalid.
    #[error(transparent)]
    Selector(#[from] super::SelectorError),
    /// The function that changes the object failed.
    #[error("cannot change {object}: {source}")]
    Mutate {
        /// The object.
        object: Box<str>,
        /// The function's error.
        source: BoxError,
    },
    /// Any other error, from an interceptor.
    #[error(transparent)]
    Other(#[from] BoxError),
}

/// An error response of the server.
#[derive(Debug)]
pub struct ApiError {
    /// The call.
    pub target: Target,
    /// The server's `Status`.
    pub status: Status,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// The permission that a call lacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermission {
    /// The verb of the RBAC rule: `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with the subresource if there is one: `deployments/status`.
    pub resource: String,
    /// The namespace; `None` is the cluster scope.
    pub namespace: Option<String>,
}

impl fmt::Display for MissingPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?} in API group {:?}", self.verb, self.resource, self.group)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace:?}"),
            None => f.write_str(" at the cluster scope"),
        }
    }
}

impl ApiError {
    /// The permission that is missing, if that is the cause. A rejection by an admission plugin has the same code.
    #[must_use]
    pub fn missing_permission(&self) -> Option<MissingPermission> {
        // The API server's wording for every authorizer, and for no admission plugin.
        if !self.status.is_forbidden() || !self.status.message.contains(" cannot ") {
            return None;
        }
        let target = &self.target;
        let resource = match target.subresource() {
            Some(subresource) => format!("{}/{subresource}", target.plural()),
            None => target.plural().to_owned(),
        };
        // Applying an object that does not exist needs a second permission.
        let creates = target.verb() == Verb::Apply && self.status.message.contains(" cannot create ");
        Some(MissingPermission {
            verb: if creates { "create" } else { target.verb().permission() },
            group: target.group().to_owned(),
            resource,
            namespace: target.namespace().map(str::to_owned),
        })
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { code, reason, message, .. } = &self.status;
        write!(f, "{}: ", self.target)?;
        f.write_str(if message.is_empty() { "the server rejected the request" } else { message })?;
        match (*code, reason.as_str()) {
            (0, "") => {}
            (0, reason) => write!(f, " ({reason})")?,
            (code, "") => write!(f, " ({code})")?,
            (code, reason) => write!(f, " ({code} {reason})")?,
        }
        if let Some(missing) = self.missing_permission() {
            write!(f, "; missing permission: {missing}")?;
        }
        Ok(())
    }
}

impl StdError for ApiError {}

impl Error {
    pub(crate) fn api(target: Target, status: Status, retry_after: Option<Duration>) -> Error {
        Error::Api(Box::new(ApiError { target, status, retry_after }))
    }

    pub(crate) fn invalid(target: Target, message: impl Into<Box<str>>) -> Error {
        Error::InvalidRequest { target: Box::new(target), message: message.into() }
    }

    /// The server's `Status`, if it responded with an error.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Api(error) => Some(&error.status),
            _ => None,
        }
    }

    fn has(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// By reason, or by code if the reason is unknown: proxies do not return a `Status`.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason || (!is_known(&status.reason) && status.code == code)
        })
    }

    /// The object or the resource does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(reason::NOT_FOUND, 404)
    }

    /// An object of that name exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.has(reason::ALREADY_EXISTS)
    }

    /// The object has changed in the meantime: read it again and retry. As in Go, the conflicts of server-side apply are
    /// included, for which a retry does not help: see [`apply_conflicts`](Error::apply_conflicts).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is(reason::CONFLICT, 409)
    }

    /// The fields that other managers own, if that is why an apply was rejected.
    #[must_use]
    pub fn apply_conflicts(&self) -> Option<ApplyConflict> {
        self.status().and_then(ApplyConflict::of)
    }

    /// Whether an apply was rejected because other managers own some of its fields.
    #[must_use]
    pub fn is_apply_conflict(&self) -> bool {
        self.status().is_some_and(is_field_conflict)
    }

    /// Not allowed, by authorization or by admission.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is(reason::FORBIDDEN, 403) || matches!(self.cache_problem(), Some(Problem::Forbidden { .. }))
    }

    /// The request is not authenticated.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is(reason::UNAUTHORIZED, 401)
    }

    /// The object fails validation.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is(reason::INVALID, 422)
    }

    /// The request was malformed.
    #[must_use]
    pub fn is_bad_request(&self) -> bool {
        self.is(reason::BAD_REQUEST, 400)
    }

    /// The revision is too old, or the continue token has expired: list again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.has(reason::EXPIRED) || self.is(reason::GONE, 410)
    }

    /// The server is overloaded; see [`retry_after`](Error::retry_after).
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.is(reason::TOO_MANY_REQUESTS, 429)
    }

    /// The server or the connection timed out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Error::Transport { source, .. } => chain_has_timeout(&**source),
            _ => self.has(reason::SERVER_TIMEOUT) || self.is(reason::TIMEOUT, 504),
        }
    }

    /// The cache does not watch the namespace: whether the object exists is unknown. Read it from the server.
    #[must_use]
    pub fn is_outside_cache(&self) -> bool {
        matches!(self, Error::Cache { source, .. } if matches!(**source, CacheError::OtherNamespace { .. }))
    }

    /// The server does not serve the kind: its definition does not exist (yet). If the server responded with a 404,
    /// [`is_not_found`](Error::is_not_found) is true as well.
    #[must_use]
    pub fn is_no_match(&self) -> bool {
        match self {
            Error::NoKindMatch { .. } => true,
            Error::Cache { .. } => matches!(self.cache_problem(), Some(Problem::NotServed { .. })),
            // The 404 of a path that is not served names no object.
            Error::Api(error) if self.is_not_found() => error
                .status
                .details
                .as_ref()
                .is_none_or(|details| details.kind.is_empty() && details.name.is_empty()),
            _ => false,
        }
    }

    /// Why the cache cannot read the kind.
    fn cache_problem(&self) -> Option<&Problem> {
        match self {
            Error::Cache { source, .. } => match &**source {
                CacheError::NotReadable { problem, .. } => Some(problem),
                _ => None,
            },
            _ => None,
        }
    }

    /// The server's `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Api(error) => error.retry_after,
            _ => None,
        }
    }

    /// The permission that is missing, if that is the cause.
    #[must_use]
    pub fn missing_permission(&self) -> Option<MissingPermission> {
        match self {
            Error::Api(error) => error.missing_permission(),
            _ => None,
        }
    }
}

fn is_known(reason: &str) -> bool {
    !reason.is_empty() && reason::is_known(reason)
}

fn chain_has_timeout(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Turns the error [`is_not_found`](Error::is_not_found) into `None`.
///
/// # Errors
/// All other errors.
pub fn ignore_not_found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    ignore(result, Error::is_not_found)
}

/// Turns the error [`is_already_exists`](Error::is_already_exists) into `None`.
///
/// # Errors
/// All other errors.
pub fn ignore_already_exists<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    ignore(result, Error::is_already_exists)
}

fn ignore<T>(result: Result<T, Error>, ignored: fn(&Error) -> bool) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if ignored(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
