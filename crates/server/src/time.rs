//! The clock of `k1s-env` as Kubernetes writes it.

use jiff::Timestamp;
use k1s_env::Env;

/// The wall clock.
pub(crate) fn now(env: &Env) -> Timestamp {
    Timestamp::try_from(env.wall()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The wall clock as a `metav1.Time`: `2026-01-02T15:04:05Z`.
pub(crate) fn stamp(env: &Env) -> String {
    format(now(env))
}

/// A timestamp as a `metav1.Time`.
pub(crate) fn format(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
