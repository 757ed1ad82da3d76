//! The schema for server-side apply, from the table.

use std::sync::LazyLock;

use k1s_apply::{
    FieldSet, Path,
    merge::Filter,
    schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeId, TypeRef},
};

use crate::{
    catalog,
    table::{Field as TableField, Shape, Topology, Type},
};

/// The types of the table, in its order, and types for everything that is in them.
struct Types {
    schema: Schema,
    structs: Vec<TypeId>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut schema = Schema::new();
    let structs: Vec<TypeId> = catalog::types().iter().map(|_| schema.reserve()).collect();
    let mut build = Builder {
        string: schema.add(Atom::scalar(Scalar::String)).into(),
        numeric: schema.add(Atom::scalar(Scalar::Numeric)).into(),
        boolean: schema.add(Atom::scalar(Scalar::Boolean)).into(),
        untyped: schema.add(Atom::scalar(Scalar::Untyped)).into(),
        atomic: schema.atomic(),
        schema,
        structs: &structs,
    };
    for (ty, id) in catalog::types().iter().zip(&structs) {
        let fields = ty.fields.iter().map(|field| build.field(field)).collect();
        let relationship = if ty.atomic { Relationship::Atomic } else { Relationship::Granular };
        build.schema.set(*id, Atom::map(Map { fields, element: None, relationship }));
    }
    Types { schema: build.schema, structs }
});

struct Builder<'a> {
    schema: Schema,
    structs: &'a [TypeId],
    string: TypeRef,
    numeric: TypeRef,
    boolean: TypeRef,
    untyped: TypeRef,
    /// Any value, replaced as a whole.
    atomic: TypeRef,
}

impl Builder<'_> {
    fn field(&mut self, field: &'static TableField) -> Field {
        Field {
            name: field.name.into(),
            ty: self.shape(field.shape, field.topology),
            default: field.openapi_default().and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    fn shape(&mut self, shape: Shape, topology: Topology) -> TypeRef {
        match shape {
            Shape::Bool => self.boolean,
            Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64 => self.numeric,
            Shape::String(_) | Shape::Bytes | Shape::Duration => self.string,
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString => self.untyped,
            Shape::RawExtension => self.atomic,
            Shape::FieldsV1 | Shape::Json | Shape::SchemaOr(..) => Schema::deduced(),
            Shape::Struct(ty) => {
                let found = place(ty).and_then(|at| self.structs.get(at)).copied();
                let ty = found.map_or(Schema::deduced(), TypeRef::from);
                match topology {
                    Topology::Atomic => ty.with(Relationship::Atomic),
                    Topology::Granular => ty.with(Relationship::Granular),
                    Topology::Default | Topology::Set | Topology::Map(_) => ty,
                }
            }
            Shape::List(items) => {
                let element = self.shape(*items, Topology::Default);
                let (relationship, keys) = match topology {
                    Topology::Set => (Relationship::Granular, &[][..]),
                    Topology::Map(keys) => (Relationship::Granular, keys),
                    Topology::Default | Topology::Atomic | Topology::Granular => {
                        (Relationship::Atomic, &[][..])
                    }
                };
                let keys = keys.iter().map(|key| (*key).into()).collect();
                self.schema.add(Atom::list(List { element, relationship, keys })).into()
            }
            Shape::Map(values) => {
                let element = Some(self.shape(*values, Topology::Default));
                let relationship = match topology {
                    Topology::Atomic => Relationship::Atomic,
                    _ => Relationship::Granular,
                };
                self.schema.add(Atom::map(Map { fields: Vec::new(), element, relationship })).into()
            }
        }
    }
}

fn place(ty: &Type) -> Option<usize> {
    catalog::types().binary_search_by(|other| other.name.cmp(ty.name)).ok()
}

/// The schema of all built-in types.
#[must_use]
pub fn schema() -> &'static Schema {
    &TYPES.schema
}

/// A type of the table in [`schema`].
#[must_use]
pub fn type_ref(ty: &'static Type) -> TypeRef {
    let found = place(ty).and_then(|at| TYPES.structs.get(at)).copied();
    found.map_or(Schema::deduced(), TypeRef::from)
}

/// The fields that a write of an object, or of one of its subresources, resets: nobody can own them by it. `None`: it resets
/// nothing.
#[must_use]
pub fn reset_fields(group: &str, kind: &str, has_status: bool, subresource: &str) -> Option<Filter> {
    let paths: &[&[&str]] = match (group, kind, subresource) {
        ("certificates.k8s.io", "CertificateSigningRequest", "") => &[&["spec"], &["status"]],
        ("certificates.k8s.io", "CertificateSigningRequest", "status") => {
            &[&["spec"], &["status", "conditions"]]
        }
        ("certificates.k8s.io", "CertificateSigningRequest", "approval") => {
            &[&["spec"], &["status", "certificate"]]
        }
        ("", "Pod", "status") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("apps", "Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
        (
            "admissionregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storagemigration.k8s.io"
            | "apiregistration.k8s.io",
            _,
            "status",
        )
        | ("networking.k8s.io", "ServiceCIDR", "status")
        | ("certificates.k8s.io", "PodCertificateRequest", "status")
        | ("storage.k8s.io", "VolumeAttachment" | "CSINode", "status") => &[&["spec"], &["metadata"]],
        (_, _, "status") => &[&["spec"]],
        ("", "Namespace", "finalize") => &[&["status"]],
        (_, _, "") if has_status => &[&["status"]],
        _ => return None,
    };
    let set: FieldSet = paths.iter().map(|path| Path::fields(path.iter().copied())).collect();
    Some(Filter::Exclude(set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_apply::typed::Typed;
    use serde_json::json;

    #[test]
    fn lists_are_merged_by_the_keys_of_the_table() {
        let pod = crate::find_kind("", "v1", "Pod").unwrap();
        let value = json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}], "args": ["x"]}],
            "nodeSelector": {"k": "v"}, "tolerations": [{"key": "t"}]}, "metadata": {"labels": {"a": "b"}, "finalizers": ["f"]}});
        let typed = Typed::new(&value, schema(), type_ref(pod.ty), "v1");
        assert_eq!(
            typed.field_set().to_fields_v1(),
            json!({"f:metadata": {"f:finalizers": {"v:\"f\"": {}}, "f:labels": {"f:a": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:args": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                    "f:nodeSelector": {}, "f:tolerations": {}}})
        );
    }

    #[test]
    fn every_type_of_the_table_is_in_the_schema() {
        for ty in catalog::types() {
            let atom = schema().atom(type_ref(ty)).unwrap();
            assert_eq!(atom.map.as_ref().map(|map| map.fields.len()), Some(ty.fields.len()), "{}", ty.name);
        }
    }
}
