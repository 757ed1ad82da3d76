//! A cache alone, in its own process: the time until it is synced, and its memory.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s_env::Env;
use k1s_runtime::{Cache, CacheOptions, InformerOptions, Kind, Object, kind, metadata};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::PostParams,
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::operator;
use crate::{
    Failure,
    server::{objects, process::resident_bytes},
};

#[derive(Args)]
pub(crate) struct Options {
    #[arg(value_enum)]
    form: Form,
    #[arg(value_enum)]
    what: What,
    #[arg(long)]
    kubeconfig: PathBuf,
    #[arg(long)]
    objects: u64,
}

/// How objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// In a k1s cache, decoded.
    Typed,
    /// In a k1s cache, encoded.
    Lean,
    /// In a k1s cache, metadata alone.
    Metadata,
    /// In the store of kube-rs' reflector, decoded.
    KubeRs,
}

impl Form {
    pub(crate) const ALL: [Form; 4] = [Form::Typed, Form::Lean, Form::Metadata, Form::KubeRs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Typed => "typed",
            Form::Lean => "lean",
            Form::Metadata => "metadata",
            Form::KubeRs => "kube-rs",
        }
    }
}

/// Which objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Deployment,
    Configmap,
}

impl What {
    pub(crate) const ALL: [What; 2] = [What::Deployment, What::Configmap];

    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Deployment => "deployment",
            What::Configmap => "configmap",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) seconds: f64,
    /// For each object.
    pub(crate) bytes: f64,
}

/// Makes objects of a kind. Gives the length of their JSON, as the server lists it.
pub(crate) async fn fill(client: &kube::Client, what: What, count: u64) -> Result<f64, Failure> {
    let bodies = objects::ConfigMaps::new();
    let bodies = &bodies;
    match what {
        What::Deployment => create::<Deployment>(client, count, |name, _| objects::deployment(name)).await,
        What::Configmap => create::<ConfigMap>(client, count, |name, number| bodies.get(name, number)).await,
    }
}

async fn create<K>(
    client: &kube::Client,
    count: u64,
    body: impl Fn(&str, u64) -> String,
) -> Result<f64, Failure>
where
    K: Object<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(client.clone(), super::widget::NAMESPACE);
    let made = stream::iter(0..count).map(|number| {
        let object: Result<K, _> = serde_json::from_str(&body(&objects::name("kept", number), number));
        let api = api.clone();
        async move {
            let made = api.create(&PostParams::default(), &object?).await?;
            Ok::<usize, Failure>(serde_json::to_vec(&made)?.len())
        }
    });
    let sizes: Vec<usize> = made.buffer_unordered(32).try_collect().await?;
    Ok(sizes.iter().sum::<usize>() as f64 / count as f64)
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.what {
        What::Deployment => run_kind(options, kind::<Deployment>(), metadata::<Deployment>()).await,
        What::Configmap => run_kind(options, kind::<ConfigMap>(), metadata::<ConfigMap>()).await,
    }
}

async fn run_kind<K>(
    options: Options,
    full: Kind<K>,
    metadata: Kind<kube::core::PartialObjectMeta<K>>,
) -> Result<(), Failure>
where
    K: Object<DynamicType = ()> + DeserializeOwned,
{
    let env = Env::system();
    let client = operator::client(&env, Some(&options.kubeconfig)).await?;
    // Connections are not part of the measurement.
    client.apiserver_version().await?;
    let before = resident_bytes(std::process::id())?;
    let began = env.now();
    let count = options.objects;
    let lean = InformerOptions { lean: true, ..InformerOptions::default() };
    let (held, there): (Box<dyn std::any::Any>, usize) = match options.form {
        Form::Typed => informer(&env, client, CacheOptions::default(), &full).await?,
        Form::Lean => informer(&env, client, CacheOptions::default().by_object(&full, lean), &full).await?,
        Form::Metadata => informer(&env, client, CacheOptions::default(), &metadata).await?,
        Form::KubeRs => {
            let (store, writer) = reflector::store::<K>();
            let changes = watcher(Api::<K>::all(client), watcher::Config::default()).reflect(writer);
            let following =
                env.spawn("reflector", changes.applied_objects().for_each(|_| std::future::ready(())));
            store.wait_until_ready().await?;
            let there = store.len();
            (Box::new((store, following)), there)
        }
    };
    let seconds = (env.now() - began).as_secs_f64();
    if (there as u64) < count {
        return Err(Failure(format!("{there} objects are in the cache instead of {count}")));
    }
    // Lets background work finish.
    env.sleep(Duration::from_millis(500)).await;
    let grown = resident_bytes(std::process::id())?.saturating_sub(before);
    drop(held);
    operator::say(&Answer { seconds, bytes: grown as f64 / count as f64 })
}

async fn informer<K: Object>(
    env: &Env,
    client: kube::Client,
    options: CacheOptions,
    kind: &Kind<K>,
) -> Result<(Box<dyn std::any::Any>, usize), Failure> {
    let cache = Cache::new(env, client, options);
    let informer = cache.informer(kind)?;
    informer.synced().await;
    let there = informer.len();
    Ok((Box::new((cache, informer)), there))
}
