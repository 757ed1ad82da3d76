//! Profiles in the format of `pprof`: protobuf, compressed by gzip.
//!
//! The messages are those of `profile.proto` of github.com/google/pprof, without unused fields.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    time::SystemTime,
};

use flate2::{Compression, write::GzEncoder};
use pprof::{Report, Symbol};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
}

/// Strings, here and below, are indexes into the string table.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Innermost frame first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    /// Innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}

/// The tables of a profile while it is built.
#[derive(Default)]
struct Tables {
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<Vec<Line>, u64>,
    profile: Profile,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = i64::try_from(self.strings.len()).unwrap_or(i64::MAX);
        self.strings.insert(text.to_owned(), index);
        self.profile.string_table.push(text.to_owned());
        index
    }

    fn line(&mut self, symbol: &Symbol) -> Line {
        let filename = symbol.filename();
        let (name, filename) = (self.text(&qualified_name(&symbol.name(), &filename)), self.text(&filename));
        let system_name = self.text(&symbol.sys_name());
        let next = self.functions.len() as u64 + 1;
        let function_id = *self.functions.entry((system_name, filename)).or_insert(next);
        if function_id == next {
            self.profile.function.push(Function { id: next, name, system_name, filename });
        }
        Line { function_id, line: i64::from(symbol.lineno()) }
    }

    fn location(&mut self, inlined: &[Symbol]) -> u64 {
        let line: Vec<Line> = inlined.iter().map(|symbol| self.line(symbol)).collect();
        let next = self.locations.len() as u64 + 1;
        let id = *self.locations.entry(line.clone()).or_insert(next);
        if id == next {
            self.profile.location.push(Location { id, mapping_id: 1, line });
        }
        id
    }

    fn value(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.text(kind), unit: self.text(unit) }
    }
}

/// Converts a report to the format of `go tool pprof`.
pub(super) fn profile(report: &Report) -> Profile {
    let mut tables = Tables::default();
    // The format requires the first string to be empty.
    tables.text("");
    let period = 1_000_000_000 / i64::from(report.timing.frequency.max(1));
    let (samples, cpu) = (tables.value("samples", "count"), tables.value("cpu", "nanoseconds"));
    let thread = tables.text("thread");
    for (frames, count) in &report.data {
        let location_id = frames
            .frames
            .iter()
            .filter(|inlined| !inlined.is_empty())
            .map(|inlined| tables.location(inlined))
            .collect();
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        let label = Label { key: thread, str: tables.text(&frames.thread_name_or_id()) };
        let value = vec![count, count.saturating_mul(period)];
        tables.profile.sample.push(Sample { location_id, value, label: vec![label] });
    }
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let filename = tables.text(&program);
    let mut profile = tables.profile;
    profile.mapping.push(Mapping {
        id: 1,
        filename,
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    });
    let began = report.timing.start_time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    profile.sample_type = vec![samples, cpu.clone()];
    profile.period_type = Some(cpu);
    profile.period = period;
    profile.time_nanos = i64::try_from(began.as_nanos()).unwrap_or(i64::MAX);
    profile.duration_nanos = i64::try_from(report.timing.duration.as_nanos()).unwrap_or(i64::MAX);
    profile
}

/// Adds the file to names without a module: with line tables only, every closure is named `{closure#0}`.
fn qualified_name(name: &str, file: &str) -> String {
    if name.contains("::") || file.is_empty() || file == "Unknown" {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = file.rsplit('/').take(2).collect();
    parts.reverse();
    format!("{name} ({})", parts.join("/"))
}

/// Encodes and compresses a profile.
pub(super) fn gzip(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&profile.encode_to_vec())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_added_to_names_without_a_module() {
        assert_eq!(qualified_name("a::b", "/x/src/lib.rs"), "a::b");
        assert_eq!(qualified_name("{closure#0}", "/x/src/queue/item.rs"), "{closure#0} (queue/item.rs)");
        assert_eq!(qualified_name("main", "main.rs"), "main (main.rs)");
        assert_eq!(qualified_name("memcpy", "Unknown"), "memcpy");
    }
}
