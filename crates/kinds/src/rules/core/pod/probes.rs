//! Probes and lifecycle hooks of containers.

use k1s_object::{At, names};

use crate::rules::helpers::{
    network::port_number_or_name,
    numbers::non_negative,
    text::{one_of_or_unset, required},
};

/// The properties of a pod that handlers are validated against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace<'v> {
    /// `terminationGracePeriodSeconds`
    pub(crate) period: Option<i64>,
    /// `os.name`, if there is an `os`
    pub(crate) os: Option<&'v str>,
}

/// All probes of a container, and its lifecycle.
pub(crate) fn all(container: At<'_, '_>, grace: Grace<'_>) {
    let hooks = container.get("lifecycle");
    if hooks.is_set() {
        lifecycle(hooks, grace);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let at = container.get(name);
        if !at.is_set() {
            continue;
        }
        probe(at, grace);
        if name == "readinessProbe" {
            let period = at.get("terminationGracePeriodSeconds");
            if period.is_set() {
                period.invalid("must not be set for readinessProbes");
            }
        } else if at.get("successThreshold").number() != 1 {
            at.get("successThreshold").invalid_as(at.get("successThreshold").number(), "must be 1");
        }
    }
}

fn probe(at: At<'_, '_>, grace: Grace<'_>) {
    handler(at, &["exec", "httpGet", "tcpSocket", "grpc"], grace);
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        non_negative(at.get(name));
    }
    let period = at.get("terminationGracePeriodSeconds");
    if period.is_set() && period.number() <= 0 {
        period.invalid("must be greater than 0");
    }
}

fn lifecycle(at: At<'_, '_>, grace: Grace<'_>) {
    for hook in ["postStart", "preStop"] {
        if at.get(hook).is_set() {
            handler(at.get(hook), &["exec", "httpGet", "tcpSocket", "sleep"], grace);
        }
    }
    let signal = at.get("stopSignal");
    if signal.is_set() && grace.os.is_none() {
        signal.forbidden("may not be set for containers with empty `spec.os.name`");
    } else if grace.os == Some("windows") {
        one_of_or_unset(signal, &["SIGKILL", "SIGTERM"]);
    }
}

fn handler(at: At<'_, '_>, kinds: &[&'static str], grace: Grace<'_>) {
    let mut count = 0;
    for kind in kinds {
        let action = at.get(kind);
        if !action.is_set() {
            continue;
        }
        if count > 0 {
            action.forbidden("may not specify more than 1 handler type");
            continue;
        }
        count += 1;
        match *kind {
            "exec" => required(action.get("command")),
            "httpGet" => http_get(action),
            "tcpSocket" => port_number_or_name(action.get("port")),
            "grpc" => {
                port_number_or_name(action.get("port"));
                one_of_or_unset(action.get("mode"), &["Plaintext", "TLS"]);
            }
            _ => {
                let seconds = action.get("seconds").number();
                if let Some(period) = grace.period
                    && !(0..=period).contains(&seconds)
                {
                    action.invalid_as(
                        seconds,
                        format!(
                            "must be non-negative and less than terminationGracePeriodSeconds ({period})"
                        ),
                    );
                }
            }
        }
    }
    if count == 0 {
        at.required("must specify a handler type");
    }
}

fn http_get(at: At<'_, '_>) {
    required(at.get("path"));
    port_number_or_name(at.get("port"));
    if !matches!(at.get("scheme").text(), "HTTP" | "HTTPS") {
        at.get("scheme").not_supported(&["HTTP", "HTTPS"]);
    }
    for header in at.get("httpHeaders").items() {
        let name = header.get("name").text();
        for message in names::is_http_header_name(name) {
            at.get("httpHeaders").invalid_as(name, message);
        }
    }
}
