//! The random searches with a few seeds each.

use crate::{linear, model, support::Suite, watched};

pub(crate) async fn random_operations_agree_with_a_model(suite: &Suite) {
    for seed in 0..suite.profile.seeds {
        model::model(&*suite.backend, seed, suite.profile.steps).await;
    }
}

pub(crate) async fn watch_promises_hold_under_load(suite: &Suite) {
    for seed in 0..suite.profile.seeds {
        let load = watched::Load { compaction: false, ..watched::Load::of(suite.profile.steps) };
        watched::watch_promises(&*suite.backend, seed, load).await;
    }
}

pub(crate) async fn watch_promises_hold_under_load_and_compaction(suite: &Suite) {
    for seed in 0..suite.profile.seeds {
        watched::watch_promises(&*suite.backend, seed, watched::Load::of(suite.profile.steps)).await;
    }
}

pub(crate) async fn concurrent_histories_are_linearizable(suite: &Suite) {
    const CLIENTS: usize = 5;
    for seed in 0..suite.profile.seeds {
        linear::linearizability(&*suite.backend, seed, CLIENTS, suite.profile.steps).await;
    }
}
