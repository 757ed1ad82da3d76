//! Validation of values against a schema, with the messages of kube-apiserver, and ratcheting: values that an
//! update does not change are not reported.

use std::{cell::Cell, collections::HashSet, fmt::Write as _};

use k1s_cel::Work;
use k1s_object::field::{At, ErrorKind, Errors, FieldError, MAX_ERROR_BYTES, MAX_ERRORS, Shown, quote};
use serde_json::{Map, Value};

use super::{
    Additional, Limits, Pattern, Structural, Type,
    formats::Format,
    list_types, number, rules,
    unchanged::{OldItems, is_unchanged},
};
use crate::go::{self, GoNumber};

/// Maximum number of enum values in a message.
const MAX_LISTED: usize = 100;

/// Maximum number of steps of one validation: one per value, and one more for each alternative in `anyOf` and
/// the like. A custom resource that fits into a request has at most half of that.
const MAX_STEPS: usize = 3_000_000;

/// The kinds of errors after which rules are not evaluated: values may not have the types that rules expect.
const UNCHECKED: [ErrorKind; 5] = [
    ErrorKind::NotSupported,
    ErrorKind::Required,
    ErrorKind::TooLong,
    ErrorKind::TooMany,
    ErrorKind::TypeInvalid,
];

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// An error before the position of its value in the document is known.
pub(super) struct Found {
    kind: ErrorKind,
    /// The path below the validated value; `None` for the value itself.
    name: Option<String>,
    value: Shown,
    detail: String,
}

impl Found {
    /// An error without a field.
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

    /// The approximate size in bytes.
    fn size(&self) -> usize {
        let value = match &self.value {
            Shown::Nothing => 0,
            Shown::Json(value) => value.to_string().len(),
            Shown::Verbatim(text) => text.len(),
        };
        self.name.as_ref().map_or(0, String::len) + self.detail.len() + value
    }

    fn not_among(path: &str, value: &Value, allowed: &[Value]) -> Found {
        // More than the limit, so that the message says that there are more; the number is set below.
        let count = allowed.len();
        let allowed: Vec<String> = allowed
            .iter()
            .take(MAX_LISTED)
            .map(|value| match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => match GoNumber::of(number) {
                    GoNumber::Int(int) => int.to_string(),
                    GoNumber::Float(float) => go::json_float(float),
                },
                other => other.to_string(),
            })
            .collect();
        let mut detail = FieldError::not_supported("", "", &allowed).detail;
        if count > MAX_LISTED {
            let _ = write!(detail, ", and {} more", count - MAX_LISTED);
        }
        Found { kind: ErrorKind::NotSupported, name: Some(path.to_owned()), value: go::shown(value), detail }
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

/// The errors in a value, and the number of checks made: of alternatives that all fail, the one with the most
/// checks is reported.
#[derive(Default)]
struct Outcome {
    found: Vec<Found>,
    /// The number of further errors.
    omitted: usize,
    matches: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.found.extend(other.found);
        self.omitted += other.omitted;
        self.matches += other.matches;
    }

    fn is_ok(&self) -> bool {
        self.found.is_empty() && self.omitted == 0
    }
}

impl Structural {
    /// Validates a custom resource, or a part of one, before it is written: values, embedded objects, lists of type
    /// set and map, and rules. With the old object, values that an update does not change are not reported.
    pub fn validate(&self, new: At<'_, '_>, old: Option<At<'_, '_>>) {
        self.validate_with(new, old, &Work::new(rules::WORK), || {});
    }

    /// As [`Structural::validate`], with a bound on the work of rules, and further checks (of the paths of `/scale`) in their
    /// place after the values.
    pub fn validate_with(&self, new: At<'_, '_>, old: Option<At<'_, '_>>, work: &Work, more: impl FnOnce()) {
        let Some(value) = new.value() else { return };
        let base = new.path();
        let before = old.and_then(At::value);
        new.check().append(self.check_values(value, before, &base, true));
        more();
        new.check().append(self.check_embedded(value, &base, false));
        self.check_lists(value, before, &base, new);
        self.check_rules(value, before, &base, new, work);
    }

    /// Validates an update of `/status`: the status, with paths relative to it, and then lists and rules of the
    /// whole object.
    pub fn validate_status(&self, new: At<'_, '_>, old: Option<At<'_, '_>>) {
        self.validate_status_with(new, old, &Work::new(rules::WORK), || {});
    }

    /// As [`Structural::validate_status`], with a bound on the work of rules, and further checks in their place after the
    /// values.
    pub fn validate_status_with(
        &self,
        new: At<'_, '_>,
        old: Option<At<'_, '_>>,
        work: &Work,
        more: impl FnOnce(),
    ) {
        let before = old.and_then(At::value);
        if let (Some(status), Some(schema)) =
            (new.value().and_then(|new| new.get("status")), self.property("status"))
        {
            let old_status = before.and_then(|old| old.get("status"));
            new.check().append(schema.check_values(status, old_status, "status", true));
        }
        more();
        if let Some(value) = new.value() {
            self.check_lists(value, before, &new.path(), new);
            self.check_rules(value, before, &new.path(), new, work);
        }
    }

    /// Evaluates the rules, unless an error leaves types unknown.
    fn check_rules(&self, value: &Value, before: Option<&Value>, base: &str, at: At<'_, '_>, work: &Work) {
        let Some(validator) = self.validator() else { return };
        let check = at.check();
        if check.has_any(&UNCHECKED) {
            check.push(FieldError::invalid("<nil>", Value::Null, NOT_CHECKED));
            return;
        }
        let found = validator.validate(self, value, before, true, base, (rules::BUDGET, work));
        check.append(found.errors);
        found.warnings.into_iter().for_each(|warning| check.warn(warning));
    }

    fn check_lists(&self, value: &Value, before: Option<&Value>, base: &str, at: At<'_, '_>) {
        if before.is_some_and(|before| !list_types::check(self, before).is_empty()) {
            return;
        }
        for mut error in list_types::check(self, value).into_vec() {
            if !base.is_empty() {
                error.field = format!("{base}.{}", error.field);
            }
            at.check().push(error);
        }
    }

    /// The errors in a value. `live` is false for defaults in a definition, where an int-or-string may be
    /// anything.
    pub(crate) fn check_values(&self, value: &Value, old: Option<&Value>, base: &str, live: bool) -> Errors {
        let walk = Walk {
            live,
            errors: Cell::new(MAX_ERRORS),
            bytes: Cell::new(MAX_ERROR_BYTES),
            steps: Cell::new(MAX_STEPS),
        };
        let mut outcome = walk.node(self, value, old, &mut String::new());
        if walk.steps.get() == 0 {
            let detail = format!(
                "has too many values and alternatives: more than {MAX_STEPS} steps are needed to check it"
            );
            outcome.found.insert(0, Found::plain(detail));
        }
        let mut seen = HashSet::new();
        let mut errors = Errors::new();
        errors.extend(
            outcome
                .found
                .into_iter()
                .map(|found| found.into_error(base))
                .filter(|error| seen.insert(error.to_string())),
        );
        errors.omit(outcome.omitted);
        errors
    }
}

/// A running validation with its remaining budget.
struct Walk {
    live: bool,
    errors: Cell<usize>,
    bytes: Cell<usize>,
    steps: Cell<usize>,
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

    /// Whether further errors are only counted.
    fn is_full(&self) -> bool {
        self.errors.get() == 0 || self.bytes.get() == 0
    }

    /// Adds an error, which is built only if it is reported.
    fn add(&self, outcome: &mut Outcome, make: impl FnOnce() -> Found) {
        if self.is_full() {
            outcome.omitted += 1;
            return;
        }
        let found = make();
        self.errors.set(self.errors.get() - 1);
        self.bytes.set(self.bytes.get().saturating_sub(found.size()));
        outcome.found.push(found);
    }

    /// Discards errors, in favour of others.
    fn forget(&self, outcome: &mut Outcome) {
        outcome.omitted = 0;
        for found in outcome.found.drain(..) {
            self.errors.set(self.errors.get() + 1);
            self.bytes.set(self.bytes.get() + found.size());
        }
    }

    /// Keeps the better of two failed alternatives.
    fn better(&self, best: &mut Option<Outcome>, mut result: Outcome) {
        match best {
            Some(best) if result.matches <= best.matches => self.forget(&mut result),
            _ => {
                if let Some(mut worse) = best.replace(result) {
                    self.forget(&mut worse);
                }
            }
        }
    }

    fn node(&self, schema: &Structural, value: &Value, old: Option<&Value>, path: &mut String) -> Outcome {
        if self.steps.get() == 0 {
            return Outcome::default();
        }
        self.steps.set(self.steps.get() - 1);
        let mut outcome = self.fresh(schema, value, old, path);
        if !outcome.is_ok() && old.is_some_and(|old| is_unchanged(schema, value, old)) {
            self.forget(&mut outcome);
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
                self.add(&mut outcome, || Found::of_type(path, &names(types), "null"));
            } else {
                outcome.matches += 1;
            }
            self.among(limits, value, path, &mut outcome);
            return outcome;
        }
        if !types.is_empty() || format.is_some() {
            match wrong_type(types, format, value) {
                Some((wanted, got)) => self.add(&mut outcome, || Found::of_type(path, &wanted, got)),
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
                    if let Some(wrong) = wrong_text(limits, text) {
                        self.add(&mut outcome, || wrong.found(text, path));
                    }
                    if let Some(Format::Text(format, name)) = limits.format {
                        outcome.matches += 1;
                        if !format.holds(text) {
                            self.add(&mut outcome, || Found::of_type(path, name, text));
                        }
                    }
                }
                outcome.matches += 1;
            }
            Value::Number(value) => {
                let kind = if let [one] = types { *one } else { Type::Any };
                let mut found = Vec::new();
                let shown = if self.is_full() { "" } else { &**path };
                number::check(GoNumber::of(value), kind, limits, shown, &mut found);
                found.into_iter().for_each(|found| self.add(&mut outcome, || found));
                outcome.matches += 2;
            }
            Value::Array(list) => {
                self.list(schema, list, old, path, &mut outcome);
                outcome.matches += 2;
            }
            _ => {}
        }
        self.among(limits, value, path, &mut outcome);
        outcome.matches += 1;
        if let Value::Object(map) = value {
            self.object(schema, map, old, path, &mut outcome);
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn among(&self, limits: Option<&Limits>, value: &Value, path: &str, outcome: &mut Outcome) {
        if let Some(limits) = limits
            && !limits.is_among(value)
        {
            self.add(outcome, || Found::not_among(path, value, &limits.values));
        }
    }

    fn branches(&self, limits: &Limits, value: &Value, path: &mut String, outcome: &mut Outcome) {
        let plain = |path: &str, what: &str| Found::plain(format!("{} {what}", quote(path)));
        if !limits.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut success = None;
            for branch in &limits.any_of {
                let result = self.node(branch, value, None, path);
                if result.is_ok() {
                    success = Some(result);
                    break;
                }
                self.better(&mut best, result);
            }
            match success {
                Some(result) => {
                    if let Some(mut best) = best {
                        self.forget(&mut best);
                    }
                    outcome.merge(result);
                }
                None => {
                    self.add(outcome, || plain(path, "must validate at least one schema (anyOf)"));
                    outcome.merge(best.unwrap_or_default());
                }
            }
        }
        if !limits.one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut success = None;
            let mut valid = 0;
            for branch in &limits.one_of {
                let mut result = self.node(branch, value, None, path);
                if result.is_ok() {
                    valid += 1;
                    if let Some(mut best) = best.take() {
                        self.forget(&mut best);
                    }
                    success.get_or_insert(result);
                } else if valid == 0 {
                    self.better(&mut best, result);
                } else {
                    self.forget(&mut result);
                }
            }
            if valid == 1 {
                outcome.merge(success.unwrap_or_default());
            } else {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    _ => format!("Found {valid} valid alternatives"),
                };
                self.add(outcome, || {
                    plain(path, &format!("must validate one and only one schema (oneOf). {found}"))
                });
                outcome.merge(best.unwrap_or_default());
            }
        }
        if !limits.all_of.is_empty() {
            let mut valid = 0;
            for branch in &limits.all_of {
                let result = self.node(branch, value, None, path);
                valid += usize::from(result.is_ok());
                outcome.merge(result);
            }
            if valid != limits.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.add(outcome, || plain(path, &format!("must validate all the schemas (allOf){none}")));
            }
        }
        if let Some(not) = &limits.not {
            let mut result = self.node(not, value, None, path);
            if result.is_ok() {
                self.add(outcome, || plain(path, "must not validate the schema (not)"));
            } else {
                self.forget(&mut result);
            }
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
            self.add(outcome, || {
                let detail = format!("{path} in body should have at least {least} items");
                Found::invalid(path, Shown::Verbatim(count.to_string()), detail)
            });
        }
        if let Some(most) = limits.max_items.filter(|most| count > *most) {
            self.add(outcome, || Found::too_many(path, list.len(), most));
        }
        if limits.unique_items && list_types::has_duplicates(list) {
            self.add(outcome, || {
                let detail = format!("{path} in body shouldn't contain duplicates");
                Found::invalid(path, Shown::Json(Value::from("")), detail)
            });
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
            self.add(outcome, || {
                let detail = format!("{path} in body should have at least {least} properties");
                Found::invalid(path, Shown::Verbatim(count.to_string()), detail)
            });
        }
        if let Some(most) = limits.and_then(|limits| limits.max_properties).filter(|most| count > *most) {
            self.add(outcome, || Found::too_many(path, map.len(), most));
        }
        for (key, value) in map {
            if schema.property(key).is_some() {
                continue;
            }
            match &schema.additional {
                Additional::Bool(false) => self.add(outcome, || {
                    let detail = format!("{path}.{key} in body is a forbidden property");
                    Found::invalid(path, Shown::Json(Value::from(key.as_str())), detail)
                }),
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
            // The type of the resource itself is never equal in kube-apiserver, for reasons not visible here.
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
                self.add(outcome, || Found::required(&format!("{path}.{name}")));
            }
        }
    }
}

fn names(types: &[Type]) -> String {
    types.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
}

/// The expected and the actual type, if they differ.
fn wrong_type(types: &[Type], format: Option<Format>, value: &Value) -> Option<(String, &'static str)> {
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
            return Some((format.name().to_owned(), of_value));
        }
        // A list or string with a format is left to the format.
        if is_text && !types.contains(&Type::Number) && !types.contains(&Type::Integer) {
            return None;
        }
    }
    (!fits).then(|| (names(types), kind.name()))
}

/// An error in a string.
enum WrongText<'l> {
    TooLong(i64),
    TooShort(i64),
    Pattern(&'l Pattern),
}

impl WrongText<'_> {
    fn found(&self, text: &str, path: &str) -> Found {
        let detail = match self {
            WrongText::TooLong(most) => return Found::too_long(path, *most),
            WrongText::TooShort(least) => format!("{path} in body should be at least {least} chars long"),
            WrongText::Pattern(pattern) => match pattern.compiled() {
                Ok(_) => format!("{path} in body should match '{}'", pattern.source),
                Err(error) => format!(
                    "{path} in body should match '{}, but pattern is invalid: {error}'",
                    pattern.source
                ),
            },
        };
        Found::invalid(path, Shown::Json(Value::from(text)), detail)
    }
}

fn wrong_text<'l>(limits: &'l Limits, text: &str) -> Option<WrongText<'l>> {
    if limits.max_length.is_some() || limits.min_length.is_some() {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = limits.max_length.filter(|most| length > *most) {
            return Some(WrongText::TooLong(most));
        }
        if let Some(least) = limits.min_length.filter(|least| length < *least) {
            return Some(WrongText::TooShort(least));
        }
    }
    let pattern = limits.pattern.as_deref()?;
    let fits = pattern.compiled().as_ref().is_ok_and(|regex| regex.is_match(text));
    (!fits).then_some(WrongText::Pattern(pattern))
}

/// Maximum size of an enum for a linear search, which is faster than hashing.
const FEW_VALUES: usize = 16;

impl Limits {
    /// Whether a value is in the enum, if there is one.
    fn is_among(&self, value: &Value) -> bool {
        if self.values.is_empty() {
            return true;
        }
        // Null is not accepted even if it is listed.
        if value.is_null() {
            return false;
        }
        if self.values.len() > FEW_VALUES {
            let known = || self.values.iter().filter(|value| !value.is_null()).map(enum_key).collect();
            return self.known_values.get_or_init(known).contains(&enum_key(value));
        }
        self.values.iter().any(|allowed| match (allowed, value) {
            (Value::Null, _) => false,
            (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            (a, b) => a == b,
        })
    }
}

/// A text that is the same for equal values; numbers are compared as floats.
fn enum_key(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("#{}", number.as_f64().unwrap_or_default() + 0.0),
        other => list_types::canonical(Some(other)),
    }
}
