//! Routes requests of an endpoint by path.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;

use super::{
    AccessReview, Checks,
    exposition::{OPENMETRICS, PLAIN, plain, wants_openmetrics},
};
use crate::{
    Metrics,
    debug::{self, DebugPages, Page},
};

/// A complete response.
pub(super) type Answer = Response<Full<Bytes>>;

/// The paths of an endpoint, and what they serve.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    checks: BTreeMap<String, Checks>,
    metrics: BTreeMap<String, Metrics>,
    debug: Option<DebugPages>,
    access: Option<AccessReview>,
}

impl Routes {
    /// No routes.
    #[must_use]
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Serves checks at a path, `/healthz` for example: all of them at the path, each below it by its name. `?verbose` lists
    /// them, `?exclude=NAME` excludes one.
    #[must_use]
    pub fn checks(mut self, path: &str, checks: &Checks) -> Routes {
        self.checks.insert(normalized(path), checks.clone());
        self
    }

    /// Serves metrics at a path, `/metrics` for example: as OpenMetrics if the client accepts it, else as plain text.
    #[must_use]
    pub fn metrics(mut self, path: &str, metrics: &Metrics) -> Routes {
        self.metrics.insert(normalized(path), metrics.clone());
        self
    }

    /// Serves the pages of `/debug/pprof`.
    pub(crate) fn debug(mut self, pages: DebugPages) -> Routes {
        self.debug = Some(pages);
        self
    }

    /// Serves only clients that the API server authenticates and authorizes.
    #[must_use]
    pub fn protected(mut self, access: AccessReview) -> Routes {
        self.access = Some(access);
        self
    }

    pub(super) async fn answer<B>(&self, request: &Request<B>) -> Answer {
        if let Some(access) = &self.access
            && let Err((status, message)) =
                access.check(request.method(), request.uri().path(), request.headers()).await
        {
            return text(status, format!("{message}\n"));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let path = normalized(request.uri().path());
        if let Some(metrics) = self.metrics.get(&path) {
            return exposed(metrics, request);
        }
        if let Some(pages) = &self.debug
            && let Some(name) = path.strip_prefix(debug::ROOT)
            && (name.is_empty() || name.starts_with('/'))
        {
            let name = name.trim_start_matches('/');
            return page(pages.answer(name, request.uri().query().unwrap_or_default()).await);
        }
        if let Some(checks) = self.checks.get(&path) {
            return all(checks, request.uri().query().unwrap_or_default()).await;
        }
        // Longest prefix first, so that nested paths are found.
        for (prefix, checks) in self.checks.iter().rev() {
            let rest = path.strip_prefix(prefix.as_str());
            let name = rest.and_then(|rest| if prefix == "/" { Some(rest) } else { rest.strip_prefix('/') });
            if let Some(name) = name {
                return one(checks, name).await;
            }
        }
        not_found()
    }
}

async fn all(checks: &Checks, query: &str) -> Answer {
    let (mut verbose, mut exclude) = (false, Vec::new());
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "verbose" => verbose = true,
            "exclude" => exclude.push(value.into_owned()),
            _ => {}
        }
    }
    let report = checks.report(&exclude, verbose).await;
    text(if report.healthy { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, report.text)
}

async fn one(checks: &Checks, name: &str) -> Answer {
    match checks.run(name).await {
        None => not_found(),
        Some(Ok(())) => text(StatusCode::OK, "ok"),
        Some(Err(reason)) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
        }
    }
}

fn exposed<B>(metrics: &Metrics, request: &Request<B>) -> Answer {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let (body, content_type) = if wants_openmetrics(accept) {
        (metrics.encode(), OPENMETRICS)
    } else {
        (plain(&metrics.encode()), PLAIN)
    };
    answer(StatusCode::OK, body, content_type)
}

fn page(Page { status, content_type, file, body }: Page) -> Answer {
    let mut answer = answer(status, body, content_type);
    if let Some(file) = file
        && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{file}\""))
    {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, body, "text/plain; charset=utf-8")
}

fn answer(status: StatusCode, body: impl Into<Bytes>, content_type: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Normalizes a path: one slash before each segment, none at the end.
fn normalized(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized() {
        assert_eq!(normalized(""), "/");
        assert_eq!(normalized("healthz"), "/healthz");
        assert_eq!(normalized("//healthz//ping/"), "/healthz/ping");
    }
}
