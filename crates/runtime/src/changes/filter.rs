//! Which changes a subscription delivers.

use std::collections::BTreeSet;

use k1s_object::selector::{FieldRequirement, FieldSelector, LabelSelector};

use super::{Change, RecordedKind, state::Labels};
use crate::{
    ObjectKey,
    client::{EventType, SelectorError, WatchOptions},
};

/// Selects changes. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these kinds: indexes into [`Changes::kinds`](super::Changes::kinds).
    pub kinds: Option<BTreeSet<usize>>,
    /// Only objects in this namespace.
    pub namespace: Option<String>,
    /// Only objects of this name.
    pub name: Option<String>,
    /// Only objects that match this selector. As in a watch, an object that begins to match is [added](EventType::Added), and
    /// one that no longer matches is [deleted](EventType::Deleted).
    pub labels: Option<LabelSelector>,
}

impl Filter {
    /// Only objects that match a label selector: see [`labels`](Self::labels).
    ///
    /// # Errors
    /// If it is not a selector.
    pub fn label_selector(mut self, selector: &str) -> Result<Filter, SelectorError> {
        self.labels = crate::client::ListOptions::default().label_selector(selector)?.labels;
        Ok(self)
    }

    pub(super) fn has_kind(&self, kind: usize) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Whether it selects an object.
    pub(super) fn matches(&self, kind: usize, key: &ObjectKey, labels: &Labels) -> bool {
        self.has_object(kind, key) && self.has_labels(labels)
    }

    fn has_object(&self, kind: usize, key: &ObjectKey) -> bool {
        self.has_kind(kind)
            && self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
            && self.name.as_deref().is_none_or(|name| key.name() == name)
    }

    fn has_labels(&self, labels: &Labels) -> bool {
        let Some(selector) = &self.labels else { return true };
        selector.matches(|key| labels.get(key).map(String::as_str))
    }

    /// What a change is to a reader with this filter.
    pub(super) fn event(&self, change: &Change) -> Option<EventType> {
        if !self.has_object(change.kind, &change.key) {
            return None;
        }
        if self.labels.is_none() {
            return Some(change.event);
        }
        let before = change.old_labels.as_ref().is_some_and(|labels| self.has_labels(labels));
        let after = change.event != EventType::Deleted && self.has_labels(&change.labels);
        match (before, after) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    /// A watch of a kind with this filter.
    pub(super) fn watch(&self, kind: &RecordedKind) -> WatchOptions {
        let mut requirements =
            kind.labels.iter().flat_map(|labels| labels.requirements().to_vec()).collect::<Vec<_>>();
        requirements.extend(self.labels.iter().flat_map(|labels| labels.requirements().to_vec()));
        let fields = self.name.as_ref().and_then(|name| {
            let term =
                FieldRequirement { field: "metadata.name".into(), value: name.clone(), negated: false };
            FieldSelector::parse(&term.to_string()).ok()
        });
        WatchOptions {
            namespace: self.namespace.as_deref().map(Into::into),
            labels: (!requirements.is_empty()).then(|| LabelSelector::of(requirements)),
            fields,
            ..WatchOptions::default()
        }
    }
}
