//! Errors of the store and of common mistakes, as Status.

use k1s_object::{
    Status,
    status::{Cause, Details},
};
use k1s_store::Error;

use crate::stored::Unreadable;

/// A store's error, where it is no conflict that the caller knows better about.
pub(crate) fn store(error: &Error) -> Status {
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
        Error::Closed => Status::new(503, "ServiceUnavailable", "the server is shutting down"),
        other => Status::internal(other),
    }
}

/// 500: an object in the store cannot be read, in the words of Kubernetes' own `StorageReadError`.
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

/// 504: a resourceVersion from the future.
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

/// 410: a resourceVersion whose moment is forgotten.
pub(crate) fn too_old_resource_version(requested: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// 413
pub(crate) fn request_entity_too_large(message: impl Into<String>) -> Status {
    Status::new(413, "RequestEntityTooLarge", message)
}

/// 415: a body in an unknown format; `types` are the ones that are understood.
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
