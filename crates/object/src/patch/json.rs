//! JSON Patch (RFC 6902) with the deviations of kube-apiserver.
//!
//! - Text before the first slash of a path is ignored: `data/x` is `/x`.
//! - `replace` adds a missing key, `copy` of a missing key copies null, a missing `value` is null, and `test` of
//!   a missing key against null passes.
//! - Indexes may have leading zeros or a sign; negative ones count from the end (for `add`, -1 appends).
//! - The whole document, `""`, can only be replaced and tested; `/` is the key `""`.
//! - `test` compares values, except that 1 is not 1.0. kube-apiserver compares the encoded scalars, so that a
//!   client's `"<"` differs from its own `"\u003c"`; k1s does not follow it there.

use std::{borrow::Cow, io};

use serde_json::Value;

use crate::field::quote;

use super::{
    PatchError,
    operations::{self, Op, Operation},
};

/// Maximum number of operations in a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Maximum number of bytes, as JSON, that the copies of one patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Maximum nesting of a patched document, so that it can be decoded again.
pub const MAX_DEPTH: usize = crate::depth::MAX_DEPTH;

/// Maximum number of items and fields that the operations of one patch may move or traverse in total: adding to
/// the front of a long list moves all of it.
const MAX_WORK: usize = 20_000_000;

/// A parsed JSON Patch.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    complaints: Vec<String>,
}

/// Parses a patch. `validate`: fields are validated, with warnings or strictly; it detects unknown, duplicate
/// and mistyped members of operations, and changes the error messages.
pub fn parse(bytes: &[u8], validate: bool) -> Result<JsonPatch, PatchError> {
    let read = operations::read(bytes, validate)?;
    Ok(JsonPatch { operations: read.operations, complaints: read.complaints })
}

impl JsonPatch {
    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Strict validation errors of the patch itself: `json patch unknown field "[0].extra"`.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Applies the operations in order.
    pub fn apply(&self, doc: &mut Value) -> Result<(), PatchError> {
        let mut run = Run { doc, copied: 0, deepest: None, work: 0 };
        self.operations.iter().try_for_each(|operation| run.step(operation))
    }

    /// Sorts the keys of every object on the path of an operation, as kube-apiserver does; visible where an
    /// error quotes the patched document.
    pub fn sort_touched(&self, doc: &mut Value) {
        let mut work = 0;
        sort(doc, &mut work);
        for path in self.operations.iter().flat_map(|operation| [&operation.from, &operation.path]).flatten()
        {
            let mut at = &mut *doc;
            let Some((head, _)) = path.rsplit_once('/') else { continue };
            for part in head.split('/').skip(1) {
                let Some(next) = child(at, part) else { break };
                at = next;
                sort(at, &mut work);
            }
        }
    }
}

fn sort(value: &mut Value, work: &mut usize) {
    if let Value::Object(map) = value
        && *work < MAX_WORK
    {
        *work += 8 * map.len();
        map.sort_keys();
    }
}

fn fails(why: impl Into<String>) -> PatchError {
    PatchError::Apply(why.into())
}

/// The application of a patch.
struct Run<'d> {
    doc: &'d mut Value,
    copied: usize,
    /// An upper bound of the document's depth, once it was needed.
    deepest: Option<usize>,
    /// Items moved and traversed so far.
    work: usize,
}

impl Run<'_> {
    fn step(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = || operation.path.as_deref().ok_or_else(|| fails("an operation has no path"));
        let from = || operation.from.as_deref().ok_or_else(|| fails("an operation has no from"));
        match operation.op {
            Op::Add => {
                let path = path()?;
                self.deepen(levels(path) + depth(&operation.value))?;
                self.add(path, operation.value.clone()).map_err(|miss| match miss {
                    Miss::Container => fails(format!(
                        "add operation does not apply: doc is missing path: \"{path}\": missing value"
                    )),
                    Miss::Member(why) => fails(format!("error in add for path: '{path}': {why}")),
                    Miss::Limit(why) => fails(why),
                })
            }
            Op::Remove => {
                let path = path()?;
                let removed = self.remove(path).map_err(|miss| match miss {
                    Miss::Container => fails(format!(
                        "remove operation does not apply: doc is missing path: \"{path}\": missing value"
                    )),
                    Miss::Member(why) => fails(format!("error in remove for path: '{path}': {why}")),
                    Miss::Limit(why) => fails(why),
                });
                removed.map(|_| ())
            }
            Op::Replace => self.replace(path()?, &operation.value),
            Op::Move => self.relocate(from()?, path()?),
            Op::Copy => self.copy(from()?, path()?),
            Op::Test => self.test(path()?, &operation.value),
            Op::Unknown => Err(fails("an operation is of no known kind")),
        }
    }

    fn replace(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        self.deepen(levels(path) + depth(value))?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(fails("replace operation value must be object or array"));
            }
            *self.doc = value.clone();
            return Ok(());
        }
        let lacks = |what: &str| {
            fails(format!("replace operation does not apply: doc is missing {what}: {path}: missing value"))
        };
        let (container, key) = container(self.doc, path).map_err(|_| lacks("path"))?;
        match container {
            Value::Object(map) => {
                map.insert(key.into_owned(), value.clone());
            }
            Value::Array(list) => {
                let index = index(&key, list.len()).map_err(|_| lacks("key"))?;
                *list.get_mut(index).ok_or_else(|| lacks("key"))? = value.clone();
            }
            _ => return Err(lacks("path")),
        }
        Ok(())
    }

    /// `move`
    fn relocate(&mut self, from: &str, path: &str) -> Result<(), PatchError> {
        let value = self.remove(from).map_err(|miss| match miss {
            Miss::Container => fails(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )),
            Miss::Member(why) => fails(format!("error in move for path: '{}': {why}", last(from))),
            Miss::Limit(why) => fails(why),
        })?;
        self.sink(levels(from), levels(path), &value)?;
        self.add(path, value).map_err(|miss| match miss {
            Miss::Container => fails(format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )),
            Miss::Member(why) => fails(format!("error in move for path: '{path}': {why}")),
            Miss::Limit(why) => fails(why),
        })
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<(), PatchError> {
        let value = get(self.doc, from).map_err(|miss| match miss {
            Miss::Container => fails(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )),
            Miss::Member(why) | Miss::Limit(why) => fails(format!("error in copy for from: '{from}': {why}")),
        })?;
        if let Some(value) = value {
            self.copied += encoded_len(value);
            if self.copied > MAX_COPIED_BYTES {
                return Err(fails(format!("copies of more than {MAX_COPIED_BYTES} bytes")));
            }
        }
        let value = value.cloned().unwrap_or_default();
        self.deepen(levels(path) + depth(&value))?;
        self.add(path, value).map_err(|miss| match miss {
            Miss::Container => fails(format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )),
            Miss::Member(why) => fails(format!("error while adding value during copy: {why}")),
            Miss::Limit(why) => fails(why),
        })
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), Miss> {
        let moved = add(self.doc, path, value)?;
        self.spend(moved).map_err(|why| Miss::Limit(why.to_string()))
    }

    fn remove(&mut self, path: &str) -> Result<Value, Miss> {
        let (value, moved) = remove(self.doc, path)?;
        self.spend(moved).map_err(|why| Miss::Limit(why.to_string()))?;
        Ok(value)
    }

    fn spend(&mut self, work: usize) -> Result<(), PatchError> {
        self.work = self.work.saturating_add(work);
        if self.work > MAX_WORK {
            return Err(fails("the operations move too many items of long lists and large objects"));
        }
        Ok(())
    }

    fn test(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        let found = match path {
            "" => Ok(Some(&*self.doc)),
            _ => get(self.doc, path),
        };
        let found = found.map_err(|miss| match miss {
            Miss::Container => {
                fails(format!("test operation does not apply: is missing path: {path}: missing value"))
            }
            Miss::Member(why) | Miss::Limit(why) => fails(format!("error in test for path: '{path}': {why}")),
        })?;
        match found.unwrap_or(&Value::Null) == value {
            true => Ok(()),
            false => Err(PatchError::Test(path.to_owned())),
        }
    }

    /// Records a value at this depth.
    fn deepen(&mut self, depth: usize) -> Result<(), PatchError> {
        if depth > MAX_DEPTH {
            return Err(fails(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.deepest = self.deepest.map(|deepest| deepest.max(depth));
        Ok(())
    }

    /// Records the move of a value between levels. Its depth is measured only if the known bound does not
    /// suffice, so that many moves of a large value do not traverse it each time.
    fn sink(&mut self, from: usize, to: usize, value: &Value) -> Result<(), PatchError> {
        if to <= from {
            return Ok(());
        }
        let bound = |deepest: usize| deepest.saturating_sub(from) + to;
        match self.deepest {
            Some(deepest) if bound(deepest) <= MAX_DEPTH => self.deepen(bound(deepest)),
            deepest => {
                let below = depth(value);
                self.spend(count(value))?;
                self.deepest = Some(deepest.unwrap_or_else(|| depth(self.doc)).max(from + below));
                self.deepen(to + below)
            }
        }
    }
}

/// Why an operation finds no place, in the words of kube-apiserver's library.
enum Miss {
    /// The object or list that would hold the place does not exist.
    Container,
    /// It exists, and has no such member.
    Member(String),
    /// A limit of this implementation.
    Limit(String),
}

fn no_index(index: &str) -> Miss {
    Miss::Member(format!("Unable to access invalid index: {index}: invalid index referenced"))
}

/// The last segment of a path.
fn last(path: &str) -> Cow<'_, str> {
    unescaped(path.rsplit_once('/').map_or(path, |(_, key)| key))
}

fn levels(path: &str) -> usize {
    path.bytes().filter(|&byte| byte == b'/').count()
}

/// The nesting of containers: 0 for a scalar.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The number of values in a value.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// One pass from left to right: `~01` is `~1`, not `/`.
fn unescaped(part: &str) -> Cow<'_, str> {
    if !part.contains('~') {
        return Cow::Borrowed(part);
    }
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        out.push_str(before);
        rest = if let Some(after) = after.strip_prefix('1') {
            out.push('/');
            after
        } else if let Some(after) = after.strip_prefix('0') {
            out.push('~');
            after
        } else {
            out.push('~');
            after
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The index for a key in a list of this length; it may be beyond the end.
fn index(key: &str, len: usize) -> Result<usize, Miss> {
    let number: i64 = key
        .parse()
        .map_err(|_| Miss::Member(format!("strconv.Atoi: parsing {}: invalid syntax", quote(key))))?;
    if number >= 0 {
        return usize::try_from(number).map_err(|_| no_index(key));
    }
    let back = usize::try_from(number.unsigned_abs()).map_err(|_| no_index(key))?;
    len.checked_sub(back).ok_or_else(|| no_index(key))
}

fn child<'v>(value: &'v mut Value, part: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(map) => map.get_mut(&*unescaped(part)),
        Value::Array(list) => {
            let index = index(part, list.len()).ok()?;
            list.get_mut(index)
        }
        _ => None,
    }
}

/// The object or list that contains the last segment of the path, and that segment.
fn container<'v, 'p>(doc: &'v mut Value, path: &'p str) -> Result<(&'v mut Value, Cow<'p, str>), Miss> {
    let (head, key) = path.rsplit_once('/').ok_or(Miss::Container)?;
    let mut at = doc;
    for part in head.split('/').skip(1) {
        at = child(at, part).ok_or(Miss::Container)?;
    }
    Ok((at, unescaped(key)))
}

/// The value at a path; `None` if an existing object lacks the key.
fn get<'v>(doc: &'v mut Value, path: &str) -> Result<Option<&'v Value>, Miss> {
    let (container, key) = container(doc, path)?;
    match container {
        Value::Object(map) => Ok(map.get(&*key).filter(|value| !value.is_null())),
        Value::Array(list) => {
            let index = index(&key, list.len())?;
            let item = list.get(index).ok_or_else(|| no_index(&key))?;
            Ok(Some(item).filter(|value| !value.is_null()))
        }
        _ => Err(Miss::Container),
    }
}

/// Adds a value, and returns the number of items moved.
fn add(doc: &mut Value, path: &str, value: Value) -> Result<usize, Miss> {
    let (container, key) = container(doc, path)?;
    match container {
        Value::Object(map) => {
            map.insert(key.into_owned(), value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(&key, list.len() + 1).map_err(|miss| match miss {
                Miss::Member(why) if why.starts_with("strconv") => {
                    Miss::Member(format!("value was not a proper array index: '{key}': {why}"))
                }
                miss => miss,
            })?;
            if index > list.len() {
                return Err(no_index(&key));
            }
            list.insert(index, value);
            return Ok(list.len() - index);
        }
        _ => return Err(Miss::Container),
    }
    Ok(0)
}

/// Removes a value, and returns the number of items moved.
fn remove(doc: &mut Value, path: &str) -> Result<(Value, usize), Miss> {
    let (container, key) = container(doc, path)?;
    match container {
        Value::Object(map) => {
            let missing = || Miss::Member(format!("Unable to remove nonexistent key: {key}: missing value"));
            let removed = map.shift_remove(&*key).ok_or_else(missing)?;
            Ok((removed, map.len()))
        }
        Value::Array(list) => {
            let index = index(&key, list.len())?;
            if index >= list.len() {
                return Err(no_index(&key));
            }
            let removed = list.remove(index);
            Ok((removed, list.len() - index))
        }
        _ => Err(Miss::Container),
    }
}

/// The length of the value as JSON of Go, which escapes HTML characters.
fn encoded_len(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let escaped = bytes.iter().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
            self.0 += bytes.len() + 5 * escaped;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
