//! The record of one operation.

use bytes::Bytes;
use k1s_store::{Conflict, Error, GetResult, Outcome, Range, RangeResult, Revision, Store, Txn};

/// One operation of one client.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who called.
    pub client: usize,
    /// When, by a counter that all clients share.
    pub called: u64,
    /// When it returned.
    pub returned: u64,
    /// What was asked.
    pub request: Request,
    /// What was answered.
    pub answer: Answer,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A key, as it is now.
    Get(Bytes),
    /// The keys under a prefix, as they are now.
    Range(Bytes),
    /// A transaction.
    Txn(Txn),
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a get.
    Got(GetResult),
    /// To a range.
    Ranged(RangeResult),
    /// The transaction went through.
    Written(Revision),
    /// A precondition did not hold.
    Refused(Conflict),
    /// It is not known whether the transaction went through.
    Unknown,
    /// It failed, and nothing was written.
    Failed,
}

impl Request {
    /// Asks `store`.
    ///
    /// # Panics
    /// With an error that no correct request can bring about.
    pub(super) async fn ask(&self, store: &dyn Store) -> Answer {
        let result = match self {
            Self::Get(key) => store.get(key, None).await.map(Answer::Got),
            Self::Range(prefix) => store.range(Range::prefix(prefix.clone())).await.map(Answer::Ranged),
            Self::Txn(txn) => store.txn(txn.clone()).await.map(Answer::Written),
        };
        match result {
            Ok(answer) => answer,
            Err(Error::Conflict(conflict)) => Answer::Refused(*conflict),
            Err(Error::Unavailable { outcome: Outcome::Unknown, .. }) => Answer::Unknown,
            Err(Error::Unavailable { outcome: Outcome::NotApplied, .. } | Error::Full { .. }) => {
                Answer::Failed
            }
            Err(error) => panic!("broken promise: {self:?} is answered\n  the store said: {error}"),
        }
    }
}
