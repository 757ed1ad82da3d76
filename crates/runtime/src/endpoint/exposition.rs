//! Metrics as text: OpenMetrics, and the older Prometheus format.

use crate::Metrics;

pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in Prometheus' text format: for a program that serves them on an endpoint of its own.
#[must_use]
pub fn prometheus_text(metrics: &Metrics) -> String {
    plain(&metrics.encode())
}

/// Whether an `Accept` header includes OpenMetrics.
pub(super) fn wants_openmetrics(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| {
        accept.split(',').any(|kind| {
            let mut parts = kind.split(';').map(str::trim);
            let named =
                parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            named
                && !parts.any(|part| matches!(part.strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000")))
        })
    })
}

/// Converts OpenMetrics to the older format, where a counter has the name of its sample. Unsupported lines are dropped.
pub(super) fn plain(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len() + 256);
    let mut help: Option<(&str, &str)> = None;
    for line in openmetrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            flush_help(&mut text, help.take(), "");
            text.push_str(without_exemplar(line));
            text.push('\n');
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("HELP"), Some(name), words) => {
                flush_help(&mut text, help.take(), "");
                help = Some((name, words.unwrap_or_default()));
            }
            (Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "unknown" | "gaugehistogram" => ("", "untyped"),
                    kind => ("", kind),
                };
                flush_help(&mut text, help.take(), suffix);
                text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            _ => {}
        }
    }
    flush_help(&mut text, help, "");
    text
}

fn flush_help(text: &mut String, help: Option<(&str, &str)>, suffix: &str) {
    if let Some((name, words)) = help {
        text.push_str(&format!("# HELP {name}{suffix} {words}\n"));
    }
}

/// Removes the exemplar after a sample's value. Quoted label values may contain the same characters.
fn without_exemplar(line: &str) -> &str {
    let after_labels = line.match_indices(" # {").map(|(at, _)| at).find(|at| {
        let quotes = line[..*at].replace("\\\\", "").replace("\\\"", "").matches('"').count();
        quotes.is_multiple_of(2)
    });
    after_labels.map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_sent_if_it_is_accepted() {
        assert!(!wants_openmetrics(None));
        assert!(!wants_openmetrics(Some("*/*")));
        assert!(!wants_openmetrics(Some("application/openmetrics-text;q=0, text/plain")));
        assert!(wants_openmetrics(Some(
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5"
        )));
    }

    #[test]
    fn the_older_format_names_counters_by_their_samples() {
        let openmetrics = "# HELP reconciles All of them.\n# TYPE reconciles counter\n# UNIT reconciles x\n\
            reconciles_total{controller=\"a # {b} \\\" \"} 7 # {trace=\"1\"} 1.0\n\
            # HELP depth How deep.\n# TYPE depth gauge\ndepth 3\n# EOF\n";
        assert_eq!(
            plain(openmetrics),
            "# HELP reconciles_total All of them.\n# TYPE reconciles_total counter\n\
             reconciles_total{controller=\"a # {b} \\\" \"} 7\n\
             # HELP depth How deep.\n# TYPE depth gauge\ndepth 3\n"
        );
    }
}
