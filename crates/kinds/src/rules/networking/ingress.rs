//! `Ingress`.

use crate::rules::{
    Rules,
    core::service::host_name,
    drop_status,
    helpers::{
        errors::invalid_each,
        json::find,
        network::{legacy_ip, port_number},
        text::{dns_label, dns_subdomain},
    },
    keep_status,
};
use k1s_object::{At, ip, names};
use serde_json::Value;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    validate: |ingress| {
        spec(ingress.get("spec"), None);
        class_annotation(ingress);
    },
    validate_update: |new, old| spec(new.get("spec"), Some(old.get("spec"))),
    validate_status,
    warnings,
    generation: true,
    ..Rules::PLAIN
};

fn class_annotation(ingress: At<'_, '_>) {
    let annotation = ingress.get("metadata").get("annotations").key(CLASS_ANNOTATION);
    let name = ingress.get("spec").get("ingressClassName");
    if let (Some(annotated), Some(name)) = (annotation.str(), name.str())
        && annotated != name
    {
        let at = ingress.get("annotations").get(CLASS_ANNOTATION);
        at.invalid_as(annotated, "must match `ingressClassName` when both are specified");
    }
}

/// Names and rules that are accepted because the stored object has invalid ones.
struct Allowed {
    secret_names: bool,
    wildcard_rules: bool,
}

fn spec(spec: At<'_, '_>, old: Option<At<'_, '_>>) {
    let (rules, default) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !default.is_set() {
        spec.invalid_as(
            rules.value().cloned().unwrap_or_default(),
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    let allowed = old.map_or(Allowed { secret_names: false, wildcard_rules: false }, allowed);
    if default.is_set() {
        backend(default);
    }
    for rule in rules.items() {
        let name = rule.get("host");
        let wildcard = name.text().contains('*');
        if !name.text().is_empty() {
            if ip::parse_ip_sloppy(name.text()).is_some() {
                name.invalid("must be a DNS name, not an IP address");
            }
            host(name);
        }
        if !(wildcard && allowed.wildcard_rules) {
            http(rule);
        }
    }
    for tls in spec.get("tls").items() {
        for name in tls.get("hosts").items() {
            host(name);
        }
        let secret = tls.get("secretName");
        if !allowed.secret_names && !secret.text().is_empty() {
            dns_subdomain(secret);
        }
    }
    if spec.get("ingressClassName").is_set() {
        dns_subdomain(spec.get("ingressClassName"));
    }
}

fn allowed(old: At<'_, '_>) -> Allowed {
    let bad_name = |tls: At<'_, '_>| {
        let name = tls.get("secretName").text();
        !name.is_empty() && !names::is_dns1123_subdomain(name).is_empty()
    };
    let bad_rule = |rule: At<'_, '_>| {
        let check = k1s_object::Check::new();
        rule.get("host").text().contains('*')
            && rule.value().is_some_and(|rule| {
                http(check.root(rule));
                !check.is_ok()
            })
    };
    Allowed {
        secret_names: old.get("tls").items().any(bad_name),
        wildcard_rules: old.get("rules").items().any(bad_rule),
    }
}

fn host(name: At<'_, '_>) {
    if name.text().contains('*') {
        invalid_each(name, names::is_wildcard_dns1123_subdomain(name.text()));
    } else {
        dns_subdomain(name);
    }
}

fn http(rule: At<'_, '_>) {
    if !rule.get("http").is_set() {
        return;
    }
    let paths = rule.get("http").get("paths");
    if paths.is_empty() {
        paths.required("");
    }
    for one in paths.items() {
        let (path, kind) = (one.get("path"), one.get("pathType"));
        if !kind.is_set() {
            kind.required("pathType must be specified");
            continue;
        }
        let absolute = path.text().starts_with('/');
        match kind.text() {
            "Exact" | "Prefix" => {
                if !absolute {
                    path.invalid_text("must be an absolute path");
                }
                for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                    if path.text().contains(sequence) {
                        path.invalid(format!("must not contain '{sequence}'"));
                    }
                }
                for suffix in ["/..", "/."] {
                    if path.text().ends_with(suffix) {
                        path.invalid(format!("cannot end with '{suffix}'"));
                    }
                }
            }
            "ImplementationSpecific" => {
                if !path.text().is_empty() && !absolute {
                    path.invalid("must be an absolute path");
                }
            }
            _ => kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"]),
        }
        backend(one.get("backend"));
    }
}

fn backend(backend: At<'_, '_>) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => backend.invalid_as("", "cannot set both resource and service backends"),
        (true, false) => typed_reference(resource),
        (false, true) => service_backend(backend, service),
        (false, false) => backend.invalid_as("", "resource or service backend is required"),
    }
}

fn service_backend(backend: At<'_, '_>, service: At<'_, '_>) {
    let name = service.get("name");
    if name.text().is_empty() {
        name.required("");
    } else {
        dns_label(name);
    }
    let (port_name, number) = (service.get("port").get("name"), service.get("port").get("number"));
    match (!port_name.text().is_empty(), number.number() != 0) {
        (true, true) => backend.invalid_as("", "cannot set both port name & port number"),
        (true, false) => invalid_each(port_name, names::is_valid_port_name(port_name.text())),
        (false, true) => port_number(number),
        (false, false) => backend.required("port name or number is required"),
    }
}

fn typed_reference(at: At<'_, '_>) {
    if at.get("apiGroup").is_set() {
        dns_subdomain(at.get("apiGroup"));
    }
    for field in ["kind", "name"] {
        let field = at.get(field);
        if field.text().is_empty() {
            field.required("");
        } else {
            invalid_each(field, names::is_path_segment_name(field.text()));
        }
    }
}

fn validate_status(new: At<'_, '_>, old: At<'_, '_>) {
    let before = old.get("status").get("loadBalancer").get("ingress");
    let before: Vec<&str> =
        before.items().map(|one| one.get("ip").text()).filter(|ip| !ip.is_empty()).collect();
    for one in new.get("status").get("loadBalancer").get("ingress").items() {
        if !one.get("ip").text().is_empty() {
            legacy_ip(one.get("ip"), &before);
        }
        host_name(one.get("hostname"));
    }
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let annotated = find(new, &["metadata", "annotations", CLASS_ANNOTATION]).is_some();
    if old.is_none() && annotated && find(new, &["spec", "ingressClassName"]).is_none() {
        out.push(format!(
            "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;
    use serde_json::json;

    fn with_path(path: &str, kind: Option<&str>) -> Value {
        let mut one = json!({"path": path, "backend": {"service": {"name": "s", "port": {"number": 80}}}});
        if let Some(kind) = kind {
            one["pathType"] = kind.into();
        }
        json!({"spec": {"rules": [{"http": {"paths": [one]}}]}})
    }

    #[test]
    fn paths_have_types_and_forms() {
        for (path, kind, error) in [
            ("/", None, "pathType: Required value: pathType must be specified"),
            ("x", Some("Prefix"), "path: Invalid value: \"x\": must be an absolute path"),
            ("/a//b", Some("Exact"), "path: Invalid value: \"/a//b\": must not contain '//'"),
            ("/a/..", Some("Exact"), "path: Invalid value: \"/a/..\": cannot end with '/..'"),
            (
                "/",
                Some("Regex"),
                "pathType: Unsupported value: \"Regex\": supported values: \"Exact\", \"ImplementationSpecific\", \
                 \"Prefix\"",
            ),
        ] {
            assert_eq!(
                testing::on_create(&RULES, with_path(path, kind)),
                [format!("spec.rules[0].http.paths[0].{error}")]
            );
        }
        assert!(testing::on_create(&RULES, with_path("", Some("ImplementationSpecific"))).is_empty());
    }

    #[test]
    fn an_ingress_needs_a_backend_or_rules() {
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {}})),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
        );
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {"defaultBackend": {"service": {}}}})),
            [
                "spec.defaultBackend.service.name: Required value",
                "spec.defaultBackend: Required value: port name or number is required",
            ]
        );
    }

    #[test]
    fn hosts_are_names() {
        let rules = json!([{"host": "1.2.3.4"}, {"host": "*.*.x"}]);
        let errors = testing::on_create(&RULES, json!({"spec": {"rules": rules}}));
        assert_eq!(
            errors[0],
            "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address"
        );
        assert!(
            errors[1]
                .starts_with("spec.rules[1].host: Invalid value: \"*.*.x\": a wildcard DNS-1123 subdomain")
        );
        assert_eq!(errors.len(), 2);
    }
}
