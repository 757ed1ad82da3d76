//! Ownership: sequences of applies and updates, as `merge/*_test.go` has them.
//!
//! A step is one of:
//!
//! - `{"apply": manager, "version": v, "object": o, "conflicts": [[manager, path], ..]}`; `fails` if it is an error
//! - `{"force": manager, ..}`: an apply that takes fields from others
//! - `{"update": manager, ..}`: any other write
//! - `{"extract": manager, ..}`: what the manager has applied, with `object` merged into it, is applied
//! - `{"serve": [version, ..]}`: the versions that exist from here on
//! - `{"change_schema": name}`
//!
//! `object` and `managed` are the state after the last step.

use std::{borrow::Cow, collections::HashMap};

use k1s_apply::{
    FieldSet,
    merge::{Filter, ManagerId, Managers, MergeError, Operation, Owned, Updater, Versions},
    schema::{Schema, TypeRef},
    typed::{Duplicates, Typed},
};
use serde_json::{Map, Value};

use crate::support::{Check, Named, expect, expect_paths, run, texts};

/// How objects are converted between versions.
#[derive(Clone, Copy, PartialEq)]
enum Conversion {
    /// All versions are the same.
    None,
    /// `a` of version 1 is `aaa` in version 3; only maps have values.
    Repeat,
    /// `name_v1` is `name_v2` in version 2.
    Rename,
    /// `required_field_bar` of version 2 is `field_foo_rely_on_bar` in version 1, and cannot be missing.
    Reliant,
}

struct TestVersions<'a> {
    schema: &'a Named,
    /// The type of all versions; without it, the type of a version has its name.
    ty: Option<&'a str>,
    names: Option<&'a Value>,
    deduced: bool,
    served: Option<Vec<String>>,
    conversion: Conversion,
}

impl TestVersions<'_> {
    fn type_name<'v>(&'v self, version: &'v str) -> Option<&'v str> {
        if self.deduced {
            return None;
        }
        let named = self.names.and_then(|names| names.get(version)).and_then(Value::as_str);
        Some(self.ty.or(named).unwrap_or(version))
    }
}

impl Versions for TestVersions<'_> {
    fn schema(&self, version: &str) -> Option<(&Schema, TypeRef)> {
        let known = match self.conversion {
            Conversion::Repeat => repeats(version).is_some(),
            Conversion::Reliant => ["v1", "v2"].contains(&version),
            Conversion::None | Conversion::Rename => true,
        };
        if !known || self.served.as_ref().is_some_and(|served| !served.iter().any(|v| v == version)) {
            return None;
        }
        Some((&self.schema.schema, self.schema.root(self.type_name(version))?))
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, String> {
        match self.conversion {
            Conversion::None => Ok(object.clone()),
            Conversion::Repeat => Ok(repeat(object, repeats(version).unwrap(), true)),
            Conversion::Rename => Ok(rename(object, &|name| match name.rsplit_once("_v") {
                Some((base, _)) => format!("{base}_{version}"),
                None => name.to_owned(),
            })),
            Conversion::Reliant => {
                let (from, to) = match version {
                    "v1" => ("required_field_bar", "field_foo_rely_on_bar"),
                    _ => ("field_foo_rely_on_bar", "required_field_bar"),
                };
                if version == "v1" && object.get(from).is_none() {
                    return Err(format!("{from} is missing"));
                }
                Ok(rename(object, &|name| if name == from { to.to_owned() } else { name.to_owned() }))
            }
        }
    }
}

fn repeats(version: &str) -> Option<usize> {
    version.strip_prefix('v')?.parse().ok()
}

fn repeat(value: &Value, times: usize, is_root: bool) -> Value {
    let Value::Object(map) = value else { return Value::Null };
    if map.is_empty() && !is_root {
        return Value::Null;
    }
    // Of names that become the same, the last counts.
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    entries
        .into_iter()
        .map(|(name, value)| {
            let name = if is_root { name.clone() } else { name[..1].repeat(times) };
            (name, repeat(value, times, false))
        })
        .collect::<Map<_, _>>()
        .into()
}

fn rename(value: &Value, name_of: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name_of(name), rename(value, name_of)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| rename(item, name_of)).collect(),
        other => other.clone(),
    }
}

fn id(name: &str) -> ManagerId {
    ManagerId {
        name: name.into(),
        operation: Operation::Apply,
        api_version: String::new(),
        subresource: String::new(),
    }
}

/// An object and its managers.
#[derive(Default)]
struct State {
    live: Value,
    version: Option<String>,
    managers: Managers,
}

impl State {
    fn live_in(&self, versions: &TestVersions<'_>, version: &str) -> Result<Value, String> {
        match &self.version {
            Some(current) if current != version && !self.live.is_null() => {
                versions.convert(&self.live, version)
            }
            _ => Ok(self.live.clone()),
        }
    }

    fn step(
        &mut self,
        step: &Value,
        versions: &TestVersions<'_>,
        ignored: Option<&Value>,
    ) -> Result<(), String> {
        let version = step["version"].as_str().unwrap();
        let typed = |value: Value| -> Result<Typed<'_>, String> {
            let (schema, ty) = versions.schema(version).ok_or("no such version")?;
            Ok(Typed { value: Cow::Owned(value), schema, ty, version: Cow::Borrowed(version) })
        };
        let live = typed(self.live_in(versions, version)?)?;
        let object = typed(step["object"].clone())?;
        let filter = ignored
            .and_then(|ignored| ignored.get(version))
            .map(|fields| Filter::Exclude(FieldSet::from_fields_v1(fields).unwrap()));
        let updater = Updater::new(versions).filter(filter.as_ref());
        let manager = |what: &str| step.get(what).and_then(Value::as_str);
        let mut managers = self.managers.clone();

        if let Some(name) = manager("update") {
            object.validate(Duplicates::Allow).map_err(|errors| errors.to_string())?;
            let written = updater.update(&live, &object, &mut managers).map_err(|why| why.to_string())?;
            let own = managers.remove(&id(name)).map(|owned| owned.fields).unwrap_or_default();
            let fields = own.union(&written);
            if !fields.is_empty() {
                managers.insert(id(name), Owned { fields, version: version.into(), time: None });
            }
            self.live = object.value.into_owned();
        } else {
            object.validate(Duplicates::Refuse).map_err(|errors| errors.to_string())?;
            let (name, force, config) = if let Some(name) = manager("extract") {
                let config = match managers.get(&id(name)) {
                    Some(owned) if owned.version != version => {
                        return Err("applied in another version".into());
                    }
                    Some(owned) => live.extract(&owned.fields.leaves()).merge(&object),
                    None => live.extract(&FieldSet::new()).merge(&object),
                };
                (name, true, config.map_err(|why| why.to_string())?)
            } else if let Some(name) = manager("force") {
                (name, true, object)
            } else {
                (manager("apply").unwrap(), false, object)
            };
            let expected = step.get("conflicts").and_then(Value::as_array);
            match updater.apply(&live, &config, &mut managers, &id(name), force) {
                Ok(new) => {
                    if expected.is_some_and(|expected| !expected.is_empty()) {
                        return Err("no conflicts".into());
                    }
                    self.live = new.unwrap_or(live).value.into_owned();
                }
                Err(MergeError::Conflicts(conflicts)) if expected.is_some() => {
                    let mut actual: Vec<Value> = conflicts
                        .0
                        .iter()
                        .map(|conflict| serde_json::json!([conflict.manager.name, conflict.path.to_string()]))
                        .collect();
                    let mut expected = expected.unwrap().clone();
                    actual.sort_by_key(ToString::to_string);
                    expected.sort_by_key(ToString::to_string);
                    expect("conflicts", &actual, &expected)?;
                    self.live = live.value.into_owned();
                    self.version = Some(version.into());
                    return Ok(());
                }
                Err(why) => return Err(why.to_string()),
            }
        }
        self.version = Some(version.into());
        self.managers = managers;
        Ok(())
    }
}

fn check(case: &Value, schemas: &HashMap<String, Named>) -> Check {
    let name = case["schema"].as_str().unwrap();
    let mut versions = TestVersions {
        schema: &schemas[name],
        ty: case.get("type").and_then(Value::as_str),
        names: case.get("types"),
        deduced: name == "deduced",
        served: None,
        conversion: match case.get("converter").and_then(Value::as_str) {
            Some("repeat") => Conversion::Repeat,
            Some("rename") => Conversion::Rename,
            Some("reliant") => Conversion::Reliant,
            Some(other) => panic!("unknown conversion {other}"),
            None => Conversion::None,
        },
    };
    let mut state = State::default();
    for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        if let Some(served) = step.get("serve") {
            versions.served = Some(texts(Some(served)));
            continue;
        }
        if let Some(name) = step.get("change_schema") {
            versions.schema = &schemas[name.as_str().unwrap()];
            continue;
        }
        match (state.step(step, &versions, case.get("ignored")), step.get("fails")) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Err(why), None) => return Err(format!("step {i}: {why}")),
            (Ok(()), Some(_)) => return Err(format!("step {i} does not fail")),
        }
    }
    if let Some(object) = case.get("object") {
        let live = match case.get("version").and_then(Value::as_str) {
            Some(version) => state.live_in(&versions, version)?,
            None => state.live,
        };
        expect("object", &live, object)?;
    }
    if let Some(managed) = case.get("managed").and_then(Value::as_object) {
        let names =
            |managers: &mut dyn Iterator<Item = &str>| managers.map(str::to_owned).collect::<Vec<_>>();
        let mut expected = names(&mut managed.keys().map(String::as_str));
        expected.sort();
        expect("managers", &names(&mut state.managers.keys().map(|id| &*id.name)), &expected)?;
        for (id, owned) in &state.managers {
            let expected = &managed[&id.name];
            expect("version", &owned.version.as_str(), &expected["version"].as_str().unwrap())?;
            expect_paths(&format!("fields of {}", id.name), &owned.fields, &expected["fields"])?;
        }
    }
    if state.managers.values().any(|owned| owned.fields.is_empty()) {
        return Err("a manager without fields".into());
    }
    Ok(())
}

#[test]
fn sequences_of_applies_and_updates() {
    run("merge_", check);
}
