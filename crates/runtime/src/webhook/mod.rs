//! The webhook server.
