//! Terminating claims, volumes and volume attributes classes: a finalizer keeps them while they are in use,
//! and is removed when they are not.
//!
//! The server adds the finalizer on creation. "In use" has the same meaning as in the Kubernetes controllers.

use std::{collections::HashSet, fmt, time::Duration};

use k1s_runtime::{
    Action, BoxError, Context, Kind, Manager, ObjectKey, Reconciler,
    client::{KindClient, ListOptions, Patch},
    controller::{BuildError, Builder},
};
use kube::api::DynamicObject;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    feed::{Feed, Interest, Signal},
    gc::is_missing,
    meta::{Meta, Resource},
};

/// Resync interval: the end of a use is observed as an event, unless that was missed.
const RESYNC: Duration = Duration::from_secs(60);
/// Number of objects per list page.
const PAGE: u32 = 500;

/// The protected kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Claim,
    Volume,
    Class,
}

impl What {
    const ALL: [What; 3] = [What::Claim, What::Volume, What::Class];

    fn of(resource: &Resource) -> Option<What> {
        What::ALL.into_iter().find(|what| {
            let (group, plural) = what.resource();
            resource.is(group, plural)
        })
    }

    /// Its group and plural.
    fn resource(self) -> (&'static str, &'static str) {
        match self {
            What::Claim => ("", "persistentvolumeclaims"),
            What::Volume => ("", "persistentvolumes"),
            What::Class => ("storage.k8s.io", "volumeattributesclasses"),
        }
    }

    fn finalizer(self) -> &'static str {
        match self {
            What::Claim => "kubernetes.io/pvc-protection",
            What::Volume => "kubernetes.io/pv-protection",
            What::Class => "kubernetes.io/vac-protection",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(What, ObjectKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.0, self.1)
    }
}

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed) -> Result<(), BuildError> {
    let controller = Builder::<Key>::new(manager)
        .named("volume-protection")
        .watches_raw_source(feed.source())
        .build(Protection { feed: feed.clone() })?;
    let queue = controller.queue().clone();
    feed.want(What::ALL.map(|what| {
        let (group, plural) = what.resource();
        Interest::all(group, plural)
    }));
    feed.want([Interest::all("", "pods")]);
    let waiting: Mutex<HashSet<Key>> = Mutex::default();
    feed.listen(move |signal| {
        let mut waiting = waiting.lock();
        let (resource, meta, deleted) = match signal {
            Signal::Begin { reset, .. } => {
                if *reset {
                    waiting.clear();
                }
                return;
            }
            Signal::End => return,
            Signal::Stored(resource, meta) => (resource, meta, false),
            Signal::Deleted(resource, meta) => (resource, meta, true),
        };
        if let Some(what) = What::of(resource) {
            let key = Key(what, ObjectKey::new(Some(&meta.namespace), &meta.name));
            if !deleted && is_candidate(meta, what) {
                waiting.insert(key.clone());
                queue.add(key);
            } else {
                waiting.remove(&key);
            }
        }
        // Candidates that the changed or deleted object may have used.
        let may_be_free = |key: &&Key| match key.0 {
            What::Claim => resource.is("", "pods") && key.1.namespace() == Some(&*meta.namespace),
            What::Volume => false,
            What::Class => matches!(What::of(resource), Some(What::Claim | What::Volume)),
        };
        for key in waiting.iter().filter(may_be_free) {
            queue.add(key.clone());
        }
    });
    Ok(())
}

fn is_candidate(meta: &Meta, what: What) -> bool {
    meta.is_deleting() && meta.has_finalizer(what.finalizer())
}

struct Protection {
    feed: Feed,
}

impl Reconciler<Key> for Protection {
    type Error = BoxError;

    async fn reconcile(&self, key: Key, _: Context) -> Result<Action, BoxError> {
        let Key(what, key) = key;
        let (group, plural) = what.resource();
        let Some(objects) = self.objects(group, plural).await? else { return Ok(Action::done()) };
        let Some(object) = objects.live().get_opt(&key).await? else { return Ok(Action::done()) };
        if !is_candidate(&Meta::from(&object.metadata), what) {
            return Ok(Action::done());
        }
        if self.is_used(what, &object).await? {
            return Ok(Action::requeue_after(RESYNC));
        }
        let metadata = &object.metadata;
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != what.finalizer());
        let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
        let patch = json!({"metadata": {
            "uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": finalizers,
        }});
        match objects.patch(&key, Patch::merge(&patch)).await {
            Ok(_) => Ok(Action::done()),
            Err(error) if is_missing(&error, key.name()) => Ok(Action::done()),
            // It was changed concurrently.
            Err(error) if error.is_conflict() => Ok(Action::requeue_with_backoff()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Protection {
    /// Objects of a kind, if it is served.
    async fn objects(
        &self,
        group: &str,
        plural: &str,
    ) -> Result<Option<KindClient<DynamicObject>>, BoxError> {
        let served = self.feed.kinds().of_resource(&Resource::new(group, plural)).await?;
        Ok(served.map(|served| self.feed.client().kind(Kind::<DynamicObject>::dynamic(served.api.clone()))))
    }

    async fn is_used(&self, what: What, object: &DynamicObject) -> Result<bool, BoxError> {
        match what {
            What::Claim => {
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                let pods = ListOptions::in_namespace(namespace);
                self.any("pods", pods, |pod| uses_claim(pod, object)).await
            }
            What::Volume => Ok(object.data["status"]["phase"] == "Bound"),
            What::Class => {
                let class = object.metadata.name.as_deref().unwrap_or_default();
                let all = ListOptions::default;
                Ok(self.any("persistentvolumes", all(), |volume| uses_class(volume, class)).await?
                    || self.any("persistentvolumeclaims", all(), |claim| uses_class(claim, class)).await?)
            }
        }
    }

    async fn any(
        &self,
        plural: &str,
        options: ListOptions,
        uses: impl Fn(&DynamicObject) -> bool,
    ) -> Result<bool, BoxError> {
        let Some(objects) = self.objects("", plural).await? else { return Ok(false) };
        let found = objects.live().pages(options.limit(PAGE)).collect().await?;
        Ok(found.iter().any(uses))
    }
}

/// Whether a pod uses a claim. An unscheduled pod does not: it cannot start with a terminating claim.
fn uses_claim(pod: &DynamicObject, claim: &DynamicObject) -> bool {
    let spec = &pod.data["spec"];
    if spec["nodeName"].as_str().is_none_or(str::is_empty) {
        return false;
    }
    let (pod_name, claim_name) = (pod.metadata.name.as_deref(), claim.metadata.name.as_deref());
    // The kubelet is done with it, and only finalizers keep it.
    let is_shut_down =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    let is_made_for_pod = claim
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == pod.metadata.uid.as_ref());
    spec["volumes"].as_array().into_iter().flatten().any(|volume| {
        let named = volume["persistentVolumeClaim"]["claimName"].as_str();
        if named.is_some() && named == claim_name {
            return true;
        }
        let of_volume = || {
            let volume = volume["name"].as_str().unwrap_or_default();
            format!("{}-{volume}", pod_name.unwrap_or_default())
        };
        !is_shut_down
            && volume["ephemeral"].is_object()
            && is_made_for_pod
            && claim_name == Some(of_volume().as_str())
    })
}

/// Whether a claim or a volume names a class, as its current or its desired one.
fn uses_class(object: &DynamicObject, class: &str) -> bool {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    [
        &spec["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ]
    .into_iter()
    .any(|name| name == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_claim_is_used_by_pods_that_have_a_node() {
        let claim = object(json!({"metadata": {"name": "c"}}));
        let pod = |node: &str, claim: &str| {
            object(json!({"metadata": {"name": "p", "uid": "1"}, "spec": {"nodeName": node, "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": claim}}, {"name": "e", "emptyDir": {}},
            ]}}))
        };
        assert!(uses_claim(&pod("n", "c"), &claim));
        assert!(!uses_claim(&pod("", "c"), &claim));
        assert!(!uses_claim(&pod("n", "d"), &claim));
    }

    #[test]
    fn a_claim_of_an_ephemeral_volume_is_used_until_the_pod_is_shut_down() {
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true}]);
        let claim = object(json!({"metadata": {"name": "p-v", "ownerReferences": owner}}));
        let mut pod = json!({"metadata": {"name": "p", "uid": "1"},
            "spec": {"nodeName": "n", "volumes": [{"name": "v", "ephemeral": {}}]}});
        assert!(uses_claim(&object(pod.clone()), &claim));
        let another = object(json!({"metadata": {"name": "p-v"}}));
        assert!(!uses_claim(&object(pod.clone()), &another), "not owned by the pod");
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert!(!uses_claim(&object(pod), &claim));
    }

    #[test]
    fn a_class_is_used_as_current_or_desired_class() {
        for (place, used) in [
            (json!({"spec": {"volumeAttributesClassName": "gold"}}), true),
            (json!({"status": {"currentVolumeAttributesClassName": "gold"}}), true),
            (json!({"status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}}), true),
            (json!({"spec": {"volumeAttributesClassName": "silver"}, "status": {}}), false),
            (json!({}), false),
        ] {
            let mut claim = place.clone();
            claim["metadata"] = json!({"name": "c"});
            assert_eq!(uses_class(&object(claim), "gold"), used, "{place}");
        }
    }
}
