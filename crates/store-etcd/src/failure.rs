//! How a request to etcd can fail.

use std::error::Error as _;

use k1s_store::Error;
use tonic::{Code, Status};

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It certainly was not carried out; another endpoint, or the same one later, may do it.
    NotSent(String),
    /// It is not known whether it was carried out; another endpoint may answer.
    Lost(String),
    /// It asks for a revision that is compacted.
    Compacted,
    /// It asks for a revision that is not there yet.
    FutureRevision,
    /// etcd is out of space.
    Full(String),
    /// It is larger than etcd accepts.
    TooLarge,
    /// etcd says that its data is damaged.
    Corrupt(String),
    /// etcd rejects the request as invalid.
    Invalid(String),
    /// etcd denies permission.
    Refused(String),
    /// The store was closed meanwhile.
    Closed,
}

impl Failure {
    pub(crate) fn of(status: &Status) -> Self {
        let message = || status.message().to_owned();
        let says = |text| status.message().contains(text);
        if was_never_connected(status) {
            return Self::NotSent(format!("cannot connect to etcd: {}", root_cause(status)));
        }
        if let Some(cause) = status.source() {
            // Made by the client: the connection broke.
            return Self::Lost(format!("the connection to etcd broke: {}", root_cause(cause)));
        }
        // etcd's codes are too coarse, its messages are part of its API.
        if says("required revision has been compacted") {
            Self::Compacted
        } else if says("required revision is a future revision") {
            Self::FutureRevision
        } else if says("database space exceeded") {
            Self::Full(message())
        } else if says("request is too large") || says("message larger than max") {
            Self::TooLarge
        } else if says("etcdserver: no leader")
            || says("too many requests")
            || says("not supported for learner")
        {
            // Rejected before anything was proposed.
            Self::NotSent(message())
        } else if says("user name is empty") || says("revision of auth store is old") {
            // The code says that the request is invalid, but etcd wants authentication.
            Self::Refused(message())
        } else {
            match status.code() {
                Code::DataLoss => Self::Corrupt(message()),
                Code::InvalidArgument => Self::Invalid(message()),
                Code::FailedPrecondition
                | Code::PermissionDenied
                | Code::Unauthenticated
                | Code::Unimplemented
                | Code::NotFound => Self::Refused(message()),
                _ if status.message().is_empty() => Self::Lost(format!("etcd: {}", status.code())),
                _ => Self::Lost(message()),
            }
        }
    }

    /// Whether a retry, perhaps with another member, may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::Lost(_))
    }

    /// As the error of a read, or of an idempotent request.
    pub(crate) fn of_read(self) -> Error {
        match self {
            Self::NotSent(reason) | Self::Lost(reason) | Self::Refused(reason) => Error::unavailable(reason),
            Self::Full(reason) => Error::Full { reason },
            Self::Corrupt(reason) => Error::corrupt(reason),
            Self::Invalid(reason) => Error::invalid(reason),
            Self::Closed => Error::Closed,
            // Callers that name a revision, or send something large, give a more precise error.
            Self::Compacted => Error::unavailable("etcd compacted the revision that was read"),
            Self::FutureRevision => Error::unavailable("etcd has not reached the revision that was read"),
            Self::TooLarge => Error::invalid("the request is larger than etcd takes"),
        }
    }

    /// As the error of a write.
    pub(crate) fn of_write(self) -> Error {
        match self {
            Self::Lost(reason) => Error::outcome_unknown(reason),
            Self::Closed => Error::outcome_unknown("the store was closed while it wrote"),
            other => other.of_read(),
        }
    }
}

fn was_never_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The innermost error: its wrappers ("transport error") carry no information.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcds_messages_are_told_apart() {
        let of = |code, message: &str| Failure::of(&Status::new(code, message));
        assert_eq!(
            of(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted"),
            Failure::Compacted
        );
        assert_eq!(
            of(Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision"),
            Failure::FutureRevision
        );
        assert!(matches!(
            of(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            Failure::Full(_)
        ));
        assert_eq!(of(Code::InvalidArgument, "etcdserver: request is too large"), Failure::TooLarge);
        assert!(matches!(of(Code::Unavailable, "etcdserver: no leader"), Failure::NotSent(_)));
        assert!(matches!(of(Code::Unavailable, "etcdserver: request timed out"), Failure::Lost(_)));
        for denied in ["etcdserver: user name is empty", "etcdserver: revision of auth store is old"] {
            let failure = of(Code::InvalidArgument, denied);
            assert_eq!(failure.of_write(), Error::unavailable(denied), "the caller is not at fault");
        }
        assert!(matches!(of(Code::DataLoss, "etcdserver: corrupt cluster"), Failure::Corrupt(_)));
    }

    #[test]
    fn a_write_that_got_no_answer_may_have_happened_and_one_that_was_not_sent_has_not() {
        assert_eq!(Failure::Lost("x".into()).of_write(), Error::outcome_unknown("x"));
        assert_eq!(Failure::NotSent("x".into()).of_write(), Error::unavailable("x"));
        assert_eq!(Failure::Lost("x".into()).of_read(), Error::unavailable("x"));
    }
}
