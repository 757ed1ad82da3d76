//! Checks that several kinds of this group share.

use crate::rules::helpers::{errors::invalid_each, node_selector::label_expression};
use k1s_object::{
    field::{At, FieldError},
    names,
};
use std::cell::RefCell;

/// Errors of declarative validation, which are reported after all others.
#[derive(Debug, Default)]
pub(super) struct DeclarativeErrors(RefCell<Vec<FieldError>>);

impl DeclarativeErrors {
    /// Runs a check and collects its errors.
    pub(super) fn collect(&self, at: At<'_, '_>, look: impl FnOnce()) {
        let before = at.check().take();
        look();
        self.0.borrow_mut().extend(at.check().take());
        for error in before {
            at.check().push(error);
        }
    }

    /// Reports the collected errors.
    pub(super) fn report(self, at: At<'_, '_>) {
        for error in self.0.into_inner() {
            at.check().push(error);
        }
    }

    /// Whether a list has at most `limit` items.
    pub(super) fn at_most(&self, list: At<'_, '_>, limit: usize) -> bool {
        if list.len() > limit {
            self.collect(list, || list.too_many(limit));
            return false;
        }
        true
    }

    /// Items with the same key are duplicates.
    pub(super) fn unique<'c, 'v>(&self, list: At<'c, 'v>, key: impl Fn(At<'c, 'v>) -> &'v str) {
        let mut seen = std::collections::HashSet::new();
        for item in list.items() {
            let key = key(item);
            if seen.contains(&key) {
                self.collect(item, || item.check().push(FieldError::duplicate(item.path(), key)));
            }
            seen.insert(key);
        }
    }

    /// A required string that `look` accepts.
    pub(super) fn required(&self, at: At<'_, '_>, look: fn(&str) -> Vec<String>) {
        self.collect(at, || {
            if at.is_empty() {
                at.required("");
            } else {
                invalid_each(at, look(at.text()));
            }
        });
    }

    pub(super) fn driver(&self, at: At<'_, '_>) {
        self.collect(at, || {
            if at.is_empty() {
                at.required("");
            } else {
                invalid_each(at, names::is_dns1123_subdomain_caseless(at.text()));
                if at.text().chars().count() > 63 {
                    at.too_long(63);
                }
            }
        });
    }
}

/// `Invalid value` unless the text is a DNS label.
pub(super) fn label(at: At<'_, '_>) {
    invalid_each(at, names::is_dns1123_label(at.text()));
}

/// One or more DNS subdomains with slashes between them.
pub(super) fn pool_name(at: At<'_, '_>) {
    if at.is_empty() {
        return at.required("");
    }
    if at.text().len() > 253 {
        at.too_long(253);
    }
    for part in at.text().split('/') {
        for message in names::is_dns1123_subdomain(part) {
            at.invalid_as(part, message);
        }
    }
}

/// `name` or `domain/name`, where the name is a C identifier.
pub(super) fn qualified_name(at: At<'_, '_>, name: &str) {
    let identifier = |id: &str| {
        if id.len() > 32 {
            at.too_long(32);
        }
        for message in names::is_c_identifier(id) {
            at.invalid_as(id, message);
        }
    };
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(id),
        [domain, id] => {
            if domain.is_empty() {
                at.invalid_as("", "the domain must not be empty");
            } else {
                if domain.len() > 63 {
                    at.too_long(63);
                }
                for message in names::is_dns1123_subdomain(&domain.to_lowercase()) {
                    at.invalid_as(*domain, message);
                }
            }
            if id.is_empty() {
                at.invalid_as("", "the name must not be empty");
            } else {
                identifier(id);
            }
        }
        _ => {}
    }
}

pub(super) fn fully_qualified_name(at: At<'_, '_>) {
    qualified_name(at, at.text());
    if !at.text().contains('/') {
        at.invalid_text("a fully qualified name must be a domain and a name separated by a slash");
    }
}

pub(super) const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub(super) fn toleration(at: At<'_, '_>, later: &DeclarativeErrors) {
    let (key, operator) = (at.get("key"), at.get("operator"));
    let (value, effect) = (at.get("value"), at.get("effect"));
    if !key.is_empty() {
        later.collect(key, || invalid_each(key, names::is_qualified_name(key.text())));
    }
    match operator.text() {
        "Exists" if !value.is_empty() => value.invalid("must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => invalid_each(value, names::is_valid_label_value(value.text())),
        "" => later.collect(operator, || operator.required("")),
        _ => later.collect(operator, || operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect.text()) {
        later.collect(effect, || effect.not_supported(&EFFECTS));
    }
}

/// A node selector by labels only.
pub(super) fn node_selector(at: At<'_, '_>) {
    let terms = at.get("nodeSelectorTerms");
    if terms.is_empty() {
        return terms.required("must have at least one node selector term");
    }
    for requirement in terms.items().flat_map(|term| term.get("matchExpressions").items()) {
        label_expression(requirement, false);
    }
}
