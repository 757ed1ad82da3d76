//! Terminating namespaces: deletes their contents, and finalizes them when nothing is left. Pods are deleted
//! first, and everything else once they are gone: a terminating pod may still use network policies or
//! secrets.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use jiff::Timestamp;
use k1s_runtime::{
    Action, BoxError, Context, Manager, ObjectKey, Reconciler, Request,
    controller::{BuildError, Builder, ControllerOptions},
};
use k8s_openapi::{
    api::core::v1::{Namespace, NamespaceCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use parking_lot::Mutex;

use crate::{
    contents::{self, Cleared, Found},
    feed::{Feed, Interest, Signal},
};

/// The finalizer that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";
/// Maximum number of distinct errors reported in a condition.
const MAX_ERRORS: usize = 10;

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed) -> Result<(), BuildError> {
    let controller = Builder::<Request>::new(manager)
        .named("namespace")
        .with_options(ControllerOptions::concurrent(4))
        .watches_raw_source(feed.source())
        .build(Namespaces { feed: feed.clone() })?;
    let queue = controller.queue().clone();
    feed.want([Interest::all("", "namespaces")]);
    let terminating: Mutex<HashSet<Box<str>>> = Mutex::default();
    feed.listen(move |signal| match signal {
        Signal::Stored(resource, meta) if resource.is("", "namespaces") && meta.is_deleting() => {
            terminating.lock().insert(meta.name.clone());
            queue.add(ObjectKey::cluster(&*meta.name));
        }
        Signal::Deleted(resource, meta) if resource.is("", "namespaces") => {
            terminating.lock().remove(&meta.name);
        }
        // An object in a terminating namespace was deleted.
        Signal::Deleted(_, meta) if terminating.lock().contains(&meta.namespace) => {
            queue.add(ObjectKey::cluster(&*meta.namespace));
        }
        _ => {}
    });
    Ok(())
}

struct Namespaces {
    feed: Feed,
}

impl Reconciler for Namespaces {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        contents::again_if_moved(self.clear(&request).await)
    }
}

impl Namespaces {
    async fn clear(&self, request: &Request) -> Result<Action, BoxError> {
        let client = self.feed.client();
        let Some(mut namespace) = client.live().get_opt::<Namespace>(request).await? else {
            return Ok(Action::done());
        };
        let held = |namespace: &Namespace| {
            let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
            finalizers.is_some_and(|list| list.iter().any(|one| one == FINALIZER))
        };
        if namespace.metadata.deletion_timestamp.is_none() || !held(&namespace) {
            return Ok(Action::done());
        }
        let cleared = match contents::in_namespace(&self.feed, request.name()).await {
            Ok(contents) => {
                let (failed, undiscovered) = (contents.failed, contents.undiscovered);
                let cleared = self.empty(contents.found).await;
                cleared.map(|mut cleared| {
                    cleared.failed.extend(failed);
                    (cleared, undiscovered_groups(&undiscovered))
                })
            }
            Err(error) => Err(error),
        };
        let (mut cleared, undiscovered) = match cleared {
            Ok(cleared) => cleared,
            Err(error) => (Cleared::default(), Some(error)),
        };
        if let Some(moved) = cleared.take_moved() {
            return Err(moved);
        }
        if cleared.remains.is_empty() && cleared.failed.is_empty() && undiscovered.is_none() {
            if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
                finalizers.retain(|one| one != FINALIZER);
            }
            let outcome = client.sub_resource::<Namespace>("finalize").update(&namespace).await;
            settled(outcome.map(drop))?;
            return Ok(Action::done());
        }
        let status = namespace.status.get_or_insert_default();
        let now = Timestamp::try_from(self.feed.env().wall())?;
        let before = status.conditions.as_deref().unwrap_or_default();
        let conditions = conditions(&cleared, undiscovered.as_ref(), before, now);
        if status.conditions.as_ref() != Some(&conditions) {
            status.conditions = Some(conditions);
            settled(client.status::<Namespace>().update(&namespace).await.map(drop))?;
        }
        if let Some(error) = undiscovered.or_else(|| cleared.failed.into_iter().next()) {
            return Err(error);
        }
        // Deletions of the remaining objects are observed as events; this is for servers where they may not
        // be.
        let all_deletions_observed = self.feed.is_k1s() == Some(true);
        Ok(Action::requeue_after(Duration::from_secs(if all_deletions_observed { 60 } else { 5 })))
    }
}

impl Namespaces {
    /// Deletes the pods and, if none is left, everything else.
    async fn empty(&self, found: Vec<Found>) -> Result<Cleared, BoxError> {
        let (pods, others) = found.into_iter().partition(Found::is_pod);
        let cleared = contents::clear(&self.feed, pods).await;
        if !cleared.remains.is_empty() || !cleared.failed.is_empty() {
            return Ok(cleared);
        }
        Ok(contents::clear(&self.feed, others).await)
    }
}

/// Why the resources of some group versions are not known, in the words of Kubernetes; `None` if all are.
fn undiscovered_groups(groups: &[(String, String)]) -> Option<BoxError> {
    let each: Vec<String> = groups.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let message = format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        groups.len(),
        each.join(", ")
    );
    (!groups.is_empty()).then(|| message.into())
}

/// Treats an object that does not exist as success.
fn settled(outcome: Result<(), k1s_runtime::client::Error>) -> Result<(), BoxError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The conditions that explain why a namespace still exists.
fn conditions(
    cleared: &Cleared,
    undiscovered: Option<&BoxError>,
    before: &[NamespaceCondition],
    now: Timestamp,
) -> Vec<NamespaceCondition> {
    let remains = &cleared.remains;
    fn count<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
        let mut counts = BTreeMap::new();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
    let resources = count(remains.iter().map(|remain| &*remain.resource));
    let finalizers = count(remains.iter().flat_map(|remain| remain.finalizers.iter().map(String::as_str)));
    let join = |counts: &BTreeMap<&str, usize>, word: &str| {
        let each = counts.iter().map(|(name, count)| format!("{name} {word} {count} resource instances"));
        each.collect::<Vec<_>>().join(", ")
    };
    let waiting = !finalizers.is_empty();
    let fine = |name, reason, message: &str| (name, false, reason, message.to_owned());
    let all = [
        match undiscovered {
            Some(error) => ("NamespaceDeletionDiscoveryFailure", true, "DiscoveryFailed", error.to_string()),
            None => fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
        },
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        match cleared.failed.is_empty() {
            true => fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            false => (
                "NamespaceDeletionContentFailure",
                true,
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {}", together(&cleared.failed)),
            ),
        },
        match remains.is_empty() {
            true => fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
            false => (
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", join(&resources, "has")),
            ),
        },
        match waiting {
            true => (
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    join(&finalizers, "in")
                ),
            ),
            false => fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        },
    ];
    let make = |(name, status, reason, message): (&str, bool, &str, String)| {
        let status = if status { "True" } else { "False" };
        let known = before.iter().find(|one| one.type_ == name && one.status == status);
        let since = known.and_then(|one| one.last_transition_time.clone());
        NamespaceCondition {
            type_: name.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since.unwrap_or(Time(now))),
            reason: Some(reason.to_owned()),
            message: Some(message),
        }
    };
    all.into_iter().map(make).collect()
}

/// The number of failures, and their messages.
fn together(failed: &[BoxError]) -> String {
    let mut texts: Vec<String> = failed.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    texts.truncate(MAX_ERRORS);
    format!("{} remaining: {}", failed.len(), texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Remains;

    #[test]
    fn conditions_count_what_is_left_and_keep_the_time_of_their_last_change() {
        let remains = [("pods.", vec!["a/b", "c"]), ("pods.", vec!["c"]), ("deployments.apps", vec![])].map(
            |(resource, finalizers): (&str, Vec<&str>)| Remains {
                resource: resource.to_owned(),
                finalizers: finalizers.into_iter().map(str::to_owned).collect(),
            },
        );
        let at = |second| Timestamp::from_second(second).unwrap();
        let cleared = |remains: &[Remains]| Cleared { remains: remains.to_vec(), ..Cleared::default() };
        let first = conditions(&cleared(&remains), None, &[], at(1));
        let text =
            |conditions: &[NamespaceCondition], place: usize| conditions[place].message.clone().unwrap();
        assert_eq!(
            text(&first, 3),
            "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances"
        );
        assert_eq!(
            text(&first, 4),
            "Some content in the namespace has finalizers remaining: a/b in 1 resource instances, c in 2 resource instances"
        );
        let second = conditions(&cleared(&remains[2..]), None, &first, at(2));
        let since = |conditions: &[NamespaceCondition], place: usize| {
            conditions[place].last_transition_time.as_ref().unwrap().0.as_second()
        };
        assert_eq!((since(&second, 3), since(&second, 4)), (1, 2));
        assert_eq!(second[4].reason.as_deref(), Some("ContentHasNoFinalizers"));
    }

    #[test]
    fn conditions_report_failures() {
        let cleared = Cleared { remains: Vec::new(), failed: vec!["no".into(), "no".into(), "never".into()] };
        let at = Timestamp::from_second(1).unwrap();
        let conditions = conditions(&cleared, Some(&"unknown".into()), &[], at);
        let shown: Vec<(&str, &str, &str)> = conditions
            .iter()
            .map(|one| (&*one.status, one.reason.as_deref().unwrap(), one.message.as_deref().unwrap()))
            .collect();
        assert_eq!(shown[0], ("True", "DiscoveryFailed", "unknown"));
        let failed = "Failed to delete all resource types, 3 remaining: never, no";
        assert_eq!(shown[2], ("True", "ContentDeletionFailed", failed));
        assert_eq!(shown[3], ("False", "ContentRemoved", "All content successfully removed"));
    }
}
