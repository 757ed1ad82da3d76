//! Limits of every backend, so that a program that works on one works on all.

/// Maximum bytes in a key.
pub const MAX_KEY_BYTES: usize = 4 << 10;

/// Maximum bytes in a value.
///
/// etcd accepts 1.5 MiB per request unless its `--max-request-bytes` is raised; there, a
/// larger value is refused by etcd with [`Error::TooLarge`](crate::Error::TooLarge).
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// Maximum steps in a transaction (etcd's `--max-txn-ops`).
pub const MAX_OPS: usize = 128;
