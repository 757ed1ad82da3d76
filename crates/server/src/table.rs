//! Tables: what `kubectl get` shows.

use k1s_object::Status;
use serde_json::{Value, json};

use crate::{context::Cx, resource::Source};

/// What a row carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// The `includeObject` of a request.
pub(crate) fn include(cx: &Cx) -> Result<Include, Status> {
    match cx.query.get("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
            k1s_object::field::quote(other)
        ))),
    }
}

/// A table of these objects.
pub(crate) fn build<'a>(
    cx: &Cx,
    meta: Value,
    objects: impl Iterator<Item = &'a Value>,
    include: Include,
    with_columns: bool,
) -> Value {
    let now = crate::time::now(cx.tenant.env());
    let resource = &cx.resource;
    let rows: Vec<Value> = objects
        .map(|object| {
            let mut row = match &resource.source {
                Source::BuiltIn(_) => k1s_kinds::printers::row(&resource.group, &resource.kind, object, now),
                Source::Custom(custom) => json!({ "cells": custom.cells(object, now) }),
            };
            row["object"] = match include {
                Include::None => Value::Null,
                Include::Metadata => json!({
                    "kind": "PartialObjectMetadata", "apiVersion": cx.accepted.form_version,
                    "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
                }),
                Include::Object => object.clone(),
            };
            row
        })
        .collect();
    let columns = if with_columns { columns(cx) } else { Value::Null };
    json!({"kind": "Table", "apiVersion": cx.accepted.form_version, "metadata": meta,
        "columnDefinitions": columns, "rows": rows})
}

/// How many columns a row has.
pub(crate) fn columns(cx: &Cx) -> Value {
    match &cx.resource.source {
        Source::BuiltIn(_) => k1s_kinds::printers::columns(&cx.resource.group, &cx.resource.kind)
            .iter()
            .map(|column| {
                json!({"name": column.name, "type": column.ty, "format": column.format,
                    "description": column.description, "priority": column.priority})
            })
            .collect(),
        Source::Custom(custom) => custom.columns(),
    }
}
