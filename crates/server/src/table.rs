//! Tables for `kubectl get`.

use k1s_object::{Status, gvk::GroupKind};
use serde_json::{Value, json};

use crate::{context::Cx, resource::Source};

/// The `includeObject` parameter: which object a row contains.
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

/// A Table of objects of the request's resource.
pub(crate) fn build<'a>(
    cx: &Cx,
    meta: &Value,
    objects: impl Iterator<Item = &'a Value>,
    include: Include,
    with_columns: bool,
) -> Value {
    build_as(cx, cx.resource.group_kind(), meta, objects, include, with_columns)
}

/// A Table of objects of a kind that may not be the resource's, such as a Scale.
pub(crate) fn build_as<'a>(
    cx: &Cx,
    group_kind: GroupKind<&str>,
    meta: &Value,
    objects: impl Iterator<Item = &'a Value>,
    include: Include,
    with_columns: bool,
) -> Value {
    let GroupKind { group, kind } = group_kind;
    let now = crate::time::now(cx.tenant.env());
    let resource = &cx.resource;
    let objects: Vec<&Value> = objects.collect();
    let mut null_when_empty = false;
    let cells: Vec<Vec<Value>> = match &resource.source {
        Source::BuiltIn(_) => {
            let printer = k1s_kinds::printers::printer(group, kind);
            null_when_empty = printer.null_when_empty;
            printer.rows(&objects, now)
        }
        Source::Custom(custom) => {
            let now = k1s_object::time::Time::from_unix(now.as_second(), 0);
            objects.iter().map(|object| custom.cells(object, now)).collect()
        }
    };
    let rows: Vec<Value> = objects
        .iter()
        .zip(cells)
        .map(|(object, cells)| {
            let mut row = json!({ "cells": cells });
            let conditions = match &resource.source {
                Source::BuiltIn(_) => k1s_kinds::printers::conditions(group, kind, object),
                Source::Custom(_) => None,
            };
            if let Some(conditions) = conditions {
                row["conditions"] = conditions;
            }
            row["object"] = match include {
                Include::None => Value::Null,
                Include::Metadata => json!({
                    "kind": "PartialObjectMetadata", "apiVersion": cx.accepted.form_version,
                    "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
                }),
                Include::Object => (*object).clone(),
            };
            row
        })
        .collect();
    let rows = if rows.is_empty() && null_when_empty { Value::Null } else { rows.into() };
    let columns = if with_columns { columns_as(cx, group_kind) } else { Value::Null };
    json!({"kind": "Table", "apiVersion": cx.accepted.form_version, "metadata": meta,
        "columnDefinitions": columns, "rows": rows})
}

/// Whether the cells of a row depend on other rows.
pub(crate) fn needs_all(cx: &Cx) -> bool {
    match &cx.resource.source {
        Source::BuiltIn(_) => k1s_kinds::printers::printer(&cx.resource.group, &cx.resource.kind).needs_all(),
        Source::Custom(_) => false,
    }
}

fn columns_as(cx: &Cx, GroupKind { group, kind }: GroupKind<&str>) -> Value {
    match &cx.resource.source {
        Source::BuiltIn(_) => k1s_kinds::printers::columns(group, kind)
            .iter()
            .map(k1s_kinds::printers::Column::definition)
            .collect(),
        Source::Custom(custom) => custom.columns(),
    }
}
