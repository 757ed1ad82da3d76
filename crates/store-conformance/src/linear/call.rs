//! The record of one operation.

use bytes::Bytes;
use k1s_store::{Conflict, Error, GetResult, Outcome, Range, RangeResult, Revision, Store, Txn};

/// One operation of one client.
#[derive(Clone, Debug)]
pub struct Call {
    /// The calling client.
    pub client: usize,
    /// Time of the call, by a counter shared by all clients.
    pub called: u64,
    /// Time of the return.
    pub returned: u64,
    /// The request.
    pub request: Request,
    /// The result.
    pub answer: Answer,
}

/// A request to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads a key at the newest revision.
    Get(Bytes),
    /// Reads the keys under a prefix at the newest revision.
    Range(Bytes),
    /// Commits a transaction.
    Txn(Txn),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Result of a get.
    Got(GetResult),
    /// Result of a range.
    Ranged(RangeResult),
    /// The transaction was committed.
    Written(Revision),
    /// A precondition did not hold.
    Refused(Conflict),
    /// The outcome of the transaction is unknown.
    Unknown,
    /// The transaction failed without writing anything.
    Failed,
}

impl Request {
    /// Sends the request to `store`.
    ///
    /// # Panics
    /// On an error that no valid request can cause.
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
            Err(error) => panic!("broken promise: {self:?} succeeds\n  the store returned: {error}"),
        }
    }
}
