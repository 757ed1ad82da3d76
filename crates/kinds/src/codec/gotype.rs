//! Names of Go types in error messages.

use crate::table::Shape;

/// The Go type of the items of a list or map, if its own name contains it: `[]v1.Container`,
/// `map[string]v1.ExtraValue`.
pub(crate) fn of_items(go: &str) -> Option<&str> {
    go.strip_prefix("[]").or_else(|| Some(go.strip_prefix("map[")?.split_once(']')?.1))
}

/// The Go type of a shape.
pub(crate) fn of_shape(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Uint(name, _) => (*name).to_owned(),
        Shape::Float64 => "float64".to_owned(),
        Shape::String(name) => (*name).to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Duration => "v1.Duration".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::RawExtension => "runtime.RawExtension".to_owned(),
        Shape::FieldsV1 => "v1.FieldsV1".to_owned(),
        Shape::Json => "v1.JSON".to_owned(),
        Shape::SchemaOr(_, other) => format!("v1.JSONSchemaPropsOr{other:?}"),
        Shape::Struct(ty) => ty.go.to_owned(),
        Shape::List(item) => format!("[]{}", of_shape(item)),
        Shape::Map(item) => format!("map[string]{}", of_shape(item)),
    }
}
