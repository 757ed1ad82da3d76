//! `rest_client_requests_total`: the requests of clients, by code, method and host.

use std::{borrow::Cow, sync::Arc};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use crate::Metrics;

/// The metrics of clients. Create one per registry, and share it among its clients.
#[derive(Debug, Clone)]
pub struct RestMetrics {
    requests: Family<Labels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: Cow<'static, str>,
    method: Cow<'static, str>,
    host: Arc<str>,
}

impl RestMetrics {
    /// Registers the metrics. A second call for the same registry would register them twice: clone instead.
    #[must_use]
    pub fn new(metrics: &Metrics) -> RestMetrics {
        let requests = Family::default();
        metrics.register(|registry| {
            registry.register(
                "rest_client_requests",
                "Number of HTTP requests, partitioned by status code, method, and host",
                requests.clone(),
            );
        });
        RestMetrics { requests }
    }

    /// Counts a request; without a code, it got no response.
    pub(crate) fn count(&self, code: Option<http::StatusCode>, method: &http::Method, host: &Arc<str>) {
        let code = match code.map(|code| code.as_u16()) {
            None => Cow::Borrowed("<error>"),
            Some(200) => Cow::Borrowed("200"),
            Some(201) => Cow::Borrowed("201"),
            Some(404) => Cow::Borrowed("404"),
            Some(409) => Cow::Borrowed("409"),
            Some(code) => Cow::Owned(code.to_string()),
        };
        let method = match method.as_str() {
            "GET" => Cow::Borrowed("GET"),
            "POST" => Cow::Borrowed("POST"),
            "PUT" => Cow::Borrowed("PUT"),
            "PATCH" => Cow::Borrowed("PATCH"),
            "DELETE" => Cow::Borrowed("DELETE"),
            other => Cow::Owned(other.to_owned()),
        };
        self.requests.get_or_create(&Labels { code, method, host: Arc::clone(host) }).inc();
    }
}
