//! Translates transactions to etcd's requests, and its responses to results.

use k1s_store::{Action, Error, Op, Precondition, Txn};
use prost::Message;

use crate::{
    failure::Failure,
    keys::{Keyspace, number},
    proto::{
        Compare, CompareResult, CompareTarget, DeleteRangeRequest, PutRequest, RangeRequest, Request,
        RequestOp, Response, ResponseOp, TargetUnion, TxnRequest, TxnResponse,
    },
};

/// Default of etcd's `--max-request-bytes`: the maximum size of a request.
const MAX_REQUEST_BYTES: usize = 3 << 19;

/// A transaction that is one write without a precondition.
///
/// As such it costs etcd less: for a transaction, it prepares to read, which in 3.4 means to copy what it has
/// not written to its database yet.
pub(crate) enum Plain {
    Put(PutRequest),
    Delete(DeleteRangeRequest),
}

/// The one write that `txn` is, if it is no more than that.
pub(crate) fn plain(keys: &Keyspace, txn: &Txn) -> Option<Plain> {
    let [Op { key, action, precondition: Precondition::Any }] = txn.ops() else { return None };
    let key = keys.outer(key);
    match action {
        Action::Put(value) => Some(Plain::Put(PutRequest { key, value: value.clone() })),
        Action::Delete => Some(Plain::Delete(DeleteRangeRequest { key })),
        Action::Check => None,
    }
}

/// The request that carries out `txn`, or reads the keys it has preconditions on if one of these does not hold.
///
/// If the keys are too long and many for one request, it does not read them.
pub(crate) fn request(keys: &Keyspace, txn: &Txn) -> TxnRequest {
    let mut request = TxnRequest::default();
    for op in txn.ops() {
        let key = keys.outer(&op.key);
        if let Some((result, revision)) = comparison(op.precondition) {
            request.compare.push(Compare {
                result: result.into(),
                target: CompareTarget::Mod.into(),
                key: key.clone(),
                target_union: Some(TargetUnion::ModRevision(revision)),
            });
        }
        request.success.push(match &op.action {
            Action::Put(value) => Request::Put(PutRequest { key, value: value.clone() }).into(),
            Action::Delete => Request::DeleteRange(DeleteRangeRequest { key }).into(),
            // A read of nothing: without any, etcd would compare with this member's state, which may be old.
            Action::Check => {
                Request::Range(RangeRequest { key, count_only: true, ..RangeRequest::default() }).into()
            }
        });
    }
    request.failure = reads(keys, txn);
    if request.encoded_len() > MAX_REQUEST_BYTES {
        request.failure.clear();
    }
    request
}

/// The request that reads the keys that `txn` has preconditions on, at one revision.
pub(crate) fn read_request(keys: &Keyspace, txn: &Txn) -> TxnRequest {
    TxnRequest { success: reads(keys, txn), ..TxnRequest::default() }
}

fn reads(keys: &Keyspace, txn: &Txn) -> Vec<RequestOp> {
    let read = |op: &Op| RangeRequest { key: keys.outer(&op.key), ..RangeRequest::default() };
    conditional(txn).map(|op| Request::Range(read(op)).into()).collect()
}

fn conditional(txn: &Txn) -> impl Iterator<Item = &Op> {
    txn.ops().iter().filter(|op| op.precondition != Precondition::Any)
}

/// The comparison that holds if the precondition does; `None` for no precondition. To etcd, a key
/// that has no value is at revision 0.
fn comparison(precondition: Precondition) -> Option<(CompareResult, i64)> {
    match precondition {
        Precondition::Any => None,
        Precondition::Absent => Some((CompareResult::Equal, 0)),
        Precondition::Exists => Some((CompareResult::Greater, 0)),
        // No write has revision 0, which must not be taken for "absent".
        Precondition::Revision(revision) if revision.get() == 0 => Some((CompareResult::Equal, -1)),
        Precondition::Revision(revision) => Some((CompareResult::Equal, number(revision))),
    }
}

/// Whether a response says that something was written.
pub(crate) fn has_written(answer: &TxnResponse) -> bool {
    answer.succeeded
        && answer.responses.iter().any(|op| match &op.response {
            Some(Response::Put(_)) => true,
            Some(Response::DeleteRange(deletion)) => deletion.deleted > 0,
            _ => false,
        })
}

/// The first precondition that does not hold for the keys as read; `None` if all do.
pub(crate) fn conflict(keys: &Keyspace, txn: &Txn, reads: &[ResponseOp]) -> Option<Error> {
    conditional(txn).zip(reads).find_map(|(op, read)| {
        let Some(Response::Range(read)) = &read.response else { return None };
        let current = read.kvs.first().and_then(|kv| keys.entry(kv));
        let holds = op.precondition.holds(current.as_ref().map(|entry| entry.revision));
        (!holds).then(|| Error::conflict(op.key.clone(), op.precondition, current))
    })
}

/// The error of a write.
pub(crate) fn write_error(failure: Failure, request: &impl Message) -> Error {
    match failure {
        Failure::TooLarge => too_large(request.encoded_len()),
        failure => failure.of_write(),
    }
}

/// The error for a request of that size, which etcd finds too large.
fn too_large(size: usize) -> Error {
    // etcd does not report its limit. The default is assumed, unless this request is smaller.
    let limit = MAX_REQUEST_BYTES.min(size.saturating_sub(1));
    Error::TooLarge { what: "the transaction", size, limit, unit: "bytes" }
}

/// Whether it only reads.
pub(crate) fn is_read_only(txn: &Txn) -> bool {
    txn.ops().iter().all(|Op { action, .. }| matches!(action, Action::Check))
}

impl From<Request> for RequestOp {
    fn from(request: Request) -> Self {
        Self { request: Some(request) }
    }
}

#[cfg(test)]
mod tests {
    use k1s_store::{KeyValue, Revision};

    use super::*;
    use crate::proto::{KeyValue as EtcdKeyValue, RangeResponse};

    #[test]
    fn preconditions_become_comparisons_and_steps_become_operations() {
        let keys = Keyspace::new("/k1s");
        let txn = Txn::new()
            .create("a", "1")
            .check("b", Precondition::Exists)
            .delete("c", Precondition::Revision(Revision::new(7)))
            .put("d", "2", Precondition::Any);
        let request = request(&keys, &txn);
        let compared: Vec<_> = request
            .compare
            .iter()
            .map(|compare| (compare.key.clone(), compare.result(), compare.target_union))
            .collect();
        let expected = |key: &'static str, result, revision| {
            (key.into(), result, Some(TargetUnion::ModRevision(revision)))
        };
        assert_eq!(
            compared,
            [
                expected("/k1s/kv/a", CompareResult::Equal, 0),
                expected("/k1s/kv/b", CompareResult::Greater, 0),
                expected("/k1s/kv/c", CompareResult::Equal, 7),
            ]
        );
        assert_eq!(request.success.len(), 4);
        assert_eq!(request.failure.len(), 3);
    }

    #[test]
    fn one_write_without_a_precondition_needs_no_transaction() {
        let keys = Keyspace::new("/k1s");
        let is_plain = |txn: Txn| plain(&keys, &txn).is_some();
        assert!(is_plain(Txn::new().put("a", "1", Precondition::Any)));
        assert!(is_plain(Txn::new().delete("a", Precondition::Any)));
        assert!(!is_plain(Txn::new().create("a", "1")));
        assert!(!is_plain(Txn::new().delete("a", Precondition::Exists)));
        assert!(!is_plain(Txn::new().check("a", Precondition::Any)));
        let two = Txn::new().put("a", "1", Precondition::Any).put("b", "1", Precondition::Any);
        assert!(!is_plain(two));
    }

    #[test]
    fn long_keys_are_not_sent_three_times_if_that_is_too_much() {
        let keys = Keyspace::new("/k1s");
        let key = |n: usize| format!("{n:0width$}", width = k1s_store::limits::MAX_KEY_BYTES);
        let txn = (0..k1s_store::limits::MAX_OPS).fold(Txn::new(), |txn, n| txn.create(key(n), "v"));
        let request = request(&keys, &txn);
        assert!(request.failure.is_empty());
        assert!(request.encoded_len() < MAX_REQUEST_BYTES);
        assert_eq!(read_request(&keys, &txn).success.len(), k1s_store::limits::MAX_OPS);
    }

    #[test]
    fn revision_0_is_not_mistaken_for_absent() {
        assert_eq!(comparison(Precondition::Revision(Revision::new(0))), Some((CompareResult::Equal, -1)));
    }

    #[test]
    fn the_first_precondition_that_failed_is_reported_with_what_is_there() {
        let keys = Keyspace::new("/k1s");
        let txn = Txn::new()
            .put("free", "", Precondition::Any)
            .check("fine", Precondition::Absent)
            .create("taken", "1")
            .delete("gone", Precondition::Exists);
        let read = |kvs| ResponseOp {
            response: Some(Response::Range(RangeResponse { kvs, ..RangeResponse::default() })),
        };
        let there = EtcdKeyValue {
            key: "/k1s/kv/taken".into(),
            value: "0".into(),
            create_revision: 4,
            mod_revision: 5,
        };
        let reads = [read(vec![]), read(vec![there]), read(vec![])];
        let current = KeyValue { key: "taken".into(), value: "0".into(), revision: Revision::new(5) };
        assert_eq!(
            conflict(&keys, &txn, &reads),
            Some(Error::conflict("taken".into(), Precondition::Absent, Some(current)))
        );
    }
}
