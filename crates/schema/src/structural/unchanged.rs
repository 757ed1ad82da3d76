//! Which values an update leaves as they are, and which old items are those of new ones.

use std::{
    cell::OnceCell,
    collections::{HashMap, hash_map::Entry},
};

use serde_json::Value;

use super::{ListType, Structural, list_types};

/// Lists of up to this length are searched; longer ones get an index.
const FEW: usize = 8;

/// The old items of a list of type map by key.
pub(super) struct OldItems<'v> {
    items: &'v [Value],
    by_key: OnceCell<HashMap<String, &'v Value>>,
}

impl<'v> OldItems<'v> {
    /// The items of an old list; `None` if its items have no keys.
    pub(super) fn new(schema: &Structural, old: &'v [Value]) -> Option<OldItems<'v>> {
        let keyed = schema.list_type == Some(ListType::Map) && schema.list_map_keys().next().is_some();
        keyed.then_some(OldItems { items: old, by_key: OnceCell::new() })
    }

    /// The first old item with the keys of a new one. Items without all keys, or with keys that are no scalars, are
    /// the same as none.
    pub(super) fn get(&self, schema: &Structural, item: &Value) -> Option<&'v Value> {
        if self.items.len() <= FEW {
            return self.items.iter().find(|old| same_keys(schema, item, old));
        }
        let by_key = self.by_key.get_or_init(|| {
            let mut by_key = HashMap::with_capacity(self.items.len());
            for item in self.items {
                if let Some(key) = key_text(schema, item)
                    && let Entry::Vacant(place) = by_key.entry(key)
                {
                    place.insert(item);
                }
            }
            by_key
        });
        by_key.get(&key_text(schema, item)?).copied()
    }
}

fn scalar<'v>(item: &'v Value, key: &str) -> Option<&'v Value> {
    item.get(key).filter(|value| matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_)))
}

fn same_keys(schema: &Structural, one: &Value, two: &Value) -> bool {
    schema.list_map_keys().all(|key| match (scalar(one, key), scalar(two, key)) {
        (Some(one), Some(two)) => one == two,
        _ => false,
    })
}

fn key_text(schema: &Structural, item: &Value) -> Option<String> {
    if schema.list_map_keys().any(|key| scalar(item, key).is_none()) {
        return None;
    }
    Some(list_types::key_of(schema, item).to_string())
}

/// Whether a value is unchanged. Items of a list of type map may be reordered; values without a schema are never
/// unchanged.
pub(super) fn is_unchanged(schema: &Structural, new: &Value, old: &Value) -> bool {
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

/// A value with its old one.
pub(super) struct Pair<'v> {
    schema: &'v Structural,
    new: &'v Value,
    old: &'v Value,
    unchanged: OnceCell<bool>,
}

impl<'v> Pair<'v> {
    pub(super) fn new(schema: &'v Structural, new: &'v Value, old: &'v Value) -> Pair<'v> {
        Pair { schema, new, old, unchanged: OnceCell::new() }
    }

    pub(super) fn old(&self) -> &'v Value {
        self.old
    }

    fn is_unchanged(&self) -> bool {
        *self.unchanged.get_or_init(|| is_unchanged(self.schema, self.new, self.old))
    }

    /// A field of both.
    pub(super) fn field(&self, name: &str) -> Option<Pair<'v>> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Pair::new(self.schema.field(name)?, new, old))
    }

    /// An item, and the old one with its keys.
    pub(super) fn item(&self, new: &'v Value, old: Option<&'v Value>) -> Option<Pair<'v>> {
        Some(Pair::new(self.schema.items()?, new, old?))
    }
}

/// What of an update is known about a value: its old value, or that of the nearest value around it that has one.
#[derive(Clone, Copy, Default)]
pub(super) struct Correlation<'p, 'v> {
    pub(super) current: Option<&'p Pair<'v>>,
    pub(super) nearest: Option<&'p Pair<'v>>,
}

impl<'p, 'v> Correlation<'p, 'v> {
    /// Whether the update leaves the value as it is.
    pub(super) fn is_unchanged(&self) -> bool {
        self.current.or(self.nearest).is_some_and(Pair::is_unchanged)
    }

    /// That of a part of the value; `child`: the part and its old value, if they are known.
    pub(super) fn below(self, child: Option<&'p Pair<'v>>) -> Correlation<'p, 'v> {
        match self.current {
            None => self,
            Some(_) => Correlation { current: child, nearest: self.current },
        }
    }
}
