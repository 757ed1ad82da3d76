//! Calls of functions, and the making of lists, maps and objects.

use std::sync::Arc;

use super::{
    Frame, Outcome,
    node::{Append, CallNode, Entry, Insert, Item, ObjectNode},
};
use crate::{
    cost,
    error::EvalError,
    function::{Overload, Prepared, Style},
    library,
    syntax::ast::op,
    types::Type,
    value::{Key, List, MapBuilder, Object, Value, contains},
};

/// Calls with at most so many arguments keep them on the stack.
const FEW: usize = 3;

/// The work of copying an item of a list, beside that of comparing one.
const WORK_OF_COPY: u64 = 8;
/// The work of compiling a regular expression.
const WORK_OF_PREPARING: u64 = 20_000;
/// Bytes of text read by a unit of work.
const BYTES_SCANNED: usize = 64;
/// Bytes of text made by a unit of work.
const BYTES_MADE: usize = 10;
/// Maximum number of prepared functions that an evaluation keeps.
const MAX_PREPARED: usize = 32;

fn text_len(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

impl<'a> Frame<'a, '_> {
    pub(super) fn call(&mut self, call: &'a CallNode) -> Outcome<'a> {
        if call.args.len() > FEW {
            let args = call.args.iter().map(|arg| self.node(arg)).collect::<Result<Vec<_>, _>>();
            return match args {
                Ok(args) => self.call_with(call, &args),
                Err(error) => self.failed(error),
            };
        }
        let mut args = [Value::Null, Value::Null, Value::Null];
        let mut failed = None;
        for (place, arg) in args.iter_mut().zip(&call.args) {
            match self.node(arg) {
                Ok(value) => *place = value,
                Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
                // The second of two arguments is computed, and costs, even if the first has no value.
                Err(error) => failed = failed.or(Some(error)),
            }
            if failed.is_some() && call.args.len() > 2 {
                break;
            }
        }
        match failed {
            Some(error) => self.failed(error),
            None => self.call_with(call, args.get(..call.args.len()).unwrap_or_default()),
        }
    }

    /// A call with an argument that has no value.
    pub(super) fn failed(&mut self, error: EvalError) -> Outcome<'a> {
        if error != EvalError::CostLimit {
            self.charge(1)?;
        }
        Err(error)
    }

    fn call_with(&mut self, call: &'a CallNode, args: &[Value<'a>]) -> Outcome<'a> {
        let Some(overload) = select(&call.overloads, args) else {
            self.charge(1)?;
            return Err(no_overload(call, args));
        };
        // Most functions look at each character of a text, for which upstream counts nothing if it is only to find a place in it.
        let scanned: usize = args.iter().map(text_len).sum();
        if scanned >= BYTES_SCANNED {
            self.works((scanned / BYTES_SCANNED) as u64)?;
        }
        if overload.traverses {
            library::go_through(args, self.work)?;
        }
        let result = match (&call.prepared, args) {
            (Some(prepared), _) => prepared(args),
            (None, [_, Value::String(constant)]) if overload.prepare.is_some() => {
                match self.prepared(overload, constant)? {
                    Some(prepared) => prepared(args),
                    None => (overload.call)(args),
                }
            }
            (None, [value, Value::List(list)]) if overload.id == "in_list" => {
                contains(list, value, self.work).map(Value::Bool)
            }
            (None, [Value::List(one), Value::List(two)]) if overload.id == "add_list" => {
                self.works(WORK_OF_COPY.saturating_mul((one.len() + two.len()) as u64))?;
                (overload.call)(args)
            }
            _ => match overload.within {
                Some(within) => within(args, self.work),
                None => (overload.call)(args),
            },
        };
        match &result {
            Err(EvalError::CostLimit) => return result,
            // What `replace` and `format` make can be much longer than what they cost.
            Ok(value) => {
                let made = text_len(value);
                if made >= BYTES_MADE {
                    self.works((made / BYTES_MADE) as u64)?;
                }
            }
            Err(_) => {}
        }
        let is_known = call.overloads.len() == 1 || overload.style == Style::Library;
        let cost = match overload.cost.filter(|_| is_known) {
            // An error counts as a result without a size.
            Some(cost) => cost(args, result.as_ref().unwrap_or(&Value::Null)).unwrap_or(1),
            None => 1,
        };
        self.charge(cost)?;
        result
    }

    /// A function prepared for an argument that is no constant. The last ones are kept.
    fn prepared(&mut self, overload: &Overload, constant: &str) -> Result<Option<Prepared>, EvalError> {
        let known =
            |(id, text, _): &&(&'static str, Box<str>, Prepared)| *id == overload.id && &**text == constant;
        if let Some((_, _, prepared)) = self.prepared.iter().find(known) {
            return Ok(Some(prepared.clone()));
        }
        self.works(WORK_OF_PREPARING)?;
        let argument = Value::string(constant);
        let Some(Ok(Some(prepared))) = overload.prepare.map(|prepare| prepare(&[None, Some(&argument)]))
        else {
            return Ok(None);
        };
        if self.prepared.len() >= MAX_PREPARED {
            self.prepared.remove(0);
        }
        self.prepared.push((overload.id, constant.into(), prepared.clone()));
        Ok(Some(prepared))
    }

    pub(super) fn append(&mut self, append: &'a Append) -> Outcome<'a> {
        self.charge(cost::SELECT)?;
        let item = self.node(&append.item);
        // All of this costs as much if there is no item.
        if !matches!(item, Err(EvalError::CostLimit)) {
            self.charge(append.cost + 1)?;
        }
        let item = item?;
        match self.take(append.accumulator) {
            Value::List(list) => Ok(Value::List(list.pushed(item)?)),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// The value of an accumulator, which is about to be replaced.
    fn take(&mut self, accumulator: usize) -> Value<'a> {
        self.locals.get_mut(accumulator).map_or(Value::Null, |place| std::mem::replace(place, Value::Null))
    }

    pub(super) fn insert(&mut self, insert: &'a Insert) -> Outcome<'a> {
        self.charge(cost::SELECT)?;
        let first = insert.args.first().map_or(Err(EvalError::NoSuchOverload), |arg| self.node(arg));
        let second =
            first.and_then(|first| Ok((first, insert.args.get(1).map(|arg| self.node(arg)).transpose()?)));
        let (first, second) = match second {
            Ok(args) => args,
            Err(error) => return self.failed(error),
        };
        self.charge(1)?;
        let Value::Map(map) = self.take(insert.accumulator) else { return Err(EvalError::NoSuchOverload) };
        let mut builder = map.into_builder()?;
        match (first, second) {
            (key, Some(value)) => add(&mut builder, &key, value)?,
            (Value::Map(entries), None) => {
                for key in entries.keys() {
                    if let Some(value) = entries.get(&key) {
                        add(&mut builder, &key.to_value(), value?)?;
                    }
                }
            }
            _ => return Err(EvalError::NoSuchOverload),
        }
        Ok(Value::Map(builder.build()))
    }

    /// What was made, and its cost, which is the same if it could not be made.
    fn made(&mut self, made: Outcome<'a>, cost: u64) -> Outcome<'a> {
        if !matches!(made, Err(EvalError::CostLimit)) {
            self.charge(cost)?;
        }
        made
    }

    pub(super) fn list(&mut self, items: &'a [Item]) -> Outcome<'a> {
        let made = self.items(items);
        self.made(made, cost::LIST)
    }

    fn items(&mut self, items: &'a [Item]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match self.node(&item.value)? {
                value if !item.optional => values.push(value),
                Value::Optional(Some(value)) => values.push(Arc::unwrap_or_clone(value)),
                Value::Optional(None) => {}
                other => return Err(not_optional("list", &other)),
            }
        }
        Ok(Value::List(List::new(values)))
    }

    pub(super) fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        let made = self.entries(entries);
        self.made(made, cost::MAP)
    }

    fn entries(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        let mut builder = MapBuilder::default();
        for entry in entries {
            let key = self.node(&entry.key)?;
            let value = match self.node(&entry.value)? {
                value if !entry.optional => value,
                Value::Optional(Some(value)) => Arc::unwrap_or_clone(value),
                Value::Optional(None) => continue,
                other => return Err(not_optional("map", &other)),
            };
            let key = Key::from_value(&key)
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_name())))?;
            builder.set(key, value);
        }
        Ok(Value::Map(builder.build()))
    }

    pub(super) fn object(&mut self, object: &'a ObjectNode) -> Outcome<'a> {
        let made = self.fields(object);
        self.made(made, cost::OBJECT)
    }

    fn fields(&mut self, object: &'a ObjectNode) -> Outcome<'a> {
        let mut fields = Vec::with_capacity(object.fields.len());
        for (name, value, optional) in &object.fields {
            match self.node(value)? {
                value if !optional => fields.push((name.clone(), value)),
                Value::Optional(Some(value)) => fields.push((name.clone(), Arc::unwrap_or_clone(value))),
                Value::Optional(None) => {}
                other => return Err(not_optional("message", &other)),
            }
        }
        Ok(Value::Object(Arc::new(Object::new(&object.type_name, fields))))
    }
}

fn not_optional(what: &str, value: &Value<'_>) -> EvalError {
    EvalError::new(format!(
        "cannot initialize optional {what} entry from non-optional value of type {}",
        value.type_name()
    ))
}

/// Inserts into the map of a `transformMap` macro, in which no key may be there twice.
fn add<'a>(builder: &mut MapBuilder<'a>, key: &Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
    let Some(key) = Key::from_value(key) else {
        return Err(EvalError::new(format!("unsupported key type: {}", key.type_name())));
    };
    let shown = match &key {
        Key::Bool(value) => value.to_string(),
        Key::Int(value) => value.to_string(),
        Key::Uint(value) => value.to_string(),
        Key::String(text) => text.to_string(),
    };
    if builder.insert(key, value) {
        Ok(())
    } else {
        Err(EvalError::new(format!("insert failed: key {shown} already exists")))
    }
}

/// The overload that takes these values.
pub(super) fn select<'o>(overloads: &'o [Arc<Overload>], args: &[Value<'_>]) -> Option<&'o Overload> {
    overloads.iter().map(|overload| &**overload).find(|overload| {
        overload.params.len() == args.len()
            && overload.params.iter().zip(args).all(|(ty, arg)| fits(ty, arg, overloads.len() > 1))
    })
}

/// Whether a value is of a declared type, as far as it can be seen at once.
fn fits(ty: &Type, value: &Value<'_>, with_items: bool) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Error | Type::Param(_) | Type::Var(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Map(_), Value::Object(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Object(_), Value::Object(_) | Value::Map(_)) => true,
        // The first item of lists and maps decides between overloads.
        (Type::List(items), Value::List(list)) => {
            !with_items
                || is_any(items)
                || list.get(0).is_none_or(|item| item.is_ok_and(|item| fits(items, &item, true)))
        }
        (Type::Map(types), Value::Map(map)) => {
            !with_items
                || (is_any(&types.0) && is_any(&types.1))
                || map.first().is_none_or(|(key, value)| {
                    fits(&types.0, &key.to_value(), true)
                        && value.is_ok_and(|value| fits(&types.1, &value, true))
                })
        }
        (Type::Opaque(_), Value::Optional(_)) => ty.optional_of().is_some(),
        (Type::Opaque(opaque), Value::Opaque(value)) => &*opaque.0 == value.type_name(),
        _ => false,
    }
}

fn is_any(ty: &Type) -> bool {
    matches!(ty, Type::Dyn | Type::Error | Type::Param(_) | Type::Var(_))
}

#[cold]
pub(super) fn no_overload(call: &CallNode, args: &[Value<'_>]) -> EvalError {
    match call.overloads.first().map_or(Style::Operator, |overload| overload.style) {
        Style::Operator if has_operator(&call.function, args.first()) => EvalError::NoSuchOverload,
        Style::Operator | Style::Named => EvalError::new(format!("no such overload: {}", call.function)),
        Style::Library | Style::Standard => {
            let types: Vec<_> = args.iter().map(Value::type_name).collect();
            EvalError::new(format!("no such overload: {}({})", call.function, types.join(", ")))
        }
    }
}

/// Whether values of a type have an operator at all, or functions of their own: upstream's message then does not name it.
fn has_operator(function: &str, value: Option<&Value<'_>>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    let Some(value) = value else { return true };
    if matches!(value, String(_) | Duration(_) | Timestamp(_) | Int(_)) {
        return true;
    }
    match function {
        op::ADD => matches!(value, Bytes(_) | Double(_) | Uint(_) | List(_)),
        op::SUBTRACT | op::MULTIPLY | op::DIVIDE => matches!(value, Double(_) | Uint(_)),
        op::MODULO => matches!(value, Uint(_)),
        op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
            matches!(value, Bool(_) | Bytes(_) | Double(_) | Uint(_))
        }
        op::NEGATE => matches!(value, Bool(_) | Double(_)),
        _ => true,
    }
}
