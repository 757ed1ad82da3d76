//! Clients race for a few keys; is there an order of their operations that explains every answer?
//!
//! Each operation is recorded with the moments of its call and its return ([`Call`]); time is a counter, so
//! only the order counts. Two checkers judge the record, and know nothing of each other:
//!
//! - [`check_revisions`] uses that this store numbers its writes: the revisions are the order, and it remains to
//!   be seen that it agrees with real time, with every read at its moment, and with every conflict. It is
//!   complete for transactions of several keys, and needs the true [`History`](super::watched::History).
//! - [`check_register`] knows nothing of revisions: it searches for an order as Wing and Gong, and Lowe, do, for
//!   each key on its own. It does not trust what the store says about order, and needs no history.
//!
//! A write with [`Outcome::Unknown`](crate::Outcome::Unknown) may have happened at any time after its call, or
//! never; both checkers consider both.

mod call;
mod clients;
mod register;
mod revisions;

pub use call::{Answer, Call, Request};
pub use clients::linearizability;
pub use register::{Op, OpResult, RegisterCall, check_register, project};
pub use revisions::check_revisions;
