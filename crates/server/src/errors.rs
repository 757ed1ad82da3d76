//! Errors: an enum inside the server, a [`Status`] for clients, and the messages of Kubernetes.

use std::fmt;

use k1s_object::{
    Status,
    patch::PatchError,
    status::{Cause, Details},
};

use crate::stored::Unreadable;

/// Why a request failed. The server branches on these variants, never on the code or the reason of a Status. Only `pipeline`
/// turns an error into a response.
#[derive(Debug, Clone)]
pub(crate) enum Error {
    /// 404: the object does not exist.
    NotFound { group: String, resource: String, name: String },
    /// 404 in plain text: nothing is served at the path.
    PageNotFound,
    /// 409: an object of that name exists.
    AlreadyExists(Box<AlreadyExists>),
    /// 410: the revision was compacted.
    Expired(String),
    /// Another write took an address, a port or quota that this one needs. Retried; never returned to clients.
    Taken,
    /// The request turned out to be large, and restarts on a blocking thread. Never returned to clients.
    Apart,
    /// The store failed.
    Store(k1s_store::Error),
    /// A webhook has denied the request, with a Status of its own.
    Rejected(Box<Rejected>),
    /// Any other error; the server does not distinguish them.
    Status(Box<Status>),
}

/// The existing object that a create conflicts with.
#[derive(Debug, Clone)]
pub(crate) struct AlreadyExists {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    /// Whether the name was generated from `generateName`.
    pub(crate) generated: bool,
    /// Whether the object is being deleted.
    pub(crate) terminating: bool,
}

/// The refusal of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct Rejected {
    pub(crate) code: u16,
    /// The complete Status. Its reason, status and details are what the webhook has chosen.
    pub(crate) status: serde_json::Value,
}

impl Rejected {
    /// The same for those who know only the Status of this server.
    fn to_status(&self) -> Status {
        let message = self.status["message"].as_str().unwrap_or_default();
        Status::new(self.code, "", message)
    }
}

impl Error {
    pub(crate) fn not_found(group: &str, resource: &str, name: &str) -> Error {
        Error::NotFound { group: group.to_owned(), resource: resource.to_owned(), name: name.to_owned() }
    }

    /// The Status that the client gets.
    pub(crate) fn into_status(self) -> Status {
        match self {
            Error::NotFound { group, resource, name } => Status::not_found(&group, &resource, &name),
            Error::PageNotFound => Status::no_such_resource(),
            Error::AlreadyExists(exists) => exists.status(),
            Error::Expired(message) => Status::expired(message),
            Error::Store(error) => store(&error),
            Error::Rejected(rejected) => rejected.to_status(),
            Error::Status(status) => *status,
            Error::Taken | Error::Apart => Status::internal(self),
        }
    }
}

impl AlreadyExists {
    fn status(&self) -> Status {
        let mut status = Status::already_exists(&self.group, &self.resource, &self.name);
        if self.generated {
            status.message.push_str(", the server was not able to generate a unique name for the object");
            if let Some(details) = &mut status.details {
                details.retry_after_seconds = 1;
            }
        }
        if self.terminating {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Status(Box::new(status))
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Error {
        Status::from(error).into()
    }
}

impl From<k1s_store::Error> for Error {
    fn from(error: k1s_store::Error) -> Error {
        Error::Store(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Taken => f.write_str("another write took an address, a port or quota that this one needs"),
            Error::Apart => f.write_str("a large request has to run on a blocking thread"),
            other => other.clone().into_status().fmt(f),
        }
    }
}

/// The Status of a store's error. Conflicts are for the caller to handle.
pub(crate) fn store(error: &k1s_store::Error) -> Status {
    use k1s_store::Error;
    match error {
        Error::Compacted { requested, oldest } => too_old_resource_version(requested.get(), oldest.get()),
        Error::FutureRevision { requested, current } => {
            too_large_resource_version(requested.get(), current.get())
        }
        Error::TooLarge { .. } => request_entity_too_large(format!("the object cannot be stored: {error}")),
        Error::Unavailable { .. } => {
            let mut details = Details { retry_after_seconds: 1, ..Details::default() };
            details.causes.push(Cause { message: error.to_string(), ..Cause::default() });
            Status::new(500, "ServerTimeout", format!("the store did not answer: {error}")).with(details)
        }
        Error::Closed => shutting_down(),
        other => Status::internal(other),
    }
}

/// 500: an object in the store cannot be read. The message follows Kubernetes' `StorageReadError`.
pub(crate) fn unreadable(group: &str, plural: &str, name: &str, why: &Unreadable) -> Status {
    if let Unreadable::Unconvertible(why) = why {
        return unconvertible(why.clone());
    }
    let mut details = Details::of(group, plural, name);
    details.causes.push(Cause { message: why.to_string(), ..Cause::default() });
    let message = format!(
        "failed to read {} {name:?} from the storage: {why}; the object can be deleted",
        k1s_object::status::qualified(group, plural)
    );
    Status::new(500, "StorageReadError", message).with(details)
}

/// 500: an object that only a webhook can convert.
pub(crate) fn unconvertible(why: String) -> Status {
    Status::new(500, "", why)
}

/// 504: a resourceVersion that the store has not reached.
pub(crate) fn too_large_resource_version(requested: u64, current: u64) -> Status {
    let details = Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        }],
        retry_after_seconds: 1,
        ..Details::default()
    };
    Status::new(504, "Timeout", format!("Too large resource version: {requested}, current: {current}"))
        .with(details)
}

/// 410: a resourceVersion that was compacted.
pub(crate) fn too_old_resource_version(requested: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// 413
pub(crate) fn request_entity_too_large(message: impl Into<String>) -> Status {
    Status::new(413, "RequestEntityTooLarge", message)
}

/// 415: a body in an unknown format; `types` are the supported ones.
pub(crate) fn unsupported_media_type(types: &str) -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        format!("the body of the request was in an unknown format - accepted media types include: {types}"),
    )
}

/// 429
pub(crate) fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
    Status::new(429, "TooManyRequests", message).with(Details { retry_after_seconds, ..Details::default() })
}

/// 429: a limit of the server is reached.
pub(crate) fn busy() -> Status {
    too_many(1)
}

/// 429: too many requests of this kind; clients should try again after as many seconds.
pub(crate) fn too_many(retry_after_seconds: u32) -> Status {
    too_many_requests("Too many requests, please try again later.", retry_after_seconds)
}

/// Errors as Go prints several of them as one: each once, in brackets if they are more than one.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for error in errors {
        if !once.contains(&&**error) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// 503: the server is shutting down.
pub(crate) fn shutting_down() -> Status {
    Status::new(503, "ServiceUnavailable", "the server is shutting down")
}

/// 409: another write came first.
pub(crate) fn modified(group: &str, resource: &str, name: &str) -> Status {
    Status::conflict(
        group,
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}
