//! The groups and versions that a tenant serves: built in, custom, and by aggregated API servers, in the order of their
//! priorities.

use std::{cmp::Ordering, sync::Arc};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    documents::Fingerprint,
    resource::Resource,
    tenant::{
        Tenant,
        apis::{Api, Apis},
        customs::Served,
    },
};

/// Beyond that of any `APIService`: this group always comes first.
const FIRST: (&str, i64) = ("apiregistration.k8s.io", 20_001);
/// The priorities of custom resources.
const CUSTOM: (i64, i64) = (1000, 100);

/// An API group with its versions, the preferred one first.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: Vec<Version>,
}

/// A version of a group.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) contents: Contents,
}

/// Who serves a version.
pub(super) enum Contents {
    /// This server.
    Own(Vec<Arc<Resource>>),
    /// Another one, with the resources that it has reported last.
    Other { resources: Option<Arc<Value>>, is_current: bool },
    /// Nobody: it has an `APIService` alone.
    Nothing,
}

/// The order of groups in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By the names of their `APIService`s, where priorities are equal: the list of groups.
    ByApiService,
    /// By their own names: the aggregated document.
    ByGroup,
}

/// A group version, its priorities and who serves it.
struct Entry {
    group: String,
    group_priority: i64,
    version_priority: i64,
    version: Version,
}

/// The groups, without the core group.
pub(super) fn groups(tenant: &Tenant, customs: &Served, apis: &Apis, order: Order) -> Vec<Group> {
    let mut entries = entries(tenant, customs, apis);
    if order == Order::ByGroup {
        entries.retain(|entry| !matches!(entry.version.contents, Contents::Nothing));
    }
    sort(entries, order)
}

fn entries(tenant: &Tenant, customs: &Served, apis: &Apis) -> Vec<Entry> {
    let catalog = &tenant.shared.catalog;
    let mut entries: Vec<Entry> = Vec::new();
    let entry = |group: &str, version: &str, priorities: (i64, i64), contents: Contents| Entry {
        group: group.to_owned(),
        group_priority: priorities.0,
        version_priority: priorities.1,
        version: Version { name: version.to_owned(), contents },
    };
    for group in k1s_kinds::groups().iter().filter(|group| !group.name.is_empty()) {
        for version in group.versions {
            let priorities = match k1s_kinds::bootstrap::priorities(group.name, version) {
                Some(priorities) => priorities,
                None if group.name == FIRST.0 => (FIRST.1, 15),
                None => CUSTOM,
            };
            let own = catalog.of(group.name, version).cloned().collect();
            entries.push(entry(group.name, version, priorities, Contents::Own(own)));
        }
    }
    let built_in = entries.len();
    for resource in customs.resources() {
        let (group, version) = (&*resource.group, &*resource.version);
        if apis.find(group, version).is_some() {
            continue;
        }
        let custom = entries.iter_mut().skip(built_in);
        let known = custom.into_iter().find(|one| one.group == group && one.version.name == version);
        match known.map(|known| &mut known.version.contents) {
            Some(Contents::Own(list)) => list.push(resource.clone()),
            _ => entries.push(entry(group, version, CUSTOM, Contents::Own(vec![resource.clone()]))),
        }
    }
    for one in entries.iter_mut().skip(built_in) {
        if let Contents::Own(list) = &mut one.version.contents {
            list.sort_by(|a, b| a.plural.cmp(&b.plural));
        }
    }
    for api in own_priorities(apis) {
        let priorities = (api.group_priority, api.version_priority);
        let known = entries.iter_mut().find(|one| one.group == api.group && one.version.name == api.version);
        match known {
            Some(known) if known.group != FIRST.0 => {
                (known.group_priority, known.version_priority) = priorities;
            }
            Some(_) => {}
            None if api.group.is_empty() => {}
            None => entries.push(entry(&api.group, &api.version, priorities, Contents::Nothing)),
        }
    }
    for api in &apis.remote {
        let Some(backend) = &api.backend else { continue };
        let live = backend.live.borrow();
        let is_current = live.is_current == Some(true);
        let contents = Contents::Other { resources: live.resources.clone(), is_current };
        entries.push(entry(&api.group, &api.version, (api.group_priority, api.version_priority), contents));
    }
    entries
}

/// The `APIService`s of this server whose priorities are those of a user.
fn own_priorities(apis: &Apis) -> impl Iterator<Item = &Arc<Api>> {
    apis.all.iter().filter(|api| api.backend.is_none() && api.managed.is_empty())
}

fn sort(mut entries: Vec<Entry>, order: Order) -> Vec<Group> {
    let service = |one: &Entry| format!("{}.{}", one.version.name, one.group);
    entries.sort_by(|a, b| {
        let priority = b.group_priority.cmp(&a.group_priority);
        priority.then_with(|| match order {
            Order::ByApiService => service(a).cmp(&service(b)),
            Order::ByGroup => a.group.cmp(&b.group),
        })
    });
    // A group is where its first version is.
    let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|(name, _)| *name == entry.group) {
            Some((_, versions)) => versions.push(entry),
            None => groups.push((entry.group.clone(), vec![entry])),
        }
    }
    let by_version = |a: &Entry, b: &Entry| -> Ordering {
        let priority = b.version_priority.cmp(&a.version_priority);
        priority.then_with(|| k1s_schema::versions::compare(&b.version.name, &a.version.name))
    };
    let group = |(name, mut versions): (String, Vec<Entry>)| {
        versions.sort_by(by_version);
        Group { name, versions: versions.into_iter().map(|entry| entry.version).collect() }
    };
    groups.into_iter().map(group).collect()
}

/// A hash of everything that the documents show of a tenant besides the built-in resources.
pub(super) fn fingerprint(customs: &Served, apis: &Apis) -> Fingerprint {
    let mut hasher = Sha256::new();
    let mut add = |parts: &[&[u8]]| {
        for part in parts {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
    };
    let mut none = true;
    for api in own_priorities(apis).chain(&apis.remote) {
        none = false;
        add(&[api.name.as_bytes(), &api.group_priority.to_le_bytes(), &api.version_priority.to_le_bytes()]);
        if let Some(backend) = &api.backend {
            let live = backend.live.borrow();
            add(&[&live.digest, &[u8::from(live.is_current == Some(true))]]);
        }
    }
    if none {
        return customs.fingerprint();
    }
    add(&[&customs.fingerprint()]);
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group, a version, and their priorities.
    type Case = (&'static str, &'static str, i64, i64);

    fn sorted(of: &[Case], order: Order) -> Vec<String> {
        let entry = |(group, version, group_priority, version_priority): &Case| Entry {
            group: (*group).to_owned(),
            group_priority: *group_priority,
            version_priority: *version_priority,
            version: Version { name: (*version).to_owned(), contents: Contents::Nothing },
        };
        let shown = |group: &Group| {
            let versions: Vec<&str> = group.versions.iter().map(|version| &*version.name).collect();
            format!("{}: {}", group.name, versions.join(" "))
        };
        sort(of.iter().map(entry).collect(), order).iter().map(shown).collect()
    }

    /// The cases of upstream's `SortedByGroupAndVersion`, and of its merged document.
    #[test]
    fn groups_and_versions_sort_by_priority() {
        let cases: Vec<(&str, Vec<Case>, Order, Vec<&str>)> = vec![
            (
                "group priority, then the name of the APIService",
                vec![("b", "v1", 10, 1), ("a", "v2", 10, 1), ("c", "v1", 20, 1)],
                Order::ByApiService,
                vec!["c: v1", "b: v1", "a: v2"],
            ),
            (
                "group priority, then the group",
                vec![("b", "v1", 10, 1), ("a", "v2", 10, 1), ("c", "v1", 20, 1)],
                Order::ByGroup,
                vec!["c: v1", "a: v2", "b: v1"],
            ),
            (
                "the highest priority of a group counts",
                vec![("a", "v1", 5, 1), ("b", "v1", 10, 1), ("a", "v2", 20, 1)],
                Order::ByApiService,
                vec!["a: v2 v1", "b: v1"],
            ),
            (
                "version priority before the version",
                vec![("a", "v2", 1, 1), ("a", "v1", 1, 9)],
                Order::ByApiService,
                vec!["a: v1 v2"],
            ),
            (
                "versions of one priority, as Kubernetes compares them",
                vec![
                    ("a", "v1alpha1", 1, 5),
                    ("a", "v1beta1", 1, 5),
                    ("a", "v10", 1, 5),
                    ("a", "v2", 1, 5),
                    ("a", "foo", 1, 5),
                ],
                Order::ByGroup,
                vec!["a: v10 v2 v1beta1 v1alpha1 foo"],
            ),
        ];
        for (name, entries, order, expected) in cases {
            assert_eq!(sorted(&entries, order), expected, "{name}");
        }
    }
}
