//! Errors of commands, in kubectl's words: scripts compare them.

use std::fmt::Write as _;

use serde_json::Value;

/// Why a command failed, or ended with another exit code than 0.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The server's Status.
    #[error("{}", refused(.status))]
    Refused { status: Value },
    /// The server cannot be reached, or did not answer.
    #[error("{0}")]
    Connection(String),
    /// Anything else: what the user asked for cannot be done.
    #[error("error: {0}")]
    Failed(String),
    /// Several failures, already complete.
    #[error("{}", .0.iter().map(Error::among_others).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Error>),
    /// Everything was said already.
    #[error("")]
    Exit(u8),
}

impl Error {
    pub(crate) fn failed(message: impl Into<String>) -> Error {
        Error::Failed(message.into())
    }

    /// One error for all that went wrong; `Ok` if nothing did.
    pub(crate) fn all(mut errors: Vec<Error>) -> Result<(), Error> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Error::Several(errors)),
        }
    }

    /// One of several errors, which kubectl tells more plainly.
    fn among_others(&self) -> String {
        match self {
            Error::Failed(message) => message.clone(),
            Error::Refused { status } => plainly(status),
            other => other.to_string(),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Error::Exit(code) => *code,
            _ => 1,
        }
    }

    fn status(&self) -> Option<&Value> {
        match self {
            Error::Refused { status } => Some(status),
            _ => None,
        }
    }

    pub(crate) fn reason(&self) -> &str {
        self.status().and_then(|status| status["reason"].as_str()).unwrap_or_default()
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.reason() == "NotFound"
    }

    /// A watch cannot continue where it ended.
    pub(crate) fn is_expired(&self) -> bool {
        matches!(self.reason(), "Expired" | "Gone")
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.reason() == "Conflict"
    }

    /// With what was being done, in front of the server's message: `error when creating "web.yaml"`.
    pub(crate) fn when(self, doing: &str, source: &str) -> Error {
        match self {
            Error::Refused { mut status } => {
                let message = status["message"].as_str().unwrap_or_default();
                status["message"] = format!("error when {doing} {source:?}: {message}").into();
                Error::Refused { status }
            }
            other => other,
        }
    }
}

/// kubectl's text for a Status.
fn refused(status: &Value) -> String {
    let message = status["message"].as_str().unwrap_or_default();
    let reason = status["reason"].as_str().unwrap_or_default();
    match reason {
        "Invalid" => invalid(status, message),
        "Unauthorized" => format!("error: You must be logged in to the server ({message})"),
        _ => plainly(status),
    }
}

fn plainly(status: &Value) -> String {
    let message = status["message"].as_str().unwrap_or_default();
    match status["reason"].as_str().unwrap_or_default() {
        "" => format!("Error from server: {message}"),
        reason => format!("Error from server ({reason}): {message}"),
    }
}

fn invalid(status: &Value, message: &str) -> String {
    let text = |field: &str| status["details"][field].as_str().unwrap_or_default();
    if !status["details"].is_object() {
        return format!("The request is invalid: {message}");
    }
    let mut out = "The request is invalid".to_owned();
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !text("kind").is_empty() || !text("name").is_empty() {
        out = format!("The {} {:?} is invalid", text("kind"), text("name"));
    } else if causes.is_empty() && !message.is_empty() {
        let _ = write!(out, ": {message}");
    }
    let mut lines: Vec<String> = Vec::new();
    for cause in causes {
        let part = |field: &str| cause[field].as_str().unwrap_or_default();
        let line = format!("{}: {}", part("field"), part("message"));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.as_slice() {
        [] => {}
        [line] => {
            let _ = write!(out, ": {line}");
        }
        lines => {
            out.push_str(": ");
            for line in lines {
                let _ = write!(out, "\n* {line}");
            }
        }
    }
    out
}

/// The server at this address could not be reached, or has broken the connection.
pub(crate) fn unreached(error: &kube::Error, server: &str) -> Error {
    let text = chain(error);
    if text.contains("Connection refused") {
        return Error::Connection(format!(
            "The connection to the server {server} was refused - did you specify the right host or port?"
        ));
    }
    Error::Connection(format!("Unable to connect to the server: {server}: {text}"))
}

/// An error and its causes, without those that repeat the one before.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn two_causes() -> Value {
        json!({"reason": "Invalid", "message": "all", "details": {"kind": "Pod", "name": "x", "causes": [
            {"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Required value"}
        ]}})
    }

    #[test]
    fn a_status_is_told_in_the_words_of_kubectl() {
        let told = |status: Value| Error::Refused { status }.to_string();
        assert_eq!(
            told(json!({"reason": "NotFound", "message": "pods \"x\" not found"})),
            "Error from server (NotFound): pods \"x\" not found"
        );
        assert_eq!(told(json!({"message": "no"})), "Error from server: no");
        let invalid = json!({"reason": "Invalid", "message": "all", "details": {"kind": "Pod", "name": "x", "causes": [
            {"field": "spec.a", "message": "Required value"}
        ]}});
        assert_eq!(told(invalid), "The Pod \"x\" is invalid: spec.a: Required value");
        let two = json!({"reason": "Invalid", "message": "all", "details": {"kind": "Pod", "name": "x", "causes": [
            {"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Required value"}
        ]}});
        assert_eq!(
            told(two),
            "The Pod \"x\" is invalid: \n* spec.a: Required value\n* spec.b: Required value"
        );
        let several = vec![Error::failed("this"), Error::Refused { status: two_causes() }];
        assert_eq!(Error::all(several).unwrap_err().to_string(), "this\nError from server (Invalid): all");
        let error = Error::Refused { status: json!({"reason": "AlreadyExists", "message": "m"}) };
        assert_eq!(
            error.when("creating", "f.yaml").to_string(),
            "Error from server (AlreadyExists): error when creating \"f.yaml\": m"
        );
    }
}
