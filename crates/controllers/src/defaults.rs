//! The default objects of every namespace: a service account, and the CA certificate of the server.

use std::{collections::BTreeMap, sync::Arc};

use k1s_runtime::{
    Action, Context, Manager, ObjectKey, Reconciler, Request,
    client::{Client, Error, ignore_already_exists},
    controller::{BuildError, Builder},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::feed::{Feed, Interest, Signal};

const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";

/// Adds the controller. Without a certificate authority it only maintains the service accounts.
pub(crate) fn add(manager: &Manager, feed: &Feed, root_ca: Option<Arc<str>>) -> Result<(), BuildError> {
    let with_authority = root_ca.is_some();
    let controller = Builder::<Request>::new(manager)
        .named("namespace-defaults")
        .watches_raw_source(feed.source())
        .build(Defaults { client: feed.client().clone(), root_ca })?;
    let queue = controller.queue().clone();
    feed.want([Interest::all("", "namespaces"), Interest::named("", "serviceaccounts", ACCOUNT)]);
    if with_authority {
        feed.want([Interest::named("", "configmaps", AUTHORITY)]);
    }
    feed.listen(move |signal| match signal {
        Signal::Stored(resource, meta) if resource.is("", "namespaces") && !meta.is_deleting() => {
            queue.add(ObjectKey::cluster(&*meta.name));
        }
        Signal::Stored(resource, meta) | Signal::Deleted(resource, meta)
            if with_authority && resource.is("", "configmaps") && *meta.name == *AUTHORITY =>
        {
            queue.add(ObjectKey::cluster(&*meta.namespace));
        }
        Signal::Deleted(resource, meta) if resource.is("", "serviceaccounts") && *meta.name == *ACCOUNT => {
            queue.add(ObjectKey::cluster(&*meta.namespace));
        }
        _ => {}
    });
    Ok(())
}

struct Defaults {
    client: Client,
    root_ca: Option<Arc<str>>,
}

impl Reconciler for Defaults {
    type Error = Error;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, Error> {
        let namespace = request.name();
        let live = self.client.live();
        let there = live.get_opt::<Namespace>(&request).await?;
        if there.is_none_or(|there| there.metadata.deletion_timestamp.is_some()) {
            return Ok(Action::done());
        }
        let named = |name: &str| ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        if live.get_opt::<ServiceAccount>(&ObjectKey::namespaced(namespace, ACCOUNT)).await?.is_none() {
            let account = ServiceAccount { metadata: named(ACCOUNT), ..ServiceAccount::default() };
            self.make(namespace, &account).await?;
        }
        let Some(root_ca) = &self.root_ca else { return Ok(Action::done()) };
        let data = BTreeMap::from([("ca.crt".to_owned(), root_ca.to_string())]);
        match live.get_opt::<ConfigMap>(&ObjectKey::namespaced(namespace, AUTHORITY)).await? {
            None => {
                let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                            endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                            guaranteed across distributions of Kubernetes clusters.";
                let annotations = BTreeMap::from([("kubernetes.io/description".to_owned(), note.to_owned())]);
                let metadata = ObjectMeta { annotations: Some(annotations), ..named(AUTHORITY) };
                let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
                self.make(namespace, &map).await?;
            }
            Some(map) if map.data.as_ref() == Some(&data) && map.binary_data.is_none() => {}
            Some(mut map) => {
                map.data = Some(data);
                map.binary_data = None;
                self.client.update(&map).await?;
            }
        }
        Ok(Action::done())
    }
}

impl Defaults {
    /// Creates an object, unless the namespace is terminating.
    async fn make<K>(&self, namespace: &str, object: &K) -> Result<(), Error>
    where
        K: k1s_runtime::Object<DynamicType: Default>,
    {
        let Err(error) = ignore_already_exists(self.client.create(object).await) else { return Ok(()) };
        let there = self.client.live().get_opt::<Namespace>(&ObjectKey::cluster(namespace)).await?;
        let going = there.is_none_or(|there| there.metadata.deletion_timestamp.is_some());
        if going { Ok(()) } else { Err(error) }
    }
}
