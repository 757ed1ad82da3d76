//! `VolumeAttachment`.

use crate::rules::{
    Rules, drop_status,
    helpers::{
        equality::same, errors::invalid_each, immutable::report_immutable, metadata::status_alone,
        text::driver_name,
    },
    keep_status,
};
use k1s_object::{field::At, names};

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: status_alone,
    validate,
    validate_update,
    validate_status: validate_update,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn validate(attachment: At<'_, '_>) {
    validate_fields(attachment);
    driver(attachment.get("spec").get("attacher"));
}

fn validate_update(attachment: At<'_, '_>, old: At<'_, '_>) {
    validate_fields(attachment);
    if !same(attachment.get("spec").value(), old.get("spec").value()) {
        report_immutable(attachment.get("spec"));
    }
}

/// As [`driver_name`], with the messages and the order of declarative validation.
fn driver(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return driver_name(at);
    }
    invalid_each(at, names::is_dns1123_subdomain_caseless(name));
    if name.chars().count() > 63 {
        at.too_long(63);
    }
}

fn validate_fields(attachment: At<'_, '_>) {
    let spec = attachment.get("spec");
    let source = spec.get("source");
    let (volume, inline) = (source.get("persistentVolumeName"), source.get("inlineVolumeSpec"));
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (volume.is_set(), inline.is_set()) {
        (false, false) => source.required(exactly_one),
        (true, true) => source.forbidden(exactly_one),
        (true, false) if volume.is_empty() => volume.required("must specify non empty persistentVolumeName"),
        _ => {}
    }
    invalid_each(spec.get("nodeName"), names::is_dns1123_subdomain(spec.get("nodeName").text()));
    let status = attachment.get("status");
    let metadata = status.get("attachmentMetadata");
    if metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum::<usize>() > 256 * 1024 {
        metadata.too_long(256 * 1024);
    }
    for name in ["attachError", "detachError"] {
        let error = status.get(name);
        if error.get("message").text().len() > 1024 {
            error.get("message").too_long(1024);
        }
        if error.get("errorCode").number() < 0 {
            error.get("errorCode").invalid(names::inclusive_range_error(0, i32::MAX));
        }
    }
    if volume.is_set() {
        invalid_each(volume, names::is_dns1123_subdomain(volume.text()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn an_attachment_has_one_source() {
        let attachment = json!({"spec": {"attacher": "a", "nodeName": "n", "source": {}}});
        assert_eq!(
            on_create(&RULES, attachment),
            [
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            ]
        );
    }
}
