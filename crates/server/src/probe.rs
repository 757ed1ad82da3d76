//! The health of the store.

use k1s_store::Store;

use crate::shared_call::SharedCall;

/// Asks the store how it is. Anyone may have it asked, so concurrent callers share one call.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    answers: SharedCall<Result<(), String>>,
    takes_writes: SharedCall<Result<(), String>>,
}

impl Probe {
    /// Whether the store answers reads; otherwise why not.
    pub(crate) async fn answers(&self, store: &dyn Store) -> Result<(), String> {
        let ask = || async {
            let answer = store.revision().await;
            answer.map(|_| ()).map_err(|error| format!("the store does not answer: {error}"))
        };
        self.answers.call(ask).await
    }

    /// Whether the store takes writes; otherwise why not.
    pub(crate) async fn takes_writes(&self, store: &dyn Store) -> Result<(), String> {
        self.takes_writes.call(|| async { store.health().await.map_err(|error| error.to_string()) }).await
    }
}
