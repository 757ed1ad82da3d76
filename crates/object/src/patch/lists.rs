//! Merging and ordering of lists in strategic merge patches.

use std::collections::HashMap;

use serde_json::{Number, Value};

use super::{
    PatchError,
    go::{printed, printed_list},
    strategic::{
        self, A_MAP, DIRECTIVE, FieldPatch, PatchSchema, SET_ORDER, expected, internal, same_type,
        unknown_directive,
    },
};

/// The type of the items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    Maps,
    Scalars,
}

/// The common type of the items of two lists.
pub(super) fn element_type(original: &[Value], patch: &[Value]) -> Result<Elements, PatchError> {
    let mut items = original.iter().chain(patch);
    let first = items.next().ok_or_else(|| internal("no elements in any of the given slices"))?;
    if first.is_array() {
        return Err(PatchError::Apply("lists of lists are not supported".into()));
    }
    if first.is_null() || !items.all(|item| same_type(first, item)) {
        return Err(internal(format!(
            "list element types are not identical: [{} {}]",
            printed_list(original),
            printed_list(patch)
        )));
    }
    Ok(if first.is_object() { Elements::Maps } else { Elements::Scalars })
}

fn no_merge_key(item: &Value, key: &str) -> PatchError {
    internal(format!("map: {} does not contain declared merge key: {key}", printed(item)))
}

/// kube-apiserver panics where it would have to compare objects or lists.
fn incomparable(value: &Value) -> PatchError {
    internal(format!("cannot merge by {}: only scalars can be compared", printed(value)))
}

/// A comparable scalar in Go: an integer never equals a float.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Scalar<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(&'v str),
}

fn scalar(value: &Value) -> Option<Scalar<'_>> {
    match value {
        Value::Null => Some(Scalar::Null),
        Value::Bool(flag) => Some(Scalar::Bool(*flag)),
        Value::Number(number) => Some(number_scalar(number)),
        Value::String(text) => Some(Scalar::Text(text)),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn number_scalar<'v>(number: &Number) -> Scalar<'v> {
    match number.as_i64() {
        Some(int) => Scalar::Int(int),
        None => Scalar::Float(number.as_f64().unwrap_or_default().to_bits()),
    }
}

/// A small number for each distinct scalar.
#[derive(Default)]
struct Ids<'v> {
    few: Vec<Scalar<'v>>,
    many: HashMap<Scalar<'v>, usize>,
}

/// Maximum size for a linear search, which is faster than hashing.
const FEW: usize = 16;

impl<'v> Ids<'v> {
    fn of(&mut self, scalar: Scalar<'v>) -> usize {
        if self.many.is_empty() {
            if let Some(id) = self.few.iter().position(|known| *known == scalar) {
                return id;
            }
            if self.few.len() < FEW {
                self.few.push(scalar);
                return self.few.len() - 1;
            }
            self.many.extend(self.few.iter().enumerate().map(|(id, known)| (*known, id)));
        }
        let next = self.many.len();
        *self.many.entry(scalar).or_insert(next)
    }

    fn len(&self) -> usize {
        self.few.len().max(self.many.len())
    }

    /// The ids of items by their merge key, or by value without one.
    fn all(&mut self, items: &'v [Value], key: &str) -> Result<Vec<usize>, PatchError> {
        items.iter().map(|item| self.item(item, key)).collect()
    }

    fn item(&mut self, item: &'v Value, key: &str) -> Result<usize, PatchError> {
        let value = if key.is_empty() { item } else { merge_value(item, key)? };
        Ok(self.of(scalar(value).ok_or_else(|| incomparable(value))?))
    }
}

fn merge_value<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    let Value::Object(map) = item else { return Err(expected(A_MAP, item)) };
    map.get(key).ok_or_else(|| no_merge_key(item, key))
}

/// The first index of each id in a list.
fn first_places(ids: &[usize], count: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; count];
    for (place, id) in ids.iter().enumerate() {
        if let Some(slot @ None) = places.get_mut(*id) {
            *slot = Some(place);
        }
    }
    places
}

fn place(places: &[Option<usize>], id: usize) -> Option<usize> {
    places.get(id).copied().flatten()
}

/// A merged list.
pub(super) struct Joined {
    items: Vec<Value>,
    /// The order of the patch.
    ordered: Option<Vec<usize>>,
    live: Live,
}

/// The order of the list in the document, by merge keys or scalars.
enum Live {
    /// That of the first items.
    First(usize),
    /// These keys.
    Keys(Vec<Value>),
}

impl Joined {
    /// Items that replace a list.
    pub(super) fn new(items: Vec<Value>, live: &[Value], key: &str) -> Joined {
        Joined { items, ordered: None, live: Live::Keys(keys_of(live, key)) }
    }

    /// An unchanged list.
    pub(super) fn unchanged(items: Vec<Value>) -> Joined {
        let live = Live::First(items.len());
        Joined { items, ordered: None, live }
    }

    /// The items in the order of the patch.
    pub(super) fn ordered(mut self) -> Vec<Value> {
        match self.ordered {
            None => self.items,
            Some(order) => pick(&mut self.items, &order),
        }
    }

    /// The items in the order of `$setElementOrder`; items that it does not name keep their place relative to
    /// existing ones.
    pub(super) fn ordered_by(mut self, order: &[Value], key: &str) -> Result<Vec<Value>, PatchError> {
        let live = match std::mem::replace(&mut self.live, Live::First(0)) {
            Live::First(count) => keys_of(self.items.get(..count).unwrap_or(&self.items), key),
            Live::Keys(keys) => keys,
        };
        let mut items = self.ordered();
        let mut ids = Ids::default();
        if !items.is_empty()
            && !key.is_empty()
            && let Some(index) = order.iter().position(|item| !item.is_object())
        {
            return Err(internal(format!("value for key {index} is not a map")));
        }
        let item_ids = ids.all(&items, key)?;
        let order_ids = ids.all(order, key)?;
        let live_ids = ids.all(&live, "")?;
        let permutation = arrange(&item_ids, &order_ids, &live_ids, ids.len());
        Ok(pick(&mut items, &permutation))
    }
}

/// Objects without a merge key cannot be ordered.
pub(super) fn unordered(items: &[Value], order: &[Value], original: &[Value]) -> PatchError {
    match (items.first(), order.iter().chain(original).next()) {
        (Some(item), _) => incomparable(item),
        (None, Some(item)) if item.is_object() => no_merge_key(item, ""),
        (None, Some(item)) => expected(A_MAP, item),
        (None, None) => internal("no elements in any of the given slices"),
    }
}

/// The merge keys of items, or the scalars themselves; items without one do not affect the order.
fn keys_of(items: &[Value], key: &str) -> Vec<Value> {
    let keys = items.iter().filter_map(|item| if key.is_empty() { Some(item) } else { item.get(key) });
    keys.filter(|value| scalar(value).is_some()).cloned().collect()
}

fn pick(items: &mut [Value], order: &[usize]) -> Vec<Value> {
    order.iter().filter_map(|index| items.get_mut(*index).map(Value::take)).collect()
}

/// Merges the list of a patch into that of the document; with `delete`, removes its scalars.
pub(super) fn merge<S: PatchSchema>(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &FieldPatch<S>,
    delete: bool,
) -> Result<Joined, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(Joined::unchanged(original));
    }
    match element_type(&original, &patch)? {
        Elements::Scalars if delete => delete_scalars(original, &patch),
        Elements::Scalars => merge_scalars(original, patch, field.merge_key),
        Elements::Maps if field.merge_key.is_empty() => {
            let kind = if field.schema.is_pointer() { "ptr" } else { field.schema.kind() };
            Err(internal(format!("cannot merge lists without merge key for {kind}")))
        }
        Elements::Maps => merge_maps(original, patch, field),
    }
}

fn delete_scalars(original: Vec<Value>, delete: &[Value]) -> Result<Joined, PatchError> {
    let mut ids = Ids::default();
    let deleted = ids.all(delete, "")?;
    let original_ids = ids.all(&original, "")?;
    let deleted = first_places(&deleted, ids.len());
    let kept: Vec<usize> = (original_ids.iter().enumerate())
        .filter(|(_, id)| place(&deleted, **id).is_none())
        .map(|(index, _)| index)
        .collect();
    Ok(Joined { items: original, ordered: Some(kept), live: Live::First(0) })
}

fn merge_scalars(original: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<Joined, PatchError> {
    if !key.is_empty()
        && let Some(first) = original.first().or_else(|| patch.first())
    {
        return Err(expected(A_MAP, first));
    }
    let before = original.len();
    let mut items = original;
    items.extend(patch);
    let mut ids = Ids::default();
    let all = ids.all(&items, "")?;
    let (original_ids, patch_ids) = all.split_at(before.min(all.len()));
    let places = first_places(&all, ids.len());
    // Removes duplicates, keeping the first.
    let unique: Vec<usize> = (0..all.len())
        .filter(|index| all.get(*index).and_then(|id| place(&places, *id)) == Some(*index))
        .collect();
    let unique_ids: Vec<usize> = unique.iter().filter_map(|index| all.get(*index).copied()).collect();
    let order = arrange(&unique_ids, patch_ids, original_ids, ids.len());
    let ordered = order.iter().filter_map(|index| unique.get(*index).copied()).collect();
    Ok(Joined { items, ordered: Some(ordered), live: Live::First(before) })
}

fn merge_maps<S: PatchSchema>(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &FieldPatch<S>,
) -> Result<Joined, PatchError> {
    let key = field.merge_key;
    let mut ids = Ids::default();
    let mut deleted = Vec::new();
    let mut replace = false;
    let mut plain = Vec::with_capacity(patch.len());
    for item in &patch {
        let directive = item.get(DIRECTIVE);
        plain.push(directive.is_none());
        match directive.map(|directive| (directive, directive.as_str())) {
            None => {}
            Some((_, Some("delete"))) => {
                deleted.extend(scalar(merge_value(item, key)?).map(|key| ids.of(key)))
            }
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(internal("merging lists cannot yet be specified in the patch"));
            }
            Some((directive, _)) => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, map));
            }
        }
    }
    if replace {
        let live = Live::Keys(keys_of(&original, key));
        let items: Vec<Value> =
            patch.into_iter().zip(plain).filter(|(_, plain)| *plain).map(|(item, _)| item).collect();
        let mut ids = Ids::default();
        let item_ids = ids.all(&items, key)?;
        let ordered = Some(arrange(&item_ids, &[], &item_ids, ids.len()));
        return Ok(Joined { items, ordered, live });
    }
    // Items without a merge key are an error only at the end, after the others are merged.
    let mut known: Vec<Option<usize>> = Vec::with_capacity(original.len() + patch.len());
    known.extend(original.iter().map(|item| item.get(key).and_then(scalar).map(|key| ids.of(key))));
    let patch_ids: Vec<Option<Result<usize, PatchError>>> =
        patch.iter().zip(&plain).map(|(item, plain)| plain.then(|| ids.item(item, key))).collect();
    let count = ids.len();
    let deleted = first_places(&deleted, count);
    let before = original.len();

    let mut items = Vec::with_capacity(original.len() + patch.len());
    let mut item_ids = Vec::with_capacity(original.len() + patch.len());
    let mut places = vec![None; count];
    for (item, id) in original.into_iter().zip(known) {
        if id.is_some_and(|id| place(&deleted, id).is_some()) {
            continue;
        }
        if let Some(slot @ None) = id.and_then(|id| places.get_mut(id)) {
            *slot = Some(items.len());
        }
        items.push(item);
        item_ids.push(id);
    }
    let live_count = items.len();
    let mut order = Vec::with_capacity(patch.len());
    for (item, id) in patch.into_iter().zip(patch_ids) {
        let Some(id) = id else { continue };
        let id = id?;
        order.push(id);
        match place(&places, id).and_then(|at| items.get_mut(at)) {
            Some(Value::Object(current)) => {
                if let Value::Object(item) = item {
                    strategic::merge(current, item, field.schema)?;
                }
            }
            _ => {
                if let Some(slot) = places.get_mut(id) {
                    *slot = Some(items.len());
                }
                items.push(item);
                item_ids.push(Some(id));
            }
        }
    }
    // Two items whose key is null merge into one without a key.
    let keyless = items.iter().zip(&item_ids).find(|(item, id)| id.is_none() || item.get(key).is_none());
    if let Some((item, _)) = keyless {
        return Err(match item.get(key) {
            Some(value) => incomparable(value),
            None => no_merge_key(item, key),
        });
    }
    let item_ids: Vec<usize> = item_ids.into_iter().flatten().collect();
    let live_ids = item_ids.get(..live_count).unwrap_or_default();
    let ordered = Some(arrange(&item_ids, &order, live_ids, count));
    // `$setElementOrder` compares with the list at its old length, filled up with the new items.
    Ok(Joined { items, ordered, live: Live::First(before) })
}

/// The order of merged items: those in `order` in that order, the others as in `live`, interleaved so that each
/// of the others precedes the first item that it preceded in `live`.
fn arrange(items: &[usize], order: &[usize], live: &[usize], count: usize) -> Vec<usize> {
    let in_order = first_places(order, count);
    let in_live = first_places(live, count);
    let live_place = |index: usize| items.get(index).and_then(|id| place(&in_live, *id));
    let order_place = |index: usize| items.get(index).and_then(|id| place(&in_order, *id));
    let (mut named, mut others): (Vec<usize>, Vec<usize>) =
        (0..items.len()).partition(|index| order_place(*index).is_some());
    sort_by_place(&mut named, order_place);
    sort_by_place(&mut others, live_place);

    let mut woven = Vec::with_capacity(items.len());
    let mut others = others.into_iter().peekable();
    for index in named {
        if let Some(right) = live_place(index) {
            while let Some(other) =
                others.next_if(|other| live_place(*other).is_some_and(|left| left < right))
            {
                woven.push(other);
            }
        }
        woven.push(index);
    }
    woven.extend(others);
    woven
}

/// Sorts by position. Items without a position compare as less than all others in both directions, as in Go; the
/// result is that of an insertion sort. An item without a position moves in front of the smallest position so
/// far; later, only smaller positions get in front of it.
fn sort_by_place(items: &mut [usize], place: impl Fn(usize) -> Option<usize>) {
    let mut smallest = usize::MAX;
    let mut keyed: Vec<(usize, usize, usize, usize)> = items
        .iter()
        .enumerate()
        .map(|(time, item)| match place(*item) {
            Some(place) => {
                smallest = smallest.min(place);
                (place, 1, time, *item)
            }
            // Later ones precede earlier ones.
            None => (smallest, 0, usize::MAX - time, *item),
        })
        .collect();
    keyed.sort_unstable();
    for (item, (.., sorted)) in items.iter_mut().zip(keyed) {
        *item = sorted;
    }
}

/// The items of the patch must be in the order of `$setElementOrder`, which must name all of them.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::with_capacity(patch.len());
    for item in patch {
        if key.is_empty() {
            wanted.push(item);
            continue;
        }
        let Value::Object(map) = item else { return Err(expected(A_MAP, item)) };
        if map.get(DIRECTIVE).and_then(Value::as_str) != Some("delete") {
            wanted.push(item);
        }
    }
    let mut wanted = wanted.into_iter().peekable();
    let mut order_left = order.iter().peekable();
    while let (Some(item), Some(named)) = (wanted.peek(), order_left.peek()) {
        // An item with a directive needs no entry, as long as entries remain.
        if item.get(DIRECTIVE).is_some() {
            wanted.next();
            continue;
        }
        if equal_keys(item, named, key)? {
            wanted.next();
        }
        order_left.next();
    }
    if wanted.peek().is_none() {
        return Ok(());
    }
    Err(internal(format!(
        "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
        printed_list(patch),
        printed_list(order)
    )))
}

fn equal_keys(left: &Value, right: &Value, key: &str) -> Result<bool, PatchError> {
    let (left, right) = if key.is_empty() {
        (left, right)
    } else {
        for item in [left, right] {
            if !item.is_object() {
                return Err(expected(A_MAP, item));
            }
        }
        (merge_value(left, key)?, merge_value(right, key)?)
    };
    match (scalar(left), scalar(right)) {
        (Some(left), Some(right)) => Ok(left == right),
        (None, None) if same_type(left, right) => Err(incomparable(left)),
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn insertion_sort(items: &mut [usize], place: impl Fn(usize) -> Option<usize>) {
        let less = |left: usize, right: usize| match (place(left), place(right)) {
            (Some(left), Some(right)) => left < right,
            _ => true,
        };
        for end in 1..items.len() {
            for at in (1..=end).rev() {
                if !less(items[at], items[at - 1]) {
                    break;
                }
                items.swap(at, at - 1);
            }
        }
    }

    proptest! {
        #[test]
        fn items_are_sorted_as_an_insertion_sort_would(
            places in prop::collection::vec(prop::option::of(0_usize..6), 0..12)
        ) {
            let place = |item: usize| places[item];
            let mut expected: Vec<usize> = (0..places.len()).collect();
            let mut sorted = expected.clone();
            insertion_sort(&mut expected, place);
            sort_by_place(&mut sorted, place);
            prop_assert_eq!(sorted, expected);
        }
    }
}
