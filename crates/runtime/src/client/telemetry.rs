//! Counts the server's responses by code, and logs their warnings.

use std::{collections::HashSet, sync::Arc};

use http::{HeaderMap, Method, Response, header};
use hyper_util::client::legacy::connect::HttpInfo;
use kube::client::Body;
use parking_lot::{Mutex, RwLock};

use super::RestMetrics;

/// Maximum number of distinct warnings to remember; after that, they are logged again.
const MAX_WARNINGS: usize = 1000;

/// Shared by a client and the cache that it reads from.
#[derive(Debug)]
pub(crate) struct Telemetry {
    metrics: Option<RestMetrics>,
    /// Whether the host is taken from responses, because none was given.
    learns: bool,
    host: RwLock<Arc<str>>,
    /// Warnings that were logged; `None` disables logging.
    warned: Option<Mutex<HashSet<String>>>,
}

impl Telemetry {
    /// An empty `host` is replaced by the remote address of responses.
    pub(crate) fn new(metrics: Option<RestMetrics>, host: Arc<str>, log_warnings: bool) -> Telemetry {
        let learns = host.is_empty();
        let host = if learns { "unknown".into() } else { host };
        Telemetry { metrics, learns, host: RwLock::new(host), warned: log_warnings.then(Mutex::default) }
    }

    /// Records the response to a request; `None` if there was none.
    pub(crate) fn answered(&self, method: &Method, answer: Option<&Response<Body>>) {
        if let Some(answer) = answer {
            self.learn(answer);
            self.warn(answer.headers());
        }
        if let Some(metrics) = &self.metrics {
            metrics.count(answer.map(Response::status), method, &self.host.read());
        }
    }

    fn learn(&self, answer: &Response<Body>) {
        if !self.learns || self.metrics.is_none() {
            return;
        }
        // `kube::Client` does not expose the server's address; its connections do.
        let remote = answer.extensions().get::<HttpInfo>().map(HttpInfo::remote_addr);
        let host = remote.map_or_else(|| "in-process".to_owned(), |remote| remote.to_string());
        if **self.host.read() != *host {
            *self.host.write() = host.into();
        }
    }

    /// Logs each warning once.
    fn warn(&self, headers: &HeaderMap) {
        for text in self.new_warnings(headers) {
            tracing::warn!("{text}");
        }
    }

    /// The warnings of a response that were not logged before.
    fn new_warnings(&self, headers: &HeaderMap) -> Vec<String> {
        let Some(warned) = &self.warned else { return Vec::new() };
        let values = headers.get_all(header::WARNING).iter();
        let texts = values.flat_map(|value| warnings(&String::from_utf8_lossy(value.as_bytes())));
        texts
            .filter(|text| {
                let mut warned = warned.lock();
                if warned.len() == MAX_WARNINGS && !warned.contains(text) {
                    warned.clear();
                }
                warned.insert(text.clone())
            })
            .collect()
    }
}

/// The texts of a `Warning` header: `299 - "text"`, separated by commas. Other codes come from intermediate caches, and are
/// ignored.
fn warnings(value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = value.trim_start();
    while !rest.is_empty() {
        let mut words = rest.splitn(3, ' ');
        let (Some(code), Some(_agent), Some(quoted)) = (words.next(), words.next(), words.next()) else {
            break;
        };
        let Some(quoted) = quoted.strip_prefix('"') else { break };
        let mut text = String::new();
        let mut escaped = false;
        let mut end = None;
        for (at, c) in quoted.char_indices() {
            match c {
                _ if escaped => {
                    text.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                _ => text.push(c),
            }
        }
        let Some(end) = end else { break };
        if code == "299" && !text.is_empty() {
            texts.push(text);
        }
        // A quoted date may follow; then a comma, and the next warning.
        let mut after = quoted[end..].trim_start();
        if let Some(date) = after.strip_prefix('"') {
            after = date.split_once('"').map_or("", |(_, after)| after.trim_start());
        }
        rest = after.strip_prefix(',').unwrap_or_default().trim_start();
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_logged_once_unless_disabled() {
        let mut headers = HeaderMap::new();
        headers.append(header::WARNING, r#"299 - "one", 299 - "two", 299 - "one""#.parse().unwrap());
        headers.append(header::WARNING, r#"299 - "three""#.parse().unwrap());
        let telemetry = Telemetry::new(None, "".into(), true);
        assert_eq!(telemetry.new_warnings(&headers), ["one", "two", "three"]);
        assert!(telemetry.new_warnings(&headers).is_empty());
        assert!(Telemetry::new(None, "".into(), false).new_warnings(&headers).is_empty());
    }

    #[test]
    fn warning_headers_are_parsed() {
        assert_eq!(warnings(r#"299 - "it is \"deprecated\"""#), [r#"it is "deprecated""#]);
        assert_eq!(
            warnings(r#"299 - "one, two" "Wed, 21 Oct 2015 07:28:00 GMT", 299 kube-apiserver "three""#),
            ["one, two", "three"]
        );
        assert_eq!(warnings(r#"299 - "one",299 - "two""#), ["one", "two"]);
        assert_eq!(warnings(r#"110 - "stale", 299 - "mine""#), ["mine"]);
        for odd in ["", "299", "299 -", "299 - text", r#"299 - "open"#, r#"299 - """#] {
            assert!(warnings(odd).is_empty(), "{odd}");
        }
    }
}
