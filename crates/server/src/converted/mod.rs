//! Objects that webhooks have converted: those remembered for all requests, and those that one request is waiting for.

mod memo;
mod memory;

pub(crate) use memo::Memo;
pub(crate) use memory::{Key, Lookup, Memory, Ticket};
