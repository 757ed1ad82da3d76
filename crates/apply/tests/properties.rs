//! What holds for all sets of fields, and for all sequences of applies and updates.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use k1s_apply::{
    FieldSet, Path, PathElement,
    managed::{Applied, FieldManager, Single},
    merge::{Filter, ManagerId, Managers, MergeError, Operation, Owned, Updater},
    schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeRef},
    typed::Typed,
};
use proptest::{collection, prelude::*, test_runner::TestCaseResult};
use serde_json::{Value, json};

const VERSION: &str = "v1";

fn id(name: &str) -> ManagerId {
    ManagerId {
        name: name.into(),
        operation: Operation::Apply,
        api_version: String::new(),
        subresource: String::new(),
    }
}

/// An object, its managers and its schema.
struct State<'a> {
    schema: &'a Schema,
    ty: TypeRef,
    live: Value,
    managers: Managers,
}

impl<'a> State<'a> {
    fn new(schema: &'a (Schema, TypeRef)) -> State<'a> {
        State { schema: &schema.0, ty: schema.1, live: json!({}), managers: Managers::new() }
    }

    fn typed<'v>(&'v self, value: &'v Value) -> Typed<'v> {
        Typed::new(value, self.schema, self.ty, VERSION)
    }

    /// Applies a configuration. Returns whether the object has changed; conflicts change nothing.
    fn apply(&mut self, name: &str, config: &Value, force: bool) -> Result<bool, MergeError> {
        let versions = Single::new(VERSION, self.schema, self.ty);
        let mut managers = self.managers.clone();
        let new = Updater::new(&versions).apply(
            &self.typed(&self.live),
            &self.typed(config),
            &mut managers,
            &id(name),
            force,
        )?;
        let new = new.map(|new| new.value.into_owned());
        self.managers = managers;
        let changed = new.is_some();
        self.live = new.unwrap_or_else(|| self.live.take());
        Ok(changed)
    }

    fn update(&mut self, name: &str, new: &Value) {
        let versions = Single::new(VERSION, self.schema, self.ty);
        let mut managers = self.managers.clone();
        let written =
            Updater::new(&versions).update(&self.typed(&self.live), &self.typed(new), &mut managers).unwrap();
        let own = managers.remove(&id(name)).map(|owned| owned.fields).unwrap_or_default();
        let fields = own.union(&written);
        if !fields.is_empty() {
            managers.insert(id(name), Owned { fields, version: VERSION.into(), time: None });
        }
        self.managers = managers;
        self.live = new.clone();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply(name, config) => drop(self.apply(name, config, false)),
            Step::Force(name, config) => drop(self.apply(name, config, true).unwrap()),
            Step::Update(name, object) => self.update(name, object),
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Apply(&'static str, Value),
    Force(&'static str, Value),
    Update(&'static str, Value),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

/// An object without nulls, empty maps and empty lists: with them, upstream leaves null of what an apply empties, and an owner
/// of it; the next apply of the same configuration may conflict. The cases of upstream cover that.
fn filled(object: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    object.prop_map(|mut object| {
        // As every object has a kind, it is never empty.
        object["flag"] = true.into();
        without_empty(&object).unwrap_or_default()
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (name(), filled(common::object()), 0..3).prop_map(|(name, object, kind)| match kind {
        0 => Step::Apply(name, object),
        1 => Step::Force(name, object),
        _ => Step::Update(name, object),
    });
    collection::vec(step, 1..6)
}

/// The value at a path, if the object has it.
fn at<'v>(value: &'v Value, path: &[PathElement]) -> Option<&'v Value> {
    let [first, rest @ ..] = path else { return Some(value) };
    let found = match first {
        PathElement::Field(name) => value.get(&**name)?,
        PathElement::Key(fields) => value.as_array()?.iter().find(|item| {
            fields.iter().all(|(name, key)| {
                // The schema has one default of a key.
                let value =
                    item.get(&**name).cloned().or_else(|| (**name == *"protocol").then(|| "TCP".into()));
                value.is_some_and(|value| PathElement::value(value) == PathElement::value(key.clone()))
            })
        })?,
        PathElement::Value(key) => value
            .as_array()?
            .iter()
            .find(|item| PathElement::value((*item).clone()) == PathElement::Value(key.clone()))?,
        PathElement::Index(index) => value.get(usize::try_from(*index).ok()?)?,
    };
    at(found, rest)
}

/// The value without nulls, and without maps and lists that are empty.
fn without_empty(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(without_empty).collect();
            (!items.is_empty()).then(|| items.into())
        }
        Value::Object(map) => {
            let map: serde_json::Map<_, _> =
                map.iter().filter_map(|(name, value)| Some((name.clone(), without_empty(value)?))).collect();
            (!map.is_empty()).then(|| map.into())
        }
        scalar => Some(scalar.clone()),
    }
}

/// Steps of which many are almost those before, as controllers do it.
fn repeated_steps() -> impl Strategy<Value = Vec<Step>> {
    (steps(), collection::vec((0..6_usize, 0..3_i32), 0..8)).prop_map(|(mut steps, again)| {
        for (at, change) in again {
            let mut step = steps[at % steps.len()].clone();
            let (Step::Apply(_, object) | Step::Force(_, object) | Step::Update(_, object)) = &mut step;
            if change > 0 {
                object["text"] = change.to_string().into();
            }
            steps.push(step);
        }
        steps
    })
}

/// The schema of objects that have values of a type as their spec.
fn wrapped((mut schema, ty): (Schema, TypeRef)) -> (Schema, TypeRef) {
    let text = schema.add(Atom::scalar(Scalar::String)).into();
    let field = |name: &'static str, ty| Field { name: name.into(), ty, default: None };
    let entries = List { element: Schema::deduced(), relationship: Relationship::Atomic, keys: Vec::new() };
    let entries = schema.add(Atom::list(entries)).into();
    let fields = vec![field("managedFields", entries), field("name", text), field("uid", text)];
    let granular = Relationship::Granular;
    let metadata = schema.add(Atom::map(Map { fields, element: None, relationship: granular })).into();
    let fields =
        vec![field("apiVersion", text), field("kind", text), field("metadata", metadata), field("spec", ty)];
    let root = schema.add(Atom::map(Map { fields, element: None, relationship: granular })).into();
    (schema, root)
}

/// Makes objects of `fieldsV1` that are text.
fn expand(object: &mut Value) {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(text) = entry["fieldsV1"].as_str() {
            entry["fieldsV1"] = serde_json::from_str(text).unwrap();
        }
    }
}

fn has_all_owned_fields(state: &State<'_>) -> TestCaseResult {
    for (id, owned) in &state.managers {
        prop_assert!(!owned.fields.is_empty(), "{id} owns nothing");
        for path in owned.fields.paths() {
            prop_assert!(at(&state.live, &path.0).is_some(), "{id} owns {path}, not in {}", state.live);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// New objects have a path of their own, which writes JSON at once.
    #[test]
    fn a_new_object_has_the_same_fields_whichever_way_they_are_written(
        empty in prop_oneof![2 => Just(json!({})), 1 => common::object()], new in common::object(),
    ) {
        let schema = common::schema();
        let versions = Single::new(VERSION, &schema.0, schema.1);
        let mut excluded = FieldSet::new();
        excluded.insert(&[PathElement::field("set")]);
        for filter in [None, Some(Filter::Exclude(excluded))] {
            let manager = || FieldManager::new(&versions, VERSION, "Thing", "2024-01-01T00:00:00Z").filter(filter.as_ref());
            let (mut one, mut other) = (new.clone(), new.clone());
            manager().update(&empty, &mut one, "m");
            manager().fields_as_json().update(&empty, &mut other, "m");
            expand(&mut other);
            let entry = "/metadata/managedFields/0";
            prop_assert_eq!(one.pointer(entry), other.pointer(entry));
        }
    }

    /// A server keeps `fieldsV1` as text, and most writes do not decode it.
    #[test]
    fn owners_are_the_same_whether_fields_are_text_or_objects(steps in repeated_steps()) {
        let (schema, root) = wrapped(common::schema());
        let versions = Single::new(VERSION, &schema, root);
        let mut excluded = FieldSet::new();
        excluded.insert(&[PathElement::field("spec"), PathElement::field("set")]);
        for filter in [None, Some(Filter::Exclude(excluded))] {
            let mut lives = [json!({"apiVersion": VERSION, "kind": "Thing"}), json!({"apiVersion": VERSION, "kind": "Thing"})];
            for (at, step) in steps.iter().enumerate() {
                let now = format!("2024-01-01T00:00:{:02}Z", at / 2);
                let mut results = Vec::new();
                for (live, is_text) in lives.iter_mut().zip([false, true]) {
                    let manager = FieldManager::new(&versions, VERSION, "Thing", &now).filter(filter.as_ref());
                    let manager = if is_text { manager.fields_as_json().schemas_are_unchanged(true) } else { manager };
                    let object = |spec: &Value| json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
                    if let Step::Apply(name, config) | Step::Force(name, config) = step
                        && manager.is_applied(live, &object(config), name).unwrap()
                    {
                        let applied = manager.apply(live, &object(config), name, false).unwrap();
                        prop_assert!(is_text && !applied.changed);
                        prop_assert_eq!(&applied.object, &*live);
                    }
                    let result = match step {
                        Step::Apply(name, config) => manager.apply(live, &object(config), name, false),
                        Step::Force(name, config) => manager.apply(live, &object(config), name, true),
                        Step::Update(name, new) => {
                            let mut new = object(new);
                            new["metadata"]["uid"] = "u".into();
                            if at % 3 == 0 && let Some(entries) = live.pointer("/metadata/managedFields") {
                                // As a client sends back what it has read.
                                new["metadata"]["managedFields"] = entries.clone();
                                expand(&mut new);
                            }
                            manager.update(live, &mut new, name);
                            Ok(Applied { object: new, changed: true })
                        }
                    };
                    if let Ok(applied) = &result {
                        *live = applied.object.clone();
                    }
                    results.push(result.map(|mut applied| {
                        expand(&mut applied.object);
                        applied
                    }));
                }
                prop_assert_eq!(&results[0], &results[1]);
            }
        }
    }

    #[test]
    fn apply_is_idempotent(before in steps(), name in name(), config in filled(common::object())) {
        let schema = common::schema();
        let mut state = State::new(&schema);
        before.iter().for_each(|step| state.step(step));
        state.apply(name, &config, true).unwrap();
        let (live, managers) = (state.live.clone(), state.managers.clone());
        prop_assert!(!state.apply(name, &config, false).unwrap(), "{live} became {}", state.live);
        prop_assert_eq!(&state.live, &live);
        prop_assert_eq!(&state.managers, &managers);
    }

    #[test]
    fn independent_appliers_commute(
        before in steps(),
        a in filled(common::object_with(&["text", "set", "ports", "nested", "atomicMap", "free"], 0.7)),
        b in filled(common::object_with(&["number", "numbers", "labels", "maps", "atomicList", "overridden"], 0.7)),
    ) {
        let schema = common::schema();
        let [mut ab, mut ba] = [State::new(&schema), State::new(&schema)];
        for state in [&mut ab, &mut ba] {
            before.iter().for_each(|step| state.step(step));
        }
        // New managers: what an old one no longer applies may be another field of the other one.
        ab.apply("d", &a, true).unwrap();
        ab.apply("e", &b, true).unwrap();
        ba.apply("e", &b, true).unwrap();
        ba.apply("d", &a, true).unwrap();
        prop_assert_eq!(&ab.live, &ba.live);
        prop_assert_eq!(&ab.managers, &ba.managers);
    }

    #[test]
    fn managers_own_only_fields_that_exist(steps in steps()) {
        let schema = common::schema();
        let mut state = State::new(&schema);
        for step in &steps {
            state.step(step);
            has_all_owned_fields(&state)?;
        }
    }

    #[test]
    fn an_apply_keeps_the_fields_of_others(before in steps(), name in name(), config in filled(common::object()), force: bool) {
        let schema = common::schema();
        let mut state = State::new(&schema);
        before.iter().for_each(|step| state.step(step));
        let (live, managers) = (state.live.clone(), state.managers.clone());
        if state.apply(name, &config, force).is_err() {
            prop_assert_eq!(&state.live, &live);
            return Ok(());
        }
        let applied = state.managers.get(&id(name)).map(|owned| owned.fields.clone()).unwrap_or_default();
        let last = managers.get(&id(name)).map(|owned| owned.fields.clone()).unwrap_or_default();
        for (other, owned) in managers.iter().filter(|(other, _)| other.name != name) {
            let kept = state.managers.get(other).map(|owned| owned.fields.clone()).unwrap_or_default();
            for path in owned.fields.leaves().paths() {
                if kept.has(&path.0) {
                    prop_assert!(at(&state.live, &path.0).is_some(), "{} lost", path);
                } else {
                    // Only a forced apply takes fields. As upstream, two other things lose them without a conflict: a value of
                    // another kind around them, and removing a map key or list item that only the applier had added.
                    let prefix_in = |set: &FieldSet| (1..path.0.len()).any(|len| set.has(&path.0[..len]));
                    let below = || applied.paths().iter().any(|other| other.0.starts_with(&path.0));
                    let removed = last.difference(&applied);
                    prop_assert!(
                        (force && below()) || prefix_in(&applied) || prefix_in(&removed),
                        "{} lost {}, which {} does not own", other, path, name
                    );
                }
            }
        }
    }
}

fn element() -> impl Strategy<Value = PathElement> {
    let text = prop_oneof![Just("a"), Just("b"), Just("<c>"), Just("\u{2028}\"\\\n")];
    let scalar = prop_oneof![
        text.clone().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(-0.5)),
        Just(json!(1e21)),
        Just(json!(i64::MAX)),
        Just(json!(u64::MAX)),
        Just(json!(true)),
    ];
    prop_oneof![
        4 => text.clone().prop_map(PathElement::field),
        2 => collection::btree_map(text, scalar.clone(), 1..3).prop_map(PathElement::key),
        2 => scalar.prop_map(PathElement::value),
        1 => (-1..3_i64).prop_map(PathElement::Index),
    ]
}

/// Sets as upstream's are defined: as sets of paths.
type Model = BTreeSet<Path>;

fn model() -> impl Strategy<Value = Model> {
    collection::btree_set(collection::vec(element(), 1..5).prop_map(Path), 0..16)
}

fn is_prefix(prefix: &Path, path: &Path) -> bool {
    prefix.0.len() < path.0.len() && path.0.starts_with(&prefix.0)
}

fn set(model: &Model) -> FieldSet {
    model.iter().cloned().collect()
}

/// The paths of a set, each of which is there once.
fn paths(set: &FieldSet) -> Model {
    let paths = set.paths();
    assert_eq!(paths.len(), set.len());
    let model: Model = paths.into_iter().collect();
    assert_eq!(model.len(), set.len());
    model
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_of_fields_are_sets_of_paths(a in model(), b in model()) {
        let (x, y) = (set(&a), set(&b));
        prop_assert_eq!(&paths(&x), &a);
        prop_assert_eq!(paths(&x.union(&y)), a.union(&b).cloned().collect::<Model>());
        prop_assert_eq!(paths(&x.intersection(&y)), a.intersection(&b).cloned().collect::<Model>());
        prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
        prop_assert_eq!(paths(&x.difference(&y)), a.difference(&b).cloned().collect::<Model>());
        let below = |path: &Path| b.contains(path) || b.iter().any(|prefix| is_prefix(prefix, path));
        let rest: Model = a.iter().filter(|path| !below(path)).cloned().collect();
        prop_assert_eq!(paths(&x.recursive_difference(&y)), rest);
        let is_leaf = |path: &&Path| !a.iter().any(|other| is_prefix(path, other));
        prop_assert_eq!(paths(&x.leaves()), a.iter().filter(is_leaf).cloned().collect::<Model>());
        for path in a.union(&b) {
            prop_assert_eq!(x.has(&path.0), a.contains(path));
        }
        prop_assert_eq!(x == y, a == b);
        prop_assert_eq!(x.is_empty(), a.is_empty());
    }

    #[test]
    fn fields_v1_is_read_and_written_as_the_same_bytes(a in model()) {
        let text = set(&a).to_fields_v1().to_string();
        let read = FieldSet::from_fields_v1(&serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(&read, &set(&a));
        prop_assert_eq!(read.to_fields_v1().to_string(), text.as_str());
        prop_assert_eq!(FieldSet::from_fields_v1_json(&text).unwrap(), read);
    }

    #[test]
    fn keys_are_read_as_the_same_element(element in element()) {
        let read = PathElement::from_key(&element.to_key()).unwrap();
        prop_assert_eq!(&read, &element);
        prop_assert_eq!(read.to_key(), element.to_key());
    }
}
