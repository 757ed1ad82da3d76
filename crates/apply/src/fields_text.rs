//! `FieldsV1` as JSON text: read, and compared with a set, without a JSON value in between.
//!
//! The text is what [`FieldSet::to_fields_v1_json`] writes: objects of objects, without spaces. Anything else is [`Unknown`], and
//! is read the slow way.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::Value;

use crate::{
    fields_v1::{FieldsError, is_unknown},
    path::PathElement,
    set::FieldSet,
};

/// The text is not in the expected form.
struct Unknown;

/// An element of the text.
enum Key<'t> {
    /// The node itself is a member.
    Dot,
    Field(&'t str),
    Other(PathElement),
    /// Of a kind that a later version may have.
    Unknown,
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Result<(), Unknown> {
        if self.peek() != Some(byte) {
            return Err(Unknown);
        }
        self.at += 1;
        Ok(())
    }

    /// The rest of a string after its opening quote, and whether it has escapes.
    fn string(&mut self) -> Result<(&'t str, bool), Unknown> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let (mut end, mut escapes) = (0, false);
        loop {
            match rest.get(end) {
                None => return Err(Unknown),
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    end += 2;
                }
                // JSON has these as escapes only.
                Some(0..0x20) => return Err(Unknown),
                Some(_) => end += 1,
            }
        }
        let text = self.text.get(self.at..self.at + end).ok_or(Unknown)?;
        self.at += end + 1;
        Ok((text, escapes))
    }

    /// The next key of an object, or `None` at its end.
    fn key(&mut self, first: bool) -> Result<Option<Key<'t>>, Unknown> {
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(None);
        }
        if !first {
            self.eat(b',')?;
        }
        self.eat(b'"')?;
        let (text, escapes) = self.string()?;
        self.eat(b':')?;
        if !escapes {
            if text == "." {
                return Ok(Some(Key::Dot));
            }
            if let Some(name) = text.strip_prefix("f:") {
                return Ok(Some(Key::Field(name)));
            }
        }
        let text = match escapes {
            false => Cow::Borrowed(text),
            true => Cow::Owned(serde_json::from_str(&format!("\"{text}\"")).map_err(|_| Unknown)?),
        };
        if is_unknown(&text) {
            return Ok(Some(Key::Unknown));
        }
        Ok(Some(Key::Other(PathElement::from_key(&text).map_err(|_| Unknown)?)))
    }

    /// Reads an object without keys.
    fn nothing(&mut self) -> Result<(), Unknown> {
        self.eat(b'{')?;
        self.eat(b'}')
    }

    /// Skips an object, which is JSON.
    fn skip(&mut self) -> Result<(), Unknown> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'{') => depth += 1,
                Some(b'}') if depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                Some(b'"') if depth > 0 => {
                    self.at += 1;
                    self.string()?;
                    continue;
                }
                Some(b',' | b':') if depth > 0 => {}
                _ => return Err(Unknown),
            }
            self.at += 1;
        }
    }

    /// The set of the next object, and whether its node is a member.
    fn set(&mut self) -> Result<(FieldSet, bool), Unknown> {
        self.eat(b'{')?;
        let (mut set, mut is_member) = (FieldSet::new(), false);
        let mut first = true;
        while let Some(key) = self.key(std::mem::take(&mut first))? {
            let element = match key {
                Key::Dot => {
                    is_member = true;
                    self.nothing()?;
                    continue;
                }
                Key::Unknown => {
                    self.nothing()?;
                    continue;
                }
                Key::Field(name) => PathElement::field(name),
                Key::Other(element) => element,
            };
            let (child, member) = self.set()?;
            set.push(element, child, member);
        }
        set.normalize();
        let is_member = is_member || set.is_empty();
        Ok((set, is_member))
    }

    /// How many paths of `set` are in the next object, and whether its node is a member.
    fn count(&mut self, set: &FieldSet) -> Result<(usize, bool), Unknown> {
        self.eat(b'{')?;
        let (mut hits, mut is_member, mut is_empty) = (0, false, true);
        while let Some(key) = self.key(is_empty)? {
            is_empty = false;
            let order = |element: &PathElement| match &key {
                Key::Field(name) => match element {
                    PathElement::Field(other) => (**other).cmp(name),
                    _ => Ordering::Greater,
                },
                Key::Other(key) => element.cmp(key),
                // They sort nowhere; see below.
                Key::Dot | Key::Unknown => Ordering::Less,
            };
            if matches!(key, Key::Dot) {
                is_member = true;
            }
            if matches!(key, Key::Dot | Key::Unknown) {
                self.skip()?;
                continue;
            }
            let is_wanted = set.members.binary_search_by(order).is_ok();
            let below = set.children.binary_search_by(|(element, _)| order(element)).ok();
            match below.and_then(|at| set.children.get(at)) {
                Some((_, child)) => {
                    let (below, member) = self.count(child)?;
                    hits += below + usize::from(member && is_wanted);
                }
                None if is_wanted => hits += usize::from(self.count(&FieldSet::new())?.1),
                None => self.skip()?,
            }
        }
        Ok((hits, is_member || is_empty))
    }

    fn end(&self) -> Result<(), Unknown> {
        if self.at == self.text.len() { Ok(()) } else { Err(Unknown) }
    }
}

impl FieldSet {
    /// Reads the JSON text of `FieldsV1`.
    ///
    /// # Errors
    /// Text that is not JSON, or of another form.
    pub fn from_fields_v1_json(text: &str) -> Result<FieldSet, FieldsError> {
        let mut cursor = Cursor { text, at: 0 };
        let read = cursor.set();
        if let Ok((set, _)) = read
            && cursor.end().is_ok()
        {
            return Ok(set);
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| FieldsError::NoObject(error.to_string()))?;
        FieldSet::from_fields_v1(&value)
    }

    /// How many paths of this set are in a set that is JSON text; `None` if the text is in another form. It takes one walk over
    /// the text, and nothing is decoded.
    pub(crate) fn count_in_json(&self, text: &str) -> Option<usize> {
        let mut cursor = Cursor { text, at: 0 };
        let (hits, _) = cursor.count(self).ok()?;
        cursor.end().ok().map(|()| hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = r#"{"f:a":{},"f:b":{".":{},"k:{\"name\":\"x\",\"port\":80}":{".":{},"f:c":{}},"v:3":{},"v:\"s\"":{},"i:2":{}},"f:d":{"f:e":{}}}"#;

    #[test]
    fn text_is_read_like_its_value() {
        let value: Value = serde_json::from_str(TEXT).unwrap();
        let set = FieldSet::from_fields_v1_json(TEXT).unwrap();
        assert_eq!(set, FieldSet::from_fields_v1(&value).unwrap());
        assert_eq!(set.to_fields_v1_json(), TEXT);
        // In another form: with spaces, null and kinds of a later version.
        for text in [
            r#"{ "f:a": {} }"#,
            r#"{"f:a":null}"#,
            r#"{"x:1":{},"f:a":{}}"#,
            r#"{"f:\u0061":{}}"#,
            r#"{"f:a":{"x:1":{}}}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let expected = FieldSet::from_fields_v1(&value).unwrap();
            assert_eq!(FieldSet::from_fields_v1_json(text).unwrap(), expected, "{text}");
        }
        for text in ["{\"f:a\":{},\"\u{11}:1\":{}}", r#"{"f:a":{},".":{,}}"#, r#"{"x:1":{"a" "b"}}"#] {
            assert!(FieldSet::from_fields_v1_json(text).is_err(), "{text:?}");
        }
        for text in ["", "{", r#"{"f:a":{}"#, r#"{"f:a":{}}}"#, r#"{"f:a":1}"#, r#"{"a":{}}"#, r#"{"f:a"{}}"#]
        {
            assert!(FieldSet::from_fields_v1_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_are_found_in_text() {
        let set = |value: Value| FieldSet::from_fields_v1(&value).unwrap();
        for (fields, hits) in [
            (json!({"f:a": {}}), 1),
            (json!({"f:a": {}, "f:b": {}, "f:d": {}}), 2),
            (json!({"f:d": {"f:e": {}, "f:x": {}}}), 1),
            (json!({"f:b": {"k:{\"name\":\"x\",\"port\":80}": {".": {}, "f:c": {}}}}), 2),
            (json!({"f:b": {".": {}, "v:\"s\"": {}, "i:2": {}, "i:3": {}}}), 3),
            (json!({"f:c": {}, "f:a": {"f:x": {}}}), 0),
        ] {
            assert_eq!(set(fields.clone()).count_in_json(TEXT), Some(hits), "{fields}");
        }
        assert_eq!(FieldSet::from_fields_v1_json(TEXT).unwrap().count_in_json(TEXT), Some(8));
        assert_eq!(set(json!({"f:a": {}})).count_in_json(r#"{"f:a": {}}"#), None);
    }
}
