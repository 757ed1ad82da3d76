//! `APIService`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k1s_object::{field::At, names};
use serde_json::{Value, json};

use crate::rules::{
    NameRule, Rules,
    helpers::{
        errors::invalid_each,
        json::{default, keep, pointer, structure},
    },
    keep_status, only_status,
};

pub(super) static RULES: Rules = Rules {
    defaults: default_service,
    prepare_create,
    prepare_update: keep_status,
    prepare_status,
    stamp_times,
    validate,
    validate_update,
    validate_status,
    name: NameRule::PathSegment,
    unconditional_update: false,
    ..Rules::PLAIN
};

fn default_service(service: &mut Value) {
    if let Some(backend) = pointer(service, "spec").and_then(|spec| pointer(spec, "service")) {
        default(backend, "port", 443);
    }
}

/// A local service is available from the start.
fn prepare_create(service: &mut Value) {
    let local = service.pointer("/spec/service").is_none_or(Value::is_null);
    let Some(object) = service.as_object_mut() else { return };
    object.shift_remove("status");
    if local {
        let condition = json!({"type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available"});
        object.insert("status".into(), json!({"conditions": [condition]}));
    }
}

fn stamp_times(service: &mut Value, _: Option<&Value>, now: &str) {
    let conditions = service.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        default(condition, "lastTransitionTime", now);
    }
}

fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    let (Some(meta), Some(before)) = (structure(new, "metadata"), old.get("metadata")) else { return };
    for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
        keep(meta, before, name);
    }
}

fn validate(service: At<'_, '_>) {
    let spec = service.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let name = service.get("metadata").get("name");
    let required = format!("{}.{}", version.text(), group.text());
    if name.text() != required && names::is_path_segment_name(name.text()).is_empty() && !name.is_empty() {
        name.invalid(format!("must be `spec.version+\".\"+spec.group`: {required:?}"));
    }
    if group.is_empty() {
        if version.text() != "v1" {
            group.required("only v1 may have an empty group and it better be legacy kube");
        }
    } else {
        invalid_each(group, names::is_dns1123_subdomain(group.text()));
    }
    invalid_each(version, names::is_dns1035_label(version.text()));
    for (field, greatest) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let priority = spec.get(field);
        if priority.number() <= 0 || priority.number() > greatest {
            priority.invalid_as(priority.number(), format!("must be positive and less than {greatest}"));
        }
    }
    let (bundle, insecure) = (spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    let backend = spec.get("service");
    if !backend.is_set() {
        if !bundle.is_empty() {
            let bytes = STANDARD.decode(bundle.text()).unwrap_or_default().len();
            bundle.invalid_as(format!("{bytes} bytes"), "local APIServices may not have a caBundle");
        }
        if insecure.is_true() {
            insecure.invalid("local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    let is_built_in =
        |known: &crate::table::Group| known.name == group.text() && known.versions.contains(&version.text());
    if crate::groups().iter().any(is_built_in) {
        backend.forbidden("the server serves this group version itself");
    }
    for name in ["namespace", "name"] {
        if backend.get(name).is_empty() {
            backend.get(name).required("");
        }
    }
    let port = backend.get("port");
    let wrong = names::is_valid_port_num(port.number());
    if !wrong.is_empty() {
        port.invalid_as(port.number(), format!("port is not valid: {}", wrong.join(", ")));
    }
    if insecure.is_true() && !bundle.is_empty() {
        insecure.invalid("may not be true if caBundle is present");
    }
}

fn validate_update(service: At<'_, '_>, _: At<'_, '_>) {
    validate(service);
}

fn validate_status(service: At<'_, '_>, _: At<'_, '_>) {
    for condition in service.get("status").get("conditions").items() {
        if !matches!(condition.get("status").text(), "True" | "False" | "Unknown") {
            condition.get("status").not_supported(&["True", "False", "Unknown"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_service_is_named_after_what_it_serves() {
        let service = json!({"metadata": {"name": "wrong"},
            "spec": {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}});
        assert_eq!(
            on_create(&RULES, service),
            [
                "metadata.name: Invalid value: \"wrong\": must be `spec.version+\".\"+spec.group`: \"v1.g.example.com\""
            ]
        );
    }

    #[test]
    fn a_remote_service_says_where_it_is() {
        let service = json!({"metadata": {"name": "v1.a.example.com"}, "spec": {"group": "a.example.com", "version": "v1",
            "service": {"name": "", "namespace": ""}, "insecureSkipTLSVerify": true, "caBundle": "eA=="}});
        assert_eq!(
            on_create(&RULES, service),
            [
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
                "spec.service.namespace: Required value",
                "spec.service.name: Required value",
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ]
        );
    }

    #[test]
    fn the_servers_own_group_versions_stay_its_own() {
        let service = json!({"metadata": {"name": "v1.apps"}, "spec": {"group": "apps", "version": "v1",
            "groupPriorityMinimum": 1, "versionPriority": 1, "service": {"name": "a", "namespace": "b", "port": 443}}});
        let own = "spec.service: Forbidden: the server serves this group version itself";
        assert_eq!(on_create(&RULES, service), [own]);
    }

    #[test]
    fn a_local_service_is_available_at_once() {
        let mut service = json!({"spec": {"version": "v1"}});
        prepare_create(&mut service);
        stamp_times(&mut service, None, "2026-01-01T00:00:00Z");
        let condition = &service["status"]["conditions"][0];
        assert_eq!(condition["reason"], "Local");
        assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }
}
