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
    /// The target in relation to the floor, where there is one: at least this share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected_of_floor: Option<f64>,
}

impl Measurement {
    /// A number that nothing is expected of.
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: Unit) -> Measurement {
        Measurement { name: name.into(), value, unit, expected: None, expected_of_floor: None }
    }
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
    #[serde(rename = "connections")]
    Connections,
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
            Self::Connections => "connections",
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

/// Who the subjects of measurements are shown beside. All of them are subjects of measurements themselves.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// Another implementation: every subject is compared with it.
    pub(crate) peer: &'a str,
    /// By subject: those that do the least for the same bytes. Nothing gets faster than the first that does a thing at all.
    pub(crate) floors: &'a [(&'a str, &'a str)],
}

impl<'a> Beside<'a> {
    pub(crate) fn peer(peer: &'a str) -> Beside<'a> {
        Beside { peer, floors: &[] }
    }
}

/// A measurement beside those of the same name of a peer and of a floor.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    value: f64,
    #[serde(serialize_with = "unit_text")]
    unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_floor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_of_floor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

fn unit_text<S: serde::Serializer>(unit: &Unit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(unit.text())
}

/// Every measurement beside its counterparts.
fn lines<'a>(measurements: &'a [Measurement], beside: Beside<'a>) -> Vec<Line<'a>> {
    let find = |subject: &str, rest: &str| {
        let of = |name: &str| name.strip_prefix(subject)?.strip_prefix('.').map(|what| what == rest);
        measurements.iter().find(|other| of(&other.name).unwrap_or_default())
    };
    let line = |measurement: &'a Measurement| {
        let Measurement { name, value, unit, expected, expected_of_floor } = measurement;
        let (subject, rest) = name.split_once('.').unwrap_or((name, ""));
        // A process can have used less CPU time than can be measured.
        let ratio =
            |other: &Measurement| Some(unit.ratio(*value, other.value)).filter(|ratio| ratio.is_finite());
        let peer = if subject == beside.peer { None } else { find(beside.peer, rest) };
        let mut floors = beside.floors.iter().filter(|(who, _)| *who == subject);
        let found = floors.find_map(|(_, floor)| find(floor, rest).map(|lowest| (*floor, lowest)));
        let (floor, lowest) = found.unzip();
        Line {
            name,
            value: *value,
            unit: *unit,
            expected: *expected,
            floor,
            floor_value: lowest.map(|lowest| lowest.value),
            of_floor: lowest.and_then(ratio),
            expected_of_floor: expected_of_floor.filter(|_| lowest.is_some()),
            peer: peer.map(|_| beside.peer),
            peer_value: peer.map(|peer| peer.value),
            ratio: peer.and_then(ratio),
        }
    };
    measurements.iter().map(line).collect()
}

/// Prints all measurements, each beside its counterparts.
pub(crate) fn show(measurements: &[Measurement], beside: Beside<'_>, json: bool) {
    let lines = lines(measurements, beside);
    if !json {
        return table(&lines, beside.peer).iter().for_each(|row| print(row));
    }
    for line in &lines {
        match serde_json::to_string(line) {
            Ok(text) => print(&text),
            Err(error) => progress(&format!("{}: {error}", line.name)),
        }
    }
}

/// The rows of a table, without the columns that would be empty.
fn table(lines: &[Line<'_>], peer: &str) -> Vec<String> {
    let expectations = lines.iter().any(|line| line.expected.is_some());
    let floors = lines.iter().any(|line| line.floor.is_some());
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or_default().max(28);
    let row = |[name, value, unit, expected, floor, of_floor, peer, ratio]: [&str; 8]| {
        let expected = if expectations { format!(" {expected:<12}") } else { String::new() };
        let floor = if floors { format!(" {floor:>14} {of_floor:<13}") } else { String::new() };
        let text = format!("{name:<width$} {value:>14} {unit:<13}{expected}{floor} {peer:>14} {ratio:>9}");
        text.trim_end().to_owned()
    };
    let number = |number: Option<f64>| number.map_or(String::new(), readable);
    let cells = |line: &Line<'_>| {
        let expected =
            line.expected.map_or(String::new(), |expected| expectation(line.value, expected, line.unit));
        row([
            line.name,
            &readable(line.value),
            line.unit.text(),
            &expected,
            &number(line.floor_value),
            &line.of_floor.map_or(String::new(), |share| share_of_floor(share, line.expected_of_floor)),
            &number(line.peer_value),
            &line.ratio.map_or(String::new(), |ratio| format!("{ratio:.1}x")),
        ])
    };
    let peer = if lines.iter().any(|line| line.peer.is_some()) { [peer, "ratio"] } else { ["", ""] };
    let head = row(["", "value", "unit", "expected", "floor", "of floor", peer[0], peer[1]]);
    std::iter::once(head).chain(lines.iter().map(cells)).collect()
}

/// How close a value is to the floor: 1 is as good as it gets. Marked if it should be closer.
fn share_of_floor(share: f64, expected: Option<f64>) -> String {
    match expected {
        None => format!("{share:.2}"),
        Some(expected) => format!("{share:.2} ≥ {expected}{}", if share >= expected { "" } else { " !" }),
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
    fn a_subject_is_shown_beside_its_own_floor_and_the_peer() {
        let expecting = |name: &str, value: f64, unit: Unit, share: f64| Measurement {
            expected_of_floor: Some(share),
            ..Measurement::new(name, value, unit)
        };
        let all = [
            expecting("memory.get.c32", 600.0, Unit::PerSecond, 0.7),
            expecting("disk.get.c32", 600.0, Unit::PerSecond, 0.7),
            Measurement::new("memory.list", 4.0, Unit::Milliseconds),
            // Nothing is expected of what has no floor.
            expecting("memory.start", 5.0, Unit::Milliseconds, 0.7),
            Measurement::new("floor.get.c32", 1000.0, Unit::PerSecond),
            Measurement::new("floor.list", 1.0, Unit::Milliseconds),
            Measurement::new("floor-fsync.get.c32", 800.0, Unit::PerSecond),
            Measurement::new("peer.get.c32", 300.0, Unit::PerSecond),
        ];
        let beside = Beside { peer: "peer", floors: &[("memory", "floor"), ("disk", "floor-fsync")] };
        let lines = lines(&all, beside);
        let shares: Vec<_> = lines.iter().map(|line| line.of_floor).collect();
        assert_eq!(shares, [Some(0.6), Some(0.75), Some(0.25), None, None, None, None, None]);
        let json: serde_json::Value = serde_json::to_value(&lines[0]).unwrap();
        let expected = serde_json::json!({"name": "memory.get.c32", "value": 600.0, "unit": "ops/s",
            "floor": "floor", "floor_value": 1000.0, "of_floor": 0.6, "expected_of_floor": 0.7,
            "peer": "peer", "peer_value": 300.0, "ratio": 2.0});
        assert_eq!(json, expected);
        let table = table(&lines, "peer");
        let columns = |row: usize| table[row].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(columns(0), "value unit floor of floor peer ratio");
        assert_eq!(columns(1), "memory.get.c32 600 ops/s 1,000 0.60 ≥ 0.7 ! 300 2.0x");
        assert_eq!(columns(2), "disk.get.c32 600 ops/s 800 0.75 ≥ 0.7 300 2.0x");
        assert_eq!(columns(3), "memory.list 4.00 ms 1.00 0.25");
        assert_eq!(columns(4), "memory.start 5.00 ms");
    }

    #[test]
    fn columns_that_would_be_empty_are_left_out() {
        let all = [Measurement::new("k1s.calm.p50", 1.0, Unit::Milliseconds)];
        let table = table(&lines(&all, Beside::peer("peer")), "peer");
        let columns = |row: usize| table[row].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!([columns(0), columns(1)], ["value unit", "k1s.calm.p50 1.00 ms"]);
    }

    #[test]
    fn what_cannot_be_divided_has_no_ratio() {
        let all = [
            Measurement::new("memory.get-cpu", 0.0, Unit::Microseconds),
            Measurement::new("floor.get-cpu", 0.0, Unit::Microseconds),
        ];
        let beside = Beside { peer: "peer", floors: &[("memory", "floor")] };
        assert_eq!(lines(&all, beside)[0].of_floor, None);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(readable(1_234_567.8), "1,234,568");
        assert_eq!(readable(100.0), "100");
        assert_eq!(readable(0.5), "0.50");
    }
}
