//! `LimitRange`.

use std::collections::BTreeSet;

use k1s_object::{At, names, quantity::Quantity};
use serde_json::{Map, Value};

use crate::rules::{
    Rules,
    helpers::{
        errors::invalid_each,
        quantities::round_up,
        resource_names::{container_resource_name, is_overcommit_allowed, resource_name},
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    validate,
    validate_update: |new, _| validate(new),
    create_on_update: true,
    ..Rules::PLAIN
};

fn defaults(range: &mut Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut).into_iter().flatten();
    for limit in limits.filter_map(Value::as_object_mut) {
        for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            round_up(limit.get_mut(list));
        }
        if limit.get("type").is_some_and(|kind| kind == "Container") {
            fill(limit, "default", "max");
            fill(limit, "defaultRequest", "default");
            fill(limit, "defaultRequest", "min");
        }
    }
}

/// Copies the amounts of `from` that `to` lacks.
fn fill(limit: &mut Map<String, Value>, to: &str, from: &str) {
    let Some(Value::Object(source)) = limit.get(from).cloned() else { return };
    if source.is_empty() {
        return;
    }
    let target = limit.entry(to).or_insert_with(|| Value::Object(Map::new()));
    if target.is_null() {
        *target = Value::Object(Map::new());
    }
    if let Some(target) = target.as_object_mut() {
        for (name, amount) in source {
            target.entry(name).or_insert(amount);
        }
    }
}

fn validate(range: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for limit in range.get("spec").get("limits").items() {
        let kind = limit.get("type");
        let messages = names::is_qualified_name(kind.text());
        if messages.is_empty()
            && !kind.text().contains('/')
            && !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim")
        {
            kind.invalid_text("must be a standard limit type or fully qualified");
        }
        invalid_each(kind, messages);
        if seen.contains(&kind.text()) {
            kind.duplicate();
        }
        seen.insert(kind.text());
        item(limit, kind.text());
    }
}

fn item(limit: At<'_, '_>, kind: &str) {
    let mut keys = BTreeSet::new();
    let mut look = |list: &'static str| {
        for (name, at) in limit.get(list).entries() {
            if matches!(kind, "Pod" | "Container") {
                container_resource_name(name, at);
            } else {
                resource_name(name, at);
            }
            keys.insert(name);
        }
    };
    look("max");
    look("min");
    let defaults = kind != "Pod";
    for list in ["default", "defaultRequest"] {
        if defaults {
            look(list);
        } else if !limit.get(list).is_empty() {
            limit.get(list).forbidden("may not be specified when `type` is 'Pod'");
        }
    }
    if kind == "PersistentVolumeClaim"
        && !limit.get("min").key("storage").is_set()
        && !limit.get("max").key("storage").is_set()
    {
        limit
            .get("limits")
            .required("either minimum or maximum storage value is required, but neither was provided");
    }
    look("maxLimitRequestRatio");
    for key in keys {
        compare(limit, key, defaults);
    }
}

fn compare<'v>(limit: At<'_, 'v>, key: &'v str, defaults: bool) {
    let read = |list: &'static str| {
        let at = limit.get(list).key(key);
        at.str().and_then(|text| Quantity::parse(text).ok()).map(|amount| (at, amount))
    };
    let (min, max) = (read("min"), read("max"));
    let default = read("default").filter(|_| defaults);
    let request = read("defaultRequest").filter(|_| defaults);
    let ratio = read("maxLimitRequestRatio");
    let greater = |a: &Option<(At<'_, 'v>, Quantity)>, b: &Option<(At<'_, 'v>, Quantity)>| match (a, b) {
        (Some((_, a)), Some((_, b))) => a > b,
        _ => false,
    };
    let said = |at: &Option<(At<'_, 'v>, Quantity)>,
                shown: &Option<(At<'_, 'v>, Quantity)>,
                words: [&str; 2],
                amounts: [&Option<(At<'_, 'v>, Quantity)>; 2]| {
        let text = |one: &Option<(At<'_, 'v>, Quantity)>| {
            one.as_ref().map(|(_, amount)| amount.to_string()).unwrap_or_default()
        };
        if let Some((at, _)) = at {
            at.invalid_as(
                text(shown),
                format!(
                    "{} {} is greater than {} {}",
                    words[0],
                    text(amounts[0]),
                    words[1],
                    text(amounts[1])
                ),
            );
        }
    };
    if greater(&min, &max) {
        said(&min, &min, ["min value", "max value"], [&min, &max]);
    }
    if greater(&min, &request) {
        said(&request, &request, ["min value", "default request value"], [&min, &request]);
    }
    if greater(&request, &max) {
        said(&request, &request, ["default request value", "max value"], [&request, &max]);
    }
    if greater(&request, &default) {
        said(&request, &request, ["default request value", "default limit value"], [&request, &default]);
    }
    if greater(&min, &default) {
        // Here and below, Kubernetes shows the bound instead of the default.
        said(&default, &min, ["min value", "default value"], [&min, &default]);
    }
    if greater(&default, &max) {
        said(&default, &max, ["default value", "max value"], [&default, &max]);
    }
    if let Some((at, ratio)) = &ratio {
        if ratio.milli_value() < 1000 {
            at.invalid_as(ratio.to_string(), format!("ratio {ratio} is less than 1"));
        }
        if let (Some((_, min)), Some((_, max))) = (&min, &max) {
            let most = max.milli_value() as f64 / min.milli_value() as f64;
            if ratio.milli_value() as f64 / 1000.0 > most {
                at.invalid_as(
                    ratio.to_string(),
                    format!("ratio {ratio} is greater than max/min = {most:.6}"),
                );
            }
        }
    }
    if let (Some((_, default)), Some((at, request))) = (&default, &request)
        && !is_overcommit_allowed(key)
        && default != request
    {
        at.invalid_as(
            request.to_string(),
            format!("default value {default} must equal to defaultRequest value {request} in {key}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn bounds_become_defaults_of_containers() {
        let range = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "1Mi"}}]}});
        assert_eq!(
            testing::created(&RULES, range)["spec"]["limits"][0],
            json!({
                "type": "Container", "max": {"cpu": "1"}, "min": {"memory": "1Mi"}, "default": {"cpu": "1"},
                "defaultRequest": {"cpu": "1", "memory": "1Mi"},
            })
        );
    }

    #[test]
    fn errors_have_the_words_of_kubernetes() {
        for (limits, errors) in [
            (
                json!([{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "3"}}]),
                &[
                    "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
                    "spec.limits[0].defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than \
                     max value 1",
                    "spec.limits[0].default[cpu]: Invalid value: \"1\": default value 3 is greater than max value 1",
                ][..],
            ),
            (
                json!([{"type": "Pod", "default": {"cpu": "1"}}, {"type": "Pod"}, {"type": "Thing"}]),
                &[
                    "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                    "spec.limits[1].type: Duplicate value: \"Pod\"",
                    "spec.limits[2].type: Invalid value: \"Thing\": must be a standard limit type or fully qualified",
                ],
            ),
            (
                json!([{"type": "PersistentVolumeClaim"}, {"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}]),
                &[
                    "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but \
                     neither was provided",
                    "spec.limits[1].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1",
                ],
            ),
        ] {
            assert_eq!(testing::on_create(&RULES, json!({"spec": {"limits": limits}})), errors);
        }
    }
}
