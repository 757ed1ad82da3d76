//! Deletes what is in the control plane of a project that is deleted, while its operators can still work there: external
//! resources that finalizers stand for are released by them, not forgotten with the tenant.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use kube::Error;

use super::tenants::{Entry, Tenants};

/// Maximum number of concurrent deletions in one project.
const CONCURRENCY: usize = 16;
/// Maximum number of objects that are named.
const MAX_NAMED: usize = 10;
/// The namespaces that every control plane has, and that cannot be deleted.
const PERMANENT: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// The range of addresses of Services, which the server creates with a finalizer that only itself could remove.
const SERVICE_RANGE: (&str, &str, &str) = ("networking.k8s.io", "servicecidrs", "kubernetes");

/// How soon to look again, and how late at most. Nothing announces to the host what happens in a project.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The objects that are not gone yet, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    objects: BTreeSet<String>,
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, object) in self.objects.iter().take(MAX_NAMED).enumerate() {
            write!(f, "{}{object}", if number > 0 { ", " } else { "" })?;
        }
        match self.objects.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// When to look again, so long after the first time.
pub(super) fn interval(since: Duration) -> Duration {
    (since / 4).clamp(INTERVAL.0, INTERVAL.1)
}

/// Requests the deletion of namespaces, of custom objects, and of everything that has finalizers. Returns what may still be
/// there: it waits for finalizers. All else goes with the tenant; roles, service accounts and settings in the namespaces that
/// cannot be deleted are what operators may need until then.
///
/// # Errors
/// If the server does not answer, or refuses. Everything else was deleted nevertheless.
pub(super) async fn clear(tenants: &Tenants, tenant: &str) -> Result<Left, Error> {
    let mut deletable = deletable(tenants.contents(tenant).await?);
    let left = deletable.iter().filter(|entry| waits(entry)).map(told).collect();
    deletable.retain(|entry| !entry.is_deleting());
    let mut deletions = stream::iter(deletable)
        .map(|entry| async move { tenants.delete_entry(tenant, &entry).await })
        .buffer_unordered(CONCURRENCY);
    let mut failed = None;
    while let Some(deleted) = deletions.next().await {
        if let Err(error) = deleted {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(Left { objects: left }), Err)
}

/// The objects to delete.
fn deletable(mut entries: Vec<Entry>) -> Vec<Entry> {
    let definitions = entries.iter().filter(|entry| is_definition(entry));
    let defined: HashSet<String> = definitions.map(|entry| entry.metadata.name.clone()).collect();
    entries.retain(|entry| {
        let resource = &entry.resource;
        let identity = (&*resource.group, &*resource.plural, &*entry.metadata.name);
        if is_namespace(entry) {
            return !PERMANENT.contains(&identity.2);
        }
        if identity == SERVICE_RANGE {
            return false;
        }
        let is_custom = defined.contains(&format!("{}.{}", resource.plural, resource.group));
        // Without its definition, an object cannot be reached by its operator.
        !is_definition(entry) && (is_custom || !entry.metadata.finalizers.is_empty())
    });
    entries
}

/// Whether an object may be there after its deletion was requested.
fn waits(entry: &Entry) -> bool {
    is_namespace(entry) || !entry.metadata.finalizers.is_empty()
}

fn is_namespace(entry: &Entry) -> bool {
    entry.resource.group.is_empty() && entry.resource.plural == "namespaces"
}

fn is_definition(entry: &Entry) -> bool {
    entry.resource.group == "apiextensions.k8s.io" && entry.resource.plural == "customresourcedefinitions"
}

/// `widgets.example.com default/one (example.com/finalizer)`
fn told(entry: &Entry) -> String {
    let Entry { resource, metadata } = entry;
    let dot = if resource.group.is_empty() { "" } else { "." };
    let slash = if metadata.namespace.is_empty() { "" } else { "/" };
    let object =
        format!("{}{dot}{} {}{slash}{}", resource.plural, resource.group, metadata.namespace, metadata.name);
    match metadata.finalizers.is_empty() {
        true => object,
        false => format!("{object} ({})", metadata.finalizers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(group: &str, plural: &str, metadata: &Value) -> Entry {
        let resource = json!({"group": group, "version": "v1", "resource": plural});
        serde_json::from_value(json!({"resource": resource, "metadata": metadata})).unwrap()
    }

    #[test]
    fn namespaces_custom_objects_and_what_has_finalizers_are_deleted_and_definitions_stay() {
        let held = json!(["example.com/held"]);
        let entries = [
            entry("", "namespaces", &json!({"name": "default"})),
            entry("", "namespaces", &json!({"name": "team"})),
            entry("networking.k8s.io", "servicecidrs", &json!({"name": "kubernetes", "finalizers": held})),
            entry("", "configmaps", &json!({"name": "plain", "namespace": "default"})),
            entry("", "configmaps", &json!({"name": "held", "namespace": "default", "finalizers": held})),
            entry(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                &json!({"name": "widgets.example.com"}),
            ),
            entry("example.com", "widgets", &json!({"name": "of-the-cluster"})),
            entry(
                "example.com",
                "widgets",
                &json!({"name": "held", "namespace": "team", "finalizers": held}),
            ),
        ];
        let all = deletable(entries.into());
        assert_eq!(
            all.iter().map(told).collect::<Vec<_>>(),
            [
                "namespaces team",
                "configmaps default/held (example.com/held)",
                "widgets.example.com of-the-cluster",
                "widgets.example.com team/held (example.com/held)",
            ]
        );
        assert_eq!(all.iter().map(waits).collect::<Vec<_>>(), [true, true, false, true]);
    }

    #[test]
    fn a_few_of_the_objects_that_are_left_are_named() {
        let left =
            |count: usize| Left { objects: (10..10 + count).map(|n| n.to_string()).collect() }.to_string();
        assert_eq!(left(2), "10, 11");
        assert!(left(12).ends_with("19 and 2 more"), "{}", left(12));
    }

    #[test]
    fn looking_again_gets_rarer() {
        let after = |seconds| interval(Duration::from_secs(seconds));
        assert_eq!(
            [after(0), after(8), after(100)],
            [Duration::from_millis(100), Duration::from_secs(2), Duration::from_secs(5)]
        );
    }
}
