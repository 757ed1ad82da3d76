//! What strategic merge patch asks about types, answered from the table.

use k1s_object::patch::strategic::{FieldPatch, PatchSchema, Strategy};

use crate::table::{Merge, SchemaOther, Shape, Type};

/// A type of the table, as strategic merge patch sees it: `strategic::apply(doc, patch, PatchType::of(kind.ty))`.
#[derive(Debug, Clone, Copy)]
pub struct PatchType {
    shape: Shape,
    pointer: bool,
}

impl PatchType {
    /// The type of a whole object.
    pub fn of(ty: &'static Type) -> PatchType {
        PatchType { shape: Shape::Struct(ty), pointer: false }
    }

    /// What a field or an item holds; `pointer` is whether Go holds a pointer to it.
    pub fn new(shape: Shape, pointer: bool) -> PatchType {
        PatchType { shape, pointer }
    }
}

impl From<&'static Type> for PatchType {
    fn from(ty: &'static Type) -> PatchType {
        PatchType::of(ty)
    }
}

impl PatchSchema for PatchType {
    fn kind(self) -> &'static str {
        match self.shape {
            Shape::Bool => "bool",
            Shape::Int32 => "int32",
            Shape::Int64 => "int64",
            Shape::Uint(name, _) => name,
            Shape::Float64 => "float64",
            Shape::String(_) => "string",
            Shape::Bytes | Shape::List(_) => "slice",
            Shape::Map(_) => "map",
            Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
            | Shape::SchemaOr(..)
            | Shape::Struct(_) => "struct",
        }
    }

    fn is_pointer(self) -> bool {
        self.pointer
    }

    fn type_name(self) -> &'static str {
        match self.shape {
            Shape::Struct(ty) => ty.go.rsplit_once('.').map_or(ty.go, |(_, name)| name),
            Shape::Time => "Time",
            Shape::MicroTime => "MicroTime",
            Shape::Duration => "Duration",
            Shape::Quantity => "Quantity",
            Shape::IntOrString => "IntOrString",
            Shape::RawExtension => "RawExtension",
            Shape::FieldsV1 => "FieldsV1",
            Shape::Json => "JSON",
            Shape::SchemaOr(_, SchemaOther::Bool) => "JSONSchemaPropsOrBool",
            Shape::SchemaOr(_, SchemaOther::Array) => "JSONSchemaPropsOrArray",
            Shape::SchemaOr(_, SchemaOther::StringArray) => "JSONSchemaPropsOrStringArray",
            _ => "",
        }
    }

    fn field(self, name: &str) -> Option<FieldPatch<PatchType>> {
        // The other structs keep their contents to themselves.
        let Shape::Struct(ty) = self.shape else { return None };
        let field = match ty.fields.binary_search_by(|field| field.name.cmp(name)) {
            Ok(index) => ty.fields.get(index),
            Err(_) => ty.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)),
        }?;
        Some(FieldPatch {
            schema: PatchType { shape: field.shape, pointer: field.pointer },
            strategy: strategy(field.merge),
            merge_key: field.merge.key,
        })
    }

    fn items(self) -> Option<PatchType> {
        match self.shape {
            Shape::List(items) => Some(PatchType { shape: *items, pointer: false }),
            Shape::Bytes => Some(PatchType { shape: Shape::Uint("uint8", 255), pointer: false }),
            _ => None,
        }
    }
}

fn strategy(merge: Merge) -> Strategy {
    if merge.merge {
        Strategy::Merge
    } else if merge.replace {
        Strategy::Replace
    } else {
        Strategy::Default
    }
}

#[cfg(test)]
mod tests {
    use k1s_object::patch::strategic;
    use serde_json::{Value, json};

    use super::*;
    use crate::table::{Field, Omit, Topology};

    const NO_MERGE: Merge = Merge { merge: false, retain_keys: false, replace: false, key: "" };

    const fn field(name: &'static str, shape: Shape, pointer: bool, merge: Merge) -> Field {
        Field {
            name,
            declared_in: "",
            shape,
            pointer,
            omit: Omit::Empty,
            required: false,
            proto: None,
            merge,
            topology: Topology::Default,
            default: "",
        }
    }

    const BY_NAME: Merge = Merge { merge: true, retain_keys: false, replace: false, key: "name" };

    static CONTAINER: Type = Type {
        name: "io.k8s.api.core.v1.Container",
        go: "v1.Container",
        fields: &[
            field("args", Shape::List(&Shape::String("string")), false, NO_MERGE),
            field("image", Shape::String("string"), false, NO_MERGE),
            field("name", Shape::String("string"), false, NO_MERGE),
        ],
    };

    static SPEC: Type = Type {
        name: "io.k8s.api.core.v1.PodSpec",
        go: "v1.PodSpec",
        fields: &[
            field("containers", Shape::List(&Shape::Struct(&CONTAINER)), false, BY_NAME),
            field("extension", Shape::RawExtension, false, NO_MERGE),
            field("items", Shape::SchemaOr(&CONTAINER, SchemaOther::Array), true, NO_MERGE),
            field("nodeSelector", Shape::Map(&Shape::String("string")), false, NO_MERGE),
            field("properties", Shape::Map(&Shape::Struct(&CONTAINER)), false, NO_MERGE),
            field(
                "selector",
                Shape::Struct(&CONTAINER),
                true,
                Merge { merge: false, retain_keys: false, replace: true, key: "" },
            ),
            field("token", Shape::Bytes, false, NO_MERGE),
        ],
    };

    static POD: Type = Type {
        name: "io.k8s.api.core.v1.Pod",
        go: "v1.Pod",
        fields: &[
            field("other", Shape::Struct(&SPEC), true, NO_MERGE),
            field("spec", Shape::Struct(&SPEC), false, NO_MERGE),
        ],
    };

    fn patched(mut doc: Value, patch: Value) -> Result<Value, String> {
        match strategic::apply(&mut doc, patch, PatchType::of(&POD)) {
            Ok(()) => Ok(doc),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_table_tells_how_to_merge() {
        let pod = json!({"spec": {
            "containers": [{"name": "a", "image": "a:1", "args": ["x"]}, {"name": "b"}],
            "nodeSelector": {"x": "1"},
            "selector": {"name": "s", "image": "s:1"},
        }});
        let patch = json!({"spec": {
            "containers": [{"name": "c"}, {"name": "a", "args": ["y"]}],
            "nodeSelector": {"y": "2"},
            "selector": {"name": "t"},
        }});
        let expected = json!({"spec": {
            "containers": [{"name": "c"}, {"name": "a", "image": "a:1", "args": ["y"]}, {"name": "b"}],
            "nodeSelector": {"x": "1", "y": "2"},
            "selector": {"name": "t"},
        }});
        assert_eq!(patched(pod, patch), Ok(expected));
    }

    #[test]
    fn lookups_that_fail_say_it_in_the_words_of_go() {
        let cases = [
            (
                json!({"spec": {"extension": {"a": {}}}}),
                json!({"spec": {"extension": {"a": {"b": 1}}}}),
                "unable to find api field in struct RawExtension for the json field \"a\"",
            ),
            (
                json!({"spec": {"properties": {"a": {}}}}),
                json!({"spec": {"properties": {"a": {"name": "x"}}}}),
                "merging an object in json but data type is not struct, instead is: map",
            ),
            (
                json!({"spec": {}}),
                json!({"spec": {"$setElementOrder/nodeSelector": [{"name": "c"}]}}),
                "expected slice or array type, but got: struct",
            ),
            (
                json!({"other": {}}),
                json!({"other": {"$setElementOrder/nodeSelector": []}}),
                "expected slice or array type, but got: ptr",
            ),
            (
                json!({"spec": {"unknown": []}}),
                json!({"spec": {"unknown": []}}),
                "unable to find api field in struct PodSpec for the json field \"unknown\"",
            ),
        ];
        for (doc, patch, text) in cases {
            assert_eq!(patched(doc, patch), Err(text.to_owned()));
        }
    }

    #[test]
    fn what_may_be_one_or_a_list_is_replaced() {
        let doc = json!({"spec": {"items": [{"a": 1}], "token": [1]}});
        let patch = json!({"spec": {"items": [{"b": 2}], "token": [2]}});
        assert_eq!(patched(doc, patch.clone()), Ok(patch));
    }

    #[test]
    fn fields_are_found_in_spite_of_their_case() {
        let found = PatchType::of(&SPEC).field("CONTAINERS").expect("a field");
        assert_eq!((found.strategy, found.merge_key), (Strategy::Merge, "name"));
        assert!(PatchType::of(&SPEC).field("contain").is_none());
    }
}
