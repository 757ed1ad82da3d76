//! Label and field selectors of lists and watches.

use bytes::Bytes;
use k1s_object::{
    Status,
    selector::{FieldSelector, LabelSelector},
};

use crate::{cache::Entry, context::Cx};

/// The parsed selectors of a request.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    labels: Option<LabelSelector>,
    fields: Vec<FieldTerm>,
    namespaced: bool,
}

#[derive(Debug)]
struct FieldTerm {
    place: Place,
    value: String,
    equal: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
    /// Among the resource's selectable fields.
    Other(usize),
}

/// The keys that selected objects can have.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The prefix of their keys.
    pub(crate) prefix: Bytes,
    /// Maximum number of objects: one if the prefix is a whole key.
    pub(crate) max: usize,
}

impl Selection {
    /// Narrows a prefix to the keys that selected objects can have: a field selector for a name or namespace excludes all
    /// others.
    pub(crate) fn scope(&self, cx: &Cx, prefix: &str) -> Scope {
        let equal = |place: Place| {
            self.fields.iter().find(|term| term.equal && term.place == place).map(|term| &*term.value)
        };
        let all = !cx.resource.namespaced || !cx.namespace.is_empty();
        match (equal(Place::Name), equal(Place::Namespace)) {
            (Some(name), _) if all => Scope { prefix: [prefix, name].concat().into(), max: 1 },
            (_, Some(namespace)) if !all && !namespace.is_empty() => {
                Scope { prefix: [prefix, namespace, "/"].concat().into(), max: usize::MAX }
            }
            _ => Scope { prefix: Bytes::copy_from_slice(prefix.as_bytes()), max: usize::MAX },
        }
    }

    /// Parses `labelSelector` and `fieldSelector`; a name in the path is one more requirement.
    pub(crate) fn parse(cx: &Cx) -> Result<Selection, Status> {
        let (labels, fields) = (cx.query.get("labelSelector"), cx.query.get("fieldSelector"));
        let longest = cx.tenant.options().max_selector_bytes;
        for (name, text) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if text.len() > longest {
                return Err(Status::bad_request(format!("{name} is longer than {longest} bytes")));
            }
        }
        let labels = LabelSelector::parse(labels).map_err(Status::bad_request)?;
        let fields = FieldSelector::parse(fields).map_err(Status::bad_request)?;
        let names = cx.resource.field_names();
        let mut terms = Vec::new();
        for term in fields.requirements() {
            let place = match term.field.as_str() {
                "metadata.name" => Place::Name,
                "metadata.namespace" if cx.resource.selects_on_namespace() => Place::Namespace,
                other => match names.iter().position(|name| *name == other) {
                    Some(place) => Place::Other(place),
                    None => return Err(Status::bad_request(cx.resource.field_error(other))),
                },
            };
            terms.push(FieldTerm { place, value: term.value.clone(), equal: !term.negated });
        }
        if !cx.name.is_empty() {
            let other = |term: &FieldTerm| term.place == Place::Name && term.equal && term.value != cx.name;
            if terms.iter().any(other) {
                return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
            }
            terms.push(FieldTerm { place: Place::Name, value: cx.name.clone(), equal: true });
        }
        Ok(Selection {
            labels: (!labels.is_empty()).then_some(labels),
            fields: terms,
            namespaced: cx.resource.namespaced,
        })
    }

    /// Whether there are no selectors.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_empty()
    }

    /// Whether more than names and namespaces is selected on: what a conversion may change.
    pub(crate) fn reads_objects(&self) -> bool {
        self.labels.is_some() || self.fields.iter().any(|term| matches!(term.place, Place::Other(_)))
    }

    /// Whether an object matches.
    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        self.fields.iter().all(|term| {
            let value = match term.place {
                Place::Name => entry.name(),
                Place::Namespace if self.namespaced => entry.namespace(),
                Place::Namespace => "",
                Place::Other(place) => entry.field(place),
            };
            (value == term.value) == term.equal
        }) && self.labels.as_ref().is_none_or(|labels| labels.matches(|key| entry.label(key)))
    }
}
