//! Terminating custom resource definitions: deletes their objects first.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k1s_runtime::{
    Action, BoxError, Context, Kind, Manager, ObjectKey, Reconciler, Request,
    client::{KindClient, Patch},
    controller::{BuildError, Builder},
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    contents,
    feed::{Feed, Interest, Signal},
    meta::Resource,
};

/// The finalizer that keeps a definition until its objects are deleted.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed) -> Result<(), BuildError> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let kind = Kind::dynamic(ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions"));
    let definitions = feed.client().kind(kind);
    let controller = Builder::<Request>::new(manager)
        .named("customresourcedefinition")
        .watches_raw_source(feed.source())
        .build(Definitions { feed: feed.clone(), definitions })?;
    let queue = controller.queue().clone();
    feed.want([Interest::all("apiextensions.k8s.io", "customresourcedefinitions")]);
    // Terminating definitions by the resource they define.
    let terminating: Mutex<HashMap<Resource, Arc<str>>> = Mutex::default();
    feed.listen(move |signal| match signal {
        Signal::Stored(resource, meta)
            if resource.is_definition() && meta.is_deleting() && meta.has_finalizer(FINALIZER) =>
        {
            let name: Arc<str> = (*meta.name).into();
            terminating.lock().insert(defined(&meta.name), Arc::clone(&name));
            queue.add(ObjectKey::cluster(name));
        }
        Signal::Deleted(resource, meta) if resource.is_definition() => {
            terminating.lock().remove(&defined(&meta.name));
        }
        Signal::Deleted(resource, _) => {
            if let Some(name) = terminating.lock().get(*resource) {
                queue.add(ObjectKey::cluster(Arc::clone(name)));
            }
        }
        _ => {}
    });
    Ok(())
}

/// The resource that a definition of this name defines: the name is `<plural>.<group>`.
fn defined(name: &str) -> Resource {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    Resource::new(group, plural)
}

struct Definitions {
    feed: Feed,
    definitions: KindClient<DynamicObject>,
}

impl Reconciler for Definitions {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        contents::again_if_moved(self.clear(&request).await)
    }
}

impl Definitions {
    async fn clear(&self, request: &Request) -> Result<Action, BoxError> {
        let Some(definition) = self.definitions.live().get_opt(request).await? else {
            return Ok(Action::done());
        };
        let metadata = &definition.metadata;
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        if metadata.deletion_timestamp.is_none() || !finalizers.iter().any(|one| one == FINALIZER) {
            return Ok(Action::done());
        }
        let resource = defined(request.name());
        let mut version = metadata.resource_version.clone().unwrap_or_default();
        let condition = match self.feed.kinds().of_resource(&resource).await? {
            None => ("False", "NeverEstablished", "resource was never established"),
            Some(served) => {
                let begun = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
                version = self.set_condition(request, &definition, &version, begun).await?;
                let found = contents::of_kind(&self.feed, &resource, served).await?;
                if !contents::clear(&self.feed, found).await.remains()?.is_empty() {
                    let all_deletions_observed = self.feed.is_k1s() == Some(true);
                    return Ok(Action::requeue_after(Duration::from_secs(if all_deletions_observed {
                        60
                    } else {
                        5
                    })));
                }
                ("False", "InstanceDeletionCompleted", "removed all instances")
            }
        };
        let version = self.set_condition(request, &definition, &version, condition).await?;
        finalizers.retain(|one| one != FINALIZER);
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        self.definitions.patch(request, Patch::merge(&patch)).await?;
        Ok(Action::done())
    }

    /// Sets the condition `Terminating`, and returns the new resource version.
    async fn set_condition(
        &self,
        request: &Request,
        definition: &DynamicObject,
        version: &str,
        (status, reason, message): (&str, &str, &str),
    ) -> Result<String, BoxError> {
        let mut conditions = definition.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let known = conditions.iter_mut().find(|one| one["type"] == "Terminating");
        if known.as_ref().is_some_and(|known| known["status"] == status && known["reason"] == reason) {
            return Ok(version.to_owned());
        }
        let now = Timestamp::try_from(self.feed.env().wall())?;
        let mut new = json!({
            "type": "Terminating", "status": status,
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "reason": reason, "message": message,
        });
        match known {
            Some(known) => {
                if known["status"] == status {
                    new["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                *known = new;
            }
            None => conditions.push(new),
        }
        let patch = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": Value::Array(conditions)}});
        let stored = self.definitions.status().patch(request, Patch::merge(&patch)).await?;
        Ok(stored.metadata.resource_version.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_named_after_the_resource_it_defines() {
        assert_eq!(defined("widgets.example.com"), Resource::new("example.com", "widgets"));
    }
}
