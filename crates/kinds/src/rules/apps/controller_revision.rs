//! `ControllerRevision`.

use k1s_object::At;

use crate::rules::{Rules, helpers::numbers::non_negative};

pub(super) static RULES: Rules = Rules { validate, validate_update, ..Rules::PLAIN };

fn validate(object: At<'_, '_>) {
    non_negative(object.get("revision"));
    let data = object.get("data");
    if !data.is_set() {
        data.required("data is mandatory");
    } else if data.map().is_none() {
        data.required("data must be a valid JSON object");
    }
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    non_negative(new.get("revision"));
    let data = new.get("data");
    if data.value() != old.get("data").value() {
        data.invalid("field is immutable");
    }
}
