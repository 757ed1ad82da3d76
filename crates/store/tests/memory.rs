//! Runs the memory store through the conformance suite.

use std::sync::Arc;

use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::{MemoryOptions, MemoryStore, feed::FeedOptions};
use k1s_store_conformance::{
    Act, At, Backend, Fresh, If, Profile, Step, StepOp, linearizability, model, replay, run_async,
    watch_promises, watched::Load,
};
use proptest::{collection::vec, prelude::*};

/// With default options.
struct Memory;

#[async_trait]
impl Backend for Memory {
    async fn fresh(&self) -> Fresh {
        Fresh::new(Arc::new(MemoryStore::default()))
    }

    async fn bounded(&self, revisions: usize) -> Option<Fresh> {
        let feed = FeedOptions { changes: revisions / 4, ..FeedOptions::default() };
        let options = MemoryOptions { history_revisions: revisions, feed, ..MemoryOptions::default() };
        Some(Fresh::new(Arc::new(MemoryStore::new(Env::system(), options))))
    }
}

/// With a ring so small that watches constantly switch between ring and history.
struct SmallRing;

#[async_trait]
impl Backend for SmallRing {
    async fn fresh(&self) -> Fresh {
        let feed = FeedOptions { changes: 3, ..FeedOptions::default() };
        let options = MemoryOptions { feed, ..MemoryOptions::default() };
        Fresh::new(Arc::new(MemoryStore::new(Env::system(), options)))
    }

    fn profile(&self) -> Profile {
        Profile { many_keys: 10_000, ..Profile::default() }
    }
}

mod suite {
    k1s_store_conformance::conformance_tests!(super::Memory);
}

mod suite_with_a_small_ring {
    k1s_store_conformance::conformance_tests!(super::SmallRing);
}

#[test]
fn random_operations_agree_with_a_model_for_many_seeds() {
    run_async(async {
        for seed in 1000..1300 {
            model(&Memory, seed, 150).await;
            model(&SmallRing, seed, 150).await;
        }
    });
}

#[test]
fn watch_promises_hold_for_many_seeds() {
    run_async(async {
        for seed in 1000..1060 {
            watch_promises(&Memory, seed, Load::of(200)).await;
            watch_promises(&SmallRing, seed, Load::of(200)).await;
            watch_promises(&SmallRing, seed, Load { compaction: false, ..Load::of(200) }).await;
        }
    });
}

#[test]
fn histories_are_linearizable_for_many_seeds() {
    run_async(async {
        for seed in 1000..1150 {
            linearizability(&Memory, seed, 2 + seed as usize % 7, 100).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_agrees_with_the_model(steps in vec(step(), 1..120)) {
        let verdict = run_async(async {
            let fresh = SmallRing.fresh().await;
            replay(fresh.store(), SmallRing.profile(), &steps).await
        });
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec(op(), 0..4).prop_map(Step::Txn),
        2 => (any::<u8>(), at()).prop_map(|(key, at)| Step::Get(key, at)),
        3 => (any::<u8>(), any::<Option<u8>>(), 0u8..5, at())
            .prop_map(|(prefix, start, limit, at)| Step::Range { prefix, start, limit, at }),
        1 => at().prop_map(Step::Compact),
        1 => Just(Step::Stats),
        2 => (any::<u8>(), at(), any::<bool>())
            .prop_map(|(prefix, after, previous)| Step::Watch { prefix, after, previous }),
        3 => (any::<u8>(), 0u8..9).prop_map(|(which, items)| Step::Read(which, items)),
        2 => any::<u8>().prop_map(Step::Mark),
        1 => any::<u8>().prop_map(Step::Drop),
    ]
}

fn op() -> impl Strategy<Value = StepOp> {
    let only = prop_oneof![
        4 => Just(If::Any),
        1 => Just(If::Absent),
        1 => Just(If::Exists),
        3 => Just(If::Current),
        1 => (0u8..20).prop_map(If::Stale),
    ];
    let act = prop_oneof![6 => Just(Act::Put), 1 => Just(Act::PutEmpty), 2 => Just(Act::Delete), 1 => Just(Act::Check)];
    (any::<u8>(), only, act).prop_map(|(key, only, act)| StepOp { key, only, act })
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![3 => Just(At::Now), 5 => (0u8..30).prop_map(At::Back), 1 => (0u8..3).prop_map(At::Ahead)]
}
