//! The schema of a custom resource for server-side apply.

use std::borrow::Cow;

use k1s_apply::schema::{Atom, Field, List, Map, Relationship, Scalar, Schema, TypeRef};

use crate::structural::{Additional, ListType, Structural, Type};

/// The schema of a version for server-side apply.
#[derive(Debug)]
pub struct ApplySchema {
    schema: Schema,
    root: TypeRef,
}

impl ApplySchema {
    pub(crate) fn new(structural: &Structural, preserve_unknown: bool) -> ApplySchema {
        let mut schema = Schema::new();
        let scalars = Scalars {
            string: schema.add(Atom::scalar(Scalar::String)).into(),
            numeric: schema.add(Atom::scalar(Scalar::Numeric)).into(),
            boolean: schema.add(Atom::scalar(Scalar::Boolean)).into(),
            untyped: schema.add(Atom::scalar(Scalar::Untyped)).into(),
        };
        let metadata = object_meta(&mut schema, &scalars);
        let mut builder = Builder { schema, scalars, metadata };
        let root = builder.resource(structural, preserve_unknown);
        ApplySchema { schema: builder.schema, root }
    }

    /// The types.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The type of an object.
    pub fn root(&self) -> TypeRef {
        self.root
    }
}

struct Scalars {
    string: TypeRef,
    numeric: TypeRef,
    boolean: TypeRef,
    untyped: TypeRef,
}

fn field(name: impl Into<Cow<'static, str>>, ty: TypeRef) -> Field {
    Field { name: name.into(), ty, default: None }
}

/// `ObjectMeta`, which has the same schema for all kinds.
fn object_meta(schema: &mut Schema, scalars: &Scalars) -> TypeRef {
    let Scalars { string, numeric, boolean, untyped } = *scalars;
    let granular = Relationship::Granular;
    let texts =
        schema.add(Atom::map(Map { fields: Vec::new(), element: Some(string), relationship: granular }));
    let owner = schema.reserve();
    let fields = ["apiVersion", "kind", "name", "uid"].map(|name| field(name, string));
    let flags = ["blockOwnerDeletion", "controller"].map(|name| field(name, boolean));
    let fields = fields.into_iter().chain(flags).map(|field| match &*field.name {
        "apiVersion" | "kind" | "name" | "uid" => Field { default: Some("".into()), ..field },
        _ => field,
    });
    let owner_map = Map { fields: fields.collect(), element: None, relationship: Relationship::Atomic };
    schema.set(owner, Atom::map(owner_map));
    let owners = List { element: owner.into(), relationship: granular, keys: vec!["uid".into()] };
    let owners = schema.add(Atom::list(owners));
    let set = schema.add(Atom::list(List { element: string, relationship: granular, keys: Vec::new() }));
    let managed = List { element: Schema::deduced(), relationship: Relationship::Atomic, keys: Vec::new() };
    let managed = schema.add(Atom::list(managed));
    let metadata = schema.reserve();
    let fields = vec![
        field("annotations", texts.into()),
        field("creationTimestamp", untyped),
        field("deletionGracePeriodSeconds", numeric),
        field("deletionTimestamp", untyped),
        field("finalizers", set.into()),
        field("generateName", string),
        field("generation", numeric),
        field("labels", texts.into()),
        field("managedFields", managed.into()),
        field("name", string),
        field("namespace", string),
        field("ownerReferences", owners.into()),
        field("resourceVersion", string),
        field("selfLink", string),
        field("uid", string),
    ];
    schema.set(metadata, Atom::map(Map { fields, element: None, relationship: granular }));
    metadata.into()
}

struct Builder {
    schema: Schema,
    scalars: Scalars,
    metadata: TypeRef,
}

impl Builder {
    /// A schema of a whole object, which also has a type and metadata.
    fn resource(&mut self, structural: &Structural, preserve: bool) -> TypeRef {
        let preserve = preserve || structural.preserves_unknown_fields();
        let mut map = self.map(structural, preserve);
        map.fields.retain(|field| !matches!(&*field.name, "apiVersion" | "kind" | "metadata"));
        map.fields.push(field("apiVersion", self.scalars.string));
        map.fields.push(field("kind", self.scalars.string));
        map.fields.push(field("metadata", self.metadata));
        let id = self.schema.reserve();
        self.schema.set(id, Atom::map(map));
        id.into()
    }

    /// `preserve`: an outer schema preserves unknown fields.
    fn ty(&mut self, structural: &Structural, preserve: bool) -> TypeRef {
        let preserve = preserve || structural.preserves_unknown_fields();
        if structural.is_embedded_resource() {
            return self.resource(structural, preserve);
        }
        match structural.kind() {
            Type::String => match structural.has_text_format() {
                true => self.scalars.untyped,
                false => self.scalars.string,
            },
            Type::Number | Type::Integer => self.scalars.numeric,
            Type::Boolean => self.scalars.boolean,
            Type::Array => {
                let list = self.list(structural, preserve);
                self.schema.add(Atom::list(list)).into()
            }
            Type::Object => {
                let map = self.map(structural, preserve);
                self.schema.add(Atom::map(map)).into()
            }
            Type::Any => {
                let (list, map) = (self.list(structural, preserve), self.map(structural, preserve));
                self.schema
                    .add(Atom { scalar: Some(Scalar::Untyped), list: Some(list), map: Some(map) })
                    .into()
            }
        }
    }

    fn list(&mut self, structural: &Structural, preserve: bool) -> List {
        let element = match structural.items() {
            Some(items) => self.ty(items, preserve),
            None => self.schema.atomic(),
        };
        let relationship = match structural.list_type() {
            Some(ListType::Set | ListType::Map) => Relationship::Granular,
            Some(ListType::Atomic) | None => Relationship::Atomic,
        };
        let keys = match structural.list_type() {
            Some(ListType::Map) => structural.list_map_keys().map(|key| key.to_owned().into()).collect(),
            _ => Vec::new(),
        };
        List { element, relationship, keys }
    }

    fn map(&mut self, structural: &Structural, preserve: bool) -> Map {
        let fields: Vec<Field> = structural
            .properties()
            .map(|(name, property)| Field {
                name: name.to_owned().into(),
                ty: self.ty(property, preserve),
                default: property.default_value().cloned(),
            })
            .collect();
        let element = match structural.additional() {
            Additional::Schema(schema) => Some(self.ty(schema, preserve)),
            Additional::Bool(true) => Some(Schema::deduced()),
            Additional::Bool(false) => None,
            // An object without properties may have any.
            Additional::Unsaid => (preserve || fields.is_empty()).then_some(Schema::deduced()),
        };
        let relationship =
            if structural.is_atomic_map() { Relationship::Atomic } else { Relationship::Granular };
        Map { fields, element, relationship }
    }
}
