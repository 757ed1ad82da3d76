//! Clusters from kubeconfig files in a folder.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k1s_runtime::{BoxError, Cluster, ClusterName};
use kube::config::Kubeconfig;
use tokio_util::sync::CancellationToken;

use super::{known::Known, kubeconfig};
use crate::{Engager, Provider, ProviderError};

/// How often the folder is read, by default.
const INTERVAL: Duration = Duration::from_secs(5);

/// Between the file and the context in the name of a cluster, as in Go's multicluster-runtime.
const SEPARATOR: char = '+';

/// Every context of every kubeconfig file in a folder is a cluster, named `file+context`. The folder is read every few seconds;
/// the contexts of a file that has changed are engaged anew.
pub struct KubeconfigFiles {
    folder: PathBuf,
    interval: Duration,
    /// The content of a cluster's file.
    known: Known<Arc<str>>,
}

impl KubeconfigFiles {
    /// The files in a folder; hidden ones are ignored.
    pub fn new(folder: impl Into<PathBuf>) -> KubeconfigFiles {
        KubeconfigFiles { folder: folder.into(), interval: INTERVAL, known: Known::new() }
    }

    /// Sets how often the folder is read: 5 s by default.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> KubeconfigFiles {
        self.interval = interval;
        self
    }

    async fn update(&self, env: &k1s_env::Env, engager: &dyn Engager) -> Result<(), BoxError> {
        let folder = self.folder.clone();
        let contents = env.spawn_blocking("kubeconfig files", move || read(&folder)).await??;
        let mut contexts = BTreeMap::new();
        let mut parsed = BTreeMap::new();
        for (file, content) in contents {
            match Kubeconfig::from_yaml(&content) {
                Ok(config) => {
                    for context in &config.contexts {
                        let name: ClusterName = format!("{file}{SEPARATOR}{}", context.name).into();
                        contexts.insert(name.clone(), Arc::clone(&content));
                        parsed.insert(name, (config.clone(), context.name.clone()));
                    }
                }
                Err(error) => tracing::warn!(%file, %error, "not a kubeconfig"),
            }
        }
        for (name, content) in contexts.iter().filter(|(name, content)| !self.known.is_current(name, content))
        {
            let Some((config, context)) = parsed.get(name) else { continue };
            let options = engager.cluster_options();
            match kubeconfig::client(config.clone(), Some(context.clone()), &options).await {
                Ok(client) => {
                    let cluster = Cluster::new(name.clone(), client, options);
                    self.known.engage(engager, Arc::clone(content), cluster);
                }
                Err(error) => tracing::warn!(cluster = %name, %error, "cannot connect to a cluster"),
            }
        }
        self.known.disengage_others(engager, &contexts).await;
        Ok(())
    }
}

/// The names and contents of the files in a folder.
fn read(folder: &Path) -> io::Result<BTreeMap<String, Arc<str>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are followed: mounted Secrets are made of them.
        if name.starts_with('.') || !fs::metadata(entry.path()).is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        match fs::read_to_string(entry.path()) {
            Ok(content) => drop(files.insert(name, content.into())),
            // It may have been removed meanwhile.
            Err(error) => tracing::warn!(file = %name, %error, "cannot read a kubeconfig file"),
        }
    }
    Ok(files)
}

#[async_trait::async_trait]
impl Provider for KubeconfigFiles {
    fn name(&self) -> String {
        format!("kubeconfig files in {}", self.folder.display())
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.known.get(name)
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        let env = engager.cluster_options().env.unwrap_or_else(k1s_env::Env::system);
        loop {
            match stop.run_until_cancelled(self.update(&env, &*engager)).await {
                None => return Ok(()),
                Some(Ok(())) => engager.synced(),
                Some(Err(error)) => {
                    tracing::warn!(folder = %self.folder.display(), %error, "cannot read kubeconfig files");
                }
            }
            if stop.run_until_cancelled(env.sleep(self.interval)).await.is_none() {
                return Ok(());
            }
        }
    }
}

impl std::fmt::Debug for KubeconfigFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeconfigFiles").field("folder", &self.folder).finish_non_exhaustive()
    }
}
