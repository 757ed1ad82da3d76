//! The keys of a tenant in the store: `/{tenant}/{group}/{plural}/[{namespace}/]{name}`.

use bytes::Bytes;

/// The key of a tenant's mark, which exists as long as the tenant does.
pub(crate) fn mark_key(tenant: &str) -> Bytes {
    format!("/{tenant}/k1s/ready/").into()
}

/// The prefix of all keys of a tenant.
pub(crate) fn prefix(tenant: &str) -> String {
    format!("/{tenant}/")
}

/// The parts of an object's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    /// Empty for a cluster-scoped object.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// Parses a key; `None` for the server's own keys.
pub(crate) fn split_key<'a>(key: &'a [u8], prefix: &str) -> Option<Key<'a>> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?;
    let (group, rest) = rest.split_once('/')?;
    let (plural, rest) = rest.split_once('/')?;
    let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
    let group = if group == "core" { "" } else { group };
    (group != "k1s").then_some(Key { group, plural, namespace, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split() {
        let key = |text: &'static str| split_key(text.as_bytes(), "/t/");
        let pod = Key { group: "", plural: "pods", namespace: "n", name: "p" };
        assert_eq!(key("/t/core/pods/n/p"), Some(pod));
        let node = Key { group: "", plural: "nodes", namespace: "", name: "n" };
        assert_eq!(key("/t/core/nodes/n"), Some(node));
        assert_eq!(key("/t/k1s/ready/"), None);
        assert_eq!(key("/other/core/nodes/n"), None);
    }
}
