//! The promises of a [`Watch`](k1s_store::Watch), each with its checker.
//!
//! A run is recorded: the request and the items of each watch ([`Session`]), and the true [`History`] (a watch
//! of all keys, checked against the results of the writers). The checkers are pure functions of these records:
//!
//! | promise | checker | broken when |
//! |---|---|---|
//! | ordered | [`ordered`] | a revision comes after a later one |
//! | unique | [`unique`] | a revision comes twice |
//! | reliable | [`reliable`] | a change under the prefix is missing before a later item |
//! | atomic | [`atomic`] | a change lacks some of its transaction's events, or has others |
//! | faithful | [`faithful`] | an event has a wrong value, kind or previous value |
//! | resumable | [`resumable`] | a watch after a revision does not begin right after it |
//! | bookmarkable | [`bookmarkable`] | a mark is ahead of a later change, or of the store |
//! | bounded | [`bounded`] | a watch fails with a compaction that does not concern it |

mod checks;
mod history;
mod load;
mod record;

pub use checks::{
    atomic, bookmarkable, bounded, check_session, faithful, ordered, reliable, resumable, unique,
};
pub use history::{History, Write};
pub(super) use history::{State, made};
pub use load::{Load, watch_promises};
pub use record::{End, Seen, Session, Start};
