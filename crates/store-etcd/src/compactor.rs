//! Compaction of old history, by one of the replicas.
//!
//! Once per interval, each replica records the newest revision and the revision of the compaction key. If the key has not been
//! written since its last visit, it writes the key and compacts to the revision recorded then: history of one to two intervals is
//! left. If it has, another replica does the compaction. A replica that stops is replaced an interval later.

use std::{sync::Arc, time::Duration};

use k1s_store::{Result, Revision};

use crate::{
    failure::Failure,
    keys::{number, revision},
    proto::{
        self, Compare, CompareResult, CompareTarget, PutRequest, RangeRequest, Request, Response,
        TargetUnion, TxnRequest, TxnResponse,
    },
    shared::Shared,
    store,
};

/// What a replica records at each visit.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// The revision that last wrote the compaction key.
    key: Revision,
    /// The newest revision at the time.
    newest: Revision,
}

/// The task that compacts every `interval`.
pub(crate) async fn run(shared: Arc<Shared>, interval: Duration) {
    let compact = async {
        let mut last = None;
        loop {
            match visit(&shared, last).await {
                Ok(visit) => last = Some(visit),
                Err(error) => tracing::warn!(%error, "etcd was not compacted"),
            }
            if shared.check_open().is_err() {
                return;
            }
            shared.env.sleep(interval).await;
        }
    };
    tokio::select! {
        () = shared.stop.cancelled() => {}
        () = compact => {}
    }
}

async fn visit(shared: &Shared, last: Option<Visit>) -> Result<Visit> {
    let Some(last) = last else {
        let request = RangeRequest { key: shared.keys.compaction.clone(), ..RangeRequest::default() };
        let (newest, response) = shared.range_once(request, None).await?;
        let key = response.kvs.first().map_or(0, |kv| kv.mod_revision);
        return Ok(Visit { key: revision(key), newest });
    };
    let known = shared.newest();
    let claim = claim(shared, last);
    // Claiming twice does no harm: the second attempt loses against the first, and this compaction is skipped.
    let answer: TxnResponse = shared.requests.read(proto::TXN, &claim).await.map_err(Failure::of_read)?;
    let newest = shared.accept(answer.header, known)?;
    if !answer.succeeded {
        let key = answer.responses.first().and_then(|op| match &op.response {
            Some(Response::Range(range)) => range.kvs.first(),
            _ => None,
        });
        return Ok(Visit { key: revision(key.map_or(0, |kv| kv.mod_revision)), newest });
    }
    store::compact(shared, last.newest).await?;
    tracing::debug!(to = %last.newest, "compacted etcd");
    Ok(Visit { key: newest, newest })
}

/// Writes the compaction key if it is unchanged since the last visit, else reads it.
fn claim(shared: &Shared, last: Visit) -> TxnRequest {
    let key = shared.keys.compaction.clone();
    TxnRequest {
        compare: vec![Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Mod.into(),
            key: key.clone(),
            target_union: Some(TargetUnion::ModRevision(number(last.key))),
        }],
        // For people who inspect the key; not read by k1s.
        success: vec![
            Request::Put(PutRequest { key: key.clone(), value: last.newest.to_string().into() }).into(),
        ],
        failure: vec![Request::Range(RangeRequest { key, ..RangeRequest::default() }).into()],
    }
}
