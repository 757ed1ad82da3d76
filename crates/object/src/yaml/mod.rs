//! Decodes YAML request bodies like `sigs.k8s.io/yaml` and go-yaml v2: YAML 1.1.
//!
//! Plain words such as `yes`, `n` or `off` are booleans, `017` is octal, `<<` merges, keys become strings, and
//! the keys of a map are sorted, because Go decodes into a map. Only the first document is decoded. Scanner and
//! parser follow libyaml, the origin of go-yaml, so that the same bodies are rejected with the same messages.

mod parse;
mod scalar;
mod scan;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::decode::{Error, MAX_DEPTH};
use crate::field::quote;
use parse::{Event, Parser, Sink};
use scalar::{NULL_KEY, Scalar, scalar};
use scan::Mark;

/// Maximum number of nodes after the expansion of aliases.
const MAX_NODES: usize = 1_000_000;

/// Maximum total size of the copies made by anchors and aliases. The largest document that can be sent has a
/// fifth of it.
const MAX_COPIED_BYTES: usize = 16 << 20;

/// The cost of a node of a copy, in addition to its text and its key.
const NODE_BYTES: usize = 64;

/// Maximum number of recorded duplicates, as for JSON.
const MAX_DUPLICATES: usize = 100;

/// A decoded YAML document.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value, with sorted keys.
    pub value: Value,
    /// A message for each duplicate key: `line 6: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

impl Decoded {
    /// All duplicates as the error of a strict decoder.
    pub fn duplicates_error(&self) -> Option<Error> {
        if self.duplicates.is_empty() {
            return None;
        }
        Some(Error::new(format!("yaml: unmarshal errors:\n  {}", self.duplicates.join("\n  "))))
    }
}

/// Decodes the first document of a YAML stream; an empty one is `null`.
pub fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    let Ok(source) = str::from_utf8(bytes) else {
        return Err(Error::new("yaml: invalid leading UTF-8 octet"));
    };
    if source.chars().any(is_forbidden) {
        return Err(Error::new("yaml: control characters are not allowed"));
    }
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut reader = Reader::default();
    Parser::new(source, &mut reader).document()?;
    match reader.meaning {
        Some(error) => Err(error),
        None => Ok(Decoded { value: reader.root.unwrap_or(Value::Null), duplicates: reader.duplicates }),
    }
}

fn is_forbidden(c: char) -> bool {
    let allowed = matches!(c, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~')
        || matches!(c, '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    !allowed
}

/// A key before its conversion to a string: `1` and `"1"` are two keys.
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
enum Content {
    List(Vec<Value>),
    Map(Entries),
}

/// An incomplete list or map.
#[derive(Debug)]
struct Frame {
    content: Content,
    anchor: Option<String>,
    mark: Mark,
}

/// The value of an anchor.
#[derive(Debug)]
enum Anchored {
    Open,
    Done(Value, Size),
}

/// The size of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Values and keys, as Go counts them.
    nodes: usize,
    /// Text, keys and nodes: the cost of a copy.
    bytes: usize,
    /// The nesting of containers.
    depth: usize,
}

impl Size {
    fn of(value: &Value) -> Size {
        let mut size = Size { nodes: 1, bytes: NODE_BYTES, depth: 0 };
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| size.add(Size::of(item)));
                size.depth += 1;
            }
            Value::Object(map) => {
                for (key, value) in map {
                    size.nodes += 1;
                    size.bytes += key.len() + NODE_BYTES;
                    size.add(Size::of(value));
                }
                size.depth += 1;
            }
            Value::String(text) => size.bytes += text.len(),
            _ => {}
        }
        size
    }

    fn add(&mut self, inner: Size) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.depth = self.depth.max(inner.depth);
    }
}

#[derive(Debug, Default)]
struct Reader {
    stack: Vec<Frame>,
    anchors: HashMap<String, Anchored>,
    nodes: usize,
    aliased: usize,
    /// The size of all copies so far.
    copied: usize,
    root: Option<Value>,
    duplicates: Vec<String>,
    /// The first semantic error; reported only if the document is syntactically valid, as in Go.
    meaning: Option<Error>,
}

impl Sink for Reader {
    fn event(&mut self, event: Event, mark: Mark) -> Result<(), Error> {
        if let Event::Alias(name) = &event
            && !self.anchors.contains_key(name)
        {
            return Err(Error::new(format!("yaml: unknown anchor '{name}' referenced")));
        }
        let anchor = match &event {
            Event::Scalar { anchor, .. }
            | Event::SequenceStart { anchor }
            | Event::MappingStart { anchor } => anchor,
            _ => &None,
        };
        if let Some(name) = anchor {
            self.anchors.insert(name.clone(), Anchored::Open);
        }
        if self.meaning.is_none() {
            self.meaning = self.take(event, mark).err();
        }
        Ok(())
    }
}

impl Reader {
    fn take(&mut self, event: Event, mark: Mark) -> Result<(), Error> {
        match event {
            Event::Scalar { text, plain, anchor, tag } => {
                let merge = text == "<<" && plain && tag.is_none();
                if merge && let Some(entries) = self.entries_without_key() {
                    entries.merge = true;
                    return Ok(());
                }
                let scalar = scalar(&text, plain, tag.as_deref())?;
                self.nodes += 1;
                if let Some(entries) = self.entries_without_key() {
                    entries.key = Some(scalar.to_key()?);
                    if let Some(name) = anchor {
                        self.anchor(name, &scalar.to_json()?)?;
                    }
                    return Ok(());
                }
                let value = scalar.to_json()?;
                self.finish(value, anchor, mark)
            }
            Event::Alias(name) => self.alias(&name, mark),
            Event::SequenceStart { anchor } => self.open(Content::List(Vec::new()), anchor, mark),
            Event::MappingStart { anchor } => self.open(Content::Map(Entries::default()), anchor, mark),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.stack.pop() else { return Ok(()) };
                let value = match frame.content {
                    Content::List(items) => Value::Array(items),
                    Content::Map(entries) => Value::Object(entries.values.into_iter().collect::<Map<_, _>>()),
                };
                self.finish(value, frame.anchor, frame.mark)
            }
        }
    }

    fn open(&mut self, content: Content, anchor: Option<String>, mark: Mark) -> Result<(), Error> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.nodes += 1;
        self.stack.push(Frame { content, anchor, mark });
        Ok(())
    }

    /// The map that expects a key, if any.
    fn entries_without_key(&mut self) -> Option<&mut Entries> {
        match &mut self.stack.last_mut()?.content {
            Content::Map(entries) if entries.key.is_none() && !entries.merge => Some(entries),
            _ => None,
        }
    }

    /// Accounts for a copy before it is made.
    fn copy(&mut self, size: Size) -> Result<(), Error> {
        self.copied = self.copied.saturating_add(size.bytes);
        if self.copied > MAX_COPIED_BYTES {
            return Err(Error::new(format!(
                "yaml: document contains excessive aliasing: anchors and aliases stand for more than \
                 {MAX_COPIED_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// Stores the value of an anchor.
    fn anchor(&mut self, name: String, value: &Value) -> Result<(), Error> {
        let size = Size::of(value);
        self.copy(size)?;
        self.anchors.insert(name, Anchored::Done(value.clone(), size));
        Ok(())
    }

    fn alias(&mut self, name: &str, mark: Mark) -> Result<(), Error> {
        let Some(Anchored::Done(_, size)) = self.anchors.get(name) else {
            return Err(Error::new(format!("yaml: anchor '{name}' value contains itself")));
        };
        let size = *size;
        if self.stack.len() + size.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.nodes += size.nodes;
        self.aliased += size.nodes;
        // Go's rule: the larger a document, the smaller the share that may come from aliases.
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
        self.copy(size)?;
        let value = match self.anchors.get(name) {
            Some(Anchored::Done(value, _)) => value.clone(),
            _ => Value::Null,
        };
        if let Some(entries) = self.entries_without_key() {
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
            entries.key = Some(scalar.to_key()?);
            return Ok(());
        }
        self.finish(value, None, mark)
    }

    /// Adds a complete node to its parent.
    fn finish(&mut self, value: Value, anchor: Option<String>, mark: Mark) -> Result<(), Error> {
        if let Some(name) = anchor {
            self.anchor(name, &value)?;
        }
        match self.stack.last_mut().map(|frame| &mut frame.content) {
            None => self.root = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Map(entries)) if entries.merge => {
                entries.merge = false;
                merge(entries, value, mark, &mut self.duplicates)?;
            }
            Some(Content::Map(entries)) => match entries.key.take() {
                Some(key) if key.shown == NULL_KEY => {
                    let shown = if value.is_null() { NULL_KEY.into() } else { in_go(&value) };
                    return Err(Error::new(format!(
                        "unsupported map key of type: %!s(<nil>), key: {NULL_KEY}, value: {shown}"
                    )));
                }
                Some(key) => entries.set(key, value, mark, &mut self.duplicates),
                None => return Err(invalid_key(&value)),
            },
        }
        Ok(())
    }
}

impl Entries {
    fn set(&mut self, key: Key, value: Value, mark: Mark, duplicates: &mut Vec<String>) {
        if !self.seen.insert(key.shown.clone()) && duplicates.len() < MAX_DUPLICATES {
            duplicates.push(format!("line {}: key {} already set in map", mark.line + 1, key.shown));
        }
        self.values.insert(key.text, value);
    }
}

fn merge(entries: &mut Entries, value: Value, mark: Mark, duplicates: &mut Vec<String>) -> Result<(), Error> {
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
    Error::new(format!("yaml: invalid map key: {}", in_go(value)))
}

/// A value in Go syntax.
fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_go).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", quote(key), in_go(value))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", entries.join(", "))
        }
        simple => simple.to_string(),
    }
}

fn too_deep() -> Error {
    Error::new(format!("yaml: exceeded max depth of {MAX_DEPTH}"))
}

#[cfg(test)]
mod tests;
