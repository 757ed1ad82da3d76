//! The disk store passes the suite that every backend passes.

use std::sync::Arc;

use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::conformance::{Backend, Fresh};
use k1s_store_disk::{DiskOptions, DiskStore};

struct Disk;

#[async_trait]
impl Backend for Disk {
    async fn fresh(&self) -> Fresh {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Fresh::reopenable(move || {
            let folder = folder.clone();
            async move {
                let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
                Arc::new(store) as Arc<dyn k1s_store::Store>
            }
        })
        .await
    }
}

k1s_store::conformance_tests!(Disk);
