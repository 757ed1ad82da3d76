//! Why a webhook could not be called, in the words of client-go.

use http::StatusCode;
use k1s_object::{Status, field::quote};

/// Maximum bytes of an unexpected answer in an error.
const MAX_SHOWN: usize = 2048;

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// There was no usable answer.
    #[error("{0}")]
    Failed(String),
    /// The webhook answered with an error.
    #[error("{message}")]
    Answered { code: u16, message: String },
    /// No address is configured for its Service.
    #[error("Post {}: the address of its service is not known", quote(url))]
    Unresolved { url: String },
}

impl CallError {
    pub(super) fn post(url: &str, why: &str) -> CallError {
        CallError::Failed(format!("Post {}: {why}", quote(url)))
    }

    /// The status code that metrics show.
    pub(crate) fn code(&self) -> u16 {
        match self {
            CallError::Answered { code, .. } => *code,
            CallError::Failed(_) | CallError::Unresolved { .. } => 503,
        }
    }
}

/// An error for any answer but 2xx.
pub(super) fn check(status: StatusCode, body: &[u8]) -> Result<(), CallError> {
    if status.is_success() {
        return Ok(());
    }
    let code = status.as_u16();
    // A Status in the body says it best.
    if let Ok(found) = serde_json::from_slice::<serde_json::Value>(body)
        && found["kind"] == "Status"
        && found["apiVersion"] == "v1"
        && let Some(message) = found["message"].as_str().filter(|message| !message.is_empty())
    {
        return Err(CallError::Answered { code, message: message.to_owned() });
    }
    let shown = body.get(..MAX_SHOWN).unwrap_or(body);
    let text = String::from_utf8_lossy(shown).trim().to_owned();
    let unknown = || "unknown".to_owned();
    let said = if text.is_empty() { unknown() } else { text };
    let message = match code {
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => said,
        404 => Status::no_such_resource().message,
        405 => Status::method_not_allowed().message,
        406 => "the server was unable to respond with a content type that the client supports".into(),
        409 => "the server reported a conflict".into(),
        410 => "the server could not find the requested resource".into(),
        413 => format!("Request entity too large: {said}"),
        415 => "the body of the request was in an unknown format - accepted media types include: ".to_owned(),
        422 => "the server rejected our request due to an error in our request".into(),
        429 => "the server has received too many requests and has asked us to try again later".into(),
        400 => "the server rejected our request for an unknown reason".into(),
        503 => "the server is currently unable to handle the request".into(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".into(),
        500.. => format!("an error on the server ({}) has prevented the request from succeeding", quote(&said)),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    };
    Err(CallError::Answered { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_other_than_success() {
        let check = |code: u16, body: &str| {
            check(StatusCode::from_u16(code).unwrap(), body.as_bytes()).map_err(|error| error.to_string())
        };
        assert_eq!(check(200, "anything"), Ok(()));
        assert_eq!(
            check(500, "panic: oops [recovered]\n"),
            Err("an error on the server (\"panic: oops [recovered]\") has prevented the request from succeeding".into())
        );
        assert_eq!(
            check(502, ""),
            Err("an error on the server (\"unknown\") has prevented the request from succeeding".into())
        );
        assert_eq!(
            check(404, "404 page not found"),
            Err("the server could not find the requested resource".into())
        );
        assert_eq!(
            check(418, ""),
            Err("the server responded with the status code 418 but did not return more information".into())
        );
        let status = r#"{"kind":"Status","apiVersion":"v1","message":"go away","code":403}"#;
        assert_eq!(check(403, status), Err("go away".into()));
        assert_eq!(CallError::Answered { code: 403, message: String::new() }.code(), 403);
    }
}
