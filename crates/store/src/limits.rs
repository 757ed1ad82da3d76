//! What every backend takes, so that a program that works on one works on all.

/// Bytes in a key.
pub const MAX_KEY_BYTES: usize = 4 << 10;

/// Bytes in a value.
///
/// An etcd takes 1.5 MiB in one request unless its `--max-request-bytes` is raised; there, a
/// larger value is refused by etcd with [`Error::TooLarge`](crate::Error::TooLarge).
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// Steps in a transaction (etcd's `--max-txn-ops`).
pub const MAX_OPS: usize = 128;
