//! Validation of values against a schema, with the texts of kube-apiserver, and ratcheting: what an update leaves
//! as it was is not held against it.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use k1s_object::field::{At, ErrorKind, FieldError, Shown, quote};
use serde_json::{Map, Value};

use super::{Additional, Limits, ListType, Structural, Type, formats::Format, list_types, number};
use crate::go::{self, GoNumber};

/// One thing wrong, before it is known where in a document the value stands.
pub(super) struct Found {
    kind: ErrorKind,
    /// The place below the value that is validated; `None` speaks of the value as a whole.
    name: Option<String>,
    value: Shown,
    detail: String,
}

impl Found {
    /// A complaint that names no field.
    pub(super) fn plain(detail: String) -> Found {
        Found { kind: ErrorKind::Invalid, name: None, value: Shown::Json(Value::from("")), detail }
    }

    pub(super) fn invalid(path: &str, value: Shown, detail: String) -> Found {
        Found { kind: ErrorKind::Invalid, name: Some(path.to_owned()), value, detail }
    }

    fn of_type(path: &str, wanted: &str, got: &str) -> Found {
        Found {
            kind: ErrorKind::TypeInvalid,
            name: Some(path.to_owned()),
            value: Shown::Json(Value::from(got)),
            detail: format!("{path} in body must be of type {wanted}: {}", quote(got)),
        }
    }

    fn required(path: &str) -> Found {
        Found {
            kind: ErrorKind::Required,
            name: Some(path.to_owned()),
            value: Shown::Nothing,
            detail: String::new(),
        }
    }

    fn too_many(path: &str, count: usize, limit: i64) -> Found {
        let detail = match usize::try_from(limit) {
            Ok(limit) => FieldError::too_many("", count, limit).detail,
            Err(_) => "has too many items".to_owned(),
        };
        Found {
            kind: ErrorKind::TooMany,
            name: Some(path.to_owned()),
            value: Shown::Verbatim(count.to_string()),
            detail,
        }
    }

    fn too_long(path: &str, limit: i64) -> Found {
        let detail = match usize::try_from(limit) {
            Ok(limit) => FieldError::too_long("", limit).detail,
            Err(_) => "value is too long".to_owned(),
        };
        Found { kind: ErrorKind::TooLong, name: Some(path.to_owned()), value: Shown::Nothing, detail }
    }

    fn not_among(path: &str, value: &Value, allowed: &[Value]) -> Found {
        let allowed: Vec<String> = allowed
            .iter()
            .map(|value| match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => match GoNumber::of(number).shown() {
                    Shown::Verbatim(text) => text,
                    _ => number.to_string(),
                },
                other => other.to_string(),
            })
            .collect();
        Found {
            kind: ErrorKind::NotSupported,
            name: Some(path.to_owned()),
            value: go::shown(value),
            detail: FieldError::not_supported("", "", &allowed).detail,
        }
    }

    fn into_error(self, base: &str) -> FieldError {
        let name = self.name.unwrap_or_default();
        let name = name.strip_prefix('.').unwrap_or(&name);
        let field = match (base.is_empty(), name.is_empty()) {
            (true, true) => "<nil>".to_owned(),
            (true, false) => name.to_owned(),
            (false, true) => base.to_owned(),
            (false, false) => format!("{base}.{name}"),
        };
        FieldError::new(self.kind, field, self.value, self.detail)
    }
}

/// The complaints about a value, and how many checks were made: of the alternatives that all fail, the one that
/// got furthest is told.
#[derive(Default)]
struct Outcome {
    found: Vec<Found>,
    matches: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.found.extend(other.found);
        self.matches += other.matches;
    }
}

impl Structural {
    /// Checks a custom resource, or a part of one, before it is written: its values, embedded objects, and lists
    /// that are sets or maps. With the object as it was, values that an update leaves alone are not complained about.
    pub fn validate(&self, new: At<'_, '_>, old: Option<At<'_, '_>>) {
        let Some(value) = new.value() else { return };
        let base = new.path();
        let before = old.and_then(At::value);
        for error in self.check_values(value, before, &base, true) {
            new.check().push(error);
        }
        for error in self.check_embedded(value, &base, false) {
            new.check().push(error);
        }
        self.check_lists(value, before, &base, new);
        // The rules in `x-kubernetes-validations` (see `Structural::rules`) are not evaluated yet. This is the place:
        // after everything else, unless an error above keeps the types from being known.
    }

    /// Checks what a write through `/status` may change: the status, with paths in messages that begin below it.
    pub fn validate_status(&self, new: At<'_, '_>, old: Option<At<'_, '_>>) {
        let before = old.and_then(At::value);
        if let (Some(status), Some(schema)) =
            (new.value().and_then(|new| new.get("status")), self.property("status"))
        {
            let old_status = before.and_then(|old| old.get("status"));
            for error in schema.check_values(status, old_status, "status", true) {
                new.check().push(error);
            }
        }
        if let Some(value) = new.value() {
            self.check_lists(value, before, &new.path(), new);
        }
        // Rules in `x-kubernetes-validations` are to be evaluated here as well.
    }

    fn check_lists(&self, value: &Value, before: Option<&Value>, base: &str, at: At<'_, '_>) {
        if before.is_some_and(|before| !list_types::check(self, before).is_empty()) {
            return;
        }
        for mut error in list_types::check(self, value) {
            if !base.is_empty() {
                error.field = format!("{base}.{}", error.field);
            }
            at.check().push(error);
        }
    }

    /// What is wrong with a value. `live` is false for defaults in a definition, where a whole number or string
    /// may be anything.
    pub(crate) fn check_values(
        &self,
        value: &Value,
        old: Option<&Value>,
        base: &str,
        live: bool,
    ) -> Vec<FieldError> {
        let outcome = Walk { live }.node(self, value, old, &mut String::new());
        let mut seen = HashSet::new();
        outcome
            .found
            .into_iter()
            .map(|found| found.into_error(base))
            .filter(|error| seen.insert(error.to_string()))
            .collect()
    }
}

struct Walk {
    live: bool,
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) => match GoNumber::of(number) {
            GoNumber::Int(_) => Type::Integer,
            GoNumber::Float(_) => Type::Number,
        },
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array,
        Value::Object(_) => Type::Object,
    }
}

impl Walk {
    fn types(&self, schema: &Structural) -> &'static [Type] {
        if schema.int_or_string && self.live {
            return &[Type::Integer, Type::String];
        }
        match schema.kind {
            Type::Any => &[],
            Type::String => &[Type::String],
            Type::Number => &[Type::Number],
            Type::Integer => &[Type::Integer],
            Type::Boolean => &[Type::Boolean],
            Type::Array => &[Type::Array],
            Type::Object => &[Type::Object],
        }
    }

    fn node(&self, schema: &Structural, value: &Value, old: Option<&Value>, path: &mut String) -> Outcome {
        let mut outcome = self.fresh(schema, value, old, path);
        if !outcome.found.is_empty() && old.is_some_and(|old| is_unchanged(schema, value, old)) {
            outcome.found.clear();
        }
        outcome
    }

    fn fresh(&self, schema: &Structural, value: &Value, old: Option<&Value>, path: &mut String) -> Outcome {
        let mut outcome = Outcome::default();
        let limits = schema.limits.as_deref();
        let types = self.types(schema);
        let format = limits.and_then(|limits| limits.format);
        if value.is_null() {
            if !types.is_empty() && !schema.nullable {
                outcome.found.push(Found::of_type(path, &names(types), "null"));
            } else {
                outcome.matches += 1;
            }
            outcome.found.extend(limits.and_then(|limits| not_among(limits, value, path)));
            return outcome;
        }
        if !types.is_empty() || format.is_some() {
            match wrong_type(types, format, value, path) {
                Some(found) => outcome.found.push(found),
                None => outcome.matches += 1,
            }
            outcome.matches += 1;
        }
        if let Some(limits) = limits {
            self.branches(limits, value, path, &mut outcome);
        }
        outcome.matches += 2;
        match value {
            Value::String(text) => {
                if let Some(limits) = limits {
                    outcome.found.extend(wrong_text(limits, text, path));
                    if let Some(Format::Text(format, name)) = limits.format {
                        outcome.matches += 1;
                        if !format.holds(text) {
                            outcome.found.push(Found::of_type(path, name, text));
                        }
                    }
                }
                outcome.matches += 1;
            }
            Value::Number(value) => {
                let kind = if let [one] = types { *one } else { Type::Any };
                number::check(GoNumber::of(value), kind, limits, path, &mut outcome.found);
                outcome.matches += 2;
            }
            Value::Array(list) => {
                self.list(schema, list, old, path, &mut outcome);
                outcome.matches += 2;
            }
            _ => {}
        }
        outcome.found.extend(limits.and_then(|limits| not_among(limits, value, path)));
        outcome.matches += 1;
        if let Value::Object(map) = value {
            self.object(schema, map, old, path, &mut outcome);
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn branches(&self, limits: &Limits, value: &Value, path: &mut String, outcome: &mut Outcome) {
        if !limits.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut success = None;
            for branch in &limits.any_of {
                let result = self.node(branch, value, None, path);
                if result.found.is_empty() {
                    success = Some(result);
                    break;
                }
                if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                    best = Some(result);
                }
            }
            if success.is_none() {
                outcome
                    .found
                    .push(Found::plain(format!("{} must validate at least one schema (anyOf)", quote(path))));
            }
            if let Some(result) = success.or(best) {
                outcome.merge(result);
            }
        }
        if !limits.one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut success = None;
            let mut valid = 0;
            for branch in &limits.one_of {
                let result = self.node(branch, value, None, path);
                if result.found.is_empty() {
                    valid += 1;
                    best = None;
                    success.get_or_insert(result);
                } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
                    best = Some(result);
                }
            }
            if valid == 1 {
                outcome.merge(success.unwrap_or_default());
            } else {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    _ => format!("Found {valid} valid alternatives"),
                };
                outcome.found.push(Found::plain(format!(
                    "{} must validate one and only one schema (oneOf). {found}",
                    quote(path)
                )));
                outcome.merge(best.unwrap_or_default());
            }
        }
        if !limits.all_of.is_empty() {
            let mut valid = 0;
            for branch in &limits.all_of {
                let result = self.node(branch, value, None, path);
                valid += usize::from(result.found.is_empty());
                outcome.merge(result);
            }
            if valid != limits.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.found.push(Found::plain(format!(
                    "{} must validate all the schemas (allOf){none}",
                    quote(path)
                )));
            }
        }
        if let Some(not) = &limits.not
            && self.node(not, value, None, path).found.is_empty()
        {
            outcome.found.push(Found::plain(format!("{} must not validate the schema (not)", quote(path))));
        }
    }

    fn list(
        &self,
        schema: &Structural,
        list: &[Value],
        old: Option<&Value>,
        path: &mut String,
        outcome: &mut Outcome,
    ) {
        if let Some(items) = schema.items() {
            let before = old.and_then(Value::as_array).and_then(|old| OldItems::new(schema, old));
            for (index, item) in list.iter().enumerate() {
                let old = before.as_ref().and_then(|before| before.get(schema, item));
                let length = path.len();
                let _ = write!(path, "[{index}]");
                outcome.merge(self.node(items, item, old, path));
                path.truncate(length);
            }
        }
        let Some(limits) = schema.limits.as_deref() else { return };
        let count = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(least) = limits.min_items.filter(|least| count < *least) {
            outcome.found.push(Found::invalid(
                path,
                Shown::Verbatim(count.to_string()),
                format!("{path} in body should have at least {least} items"),
            ));
        }
        if let Some(most) = limits.max_items.filter(|most| count > *most) {
            outcome.found.push(Found::too_many(path, list.len(), most));
        }
        if limits.unique_items
            && list.iter().enumerate().any(|(i, item)| list.iter().take(i).any(|other| other == item))
        {
            outcome.found.push(Found::invalid(
                path,
                Shown::Json(Value::from("")),
                format!("{path} in body shouldn't contain duplicates"),
            ));
        }
    }

    fn object(
        &self,
        schema: &Structural,
        map: &Map<String, Value>,
        old: Option<&Value>,
        path: &mut String,
        outcome: &mut Outcome,
    ) {
        let limits = schema.limits.as_deref();
        let count = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(least) = limits.and_then(|limits| limits.min_properties).filter(|least| count < *least) {
            outcome.found.push(Found::invalid(
                path,
                Shown::Verbatim(count.to_string()),
                format!("{path} in body should have at least {least} properties"),
            ));
        }
        if let Some(most) = limits.and_then(|limits| limits.max_properties).filter(|most| count > *most) {
            outcome.found.push(Found::too_many(path, map.len(), most));
        }
        for (key, value) in map {
            if schema.property(key).is_some() {
                continue;
            }
            match &schema.additional {
                Additional::Bool(false) => outcome.found.push(Found::invalid(
                    path,
                    Shown::Json(Value::from(key.as_str())),
                    format!("{path}.{key} in body is a forbidden property"),
                )),
                Additional::Schema(additional) => {
                    let old = old.and_then(|old| old.get(key));
                    let length = path.len();
                    path.push('.');
                    path.push_str(key);
                    outcome.merge(self.node(additional, value, old, path));
                    path.truncate(length);
                }
                Additional::Bool(true) | Additional::Unsaid => {}
            }
        }
        for (name, property) in &schema.properties {
            let Some(value) = map.get(name.as_ref()) else { continue };
            // The type of the resource itself always differs in ways that cannot be seen here.
            let ratchets = !path.is_empty() || !matches!(name.as_ref(), "kind" | "apiVersion");
            let old = old.and_then(|old| old.get(name.as_ref())).filter(|_| ratchets);
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            outcome.merge(self.node(property, value, old, path));
            path.truncate(length);
        }
        for name in limits.into_iter().flat_map(|limits| limits.required.iter()) {
            if !map.contains_key(name.as_ref()) {
                outcome.found.push(Found::required(&format!("{path}.{name}")));
            }
        }
    }
}

fn names(types: &[Type]) -> String {
    types.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
}

fn wrong_type(types: &[Type], format: Option<Format>, value: &Value, path: &str) -> Option<Found> {
    let kind = type_of(value);
    let float = match value {
        Value::Number(number) => match GoNumber::of(number) {
            GoNumber::Float(float) => Some(float),
            GoNumber::Int(_) => None,
        },
        _ => None,
    };
    let float_as_int = float.is_some_and(go::is_whole) && types.contains(&Type::Integer);
    let int_as_float = kind == Type::Integer && types.contains(&Type::Number);
    let fits = types.contains(&kind) || float_as_int || int_as_float;
    if let Some(format) = format {
        let of_value = match kind {
            Type::Integer => "int64",
            Type::Number => "float64",
            _ => "",
        };
        let is_text = matches!(kind, Type::String | Type::Array);
        if !is_text && !fits && of_value != format.name() {
            return Some(Found::of_type(path, format.name(), of_value));
        }
        // A list or string of some format is left to the format.
        if is_text && !types.contains(&Type::Number) && !types.contains(&Type::Integer) {
            return None;
        }
    }
    (!fits).then(|| Found::of_type(path, &names(types), kind.name()))
}

fn wrong_text(limits: &Limits, text: &str, path: &str) -> Option<Found> {
    if limits.max_length.is_some() || limits.min_length.is_some() {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = limits.max_length.filter(|most| length > *most) {
            return Some(Found::too_long(path, most));
        }
        if let Some(least) = limits.min_length.filter(|least| length < *least) {
            let detail = format!("{path} in body should be at least {least} chars long");
            return Some(Found::invalid(path, Shown::Json(Value::from(text)), detail));
        }
    }
    let pattern = limits.pattern.as_deref()?;
    let detail = match pattern.compiled() {
        Ok(regex) if regex.is_match(text) => return None,
        Ok(_) => format!("{path} in body should match '{}'", pattern.source),
        Err(error) => {
            format!("{path} in body should match '{}, but pattern is invalid: {error}'", pattern.source)
        }
    };
    Some(Found::invalid(path, Shown::Json(Value::from(text)), detail))
}

fn not_among(limits: &Limits, value: &Value, path: &str) -> Option<Found> {
    if limits.values.is_empty() {
        return None;
    }
    let same = |allowed: &Value| match (allowed, value) {
        // Null is not among the values even where it is listed.
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    };
    (!limits.values.iter().any(same)).then(|| Found::not_among(path, value, &limits.values))
}

/// The items of a list of type map as it was, by their keys.
struct OldItems<'v> {
    by_key: HashMap<String, &'v Value>,
}

impl<'v> OldItems<'v> {
    fn new(schema: &Structural, old: &'v [Value]) -> Option<OldItems<'v>> {
        if schema.list_type != Some(ListType::Map) {
            return None;
        }
        let items = old.iter().filter(|item| item.is_object());
        Some(OldItems {
            by_key: items.map(|item| (list_types::key_of(schema, item).to_string(), item)).collect(),
        })
    }

    fn get(&self, schema: &Structural, item: &Value) -> Option<&'v Value> {
        if !item.is_object() {
            return None;
        }
        self.by_key.get(&list_types::key_of(schema, item).to_string()).copied()
    }
}

/// Whether a value is what it was. Items of a list of type map may change places; what a schema does not know is
/// never the same.
fn is_unchanged(schema: &Structural, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => {
            if new.len() != old.len() {
                return false;
            }
            match (OldItems::new(schema, old), schema.items()) {
                (Some(before), Some(items)) => new
                    .iter()
                    .all(|item| before.get(schema, item).is_some_and(|old| is_unchanged(items, item, old))),
                _ => new == old,
            }
        }
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(key, value)| match (old.get(key), schema.field(key)) {
                    (Some(old), Some(schema)) => is_unchanged(schema, value, old),
                    _ => false,
                })
        }
        (new, old) => new == old,
    }
}
