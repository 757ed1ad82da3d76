//! The request policy of a capacity: how much of it one claim may consume.

use k1s_object::{field::At, quantity::Quantity};

const MAX_VALUES: usize = 10;

fn quantity(at: At<'_, '_>) -> Option<Quantity> {
    at.value().and_then(|value| Quantity::from_json(value).ok())
}

/// The request policy of a shareable capacity.
pub(super) fn request_policy(capacity: At<'_, '_>) {
    let policy = capacity.get("requestPolicy");
    if !policy.is_set() {
        return;
    }
    let (values, range, default) =
        (policy.get("validValues"), policy.get("validRange"), policy.get("default"));
    let most = quantity(capacity.get("value")).unwrap_or_default();
    match (!values.is_empty(), range.is_set()) {
        (true, true) => policy.forbidden(
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        ),
        (true, false) => match quantity(default) {
            Some(default) => valid_values(values, &default, &most),
            None => default.required("required when validValues is defined"),
        },
        (false, true) => match quantity(default) {
            Some(default) => valid_range(range, &default, &most),
            None => default.required("required when validRange is defined"),
        },
        (false, false) => {}
    }
}

fn valid_values(list: At<'_, '_>, default: &Quantity, most: &Quantity) {
    let values: Vec<(At<'_, '_>, Quantity)> =
        list.items().filter_map(|at| quantity(at).map(|value| (at, value))).collect();
    for pair in values.windows(2) {
        if let [(_, first), (at, second)] = pair
            && first > second
        {
            at.invalid_as(second.to_string(), "values must be sorted in ascending order");
        }
    }
    if values.len() > MAX_VALUES {
        list.too_many(MAX_VALUES);
    } else {
        for (at, value) in &values {
            if value > most {
                at.invalid_as(value.to_string(), format!("option is larger than capacity value: {most}"));
            }
        }
        let mut seen: Vec<&Quantity> = Vec::new();
        for (at, value) in &values {
            if seen.contains(&value) {
                at.duplicate();
            }
            seen.push(value);
        }
    }
    if values.len() > MAX_VALUES || !values.iter().any(|(_, value)| value == default) {
        list.invalid_as(default.to_string(), "default value is not valid according to the requestPolicy");
    }
}

fn valid_range(range: At<'_, '_>, default: &Quantity, most: &Quantity) {
    let (min, max, step) =
        (quantity(range.get("min")), quantity(range.get("max")), quantity(range.get("step")));
    let Some(min) = min else { return range.get("min").required("required when validRange is defined") };
    let wrong = |name: &'static str, value: &Quantity, why: String| {
        range.get(name).invalid_as(value.to_string(), why);
    };
    if min > *most {
        wrong("min", &min, format!("min is larger than capacity value: {most}"));
    }
    if *default < min {
        wrong("default", default, format!("default is less than min: {min}"));
    }
    if let Some(max) = &max {
        if min > *max {
            wrong("max", &min, format!("min is larger than max: {max}"));
        }
        if max > most {
            wrong("max", max, format!("max is larger than capacity value: {most}"));
        }
        if default > max {
            wrong("default", default, format!("default is more than max: {max}"));
        }
    }
    let Some(step) = step else { return };
    if step.sign() <= 0 {
        return wrong("step", &step, "must be greater than zero".into());
    }
    let one_more = min.add(&step);
    if one_more > *most {
        wrong("step", &step, format!("one step {one_more} is larger than capacity value: {most}"));
    }
    let whole = [Some(default), Some(&min), max.as_ref(), Some(&step)]
        .into_iter()
        .flatten()
        .all(Quantity::is_integer);
    let units = |value: &Quantity| i128::from(if whole { value.value() } else { value.milli_value() });
    for value in [Some(default), max.as_ref()].into_iter().flatten() {
        if units(&step) != 0 && (units(value) - units(&min)) % units(&step) != 0 {
            let why = format!("value is not a multiple of a given step ({step}) from ({min})");
            wrong("step", value, why);
        }
    }
}
