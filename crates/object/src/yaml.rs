//! YAML bodies to JSON values, as `sigs.k8s.io/yaml` and go-yaml v2 read them: YAML 1.1.
//!
//! Plain words such as `yes`, `n` or `off` are booleans, `017` is octal, `<<` merges, keys become strings, and a
//! map's keys come out sorted, since Go passes them through a map. Only the first document counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};

use crate::decode::{Error, MAX_DEPTH};
use crate::field::quote;
use crate::jsonpath::shortest_digits;

/// How many tabs after colons are mended.
const MAX_TABS: usize = 64;

/// How many nodes aliases may blow a document up to.
const MAX_NODES: usize = 1_000_000;

/// A YAML document that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value, its keys sorted.
    pub value: Value,
    /// One sentence for each key an object has twice: `line 6: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

impl Decoded {
    /// All duplicates as the one error a strict reader gives.
    pub fn duplicates_error(&self) -> Option<Error> {
        if self.duplicates.is_empty() {
            return None;
        }
        Some(Error::new(format!("yaml: unmarshal errors:\n  {}", self.duplicates.join("\n  "))))
    }
}

/// Reads the first document of a YAML stream; nothing at all is `null`.
pub fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let Ok(source) = str::from_utf8(bytes) else {
        return Err(Error::new("yaml: invalid leading UTF-8 octet"));
    };
    if source.chars().any(is_forbidden) {
        return Err(Error::new("yaml: control characters are not allowed"));
    }
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut mended = Cow::Borrowed(source);
    // Go takes a tab after a colon, the parser here does not: it gets a space instead.
    for _ in 0..MAX_TABS {
        match read(&mended) {
            Err((_, Some(tab))) => mended.to_mut().replace_range(tab..=tab, " "),
            Err((error, None)) => return Err(error),
            Ok(decoded) => return Ok(decoded),
        }
    }
    read(&mended).map_err(|(error, _)| error)
}

/// Reads a document; an error that is due to a tab after a colon says where that tab is.
fn read(source: &str) -> Result<Decoded, (Error, Option<usize>)> {
    let mut reader = Reader { source, ..Reader::default() };
    let mut parser = Parser::new_from_str(source);
    loop {
        let (event, span) = match parser.next_event() {
            None => break,
            Some(Err(error)) => {
                let tab = error
                    .info()
                    .starts_with("':' must be followed")
                    .then(|| reader.tab_near(*error.marker()));
                return Err((reader.syntax_error(&error), tab.flatten()));
            }
            Some(Ok(event)) => event,
        };
        match event {
            Event::StreamEnd | Event::DocumentEnd => break,
            event => {
                // Go reads the document to its end before it looks at what it means.
                if reader.meaning.is_none() {
                    reader.meaning = reader.event(event, span.start).err();
                }
            }
        }
    }
    if let Some(error) = reader.meaning {
        return Err((error, None));
    }
    Ok(Decoded { value: reader.root.unwrap_or(Value::Null), duplicates: reader.duplicates })
}

/// Whether a line is indented by a tab.
fn is_tabbed(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with('\t')
}

fn is_forbidden(c: char) -> bool {
    let allowed = matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~')
        || matches!(c, '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    !allowed
}

/// A key before it becomes a string: `1` and `"1"` are two keys.
#[derive(Debug, Clone)]
struct Key {
    text: String,
    shown: String,
}

#[derive(Debug, Default)]
struct Entries {
    values: BTreeMap<String, Value>,
    seen: HashSet<String>,
    key: Option<Key>,
    merge: bool,
}

#[derive(Debug)]
enum Frame {
    List(Vec<Value>, usize),
    Map(Entries, usize),
}

#[derive(Debug, Default)]
struct Reader<'s> {
    source: &'s str,
    stack: Vec<Frame>,
    open: Vec<usize>,
    anchors: HashMap<usize, (Value, usize)>,
    nodes: usize,
    aliased: usize,
    root: Option<Value>,
    duplicates: Vec<String>,
    meaning: Option<Error>,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, mark: Marker) -> Result<(), Error> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if self.is_merge_key(&text, style, tag.as_deref()) {
                    if let Some(Frame::Map(entries, _)) = self.stack.last_mut() {
                        entries.merge = true;
                    }
                    return Ok(());
                }
                let scalar = scalar(&text, style, tag.as_deref())?;
                self.nodes += 1;
                if self.expects_key() {
                    if scalar == Scalar::Null
                        && text.is_empty()
                        && tag.is_none()
                        && self.begins_with_colon(mark)
                    {
                        let line = mark.line().saturating_sub(1);
                        let place = if line > 0 { format!("line {line}: ") } else { String::new() };
                        return Err(Error::new(format!("yaml: {place}did not find expected key")));
                    }
                    if anchor > 0 {
                        self.anchors.insert(anchor, (scalar.to_json()?, 1));
                    }
                    return self.key(&scalar);
                }
                let value = scalar.to_json()?;
                self.finish(value, anchor, mark)
            }
            Event::Alias(id) => self.alias(id, mark),
            Event::SequenceStart(anchor, _) => self.open(Frame::List(Vec::new(), anchor), anchor),
            Event::MappingStart(anchor, _) => self.open(Frame::Map(Entries::default(), anchor), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                let (value, anchor) = match self.stack.pop() {
                    Some(Frame::List(items, anchor)) => (Value::Array(items), anchor),
                    Some(Frame::Map(entries, anchor)) => {
                        (Value::Object(entries.values.into_iter().collect::<Map<_, _>>()), anchor)
                    }
                    None => return Ok(()),
                };
                self.finish(value, anchor, mark)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame, anchor: usize) -> Result<(), Error> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(Error::new("yaml: exceeded max depth of 10000"));
        }
        self.nodes += 1;
        self.open.push(anchor);
        self.stack.push(frame);
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame::Map(entries, _)) if entries.key.is_none() && !entries.merge)
    }

    fn is_merge_key(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
        text == "<<" && self.expects_key() && tag.is_none() && style == ScalarStyle::Plain
    }

    fn key(&mut self, scalar: &Scalar<'_>) -> Result<(), Error> {
        let key = scalar.to_key()?;
        if let Some(Frame::Map(entries, _)) = self.stack.last_mut() {
            entries.key = Some(key);
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, mark: Marker) -> Result<(), Error> {
        let Some((value, size)) = self.anchors.get(&id) else {
            let name = self.name_at(mark);
            let contains_itself = self.open.contains(&id);
            return Err(Error::new(if contains_itself {
                format!("yaml: anchor '{name}' value contains itself")
            } else {
                format!("yaml: unknown anchor '{name}' referenced")
            }));
        };
        self.nodes += size;
        self.aliased += size;
        // Go's rule: the larger a document, the smaller the share of it that may come from aliases.
        let allowed = match self.nodes {
            ..=400_000 => 0.99,
            4_000_000.. => 0.10,
            nodes => 0.99 - 0.89 * ((nodes - 400_000) as f64 / 3_600_000.0),
        };
        let excessive = self.aliased > 100
            && self.nodes > 1000
            && (self.aliased as f64 / self.nodes as f64 > allowed || self.nodes > MAX_NODES);
        if excessive {
            return Err(Error::new("yaml: document contains excessive aliasing"));
        }
        let value = value.clone();
        if self.expects_key() {
            let scalar = match &value {
                Value::String(text) => Scalar::Text(text.clone().into()),
                Value::Bool(value) => Scalar::Bool(*value),
                Value::Number(number) => match number.as_i64() {
                    Some(number) => Scalar::Int(number),
                    None => Scalar::Float(number.as_f64().unwrap_or_default()),
                },
                Value::Null => Scalar::Null,
                other => return Err(invalid_key(other)),
            };
            return self.key(&scalar);
        }
        self.finish(value, 0, mark)
    }

    /// A node is complete: it goes into what surrounds it.
    fn finish(&mut self, value: Value, anchor: usize, mark: Marker) -> Result<(), Error> {
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), count(&value)));
        }
        match self.stack.last_mut() {
            None => self.root = Some(value),
            Some(Frame::List(items, _)) => items.push(value),
            Some(Frame::Map(entries, _)) if entries.merge => {
                entries.merge = false;
                merge(entries, value, mark, &mut self.duplicates)?;
            }
            Some(Frame::Map(entries, _)) => match entries.key.take() {
                Some(key) => entries.set(key, value, mark, &mut self.duplicates),
                None => return Err(invalid_key(&value)),
            },
        }
        Ok(())
    }

    fn name_at(&self, mark: Marker) -> String {
        let text = self.source.chars().skip(mark.index());
        text.skip_while(|c| *c == '*')
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            .collect()
    }

    /// The parser's words in those of libyaml, which go-yaml is made from.
    fn syntax_error(&self, error: &ScanError) -> Error {
        let info = error.info();
        let problem = info.split_once(", ").filter(|(context, _)| context.starts_with("while "));
        let problem = problem.map_or(info, |(_, problem)| problem);
        if problem == "found unknown anchor" {
            return Error::new(format!(
                "yaml: unknown anchor '{}' referenced",
                self.name_at(*error.marker())
            ));
        }
        // Go counts the lines of its parser's problems from zero, those of its scanner from one.
        let line = self.problem_line(problem, error.marker().line().saturating_sub(1));
        let (problem, from_scanner) = match problem {
            "did not find expected node content"
            | "did not find expected key"
            | "did not find expected ',' or '}'"
            | "did not find expected '-' indicator"
            | "did not find expected <document start>" => (problem, false),
            "expected ',' or ']'" => ("did not find expected ',' or ']'", false),
            "misplaced bracket" if self.stack.is_empty() => ("did not find expected node content", false),
            "misplaced bracket" => ("did not find expected key", false),
            "unexpected eof" => ("did not find expected <stream-start>", false),
            "the handle wasn't declared" => ("found undefined tag handle", false),
            "duplicate version directive" => ("found duplicate %YAML directive", false),
            "simple key expect ':'" | "simple key expected" => ("could not find expected ':'", true),
            "found a tab" => ("found a tab character that violates indentation", true),
            "recursion limit exceeded" => ("exceeded max depth of 10000", true),
            "a block scalar content cannot start with a tab" => {
                ("found a tab character where an indentation space is expected", true)
            }
            _ if problem.starts_with("unexpected character") || problem.starts_with("tab") => {
                ("found character that cannot start any token", true)
            }
            "illegal placement of ':' indicator" => ("did not find expected ',' or ']'", false),
            "invalid trailing content after double-quoted scalar" => ("did not find expected key", false),
            "invalid content after document end marker" => ("did not find expected <document start>", false),
            _ => (problem, true),
        };
        let problem = match problem {
            "found character that cannot start any token" if self.continues_plain_scalar(*error.marker()) => {
                "found a tab character that violates indentation"
            }
            problem => problem,
        };
        let line = if from_scanner && line > 0 { line + 1 } else { line };
        Error::new(if line > 0 {
            format!("yaml: line {line}: {problem}")
        } else {
            format!("yaml: {problem}")
        })
    }

    /// Whether this is a block's line with a value but no key, which YAML 1.1 knows not.
    fn begins_with_colon(&self, mark: Marker) -> bool {
        let line = self.source.lines().nth(mark.line().saturating_sub(1)).unwrap_or_default();
        line.trim_start_matches([' ', '-']).starts_with(':')
    }

    /// The first tab after a colon, in bytes, on the line of this mark.
    fn tab_near(&self, mark: Marker) -> Option<usize> {
        let mut lines = self.source.split_inclusive('\n');
        let start: usize = lines.by_ref().take(mark.line().saturating_sub(1)).map(str::len).sum();
        lines.next()?.find(":\t").map(|at| start + at + 1)
    }

    /// Where the problem is, counted from zero; the parser tells where the scalar with the problem begins.
    fn problem_line(&self, problem: &str, line: usize) -> usize {
        match problem {
            "found unexpected end of stream" => self.source.matches('\n').count(),
            "found a tab" => {
                let after = self.source.lines().enumerate().skip(line + 1).find(|(_, text)| is_tabbed(text));
                after.map_or(line, |(line, _)| line)
            }
            _ => line,
        }
    }

    /// Whether the line before this one ends in a value that a tab-indented line would go on with.
    fn continues_plain_scalar(&self, mark: Marker) -> bool {
        let Some(before) = mark.line().checked_sub(2).and_then(|line| self.source.lines().nth(line)) else {
            return false;
        };
        let here = self.source.lines().nth(mark.line().saturating_sub(1)).unwrap_or_default();
        if !is_tabbed(here) {
            return false;
        }
        let before = before.trim_end();
        !before.is_empty() && !before.ends_with([':', '|', '>', '{', '[', ',', '}', ']', '"', '\'', '-'])
    }
}

impl Entries {
    fn set(&mut self, key: Key, value: Value, mark: Marker, duplicates: &mut Vec<String>) {
        if !self.seen.insert(key.shown.clone()) {
            duplicates.push(format!("line {}: key {} already set in map", mark.line(), key.shown));
        }
        self.values.insert(key.text, value);
    }
}

fn merge(
    entries: &mut Entries,
    value: Value,
    mark: Marker,
    duplicates: &mut Vec<String>,
) -> Result<(), Error> {
    let wrong = || Error::new("yaml: map merge requires map or sequence of maps as the value");
    match value {
        Value::Object(map) => {
            for (text, value) in map {
                let key = Key { shown: quote(&text), text };
                entries.set(key, value, mark, duplicates);
            }
        }
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                if !item.is_object() {
                    return Err(wrong());
                }
                merge(entries, item, mark, duplicates)?;
            }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

fn invalid_key(value: &Value) -> Error {
    let kind = if value.is_array() { "[]interface {}" } else { "map[interface {}]interface {}" };
    Error::new(format!("yaml: invalid map key: {kind}{{…}}"))
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(|value| 1 + count(value)).sum::<usize>(),
        _ => 1,
    }
}

/// A scalar and the type YAML 1.1 gives it.
#[derive(Debug, Clone, PartialEq)]
enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'t, str>),
}

impl Scalar<'_> {
    fn to_json(&self) -> Result<Value, Error> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Int(value) => Value::from(*value),
            // Go prints the number as JSON and reads it again, where such a number no longer fits an integer.
            Scalar::Unsigned(value) => Value::from(*value as f64),
            Scalar::Float(value) => {
                let whole = value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0;
                let number = if whole { Some(Number::from(*value as i64)) } else { Number::from_f64(*value) };
                let shown = if value.is_nan() {
                    "NaN"
                } else if *value > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                number
                    .map(Value::Number)
                    .ok_or_else(|| Error::new(format!("json: unsupported value: {shown}")))?
            }
            Scalar::Text(text) => Value::String(text.to_string()),
        })
    }

    fn to_key(&self) -> Result<Key, Error> {
        let plain = |text: String| Key { shown: text.clone(), text };
        Ok(match self {
            Scalar::Text(text) => Key { text: text.to_string(), shown: quote(text) },
            Scalar::Bool(value) => plain(value.to_string()),
            Scalar::Int(value) => plain(value.to_string()),
            Scalar::Float(value) => plain(float_key(*value)),
            Scalar::Unsigned(value) => {
                return Err(Error::new(format!("unsupported map key of type: uint64, key: {value:#x}")));
            }
            Scalar::Null => {
                return Err(Error::new("unsupported map key of type: %!s(<nil>), key: <nil>"));
            }
        })
    }
}

/// A float as go-yaml prints it for a key: the shortest form that names this 32-bit number.
fn float_key(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let narrow = value as f32;
    shortest_digits(&format!("{narrow:e}"), &narrow.to_string())
}

fn scalar<'t>(text: &'t str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar<'t>, Error> {
    let core = tag.map(|tag| if tag.is_yaml_core_schema() { tag.suffix.as_str() } else { "" });
    match core {
        None if style != ScalarStyle::Plain => Ok(Scalar::Text(text.into())),
        None => Ok(resolve(text)),
        Some("binary") => {
            let bytes = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            bytes
                .map(|text| Scalar::Text(text.into()))
                .ok_or_else(|| Error::new("yaml: !!binary value contains invalid base64 data"))
        }
        Some(wanted @ ("int" | "float" | "bool" | "null")) => {
            let resolved = resolve(text);
            let (found, resolved) = match resolved {
                Scalar::Null => ("null", resolved),
                Scalar::Bool(_) => ("bool", resolved),
                Scalar::Int(number) if wanted == "float" => ("float", Scalar::Float(number as f64)),
                Scalar::Int(_) | Scalar::Unsigned(_) => ("int", resolved),
                Scalar::Float(_) => ("float", resolved),
                Scalar::Text(_) => ("str", resolved),
            };
            if found == wanted {
                return Ok(resolved);
            }
            Err(Error::new(format!("yaml: cannot decode !!{found} `{text}` as a !!{wanted}")))
        }
        Some(_) => Ok(Scalar::Text(text.into())),
    }
}

/// What a plain scalar means.
fn resolve(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => parse_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            parse_int(&plain).or_else(|| parse_float(&plain))
        }
        _ => None,
    };
    number.unwrap_or(Scalar::Text(text.into()))
}

/// A whole number in Go's notation: decimal, `0x1f`, `0o17`, `017` or `0b11`.
fn parse_int(text: &str) -> Option<Scalar<'static>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    let number = i128::from(magnitude) * if negative { -1 } else { 1 };
    match i64::try_from(number) {
        Ok(number) => Some(Scalar::Int(number)),
        Err(_) if !negative && !text.starts_with('+') => Some(Scalar::Unsigned(magnitude)),
        Err(_) => None,
    }
}

fn parse_float(text: &str) -> Option<Scalar<'static>> {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|number| numeric && number.is_finite()).map(Scalar::Float)
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
