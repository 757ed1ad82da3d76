//! Checks that concurrent operations on a few keys have an order that explains every result.
//!
//! Each operation is recorded with the times of its call and its return ([`Call`]); time is a counter, so
//! only the order matters. Two independent checkers examine the record:
//!
//! - [`check_revisions`] uses that this store numbers its writes: revisions are the order, and the check is
//!   that it agrees with real time, with every read at its revision, and with every conflict. It is complete
//!   for transactions of several keys, and needs the true [`History`](super::watched::History).
//! - [`check_register`] ignores the order of revisions: it searches for an order with the algorithm of Wing and Gong,
//!   and Lowe, for each key separately. It does not trust the store's claims about order, and needs no history.
//!
//! A write with [`Outcome::Unknown`](k1s_store::Outcome::Unknown) may have happened at any time after its call,
//! or never; both checkers consider both.

mod call;
mod clients;
mod register;
mod revisions;

pub use call::{Answer, Call, Request};
pub use clients::linearizability;
pub use register::{Op, OpResult, RegisterCall, check_register, project};
pub use revisions::check_revisions;
