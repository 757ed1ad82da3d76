//! Responses, and the parameters of requests.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use k1s::{BoxError, server::Status};
use serde_json::Value;

/// The body of any response.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn respond(
    code: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    typed(code, content_type, body)
}

pub(super) fn typed(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Indented, for people.
pub(super) fn json(code: StatusCode, value: &Value) -> Response<Body> {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    respond(code, JSON, text)
}

pub(super) fn failure(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, &status.to_json())
}

/// The parameters of a query. A name that is not known is an error: a filter with a typo would select everything.
pub(super) struct Parameters {
    pairs: Vec<(String, String)>,
}

impl Parameters {
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Parameters, Status> {
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
        match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(Parameters { pairs }),
            Some((name, _)) => {
                let known = known.join(", ");
                Err(Status::bad_request(format!("unknown parameter {name:?}: the parameters are {known}")))
            }
        }
    }

    /// The last value that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut values =
            self.pairs.iter().rev().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        values.find(|value| !value.is_empty())
    }

    /// The parts of all values, separated by commas.
    pub(super) fn list<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        let values = self.pairs.iter().filter(move |(key, _)| key == name);
        values.flat_map(|(_, value)| value.split(',')).map(str::trim).filter(|part| !part.is_empty())
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Status> {
        match self.get(name) {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(Status::bad_request(format!("{name}: {other:?} is neither true nor false"))),
        }
    }
}
