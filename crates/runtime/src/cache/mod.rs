//! Shared informers.
