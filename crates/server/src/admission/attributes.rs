//! What admission knows about a request.

use k1s_object::gvk::GroupVersionKind;
use serde_json::{Map, Value};

use crate::{context::Cx, hooks::Operation, parts::Part, resource::Resource};

/// A request as plugins, policies and webhooks see it. The object and its old state are passed beside it.
pub(crate) struct Attributes<'a> {
    /// The request: tenant, user, requested resource. Its [`Cx::warn`] adds warnings to the response.
    pub(crate) cx: &'a Cx,
    pub(crate) operation: Operation,
    /// The part of the object that an update is for; [`Part::Internal`] for a body that is not an object of the resource.
    pub(crate) part: Part,
    /// The kind of the object: of the body, for a subresource with a kind of its own.
    pub(crate) kind: GroupVersionKind<&'a str>,
    /// Empty for a create that generates the name.
    pub(crate) name: String,
    /// The namespace. That of a Namespace is its name.
    pub(crate) namespace: String,
    pub(crate) dry_run: bool,
    /// The DeleteOptions of a DELETE.
    pub(crate) delete_options: Option<&'a Value>,
}

impl<'a> Attributes<'a> {
    /// The requested resource.
    pub(crate) fn resource(&self) -> &'a Resource {
        &self.cx.resource
    }

    pub(crate) fn subresource(&self) -> &'a str {
        &self.cx.subresource
    }

    /// Whether this is about an object of this kind as a whole, or a part of it.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.kind.group == group && self.kind.kind == kind
    }

    /// The options of the request, as an object. There are none for CONNECT.
    pub(crate) fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Connect => return Value::Null,
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut options = Map::new();
        options.insert("kind".into(), kind.into());
        options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        if let Some(Value::Object(sent)) = self.delete_options {
            let sent = sent.iter().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
            options.extend(sent.map(|(key, value)| (key.clone(), value.clone())));
            return Value::Object(options);
        }
        if self.dry_run {
            options.insert("dryRun".into(), vec!["All"].into());
        }
        for field in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.cx.query.find(field).filter(|value| !value.is_empty()) {
                options.insert(field.into(), value.into());
            }
        }
        Value::Object(options)
    }

    /// Adds an annotation to the audit events of the request.
    pub(crate) fn annotate(&self, key: String, value: String) {
        self.cx.audit(|trail| trail.annotate(key, value));
    }
}
