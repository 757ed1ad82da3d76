//! Objects of a kind that stand for clusters: Secrets, Namespaces, Projects. A controller of the host manager follows them.

use std::{fmt, sync::Arc};

use k1s_runtime::{
    Action, BoxError, Cluster, ClusterName, ClusterOptions, Context, ControllerOptions, Handler, Kind,
    Object, Request,
    controller::{self, BuildError},
    source,
};
use tokio_util::sync::CancellationToken;

use super::known::Known;
use crate::{Engager, ProviderError};

/// Number of clusters that are connected to at once.
const CONCURRENT: usize = 16;

/// Objects that stand for clusters, one each, of the same name.
#[async_trait::async_trait]
pub(super) trait ObjectClusters: Send + Sync + 'static {
    type Object: Object;

    /// The name of the controller, in metrics and logs.
    fn controller(&self) -> String;

    fn kind(&self) -> Kind<Self::Object>;

    /// Where the objects are; `None` is the host cluster.
    fn watched(&self, host: &Cluster, options: ClusterOptions) -> Option<Cluster>;

    /// What the cluster depends on: it is engaged anew if this changes. `None` if there is no cluster, or not yet.
    fn fingerprint(&self, object: &Self::Object) -> Option<Vec<u8>>;

    async fn connect(
        &self,
        name: ClusterName,
        object: &Self::Object,
        watched: &Cluster,
        options: ClusterOptions,
    ) -> Result<Cluster, BoxError>;
}

/// Engages and disengages clusters as their objects come, change and go.
pub(super) struct Objects<T> {
    of: T,
    known: Known<Vec<u8>>,
}

impl<T: ObjectClusters> Objects<T> {
    pub(super) fn new(of: T) -> Objects<T> {
        Objects { of, known: Known::new() }
    }

    pub(super) fn of(&self) -> &T {
        &self.of
    }

    pub(super) fn of_mut(&mut self) -> &mut T {
        &mut self.of
    }

    pub(super) fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.known.get(name)
    }

    pub(super) async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        let Some(host) = engager.host() else { return Ok(()) };
        let own = self.of.watched(host.cluster(), engager.cluster_options());
        let watched = own.clone().unwrap_or_else(|| host.cluster().clone());
        let options = ControllerOptions {
            needs_leader_election: Some(false),
            ..ControllerOptions::concurrent(CONCURRENT)
        };
        // Several providers of the same kind have different names.
        for number in 1.. {
            let (this, engager, of) = (Arc::clone(&self), Arc::clone(&engager), watched.clone());
            let reconcile = move |request: Request, _: Context| {
                let (this, engager, of) = (Arc::clone(&this), Arc::clone(&engager), of.clone());
                async move { this.reconcile(&request, &of, &engager).await }
            };
            let mut source = watched.source(source::kind(self.of.kind(), Handler::for_object()));
            if own.is_some() {
                source = source.with_catch_up();
            }
            let name = self.of.controller();
            let name = if number == 1 { name } else { format!("{name}-{number}") };
            let builder = controller::Builder::<Request>::new(&host)
                .named(name)
                .with_options(options.clone())
                .watches_raw_source(source);
            match builder.complete(reconcile) {
                Err(BuildError::NameTaken(_)) => {}
                built => {
                    built?;
                    break;
                }
            }
        }
        drop(host);
        // From here on the controller's queue tells whether there is something left to do.
        engager.synced();
        stop.cancelled().await;
        if let Some(own) = own {
            own.cache().stop().await;
        }
        Ok(())
    }

    async fn reconcile(
        &self,
        key: &Request,
        watched: &Cluster,
        engager: &Arc<dyn Engager>,
    ) -> Result<Action, BoxError> {
        let name = ClusterName::new(key.name());
        let object = watched.client().kind(self.of.kind()).get_opt(key).await?;
        let wanted = object.and_then(|object| Some((self.of.fingerprint(&object)?, object)));
        let Some((fingerprint, object)) = wanted else {
            self.known.disengage(engager, &name);
            return Ok(Action::done());
        };
        if self.known.is_current(&name, &fingerprint) {
            return Ok(Action::done());
        }
        let cluster = self.of.connect(name, &object, watched, engager.cluster_options()).await?;
        self.known.engage(&**engager, fingerprint, cluster);
        Ok(Action::done())
    }
}

impl<T: ObjectClusters> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of.controller())
    }
}

/// Implements [`Provider`](crate::Provider) by [`Objects`].
macro_rules! provider_of_objects {
    ($provider:ty, $name:expr) => {
        #[async_trait::async_trait]
        impl crate::Provider for $provider {
            fn name(&self) -> String {
                let name: fn(&$provider) -> String = $name;
                name(self)
            }

            async fn get(
                &self,
                name: &k1s_runtime::ClusterName,
            ) -> Result<k1s_runtime::Cluster, crate::ProviderError> {
                self.objects.get(name)
            }

            async fn run(
                self: std::sync::Arc<Self>,
                engager: std::sync::Arc<dyn crate::Engager>,
                stop: tokio_util::sync::CancellationToken,
            ) -> Result<(), k1s_runtime::BoxError> {
                std::sync::Arc::clone(&self.objects).run(engager, stop).await
            }
        }
    };
}

pub(super) use provider_of_objects;
