//! What is looked at in every answer of a server: its code, for metrics, and its warnings, for the log.

use std::{collections::HashSet, sync::Arc};

use http::{HeaderMap, Method, Response, header};
use hyper_util::client::legacy::connect::HttpInfo;
use kube::client::Body;
use parking_lot::{Mutex, RwLock};

use super::RestMetrics;

/// So many different warnings are remembered; then they are told again.
const REMEMBERED: usize = 1000;

/// Shared by a client and the cache that it reads from.
#[derive(Debug)]
pub(crate) struct Telemetry {
    metrics: Option<RestMetrics>,
    /// Whether the host was given, or is learned from answers.
    learns: bool,
    host: RwLock<Arc<str>>,
    /// Warnings that were logged; `None`: none are.
    warned: Option<Mutex<HashSet<String>>>,
}

impl Telemetry {
    /// Without a host, it is the address that answers come from.
    pub(crate) fn new(metrics: Option<RestMetrics>, host: Arc<str>, log_warnings: bool) -> Telemetry {
        let learns = host.is_empty();
        let host = if learns { "unknown".into() } else { host };
        Telemetry { metrics, learns, host: RwLock::new(host), warned: log_warnings.then(Mutex::default) }
    }

    /// A request was answered, or not.
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
        // `kube::Client` does not tell which server it talks to; its connections do.
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

    /// The warnings of an answer that are to be logged.
    fn new_warnings(&self, headers: &HeaderMap) -> Vec<String> {
        let Some(warned) = &self.warned else { return Vec::new() };
        let values = headers.get_all(header::WARNING).iter();
        let texts = values.flat_map(|value| warnings(&String::from_utf8_lossy(value.as_bytes())));
        texts
            .filter(|text| {
                let mut warned = warned.lock();
                if warned.len() == REMEMBERED && !warned.contains(text) {
                    warned.clear();
                }
                warned.insert(text.clone())
            })
            .collect()
    }
}

/// The texts of a `Warning` header: `299 - "text"`, and more of them after commas. Other codes are of caches between, and
/// not for us.
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
        // A date in quotes may follow; then a comma, and the next one.
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
    fn a_warning_is_logged_once_or_not_at_all() {
        let mut headers = HeaderMap::new();
        headers.append(header::WARNING, r#"299 - "one", 299 - "two", 299 - "one""#.parse().unwrap());
        headers.append(header::WARNING, r#"299 - "three""#.parse().unwrap());
        let telemetry = Telemetry::new(None, "".into(), true);
        assert_eq!(telemetry.new_warnings(&headers), ["one", "two", "three"]);
        assert!(telemetry.new_warnings(&headers).is_empty());
        assert!(Telemetry::new(None, "".into(), false).new_warnings(&headers).is_empty());
    }

    #[test]
    fn warnings_are_read_out_of_their_header() {
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
