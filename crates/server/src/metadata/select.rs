//! Selects the objects to report from their stored bytes, without parsing them.

use crate::{controllers::has_owners, keys::Key, request::Query};

/// `widgets.example.com`: the plural and the group.
pub(super) fn resource(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, ""))
}

/// The objects that a watch selects.
#[derive(Debug)]
pub(super) struct Selection {
    /// Group, plural and name (or empty) of objects that are always reported. `None`: all objects are.
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

    /// Whether a stored object is reported.
    pub(super) fn wants(&self, key: &Key<'_>, value: &[u8], previous: Option<&[u8]>) -> bool {
        let Some(all) = &self.all else { return true };
        all.iter().any(|(group, plural, name)| {
            plural == key.plural && group == key.group && (name.is_empty() || name == key.name)
        }) || has_owners(value)
            // This change may have removed its last owner.
            || previous.is_some_and(has_owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_owners_are_selected_and_others_only_if_named() {
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
