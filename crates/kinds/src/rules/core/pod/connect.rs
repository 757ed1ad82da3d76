//! Logs, exec and deletion of a pod: the decisions that need no node.

use k1s_object::{FieldError, Status};
use serde_json::Value;

use crate::rules::helpers::json::text_at;

/// The query parameters of a log request; numbers as sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogOptions<'a> {
    /// `tailLines`
    pub tail_lines: Option<i64>,
    /// `limitBytes`
    pub limit_bytes: Option<i64>,
    /// `sinceSeconds`
    pub since_seconds: Option<i64>,
    /// Whether `sinceTime` is given.
    pub since_time: bool,
    /// `stream`
    pub stream: Option<&'a str>,
}

/// Validates the query parameters of a log request, `PodLogOptions` of the core group.
pub fn validate_log_options(options: &LogOptions<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(lines) = options.tail_lines.filter(|lines| *lines < 0) {
        errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = options.limit_bytes.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
    }
    match options.since_seconds {
        Some(_) if options.since_time => errors
            .push(FieldError::forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified")),
        Some(seconds) if seconds < 1 => {
            errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
        }
        _ => {}
    }
    if options.stream.is_some() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    errors
}

/// The container that logs, exec and attach address: the one requested, or the only one.
pub fn container_name(pod: &Value, asked: &str) -> Result<String, Status> {
    let name = text_at(pod, &["metadata", "name"]);
    let of = |list: &str| -> Vec<&str> {
        let list = pod.pointer(list).and_then(Value::as_array);
        list.into_iter().flatten().map(|one| text_at(one, &["name"])).collect()
    };
    let all = [of("/spec/initContainers"), of("/spec/containers"), of("/spec/ephemeralContainers")].concat();
    if !asked.is_empty() {
        return if all.contains(&asked) {
            Ok(asked.to_owned())
        } else {
            Err(Status::bad_request(format!("container {asked} is not valid for pod {name}")))
        };
    }
    match of("/spec/containers").as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => Err(Status::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

/// The node that runs a pod, for exec, attach and port-forward.
pub fn host_of(pod: &Value) -> Result<&str, Status> {
    let node = text_at(pod, &["spec", "nodeName"]);
    if node.is_empty() {
        let name = text_at(pod, &["metadata", "name"]);
        return Err(Status::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(node)
}

/// The grace period of a deleted pod in seconds; 0 if it is not assigned to a node.
pub fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let ended = matches!(text_at(pod, &["status", "phase"]), "Failed" | "Succeeded");
    if text_at(pod, &["spec", "nodeName"]).is_empty() || ended {
        return 0;
    }
    match asked.or(own).unwrap_or(0) {
        period if period < 0 => 1,
        period => period,
    }
}
