//! Reading case files, schemas and field sets.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::PathBuf,
};

use k1s_apply::{
    FieldSet, Path, PathElement,
    schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeId, TypeRef},
};
use serde_json::Value;

use crate::known;

pub(crate) type Check = Result<(), String>;

/// A schema whose types have names.
pub(crate) struct Named {
    pub(crate) schema: Schema,
    types: HashMap<String, TypeId>,
}

impl Named {
    /// Reads the types of a schema in the form of the case files:
    ///
    /// - `"string"`, `"numeric"`, `"boolean"`, `"untyped"`: a scalar
    /// - `{"ref": name}`: a named type
    /// - `{"scalar": s, "list": {"of": type, "keys": [..], "atomic": bool}, "map": {"fields": {..}, "of": type, "atomic": bool}}`:
    ///   one shape or several
    ///
    /// `override` changes the relationship of the type; `{"type": type, "default": value}` is a field with a default.
    pub(crate) fn parse(types: &Value) -> Named {
        let mut out = Named { schema: Schema::new(), types: HashMap::new() };
        if types == "deduced" {
            return out;
        }
        let types = types.as_object().unwrap();
        for name in types.keys() {
            let id = out.schema.reserve();
            out.types.insert(name.clone(), id);
        }
        for (name, ty) in types {
            let atom = out.atom(ty);
            out.schema.set(out.types[name], atom);
        }
        out
    }

    /// A named type; the deduced one without a name.
    pub(crate) fn root(&self, name: Option<&str>) -> Option<TypeRef> {
        match name {
            Some(name) => self.types.get(name).map(|id| (*id).into()),
            None => Some(Schema::deduced()),
        }
    }

    fn reference(&mut self, ty: &Value) -> TypeRef {
        let target: TypeRef = match ty.get("ref").and_then(Value::as_str) {
            Some(name) => match self.types.get(name) {
                Some(id) => (*id).into(),
                None => Schema::deduced(),
            },
            None => {
                let atom = self.atom(ty);
                // `set` sorts fields.
                let id = self.schema.reserve();
                self.schema.set(id, atom);
                id.into()
            }
        };
        match ty.get("override").and_then(Value::as_str) {
            Some("atomic") => target.with(Relationship::Atomic),
            Some(_) => target.with(Relationship::Granular),
            None => target,
        }
    }

    fn atom(&mut self, ty: &Value) -> Atom {
        let relationship = |shape: &Value| match shape.get("atomic") {
            Some(_) => Relationship::Atomic,
            None => Relationship::Granular,
        };
        let scalar = |name: &Value| match name.as_str().unwrap() {
            // Upstream has a schema with an unknown scalar, of which there is no value.
            "numeric" | "number" => Scalar::Numeric,
            "string" => Scalar::String,
            "boolean" => Scalar::Boolean,
            "untyped" => Scalar::Untyped,
            other => panic!("unknown scalar {other}"),
        };
        if ty.is_string() {
            return Atom::scalar(scalar(ty));
        }
        Atom {
            scalar: ty.get("scalar").map(scalar),
            list: ty.get("list").map(|list| List {
                element: self.reference(&list["of"]),
                relationship: relationship(list),
                keys: texts(list.get("keys")).into_iter().map(Into::into).collect(),
            }),
            map: ty.get("map").map(|map| Map {
                fields: map
                    .get("fields")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                    .map(|(name, field)| Field {
                        name: name.clone().into(),
                        ty: self.reference(field.get("type").unwrap_or(field)),
                        default: field.get("default").cloned(),
                    })
                    .collect(),
                element: map.get("of").map(|of| self.reference(of)),
                relationship: relationship(map),
            }),
        }
    }
}

/// A list of strings; nothing is an empty list.
pub(crate) fn texts(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

/// A path, as the `FieldsV1` keys of its elements.
pub(crate) fn path(keys: &Value) -> Path {
    texts(Some(keys)).iter().map(|key| PathElement::from_key(key).unwrap()).collect()
}

/// A set, as a list of paths.
pub(crate) fn set(paths: &Value) -> FieldSet {
    paths.as_array().unwrap().iter().map(path).collect()
}

/// The paths of a set as text, sorted.
pub(crate) fn path_texts(set: &FieldSet) -> Vec<String> {
    let mut out: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    out.sort();
    out
}

/// Checks a set against expected paths in any order.
pub(crate) fn expect_paths(what: &str, set: &FieldSet, expected: &Value) -> Check {
    let mut expected = texts(Some(expected));
    expected.sort();
    expect(what, &path_texts(set), &expected)
}

pub(crate) fn expect<T: PartialEq + std::fmt::Debug>(what: &str, actual: &T, expected: &T) -> Check {
    if actual == expected {
        return Ok(());
    }
    Err(format!("{what}:\n      expected {expected:?}\n      actual   {actual:?}"))
}

/// The files whose names begin with `prefix`.
pub(crate) fn files(prefix: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/upstream/cases");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix));
    paths.sort();
    paths.iter().map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

/// Runs all cases of an area. A case that is known not to hold must fail.
pub(crate) fn run(prefix: &str, check: impl Fn(&Value, &HashMap<String, Named>) -> Check) {
    let mut failures = Vec::new();
    let mut count = 0;
    for file in files(prefix) {
        let mut schemas: HashMap<String, Named> = HashMap::new();
        schemas.insert("deduced".into(), Named::parse(&"deduced".into()));
        for (name, types) in file.get("schemas").and_then(Value::as_object).into_iter().flatten() {
            schemas.insert(name.clone(), Named::parse(types));
        }
        for case in file["cases"].as_array().unwrap() {
            count += 1;
            let name = case["name"].as_str().unwrap();
            let known = known::DIFFERENCES.iter().find(|(known, _)| *known == name);
            match (check(case, &schemas), known) {
                (Err(why), None) => failures.push(format!("{name}\n    {why}")),
                (Ok(()), Some(_)) => failures.push(format!("{name}\n    holds now: remove it from known.rs")),
                _ => {}
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} cases do not hold:\n  {}",
        failures.len(),
        failures.join("\n  ")
    );
}

/// The tables of `tests/README.md`: cases by file of upstream, and how many of them do not hold.
pub(crate) fn counts() -> String {
    let mut rows: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for file in files("") {
        let row = rows.entry(file["source"].as_str().unwrap().to_owned()).or_default();
        for case in file["cases"].as_array().unwrap() {
            row.0 += 1;
            row.1 += usize::from(known::DIFFERENCES.iter().any(|(known, _)| case["name"] == *known));
        }
    }
    let mut out = String::from("| from | cases | do not hold |\n|---|---|---|\n");
    let mut total = (0, 0);
    for (source, (cases, known)) in rows {
        out.push_str(&format!("| {source} | {cases} | {known} |\n"));
        total = (total.0 + cases, total.1 + known);
    }
    out.push_str(&format!("| all | {} | {} |\n", total.0, total.1));
    out
}
