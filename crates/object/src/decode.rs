//! Decodes JSON request bodies, with Go's error messages.
//!
//! [`json`] decodes a document like Go's `encoding/json` and `sigs.k8s.io/json`: the last of several equal keys
//! wins and is recorded as a duplicate, integers that fit 64 bits stay integers, invalid UTF-8 is replaced.
//! Nesting is limited to [`MAX_DEPTH`] levels, so that neither the decoder nor any traversal of the value
//! overflows the stack. YAML is decoded by [`crate::yaml::decode`].

use serde_json::{Map, Number, Value};

use crate::field::quote;

pub use crate::depth::MAX_DEPTH;

/// Maximum number of recorded duplicates, as in Go.
const MAX_DUPLICATES: usize = 100;

/// A decoding error with Go's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message: `unexpected end of JSON input`.
    pub message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }

    fn too_deep() -> Error {
        Error::new(format!("exceeded max depth of {MAX_DEPTH}"))
    }

    /// Whether the document was nested deeper than [`MAX_DEPTH`].
    pub fn is_too_deep(&self) -> bool {
        *self == Error::too_deep()
    }
}

/// A duplicate key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// Its path: `spec.containers[0].image`.
    pub path: String,
    /// The number of keys before it when the decoded value is traversed in order, at all levels: an error about
    /// key number `position` or later is reported after this one.
    pub position: usize,
}

/// A decoded document.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value, with fields in document order.
    pub value: Value,
    /// The duplicate keys in document order.
    pub duplicates: Vec<Duplicate>,
}

/// Decodes a JSON document.
pub fn json(bytes: &[u8]) -> Result<Decoded, Error> {
    let mut reader = Reader { bytes, at: 0, depth: 0, keys: 0, duplicates: Vec::new(), too_large: None };
    let value = reader.value()?;
    reader.space();
    if reader.at < bytes.len() {
        return Err(reader.unexpected("after top-level value"));
    }
    match reader.too_large {
        Some(error) => Err(error),
        None => Ok(Decoded { value, duplicates: reader.duplicates }),
    }
}

/// Whether the bytes are a JSON document, as Go's `json.Valid`.
pub fn is_valid_json(bytes: &[u8]) -> bool {
    json(bytes).is_ok()
}

/// The type of a JSON value in Go's error messages: `string`, `number`, `bool`, `array`, `object` or `null`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The `apiVersion` and `kind` of a document, empty where missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeMeta<'v> {
    /// `apps/v1`
    pub api_version: &'v str,
    /// `Deployment`
    pub kind: &'v str,
}

/// The `apiVersion` and `kind` of a document. Field names are case-insensitive here, and the last one counts.
pub fn type_meta(value: &Value) -> Result<TypeMeta<'_>, Error> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok(TypeMeta::default()),
        other => {
            return Err(Error::new(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type \
                 struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}",
                type_name(other)
            )));
        }
    };
    let mut meta = TypeMeta::default();
    for (key, value) in map {
        let (name, target) = if key.eq_ignore_ascii_case("apiVersion") {
            ("apiVersion", &mut meta.api_version)
        } else if key.eq_ignore_ascii_case("kind") {
            ("kind", &mut meta.kind)
        } else {
            continue;
        };
        match value {
            Value::String(text) => *target = text,
            Value::Null => {}
            other => {
                return Err(Error::new(format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field \
                     .{name} of type string",
                    type_name(other)
                )));
            }
        }
    }
    parse_group_version(meta.api_version).map_err(Error::new)?;
    Ok(meta)
}

/// Splits an `apiVersion` into its group, empty for the core group, and its version.
pub fn parse_group_version(api_version: &str) -> Result<(&str, &str), String> {
    if api_version.is_empty() || api_version == "/" {
        return Ok(("", ""));
    }
    match api_version.split_once('/') {
        None => Ok(("", api_version)),
        Some((group, version)) if !version.contains('/') => Ok((group, version)),
        Some(_) => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    depth: usize,
    keys: usize,
    duplicates: Vec<Duplicate>,
    /// The first number too large for a float; reported only if the rest of the document is valid.
    too_large: Option<Error>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// An unexpected character, or the end of input.
    fn unexpected(&self, place: &str) -> Error {
        let rest = self.rest();
        let shown = match rest.first() {
            None => return end(),
            Some(b'\'') => "'\\''".to_owned(),
            Some(b'"') => "'\"'".to_owned(),
            Some(&byte) => match rest.get(..rest.len().min(4)).and_then(first_char) {
                Some(c) => {
                    let text = quote(c.encode_utf8(&mut [0; 4]));
                    format!("'{}'", text.trim_matches('"'))
                }
                None => format!("'\\x{byte:02x}'"),
            },
        };
        Error::new(format!("invalid character {shown} {place}"))
    }

    fn value(&mut self) -> Result<Value, Error> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(Reader::object),
            Some(b'[') => self.nested(Reader::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Error>) -> Result<Value, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::too_deep());
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Error> {
        let mut map = Map::new();
        let first_of_object = self.duplicates.len();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            let keys = self.keys;
            let first_inside = self.duplicates.len();
            self.keys += 1;
            let value = self.value()?;
            self.prefix(first_inside, &key);
            if map.contains_key(&key) {
                self.duplicate(&key, keys, first_of_object, first_inside);
                if let Some(old) = map.insert(key, value) {
                    // The new value takes the position of the old one: one key less, and none of those in the
                    // old value.
                    self.keys = self.keys.saturating_sub(1 + count_keys(&old));
                }
            } else {
                map.insert(key, value);
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            let first_inside = self.duplicates.len();
            items.push(self.value()?);
            if self.duplicates.len() > first_inside {
                self.prefix(first_inside, &format!("[{}]", items.len() - 1));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    /// Adds a path segment to duplicates while returning from the recursion, so that documents without
    /// duplicates have no cost.
    fn prefix(&mut self, first: usize, segment: &str) {
        for duplicate in self.duplicates.iter_mut().skip(first) {
            let dot = if duplicate.path.starts_with('[') { "" } else { "." };
            duplicate.path = format!("{segment}{dot}{}", duplicate.path);
        }
    }

    fn duplicate(&mut self, key: &str, position: usize, first_of_object: usize, at: usize) {
        if self.duplicates.len() >= MAX_DUPLICATES {
            return;
        }
        let known = self.duplicates.iter().skip(first_of_object).any(|duplicate| duplicate.path == key);
        if !known {
            let at = at.min(self.duplicates.len());
            self.duplicates.insert(at, Duplicate { path: key.to_owned(), position });
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        for expected in word.bytes() {
            match self.peek() {
                Some(byte) if byte == expected => self.at += 1,
                _ => {
                    let place = format!("in literal {word} (expecting '{}')", char::from(expected));
                    return Err(self.unexpected(&place));
                }
            }
        }
        Ok(value)
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected("in numeric literal"));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let mut whole = true;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text =
            self.bytes.get(start..self.at).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default();
        if whole && let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        let number = text.parse::<f64>().ok().and_then(Number::from_f64);
        if number.is_none() && self.too_large.is_none() {
            let message = format!("json: cannot unmarshal number {text} into Go value of type float64");
            self.too_large = Some(Error::new(message));
        }
        Ok(number.map_or(Value::Null, Value::Number))
    }

    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let start = self.at;
        let plain = self.rest().iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
        let Some(plain) = plain else { return Err(end()) };
        self.at += plain;
        if self.peek() == Some(b'"') {
            let text = to_text(self.bytes.get(start..self.at).unwrap_or_default());
            self.at += 1;
            return Ok(text);
        }
        let mut text = self.bytes.get(start..self.at).unwrap_or_default().to_vec();
        loop {
            match self.peek() {
                None => return Err(end()),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(to_text(&text));
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(byte) if byte < b' ' => return Err(self.unexpected("in string")),
                Some(byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let Some(&kind) = self.bytes.get(self.at + 1) else { return Err(end()) };
        let c = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.bad_escape(2)),
        };
        self.at += 2;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Result<char, Error> {
        let high = match self.code_unit() {
            Some(unit) => unit,
            None => {
                let rest = self.rest();
                let digits = rest.get(2..).unwrap_or_default();
                let cut_short = rest.len() < 6 && digits.iter().all(u8::is_ascii_hexdigit);
                return Err(if cut_short { end() } else { self.bad_escape(6) });
            }
        };
        self.at += 6;
        if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        // A lone surrogate becomes the replacement character.
        let pair = self.code_unit().filter(|low| high < 0xDC00 && (0xDC00..0xE000).contains(low));
        let Some(low) = pair else { return Ok(char::REPLACEMENT_CHARACTER) };
        self.at += 6;
        let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// The code unit in `\uXXXX`, if there is one here.
    fn code_unit(&self) -> Option<u32> {
        let digits = self.rest().strip_prefix(b"\\u")?.get(..4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    }

    fn bad_escape(&self, length: usize) -> Error {
        let rest = self.rest();
        let what = String::from_utf8_lossy(rest.get(..length).unwrap_or(rest));
        let odd =
            |c: char| c == '`' || c == char::REPLACEMENT_CHARACTER || c.is_whitespace() || c.is_control();
        let shown = if what.contains(odd) { quote(&what) } else { format!("`{what}`") };
        Error::new(format!("invalid escape sequence {shown} in string"))
    }
}

fn end() -> Error {
    Error::new("unexpected end of JSON input")
}

fn first_char(bytes: &[u8]) -> Option<char> {
    bytes.utf8_chunks().next()?.valid().chars().next()
}

/// Decodes UTF-8, with invalid bytes replaced.
fn to_text(bytes: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n(char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
    }
    text
}

fn count_keys(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(|value| 1 + count_keys(value)).sum(),
        Value::Array(items) => items.iter().map(count_keys).sum(),
        _ => 0,
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
