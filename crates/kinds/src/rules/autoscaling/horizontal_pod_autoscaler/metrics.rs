//! The metrics of a `HorizontalPodAutoscaler`.

use k1s_object::{field::At, names};

use super::validation::{References, reference};
use crate::rules::helpers::{
    errors::invalid_each, numbers::quantity_sign, resource_names::container_resource_name,
};

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn metrics(at: At<'_, '_>, objects: References) {
    for metric in at.items() {
        metric_spec(metric, objects);
    }
}

fn metric_spec(metric: At<'_, '_>, objects: References) {
    let kind = metric.get("type");
    if kind.is_empty() {
        kind.required("must specify a metric source type");
    }
    if !TYPES.contains(&kind.text()) {
        kind.not_supported(&TYPES);
    }
    let order = ["object", "external", "pods", "resource", "containerResource"];
    let present: Vec<&str> = order.into_iter().filter(|name| metric.get(name).is_set()).collect();
    if let Some(first) = present.first() {
        let source = metric.get(first);
        match *first {
            "object" => object(source, objects),
            "external" => external(source),
            "pods" => pods(source),
            "resource" => resource(source),
            _ => container_resource(source),
        }
    }
    let expected = match kind.text() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => {
            kind.not_supported(&TYPES);
            ""
        }
    };
    if !expected.is_empty() && !metric.get(expected).is_set() {
        metric.get(expected).required("must populate information for the given metric source");
    }
    if present.len() != 1 {
        for name in present.into_iter().filter(|name| *name != expected) {
            metric.get(name).forbidden("must populate the given metric source only");
        }
    }
}

fn object(source: At<'_, '_>, objects: References) {
    reference(source.get("describedObject"), objects);
    identifier(source.get("metric"));
    let aim = source.get("target");
    target(aim);
    if !aim.get("value").is_set() && !aim.get("averageValue").is_set() {
        aim.get("averageValue").required("must set either a target value or averageValue");
    }
}

fn external(source: At<'_, '_>) {
    identifier(source.get("metric"));
    let aim = source.get("target");
    target(aim);
    match (aim.get("value").is_set(), aim.get("averageValue").is_set()) {
        (false, false) => {
            aim.get("averageValue").required("must set either a target value for metric or a per-pod target")
        }
        (true, true) => {
            aim.get("value").forbidden("may not set both a target value for metric and a per-pod target")
        }
        _ => {}
    }
}

fn pods(source: At<'_, '_>) {
    identifier(source.get("metric"));
    let aim = source.get("target");
    target(aim);
    if !aim.get("averageValue").is_set() {
        aim.get("averageValue").required("must specify a positive target averageValue");
    }
}

fn resource(source: At<'_, '_>) {
    if source.get("name").is_empty() {
        source.get("name").required("must specify a resource name");
    }
    raw_or_utilization(source.get("target"));
}

fn container_resource(source: At<'_, '_>) {
    let (name, container) = (source.get("name"), source.get("container"));
    if name.is_empty() {
        name.required("must specify a resource name");
    } else {
        container_resource_name(name.text(), name);
    }
    if container.is_empty() {
        container.required("must specify a container");
    } else {
        invalid_each(container, names::is_dns1123_label(container.text()));
    }
    raw_or_utilization(source.get("target"));
}

fn raw_or_utilization(aim: At<'_, '_>) {
    target(aim);
    match (aim.get("averageUtilization").is_set(), aim.get("averageValue").is_set()) {
        (false, false) => aim
            .get("averageUtilization")
            .required("must set either a target raw value or a target utilization"),
        (true, true) => {
            aim.get("averageValue").forbidden("may not set both a target raw value and a target utilization")
        }
        _ => {}
    }
}

fn identifier(metric: At<'_, '_>) {
    let name = metric.get("name");
    if name.is_empty() {
        name.required("must specify a metric name");
    } else {
        invalid_each(name, names::is_path_segment_name(name.text()));
    }
}

fn target(aim: At<'_, '_>) {
    let kind = aim.get("type");
    if kind.is_empty() {
        kind.required("must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        kind.invalid_text("must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        if aim.get(name).is_set() && quantity_sign(aim.get(name)) < 1 {
            aim.get(name).invalid("must be positive");
        }
    }
    if aim.get("averageUtilization").int().is_some_and(|percent| percent < 1) {
        aim.get("averageUtilization").invalid("must be greater than 0");
    }
}
