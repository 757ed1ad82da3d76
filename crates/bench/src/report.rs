//! Measurements, and how they are shown.

use serde::{Deserialize, Serialize};

/// One number, with a name of the form `subject.what.variant`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    #[serde(rename = "ops/s")]
    PerSecond,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "bytes/object")]
    BytesPerObject,
}

impl Unit {
    fn text(self) -> &'static str {
        match self {
            Self::PerSecond => "ops/s",
            Self::Milliseconds => "ms",
            Self::BytesPerObject => "bytes/object",
        }
    }

    /// How many times better `value` is than `peer`.
    fn ratio(self, value: f64, peer: f64) -> f64 {
        match self {
            Self::PerSecond => value / peer,
            Self::Milliseconds | Self::BytesPerObject => peer / value,
        }
    }
}

/// A measurement beside the same one of a peer.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    value: f64,
    unit: &'static str,
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
    if !json {
        print(&format!("{:<28} {:>14} {:<13} {:>14} {:>9}", "", "value", "unit", peer, "ratio"));
    }
    for Measurement { name, value, unit } in measurements {
        let counterpart = match name.split_once('.') {
            Some((subject, rest)) if subject != peer => find(&format!("{peer}.{rest}")),
            _ => None,
        };
        let line = Line {
            name,
            value: *value,
            unit: unit.text(),
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
        print(&format!(
            "{name:<28} {:>14} {:<13} {:>14} {ratio:>9}",
            readable(*value),
            line.unit,
            number(line.peer_value)
        ));
    }
}

/// A number with as many digits as it deserves.
fn readable(number: f64) -> String {
    if number >= 100.0 {
        let digits = format!("{number:.0}");
        let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
        groups.collect::<Vec<_>>().join(",")
    } else {
        format!("{number:.2}")
    }
}

/// A line of the result.
#[expect(clippy::print_stdout, reason = "a command-line program speaks to its user")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

/// A line that tells what is going on.
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
    fn numbers_are_readable() {
        assert_eq!(readable(1_234_567.8), "1,234,568");
        assert_eq!(readable(100.0), "100");
        assert_eq!(readable(0.5), "0.50");
    }
}
