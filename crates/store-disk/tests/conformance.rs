//! Runs the disk store through the conformance suite of all backends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::{Store, feed::FeedOptions};
use k1s_store_conformance::{
    Backend, Fresh, Profile, linearizability, model, run_async, watch_promises, watched::Load,
};
use k1s_store_disk::{DiskOptions, DiskStore, testing::SimDisk};

async fn fresh(options: DiskOptions) -> Fresh {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    Fresh::reopenable(move || {
        let folder = folder.clone();
        async move {
            let store = DiskStore::open(Env::system(), folder.path(), options).unwrap();
            Arc::new(store) as Arc<dyn Store>
        }
    })
    .await
}

/// With default options.
struct Disk;

#[async_trait]
impl Backend for Disk {
    async fn fresh(&self) -> Fresh {
        fresh(DiskOptions::default()).await
    }

    async fn bounded(&self, revisions: usize) -> Option<Fresh> {
        let feed = FeedOptions { changes: revisions / 4, ..FeedOptions::default() };
        Some(fresh(DiskOptions { history_revisions: revisions as u64, feed, ..DiskOptions::default() }).await)
    }
}

/// With little memory and small files: watches are served from disk, and segments fill up constantly.
struct Little;

#[async_trait]
impl Backend for Little {
    async fn fresh(&self) -> Fresh {
        let feed = FeedOptions { changes: 3, ..FeedOptions::default() };
        let small = DiskOptions { segment_bytes: 16 << 10, ..DiskOptions::default() };
        fresh(DiskOptions { feed, ..small }).await
    }

    fn profile(&self) -> Profile {
        Profile { many_keys: 10_000, many_writes: 2_000, after_close: 3, ..Profile::default() }
    }
}

/// On the simulated disk, without faults.
struct Simulated;

#[async_trait]
impl Backend for Simulated {
    async fn fresh(&self) -> Fresh {
        let disk = SimDisk::new(1);
        let options =
            DiskOptions { segment_bytes: 64 << 10, reserve_bytes: 64 << 10, ..DiskOptions::default() };
        Fresh::reopenable(move || {
            let disk = disk.clone();
            async move { Arc::new(disk.open(Env::system(), "/data", options).unwrap()) as Arc<dyn Store> }
        })
        .await
    }

    fn profile(&self) -> Profile {
        Profile { many_keys: 5_000, many_writes: 1_000, seeds: 2, ..Profile::default() }
    }
}

mod suite_on_a_simulated_disk {
    k1s_store_conformance::conformance_tests!(super::Simulated);
}

mod suite {
    k1s_store_conformance::conformance_tests!(super::Disk);
}

mod suite_with_little_memory {
    k1s_store_conformance::conformance_tests!(super::Little);
}

#[test]
fn random_operations_agree_with_a_model_for_many_seeds() {
    run_async(async {
        for seed in 1000..1030 {
            model(&Disk, seed, 150).await;
            model(&Little, seed, 150).await;
        }
    });
}

#[test]
fn watch_promises_hold_for_many_seeds() {
    run_async(async {
        for seed in 1000..1010 {
            watch_promises(&Disk, seed, Load::of(100)).await;
            watch_promises(&Little, seed, Load::of(100)).await;
        }
    });
}

#[test]
fn histories_are_linearizable_for_many_seeds() {
    run_async(async {
        for seed in 1000..1040 {
            linearizability(&Disk, seed, 2 + seed as usize % 7, 100).await;
        }
    });
}
