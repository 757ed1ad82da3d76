//! The generated table: types with their fields, and the served kinds.
//!
//! All of it is `'static` data in the read-only section: it takes no startup time and no heap.

/// A Go struct of the Kubernetes API with its JSON and protobuf encodings.
#[derive(Debug)]
pub struct Type {
    /// The name in `OpenAPI`: `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// The name in error messages of Go: `v1.Pod`.
    pub go: &'static str,
    /// Whether server-side apply replaces it as a whole (`x-kubernetes-map-type: atomic` on the type).
    pub atomic: bool,
    /// The fields, sorted by JSON name; inlined structs are expanded.
    pub fields: &'static [Field],
}

impl Type {
    /// The field with this JSON name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let found = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        self.fields.get(found)
    }
}

/// A field of a [`Type`].
#[derive(Debug)]
pub struct Field {
    /// The JSON name.
    pub name: &'static str,
    /// The Go struct that declares it, if inlined from another one (`VolumeSource`), for Go's error messages.
    pub declared_in: &'static str,
    /// Its Go type without the pointer, as in Go's error messages: `[]v1.Container`, `v1.ResourceList`.
    pub go: &'static str,
    /// Its type.
    pub shape: Shape,
    /// Whether Go holds a pointer: explicit zero values are kept.
    pub pointer: bool,
    /// When the encoder omits it.
    pub omit: Omit,
    /// Whether `OpenAPI` lists it as required.
    pub required: bool,
    /// Its protobuf encoding; types that are JSON only (parts of CRD schemas) have none.
    pub proto: Option<Proto>,
    /// How strategic merge patch treats it.
    pub merge: Merge,
    /// How server-side apply treats it.
    pub topology: Topology,
    /// The declared default as JSON; empty if there is none.
    pub default: &'static str,
    /// The values that its type declares, sorted; of a list or a map, those of its items. Empty for types that are no
    /// enumeration. They are for readers of `OpenAPI`; the rules decide what is valid.
    pub values: &'static [&'static str],
}

impl Field {
    /// The default in `OpenAPI` as JSON: the declared one, or the zero value of a field that Go always encodes.
    #[must_use]
    pub fn openapi_default(&self) -> Option<&'static str> {
        if !self.default.is_empty() {
            return Some(self.default);
        }
        match self.shape {
            _ if self.pointer => None,
            Shape::Struct(_) => Some("{}"),
            _ if self.omit != Omit::Never => None,
            Shape::Bool => Some("false"),
            Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64 => Some("0"),
            Shape::String(_) => Some("\"\""),
            _ => None,
        }
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// `bool`
    Bool,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`, `uint16` and the like, by Go name and maximum
    Uint(&'static str, u64),
    /// `float64`
    Float64,
    /// A string; with the Go name of its type if it has one (`v1.RestartPolicy`), else `string`.
    String(&'static str),
    /// Bytes, base64 in JSON.
    Bytes,
    /// `metav1.Time`
    Time,
    /// `metav1.MicroTime`
    MicroTime,
    /// `metav1.Duration`
    Duration,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrString,
    /// `runtime.RawExtension`: any object.
    RawExtension,
    /// `metav1.FieldsV1`: any object.
    FieldsV1,
    /// Any JSON (`apiextensionsv1.JSON`, CRD schemas' `default`, `example`, `enum` items).
    Json,
    /// `JSONSchemaPropsOrBool`, `JSONSchemaPropsOrArray`, `JSONSchemaPropsOrStringArray`: a struct, or the
    /// alternative.
    SchemaOr(&'static Type, SchemaOther),
    /// A struct.
    Struct(&'static Type),
    /// A list.
    List(&'static Shape),
    /// A map with string keys.
    Map(&'static Shape),
}

/// The alternative to a schema in a field of a JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaOther {
    /// `true` or `false`
    Bool,
    /// A list of schemas
    Array,
    /// A list of strings
    StringArray,
}

/// When Go's encoder omits a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omit {
    /// Never: zero values are encoded (`null`, `{}`, `""`, `0`, `false`).
    Never,
    /// `omitempty`: nil pointers, empty strings, lists and maps, 0 and false; never a struct by value.
    Empty,
    /// `omitzero`: also zero structs.
    Zero,
}

/// The protobuf encoding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proto {
    /// The field number.
    pub number: u32,
    /// The wire type of a single value (`Bytes` for a map).
    pub wire: Wire,
    /// The field numbers that lead to it: an inlined struct is a message of its own. A field of `VolumeSource`
    /// is in field 2 of `Volume`, so this is `[2]`; outermost first.
    pub within: &'static [u32],
    /// Whether a list is not repeated, but a message with the repeated field 1 (`v1.Verbs`). A list that is the
    /// value of a map always is.
    pub wrapped: bool,
}

/// Protobuf's wire types as Kubernetes uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Variable length integers and bools.
    Varint,
    /// Doubles.
    Fixed64,
    /// Strings, bytes and messages.
    Bytes,
}

/// How strategic merge patch treats a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// `patchStrategy` contains `merge`.
    pub merge: bool,
    /// `patchStrategy` contains `retainKeys`.
    pub retain_keys: bool,
    /// `patchStrategy` contains `replace`.
    pub replace: bool,
    /// `patchMergeKey`; empty for lists of scalars.
    pub key: &'static str,
}

/// How server-side apply treats a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// The default of its shape: lists are atomic, maps and structs granular.
    Default,
    /// Replaced as a whole.
    Atomic,
    /// A list whose items are a set.
    Set,
    /// A list of objects identified by these keys.
    Map(&'static [&'static str]),
    /// A map or struct that is granular although its type is atomic.
    Granular,
}

/// An API group.
#[derive(Debug)]
pub struct Group {
    /// Its name, empty for the core group.
    pub name: &'static str,
    /// Its versions in the order of discovery; the first one is preferred.
    pub versions: &'static [&'static str],
}

/// A kind that is served at `/apis/{group}/{version}`.
#[derive(Debug)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Both as in objects: `apps/v1`, and `v1` for the core group.
    pub api_version: &'static str,
    /// `Deployment`
    pub kind: &'static str,
    /// `DeploymentList`
    pub list_kind: &'static str,
    /// `deployments`
    pub plural: &'static str,
    /// `deployment`
    pub singular: &'static str,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// `deploy`
    pub short_names: &'static [&'static str],
    /// `all`
    pub categories: &'static [&'static str],
    /// The verbs in the order of discovery.
    pub verbs: &'static [&'static str],
    /// The subresources in the order of discovery.
    pub subresources: &'static [Subresource],
    /// The storage version hash in discovery; empty for kinds that are not stored.
    pub storage_hash: &'static str,
    /// Its type.
    pub ty: &'static Type,
    /// The type of its list, if it can be listed.
    pub list_ty: Option<&'static Type>,
    /// Whether an immediate deletion responds with the object instead of a Status.
    pub returns_deleted: bool,
}

impl Kind {
    /// The subresource with this name.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether discovery lists this verb.
    #[must_use]
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

/// A subresource of a [`Kind`].
#[derive(Debug)]
pub struct Subresource {
    /// `scale`
    pub name: &'static str,
    /// The group of its kind, empty for the core group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// `Scale`
    pub kind: &'static str,
    /// The verbs in the order of discovery.
    pub verbs: &'static [&'static str],
    /// The type of its body (for `proxy`, `exec` and the like: of its options); that of the parent for `status`.
    pub ty: Option<&'static Type>,
}
