//! Documents with an entity tag: OpenAPI and discovery.

use http::{HeaderMap, HeaderValue, Response, header};

use super::bytes;
use crate::{body::Body, documents::Document};

/// The response to a request for a document: 304 without a body if the client has it already.
pub(crate) fn document(
    document: &Document,
    content_type: &'static str,
    headers: &HeaderMap,
) -> Response<Body> {
    let tag = format!("\"{}\"", document.hash);
    let mut response = match is_known(headers, &tag) {
        true => bytes(304, content_type, Body::empty()),
        false => bytes(200, content_type, document.body.clone()),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Whether `If-None-Match` of the client matches this tag.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_others() {
        let known = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))]);
            is_known(&headers, "\"A\"")
        };
        assert!(known("\"A\"") && known("\"B\", W/\"A\"") && known("*"));
        assert!(!known("\"B\"") && !known("A") && !known(""));
    }
}
