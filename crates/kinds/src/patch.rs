//! The schema for strategic merge patch, from the table.

use k1s_object::patch::strategic::{FieldPatch, PatchSchema, Strategy};

use crate::table::{Merge, SchemaOther, Shape, Type};

/// A type of the table as a schema for strategic merge patch: `strategic::apply(doc, patch,
/// PatchType::of(kind.ty))`.
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

    /// The type of a field or an item; `pointer`: Go holds a pointer to it.
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
        // The other structs have no exported fields.
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
    use super::*;

    fn plain(shape: Shape) -> PatchType {
        PatchType::new(shape, false)
    }

    #[test]
    fn shapes_have_the_kinds_and_names_of_go() {
        let cases = [
            (Shape::Bool, "bool", ""),
            (Shape::Uint("uint16", 65_535), "uint16", ""),
            (Shape::String("v1.RestartPolicy"), "string", ""),
            (Shape::Bytes, "slice", ""),
            (Shape::List(&Shape::Int32), "slice", ""),
            (Shape::Map(&Shape::Quantity), "map", ""),
            (Shape::RawExtension, "struct", "RawExtension"),
            (Shape::FieldsV1, "struct", "FieldsV1"),
            (Shape::Json, "struct", "JSON"),
        ];
        for (shape, kind, name) in cases {
            assert_eq!((plain(shape).kind(), plain(shape).type_name()), (kind, name));
            assert!(plain(shape).field("raw").is_none(), "{kind} {name}");
        }
    }

    #[test]
    fn lists_have_items() {
        let items = |shape: Shape| plain(shape).items().map(PatchSchema::kind);
        assert_eq!(items(Shape::List(&Shape::List(&Shape::Int32))), Some("slice"));
        assert_eq!(items(Shape::List(&Shape::Int32)), Some("int32"));
        assert_eq!(items(Shape::Bytes), Some("uint8"));
        assert_eq!(items(Shape::Map(&Shape::Int32)), None);
        assert_eq!(items(Shape::Json), None);
    }

    #[test]
    fn a_strategy_is_merge_or_replace_or_none() {
        let merge =
            |merge: bool, replace: bool| strategy(Merge { merge, retain_keys: true, replace, key: "" });
        assert_eq!(merge(true, false), Strategy::Merge);
        assert_eq!(merge(false, true), Strategy::Replace);
        assert_eq!(merge(false, false), Strategy::Default);
    }
}
