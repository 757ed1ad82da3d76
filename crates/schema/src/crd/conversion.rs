//! Validation of `spec.conversion`.

use k1s_object::{
    field::{Check, FieldError},
    names,
};
use serde_json::Value;

const AT: &str = "spec.conversion";

fn texts(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The error in the CA bundle of a webhook. Only its form is checked.
pub(crate) fn ca_bundle_error(conversion: &Value) -> Option<&'static str> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let bundle = conversion.get("webhook")?.get("clientConfig")?.get("caBundle")?.as_str()?;
    let decoded = STANDARD.decode(bundle).unwrap_or_default();
    let is_pem = decoded.is_empty() || String::from_utf8_lossy(&decoded).contains("-----BEGIN ");
    (!is_pem).then_some("unable to load root certificates: unable to parse bytes as PEM block")
}

/// Validates the conversion of a definition.
pub(super) fn check(conversion: &Value, check_ca: bool, check: &Check<'_>) {
    let strategy = conversion.get("strategy").and_then(Value::as_str).unwrap_or_default();
    match strategy {
        "" => check.push(FieldError::required(format!("{AT}.strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            check.push(FieldError::not_supported(format!("{AT}.strategy"), other, &["None", "Webhook"]));
        }
    }
    let webhook = conversion.get("webhook");
    let config = webhook.and_then(|webhook| webhook.get("clientConfig"));
    let reviews = webhook.and_then(|webhook| webhook.get("conversionReviewVersions"));
    if strategy != "Webhook" {
        const DETAIL: &str = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            check.push(FieldError::forbidden(format!("{AT}.webhookClientConfig"), DETAIL));
        }
        if !texts(reviews).is_empty() {
            check.push(FieldError::forbidden(format!("{AT}.conversionReviewVersions"), DETAIL));
        }
        return;
    }
    match config {
        None => check.push(FieldError::required(
            format!("{AT}.webhookClientConfig"),
            "required when strategy is set to Webhook",
        )),
        Some(config) => {
            match (config.get("url").and_then(Value::as_str), config.get("service")) {
                (Some(url), None) => check_url(url, check),
                (None, Some(service)) => check_service(service, check),
                _ => check.push(FieldError::required(
                    format!("{AT}.webhookClientConfig"),
                    "exactly one of url or service is required",
                )),
            }
            if let Some(error) = ca_bundle_error(conversion).filter(|_| check_ca) {
                let bundle = config.get("caBundle").cloned().unwrap_or_default();
                check.push(FieldError::invalid(format!("{AT}.webhookClientConfig.caBundle"), bundle, error));
            }
        }
    }
    check_reviews(&texts(reviews), check);
}

fn check_reviews(versions: &[&str], check: &Check<'_>) {
    let at = format!("{AT}.conversionReviewVersions");
    if versions.is_empty() {
        check.push(FieldError::required(at, ""));
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(*version) {
            check.push(FieldError::invalid(format!("{at}[{index}]"), *version, "duplicate version"));
            continue;
        }
        for error in names::is_dns1035_label(version) {
            check.push(FieldError::invalid(format!("{at}[{index}]"), *version, error));
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        check.push(FieldError::invalid(
            at,
            Value::from(versions.to_vec()),
            "must include at least one of v1, v1beta1",
        ));
    }
}

fn check_url(url: &str, check: &Check<'_>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let at = format!("{AT}.webhookClientConfig.url");
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if !scheme.is_empty() && !scheme.contains('/') => {
            (scheme.to_ascii_lowercase(), rest)
        }
        _ => (String::new(), rest),
    };
    let authority = rest.strip_prefix("//").unwrap_or_default().split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        check.push(FieldError::invalid(at.as_str(), scheme, detail));
    }
    if host.is_empty() {
        check.push(FieldError::invalid(at.as_str(), "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        check.push(FieldError::invalid(at.as_str(), user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        check.push(FieldError::invalid(at.as_str(), fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        check.push(FieldError::invalid(at.as_str(), query, "query parameters are not permitted in the URL"));
    }
}

fn check_service(service: &Value, check: &Check<'_>) {
    let at = format!("{AT}.webhookClientConfig.service");
    let text = |key: &str| service.get(key).and_then(Value::as_str);
    // Each of the two errors has the other's field name, as in kube-apiserver.
    if text("namespace").unwrap_or_default().is_empty() {
        check.push(FieldError::required(format!("{at}.name"), ""));
    }
    if text("name").unwrap_or_default().is_empty() {
        check.push(FieldError::required(format!("{at}.namespace"), ""));
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
    if !(1..=65535).contains(&port) {
        check.push(FieldError::invalid(
            format!("{at}.port"),
            port,
            "port is not valid: must be between 1 and 65535, inclusive",
        ));
    }
    let Some(path) = text("path").filter(|path| !matches!(*path, "" | "/")) else { return };
    let at = format!("{at}.path");
    if path == "//" {
        check.push(FieldError::invalid(at, path, "segment[0] may not be empty"));
        return;
    }
    if !path.starts_with('/') {
        check.push(FieldError::invalid(at.as_str(), path, "must start with a '/'"));
    }
    let inner = path.get(1..).unwrap_or_default();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            check.push(FieldError::invalid(at.as_str(), path, format!("segment[{index}] may not be empty")));
            continue;
        }
        for error in names::is_dns1123_subdomain(segment) {
            check.push(FieldError::invalid(at.as_str(), path, format!("segment[{index}]: {error}")));
        }
    }
}
