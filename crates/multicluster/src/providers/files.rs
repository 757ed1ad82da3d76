//! Clusters from kubeconfig files in a folder.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use k1s_env::Env;
use k1s_runtime::{BoxError, Cluster, ClusterName};
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{env_of, known::Known, kubeconfig::Clients};
use crate::{Engager, Provider, ProviderError};

/// How often the folder is read, by default.
const INTERVAL: Duration = Duration::from_secs(5);

/// Age of a file from which its time of modification tells whether it was changed again.
const FRESH: Duration = Duration::from_secs(10);

/// Between the file and the context in the name of a cluster, as in Go's multicluster-runtime.
const SEPARATOR: char = '+';

/// Every context of every kubeconfig file in a folder is a cluster, named `file+context`. The folder is listed every few seconds,
/// and files whose time of modification, length or inode has changed are read; their contexts are engaged anew if their content
/// has changed.
pub struct KubeconfigFiles {
    folder: PathBuf,
    interval: Duration,
    clients: Clients,
    files: Mutex<Files>,
    /// The content of a cluster's file.
    known: Known<Arc<str>>,
}

impl KubeconfigFiles {
    /// The files in a folder; hidden ones are ignored.
    pub fn new(folder: impl Into<PathBuf>) -> KubeconfigFiles {
        KubeconfigFiles {
            folder: folder.into(),
            interval: INTERVAL,
            clients: Clients::default(),
            files: Mutex::default(),
            known: Known::new(),
        }
    }

    /// Sets how often the folder is listed: 5 s by default.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> KubeconfigFiles {
        self.interval = interval;
        self
    }

    async fn update(&self, env: &Env, engager: &Arc<dyn Engager>) -> Result<(), BoxError> {
        let (folder, before, now) = (self.folder.clone(), self.files.lock().clone(), env.wall());
        let files = env.spawn_blocking("kubeconfig files", move || read(&folder, &before, now)).await??;
        self.files.lock().clone_from(&files);
        let mut contexts = BTreeMap::new();
        for (name, file) in &files {
            for context in file.config.iter().flat_map(|config| &config.contexts) {
                let cluster: ClusterName = format!("{name}{SEPARATOR}{}", context.name).into();
                if !self.known.is_current(&cluster, &file.content) {
                    self.engage(engager, &cluster, file, &context.name).await;
                }
                contexts.insert(cluster, Arc::clone(&file.content));
            }
        }
        self.known.disengage_others(engager, &contexts);
        Ok(())
    }

    async fn engage(&self, engager: &Arc<dyn Engager>, name: &ClusterName, file: &File, context: &str) {
        let Some(config) = file.config.clone() else { return };
        let options = engager.cluster_options();
        match self.clients.of_kubeconfig(config, Some(context.to_owned()), &options).await {
            Ok(client) => {
                let cluster = Cluster::new(name.clone(), client, options);
                self.known.engage(&**engager, Arc::clone(&file.content), cluster);
            }
            Err(error) => tracing::warn!(cluster = %name, %error, "cannot connect to a cluster"),
        }
    }
}

/// A file that was read.
struct File {
    stamp: Stamp,
    content: Arc<str>,
    /// `None` if it is none.
    config: Option<Kubeconfig>,
}

/// What changes when a file is written or replaced.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Stamp {
    fn of(meta: &Metadata) -> io::Result<Stamp> {
        Ok(Stamp {
            modified: meta.modified()?,
            length: meta.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(meta),
        })
    }

    /// Whether the file may have been written since without a trace: clocks of file systems are coarse.
    fn is_fresh(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified).map_or(true, |age| age < FRESH)
    }
}

type Files = BTreeMap<String, Arc<File>>;

/// The files in a folder. Those that have not changed are not read again.
fn read(folder: &Path, before: &Files, now: SystemTime) -> io::Result<Files> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are followed: mounted Secrets are made of them.
        let meta = fs::metadata(entry.path()).ok().filter(Metadata::is_file);
        let (Some(meta), false) = (meta, name.starts_with('.')) else { continue };
        let stamp = Stamp::of(&meta)?;
        let known = before.get(&name).filter(|file| file.stamp == stamp);
        if let Some(file) = known.filter(|file| !file.stamp.is_fresh(now)) {
            files.insert(name, Arc::clone(file));
            continue;
        }
        let content: Arc<str> = match fs::read_to_string(entry.path()) {
            Ok(content) => content.into(),
            // It may have been removed meanwhile.
            Err(error) => {
                tracing::warn!(file = %name, %error, "cannot read a kubeconfig file");
                continue;
            }
        };
        let file = match known.filter(|file| file.content == content) {
            Some(file) => Arc::clone(file),
            None => Arc::new(parse(&name, stamp, content)),
        };
        files.insert(name, file);
    }
    Ok(files)
}

fn parse(name: &str, stamp: Stamp, content: Arc<str>) -> File {
    let config = Kubeconfig::from_yaml(&content);
    let config = config.map_err(|error| tracing::warn!(file = %name, %error, "not a kubeconfig")).ok();
    File { stamp, content, config }
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
        let env = env_of(&*engager);
        loop {
            match stop.run_until_cancelled(self.update(&env, &engager)).await {
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
