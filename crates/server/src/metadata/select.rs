//! Which objects are told of, by what lies in the store: nothing is parsed.

use memchr::memmem;

use crate::request::Query;

/// Where an object lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    /// Empty for an object of the cluster.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// What a key says; nothing, if it is the server's own.
pub(crate) fn split_key<'a>(key: &'a [u8], prefix: &str) -> Option<Key<'a>> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?;
    let (group, rest) = rest.split_once('/')?;
    let (plural, rest) = rest.split_once('/')?;
    let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
    let group = if group == "core" { "" } else { group };
    (group != "k1s").then_some(Key { group, plural, namespace, name })
}

/// `widgets.example.com`: the plural and the group.
pub(super) fn resource(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, ""))
}

/// What a watch wants to hear of.
#[derive(Debug)]
pub(super) struct Selection {
    /// Resources of which all are wanted, or those of a name. `None`: everything is.
    all: Option<Vec<(String, String, String)>>,
}

impl Selection {
    pub(super) fn parse(query: &Query) -> Selection {
        let mut wanted = query.all("all").peekable();
        if wanted.peek().is_none() {
            return Selection { all: None };
        }
        let each = wanted.map(|text| {
            let (of, name) = text.split_once('/').unwrap_or((text, ""));
            let (plural, group) = resource(of);
            (group.to_owned(), plural.to_owned(), name.to_owned())
        });
        Selection { all: Some(each.collect()) }
    }

    /// Whether an object that was stored is told of.
    pub(super) fn wants(&self, key: &Key<'_>, value: &[u8], previous: Option<&[u8]>) -> bool {
        let Some(all) = &self.all else { return true };
        all.iter().any(|(group, plural, name)| {
            plural == key.plural && group == key.group && (name.is_empty() || name == key.name)
        }) || has_owners(value)
            // The last reference may just have gone.
            || previous.is_some_and(has_owners)
    }
}

/// Whether an object names owners, or waits for its dependents. Looking for texts is many times quicker than parsing; one
/// that has them elsewhere is told of in vain.
fn has_owners(value: &[u8]) -> bool {
    memmem::find(value, b"\"ownerReferences\"").is_some()
        || memmem::find(value, b"\"deletionTimestamp\"").is_some()
            && (memmem::find(value, b"\"foregroundDeletion\"").is_some()
                || memmem::find(value, b"\"orphan\"").is_some())
}

/// Whether a controller may have to do something about an object.
pub(crate) fn waits(key: &Key<'_>, value: &[u8]) -> bool {
    match (key.group, key.plural) {
        ("" | "events.k8s.io", "events") => true,
        ("coordination.k8s.io", "leases") => !is_controllers_lease(key.namespace, key.name),
        (group, plural) if is_finished_by_controllers(group, plural) => {
            memmem::find(value, b"\"deletionTimestamp\"").is_some() || has_owners(value)
        }
        _ => has_owners(value),
    }
}

/// Whether objects of this kind that are being deleted wait for a controller, whatever their finalizers.
pub(crate) fn is_finished_by_controllers(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("", "namespaces" | "persistentvolumeclaims" | "persistentvolumes")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("storage.k8s.io", "volumeattributesclasses")
    )
}

/// Whether this is the Lease of the controllers themselves, which is no work for them.
pub(crate) fn is_controllers_lease(namespace: &str, name: &str) -> bool {
    (namespace, name) == crate::CONTROLLERS_LEASE
}

/// Whether this is an object that each namespace has, and gets again.
pub(crate) fn is_default_object(key: &Key<'_>) -> bool {
    matches!(
        (key.group, key.plural, key.name),
        ("", "serviceaccounts", "default") | ("", "configmaps", "kube-root-ca.crt")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_apart() {
        let key = |text: &'static str| split_key(text.as_bytes(), "/t/");
        let pod = Key { group: "", plural: "pods", namespace: "n", name: "p" };
        assert_eq!(key("/t/core/pods/n/p"), Some(pod));
        let node = Key { group: "", plural: "nodes", namespace: "", name: "n" };
        assert_eq!(key("/t/core/nodes/n"), Some(node));
        assert_eq!(key("/t/k1s/ready/"), None);
        assert_eq!(key("/other/core/nodes/n"), None);
    }

    #[test]
    fn those_with_owners_are_wanted_and_others_only_if_they_are_named() {
        let select = |query: &str| Selection::parse(&Query::parse(Some(query)));
        let key = |plural: &'static str, name: &'static str| Key { group: "", plural, namespace: "n", name };
        let (plain, owned) = (b"{\"metadata\":{}}", b"{\"metadata\":{\"ownerReferences\":[]}}");
        assert!(select("watch=1").wants(&key("pods", "p"), plain, None));
        let some = select("all=namespaces&all=configmaps/c&all=widgets.example.com");
        assert!(!some.wants(&key("pods", "p"), plain, None));
        assert!(some.wants(&key("pods", "p"), owned, None));
        assert!(some.wants(&key("pods", "p"), plain, Some(owned)));
        assert!(some.wants(&key("namespaces", "x"), plain, None));
        assert!(some.wants(&key("configmaps", "c"), plain, None));
        assert!(!some.wants(&key("configmaps", "d"), plain, None));
        assert!(!some.wants(&key("widgets", "w"), plain, None));
        assert!(some.wants(&Key { group: "example.com", ..key("widgets", "w") }, plain, None));
    }
}
