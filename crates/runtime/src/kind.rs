//! Kinds of objects: typed, dynamic, or metadata only.

use std::{any::TypeId, convert::Infallible, fmt, hash::Hash, str::FromStr};

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{
    Resource,
    api::{ApiResource, PartialObjectMeta},
    core::GroupVersionKind,
    discovery::Scope,
};
use serde::{Serialize, de::DeserializeOwned};

/// An object that the runtime can read, write and watch: the types of `k8s-openapi`, of `#[derive(CustomResource)]`,
/// `DynamicObject`, `PartialObjectMeta`. Implemented for all of them.
///
/// Reads return an `Arc`, which is not an object itself:
///
/// ```compile_fail,E0277
/// # async fn example(client: k1s_runtime::Client, key: k1s_runtime::ObjectKey) -> Result<(), k1s_runtime::BoxError> {
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// let map = client.get::<ConfigMap>(&key).await?;
/// client.update(&map).await?; // `&*map`; and `let mut map = (*map).clone()` before it is changed
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    label = "not an object",
    note = "reads return an `Arc` that is shared with the cache: `&*object` is the object in it; to change it, clone it first: `let mut object = (*object).clone()`",
    note = "objects are the types of `k8s-openapi`, those of `#[derive(CustomResource)]`, `DynamicObject` and `PartialObjectMeta`; your own type has to implement `kube::Resource`, `Clone`, `Debug`, `Serialize` and `DeserializeOwned`"
)]
pub trait Object:
    Resource<DynamicType: Clone + Eq + Hash + fmt::Debug, Scope: 'static>
    + Clone
    + fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

#[diagnostic::do_not_recommend]
impl<K> Object for K where
    K: Resource<DynamicType: Clone + Eq + Hash + fmt::Debug, Scope: 'static>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// An object whose kind is known at compile time. Implemented for all of them; not for `DynamicObject`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object with a static kind",
    label = "not such an object",
    note = "reads return an `Arc` that is shared with the cache: `&*object` is the object in it; to change it, clone it first: `let mut object = (*object).clone()`",
    note = "for a `DynamicObject`, whose kind is known at run time only, use `client.kind(kind)`"
)]
pub trait TypedObject: Object<DynamicType: Default> {}

#[diagnostic::do_not_recommend]
impl<K> TypedObject for K where K: Object<DynamicType: Default> {}

/// The form in which objects are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Whole objects.
    Full,
    /// Metadata only: less to transfer, decode and store.
    Metadata,
}

/// A kind of object, and the form in which it is requested. Created by [`kind`], [`metadata`] and [`Kind::dynamic`].
pub struct Kind<K: Resource> {
    dynamic_type: K::DynamicType,
    resource: ApiResource,
    form: Form,
}

/// The kind `K`.
#[must_use]
pub fn kind<K: Object<DynamicType: Default>>() -> Kind<K> {
    Kind::dynamic(K::DynamicType::default())
}

/// The metadata of objects of kind `K`.
#[must_use]
pub fn metadata<K: Object<DynamicType: Default>>() -> Kind<PartialObjectMeta<K>> {
    Kind::new(K::DynamicType::default(), Form::Metadata)
}

impl<K: Object> Kind<K> {
    /// A kind known at run time only, of `DynamicObject` for example.
    #[must_use]
    pub fn dynamic(dynamic_type: K::DynamicType) -> Kind<K> {
        Kind::new(dynamic_type, if K::metadata_api() { Form::Metadata } else { Form::Full })
    }

    fn new(dynamic_type: K::DynamicType, form: Form) -> Kind<K> {
        let resource = ApiResource {
            group: K::group(&dynamic_type).into_owned(),
            version: K::version(&dynamic_type).into_owned(),
            api_version: K::api_version(&dynamic_type).into_owned(),
            kind: K::kind(&dynamic_type).into_owned(),
            plural: K::plural(&dynamic_type).into_owned(),
        };
        Kind { dynamic_type, resource, form }
    }

    /// The metadata of this kind's objects.
    #[must_use]
    pub fn metadata(self) -> Kind<PartialObjectMeta<K>>
    where
        PartialObjectMeta<K>: Object<DynamicType = K::DynamicType>,
    {
        Kind { dynamic_type: self.dynamic_type, resource: self.resource, form: Form::Metadata }
    }
}

impl<K: Resource> Kind<K> {
    /// The dynamic type of `kube`: `()` for types with a static kind.
    #[must_use]
    pub fn dynamic_type(&self) -> &K::DynamicType {
        &self.dynamic_type
    }

    /// Group, version, kind and plural.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The form in which objects are requested.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether its objects are cluster-scoped. `false` for kinds known at run time only, whose scope is unknown.
    #[must_use]
    pub fn is_cluster_scoped(&self) -> bool
    where
        K::Scope: 'static,
    {
        TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
    }

    pub(crate) fn group_version_kind(&self) -> GroupVersionKind {
        let ApiResource { group, version, kind, .. } = &self.resource;
        GroupVersionKind::gvk(group, version, kind)
    }

    /// Group and kind, of any version.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.resource.group.clone(), kind: self.resource.kind.clone() }
    }

    /// The path of the collection in a namespace, or in the whole cluster.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        K::url_path(&self.dynamic_type, namespace)
    }
}

/// The scope of a type. `None` for kinds known at run time only, whose scope is in discovery.
pub(crate) fn static_scope<K: Resource<Scope: 'static>>() -> Option<Scope> {
    let scope = TypeId::of::<K::Scope>();
    if scope == TypeId::of::<NamespaceResourceScope>() {
        Some(Scope::Namespaced)
    } else if scope == TypeId::of::<ClusterResourceScope>() {
        Some(Scope::Cluster)
    } else {
        None
    }
}

/// A group and a kind, of any version. Written `Deployment.apps`, `Pod`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
}

impl GroupKind {
    /// The group and kind of a type.
    #[must_use]
    pub fn of<K: Object<DynamicType: Default>>() -> GroupKind {
        kind::<K>().group_kind()
    }

    /// Whether a resource is of this kind.
    #[must_use]
    pub fn is(&self, resource: &ApiResource) -> bool {
        self.group == resource.group && self.kind == resource.kind
    }
}

impl FromStr for GroupKind {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<GroupKind, Infallible> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Ok(GroupKind { group: group.to_owned(), kind: kind.to_owned() })
    }
}

impl From<&str> for GroupKind {
    fn from(text: &str) -> GroupKind {
        match text.parse() {
            Ok(kind) => kind,
            Err(never) => match never {},
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl<K: Resource<DynamicType: Clone>> Clone for Kind<K> {
    fn clone(&self) -> Kind<K> {
        Kind { dynamic_type: self.dynamic_type.clone(), resource: self.resource.clone(), form: self.form }
    }
}

/// `Deployment.apps`, `Pod`.
impl<K: Resource> fmt::Display for Kind<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource.kind)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        Ok(())
    }
}

impl<K: Resource> fmt::Debug for Kind<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self}, {:?})", self.form)
    }
}
