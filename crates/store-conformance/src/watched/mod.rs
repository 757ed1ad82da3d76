//! The promises of a [`Watch`](k1s_store::Watch), each with its checker.
//!
//! A run is recorded: what each watch was asked for and what it yielded ([`Session`]), and what really
//! happened ([`History`]: a watch of everything, confirmed by what the writers were told). The checkers are
//! pure functions of these records:
//!
//! | promise | checker | broken when |
//! |---|---|---|
//! | ordered | [`ordered`] | a revision comes behind a later one |
//! | unique | [`unique`] | a revision comes twice |
//! | reliable | [`reliable`] | a change under the prefix is left out before a later item |
//! | atomic | [`atomic`] | a change has some of its transaction's events, or others |
//! | faithful | [`faithful`] | an event has another value, kind or previous value than what happened |
//! | resumable | [`resumable`] | a watch after a revision does not begin right behind it |
//! | bookmarkable | [`bookmarkable`] | a mark is ahead of a change that comes later, or of the store |
//! | bounded | [`bounded`] | a watch is told of a compaction that does not concern it |

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
