//! Measurements, and how they are shown.

use serde::{Deserialize, Serialize};

/// One number, with a name of the form `subject.what.variant`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: Unit,
    /// The target: a minimum for a rate, a maximum for anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    #[serde(rename = "ops/s")]
    PerSecond,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "bytes/object")]
    BytesPerObject,
    #[serde(rename = "KB")]
    Kilobytes,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    #[serde(rename = "x JSON")]
    TimesTheJson,
    #[serde(rename = "x smallest")]
    TimesTheSmallest,
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    fn text(self) -> &'static str {
        match self {
            Self::PerSecond => "ops/s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::BytesPerObject => "bytes/object",
            Self::Kilobytes => "KB",
            Self::Megabytes => "MB",
            Self::MegabytesPerSecond => "MB/s",
            Self::TimesTheJson => "x JSON",
            Self::TimesTheSmallest => "x smallest",
            Self::Percent => "%",
        }
    }

    /// Whether more is better.
    fn is_rate(self) -> bool {
        matches!(self, Self::PerSecond | Self::MegabytesPerSecond)
    }

    /// How many times better `value` is than `peer`.
    fn ratio(self, value: f64, peer: f64) -> f64 {
        if self.is_rate() { value / peer } else { peer / value }
    }
}

/// A measurement beside the same one of a peer.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// Prints all measurements; those of other subjects beside those of `peer`.
pub(crate) fn show(measurements: &[Measurement], peer: &str, json: bool) {
    let find = |name: &str| measurements.iter().find(|measurement| measurement.name == name);
    let expectations = measurements.iter().any(|measurement| measurement.expected.is_some());
    let row = |name: &str, value: &str, unit: &str, expected: &str, peer: &str, ratio: &str| {
        let expected = if expectations { format!(" {expected:<12}") } else { String::new() };
        let text = format!("{name:<28} {value:>14} {unit:<13}{expected} {peer:>14} {ratio:>9}");
        print(text.trim_end());
    };
    if !json {
        row("", "value", "unit", "expected", peer, "ratio");
    }
    for Measurement { name, value, unit, expected } in measurements {
        let counterpart = match name.split_once('.') {
            Some((subject, rest)) if subject != peer => find(&format!("{peer}.{rest}")),
            _ => None,
        };
        let line = Line {
            name,
            value: *value,
            unit: unit.text(),
            expected: *expected,
            peer: counterpart.map(|_| peer),
            peer_value: counterpart.map(|other| other.value),
            ratio: counterpart.map(|other| unit.ratio(*value, other.value)),
        };
        if json {
            match serde_json::to_string(&line) {
                Ok(text) => print(&text),
                Err(error) => progress(&format!("{name}: {error}")),
            }
            continue;
        }
        let number = |number: Option<f64>| number.map_or(String::new(), readable);
        let ratio = line.ratio.map_or(String::new(), |ratio| format!("{ratio:.1}x"));
        let expected = expected.map_or(String::new(), |expected| expectation(*value, expected, *unit));
        row(name, &readable(*value), line.unit, &expected, &number(line.peer_value), &ratio);
    }
}

/// The target, marked if the value misses it.
fn expectation(value: f64, expected: f64, unit: Unit) -> String {
    let (sign, met) = if unit.is_rate() { ('≥', value >= expected) } else { ('≤', value <= expected) };
    let number = readable(expected);
    let number = number.strip_suffix(".00").unwrap_or(&number);
    format!("{sign} {number}{}", if met { "" } else { " !" })
}

/// A number for people: grouped digits from 100 on, else two decimals.
fn readable(number: f64) -> String {
    if number >= 100.0 {
        let digits = format!("{number:.0}");
        let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
        groups.collect::<Vec<_>>().join(",")
    } else {
        format!("{number:.2}")
    }
}

/// The quantile `part` of some values, which this sorts.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = ((values.len() as f64 - 1.0) * part).round() as usize;
    values.get(place).copied().unwrap_or_default()
}

/// A line of the result.
#[expect(clippy::print_stdout, reason = "a command-line program speaks to its user")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

/// A line of progress, on standard error.
#[expect(clippy::print_stderr, reason = "a command-line program speaks to its user")]
pub(crate) fn progress(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_is_better_whatever_the_unit() {
        assert!((Unit::PerSecond.ratio(300.0, 100.0) - 3.0).abs() < 1e-9);
        assert!((Unit::Milliseconds.ratio(2.0, 8.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn what_misses_its_expectation_is_marked() {
        assert_eq!(expectation(9000.0, 10_000.0, Unit::PerSecond), "≥ 10,000 !");
        assert_eq!(expectation(29.0, 30.0, Unit::Milliseconds), "≤ 30");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(readable(1_234_567.8), "1,234,568");
        assert_eq!(readable(100.0), "100");
        assert_eq!(readable(0.5), "0.50");
    }
}
