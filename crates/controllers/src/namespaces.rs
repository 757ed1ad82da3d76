//! Namespaces that are being deleted: emptied, and let go when nothing is left.

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
    contents::{self, Remains},
    feed::{Feed, Interest, Signal},
};

/// What holds a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

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
        // One less in it.
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
        let found = contents::in_namespace(&self.feed, request.name()).await?;
        let remains = contents::clear(&self.feed, found).await?;
        if remains.is_empty() {
            if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
                finalizers.retain(|one| one != FINALIZER);
            }
            let outcome = client.sub_resource::<Namespace>("finalize").update(&namespace).await;
            settled(outcome.map(drop))?;
            return Ok(Action::done());
        }
        let status = namespace.status.get_or_insert_default();
        let now = Timestamp::try_from(self.feed.env().wall())?;
        let conditions = conditions(&remains, status.conditions.as_deref().unwrap_or_default(), now);
        if status.conditions.as_ref() != Some(&conditions) {
            status.conditions = Some(conditions);
            settled(client.status::<Namespace>().update(&namespace).await.map(drop))?;
        }
        // The end of what is left is heard of; this is for ends that are not.
        let every_end_is_heard = self.feed.is_k1s() == Some(true);
        Ok(Action::requeue_after(Duration::from_secs(if every_end_is_heard { 60 } else { 5 })))
    }
}

/// One that is gone is fine.
fn settled(outcome: Result<(), k1s_runtime::client::Error>) -> Result<(), BoxError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The conditions that tell why a namespace is still there.
fn conditions(remains: &[Remains], before: &[NamespaceCondition], now: Timestamp) -> Vec<NamespaceCondition> {
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
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        fine(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            true,
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", join(&resources, "has")),
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_count_what_is_left_and_keep_the_time_of_their_last_change() {
        let remains = [("pods.", vec!["a/b", "c"]), ("pods.", vec!["c"]), ("deployments.apps", vec![])].map(
            |(resource, finalizers): (&str, Vec<&str>)| Remains {
                resource: resource.to_owned(),
                finalizers: finalizers.into_iter().map(str::to_owned).collect(),
            },
        );
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = conditions(&remains, &[], at(1));
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
        let second = conditions(&remains[2..], &first, at(2));
        let since = |conditions: &[NamespaceCondition], place: usize| {
            conditions[place].last_transition_time.as_ref().unwrap().0.as_second()
        };
        assert_eq!((since(&second, 3), since(&second, 4)), (1, 2));
        assert_eq!(second[4].reason.as_deref(), Some("ContentHasNoFinalizers"));
    }
}
