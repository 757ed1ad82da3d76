//! Reads an object for its row: fields by path, ages, labels and selectors.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::codec::scalars::{self, Instant, Layout};

/// An object and the current time.
#[derive(Clone, Copy)]
pub(super) struct Object<'v> {
    value: &'v Value,
    now: Timestamp,
}

impl<'v> Object<'v> {
    pub(super) fn new(value: &'v Value, now: Timestamp) -> Object<'v> {
        Object { value, now }
    }

    /// The field at a path such as `spec.replicas`, unless it is null.
    pub(super) fn get(&self, path: &str) -> Option<&'v Value> {
        get(self.value, path)
    }

    pub(super) fn at(&self, path: &str) -> Object<'v> {
        Object { value: self.get(path).unwrap_or(&Value::Null), now: self.now }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// A string, empty when there is none.
    pub(super) fn text(&self, path: &str) -> &'v str {
        self.get(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A string, or `none` if it is empty.
    pub(super) fn text_or(&self, path: &str, none: &'v str) -> &'v str {
        let text = self.text(path);
        if text.is_empty() { none } else { text }
    }

    /// A string behind a pointer, or `unset` if it is not set.
    pub(super) fn set_or(&self, path: &str, unset: &'v str) -> &'v str {
        self.get(path).and_then(Value::as_str).unwrap_or(unset)
    }

    pub(super) fn int(&self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn is(&self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn items(&self, path: &str) -> &'v [Value] {
        self.get(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The items of a list, each as an object.
    pub(super) fn objects(&self, path: &str) -> impl DoubleEndedIterator<Item = Object<'v>> + use<'v> {
        let now = self.now;
        self.items(path).iter().map(move |value| Object { value, now })
    }

    pub(super) fn map(&self, path: &str) -> Option<&'v Map<String, Value>> {
        self.get(path).and_then(Value::as_object)
    }

    /// The number of entries of a list or map.
    pub(super) fn count(&self, path: &str) -> usize {
        match self.get(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    pub(super) fn name(&self) -> Value {
        Value::from(self.text("metadata.name"))
    }

    /// The time since creation.
    pub(super) fn age(&self) -> Value {
        Value::from(self.since("metadata.creationTimestamp"))
    }

    /// The creation time; Go's zero time if missing.
    pub(super) fn created_at(&self) -> Value {
        Value::from(self.text_or("metadata.creationTimestamp", "0001-01-01T00:00:00Z"))
    }

    /// The instant at a path, of either precision.
    pub(super) fn instant(&self, path: &str) -> Option<Instant> {
        instant(self.text(path))
    }

    /// The time since an instant.
    pub(super) fn since(&self, path: &str) -> String {
        self.instant(path).map_or_else(|| "<unknown>".to_owned(), |then| self.ago(then))
    }

    pub(super) fn ago(&self, then: Instant) -> String {
        human_duration(self.now.as_nanosecond() - nanoseconds(then))
    }

    /// A condition's status.
    pub(super) fn condition(&self, path: &str, wanted: &str) -> Option<Object<'v>> {
        self.objects(path).find(|condition| condition.text("type") == wanted)
    }

    pub(super) fn has_true_condition(&self, path: &str, wanted: &str) -> bool {
        self.condition(path, wanted).is_some_and(|condition| condition.text("status") == "True")
    }

    /// The names and images of containers.
    pub(super) fn containers(&self, path: &str) -> [Value; 2] {
        ["name", "image"].map(|field| {
            let texts: Vec<&str> = self.objects(path).map(|container| container.text(field)).collect();
            Value::from(texts.join(","))
        })
    }

    /// A map of labels: `a=1,b=2`.
    pub(super) fn labels(&self, path: &str) -> Value {
        let mut labels: Vec<String> = self
            .map(path)
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        labels.sort_unstable();
        Value::from(if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") })
    }

    /// A label selector: `a=1,b in (x,y)`; none when it is invalid.
    pub(super) fn selector(&self, path: &str) -> Option<String> {
        let selector = self.at(path);
        let mut terms: Vec<(&str, String)> = Vec::new();
        for (key, value) in selector.map("matchLabels").into_iter().flatten() {
            terms.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
        }
        for expression in selector.objects("matchExpressions") {
            let key = expression.text("key");
            let mut values: Vec<&str> = expression.items("values").iter().filter_map(Value::as_str).collect();
            values.sort_unstable();
            let values = values.join(",");
            let term = match expression.text("operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return None,
            };
            terms.push((key, term));
        }
        terms.sort_by(|a, b| a.0.cmp(b.0));
        let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
        Some(terms.join(","))
    }

    /// A label selector as most kinds show it.
    pub(super) fn shown_selector(&self, path: &str) -> Value {
        Value::from(match self.selector(path) {
            None => "<error>".to_owned(),
            Some(text) if text.is_empty() => "<none>".to_owned(),
            Some(text) => text,
        })
    }
}

/// The value at a path such as `spec.replicas`, unless it is null.
pub(super) fn get<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('.').try_fold(value, |value, name| value.get(name))?;
    (!found.is_null()).then_some(found)
}

/// Parses a time of either precision; None for Go's zero time.
pub(super) fn instant(text: &str) -> Option<Instant> {
    let instant = scalars::parse_time(text, Layout::Seconds).ok()?;
    (instant.seconds != scalars::ZERO_TIME || instant.nanos != 0).then_some(instant)
}

/// Nanoseconds since 1970.
pub(super) fn nanoseconds(instant: Instant) -> i128 {
    i128::from(instant.seconds) * 1_000_000_000 + i128::from(instant.nanos)
}

/// Joins at most `most` texts, and appends the number of others.
pub(super) fn some_of(texts: &[String], most: usize) -> String {
    match texts.get(..most) {
        Some(first) if texts.len() > most => {
            format!("{} + {} more...", first.join(","), texts.len() - most)
        }
        _ => texts.join(","),
    }
}

/// A duration in nanoseconds with two or three significant figures: `5m`, `3h12m`, `2y`.
#[must_use]
pub fn human_duration(nanoseconds: i128) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: i128, unit: char, small: i128, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    // Tolerates a clock difference of one second.
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(days, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}
