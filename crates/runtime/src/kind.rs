//! Which kind of object is meant, and in which form: typed, dynamic, or its metadata alone.

use std::{any::TypeId, fmt, hash::Hash};

use k8s_openapi::ClusterResourceScope;
use kube::{
    Resource,
    api::{ApiResource, PartialObjectMeta},
};
use serde::{Serialize, de::DeserializeOwned};

/// An object that the runtime can read, write and watch: the types of `k8s-openapi`, of `#[derive(CustomResource)]`,
/// `DynamicObject`, `PartialObjectMeta`. Implemented for all of them.
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

/// In which form objects are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Whole objects.
    Full,
    /// Metadata alone: less to send, to decode and to keep.
    Metadata,
}

/// A kind of object, and the form it is wanted in. Made by [`kind`], [`metadata`] and [`Kind::dynamic`].
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

/// The metadata of objects of kind `K`, and nothing else of them.
#[must_use]
pub fn metadata<K: Object<DynamicType: Default>>() -> Kind<PartialObjectMeta<K>> {
    Kind::new(K::DynamicType::default(), Form::Metadata)
}

impl<K: Object> Kind<K> {
    /// A kind that is known at run time only, of `DynamicObject` for example.
    #[must_use]
    pub fn dynamic(dynamic_type: K::DynamicType) -> Kind<K> {
        // `PartialObjectMeta<K>` says of itself what it is.
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

    /// The metadata of this kind's objects, and nothing else of them.
    #[must_use]
    pub fn metadata(self) -> Kind<PartialObjectMeta<K>>
    where
        PartialObjectMeta<K>: Object<DynamicType = K::DynamicType>,
    {
        Kind { dynamic_type: self.dynamic_type, resource: self.resource, form: Form::Metadata }
    }
}

impl<K: Resource> Kind<K> {
    /// What `kube` calls the dynamic type: `()` for types that know their kind.
    #[must_use]
    pub fn dynamic_type(&self) -> &K::DynamicType {
        &self.dynamic_type
    }

    /// Group, version, kind and plural.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The form that is asked for.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether its objects are in no namespace. Not known, and so `false`, for kinds that are known at run time only.
    #[must_use]
    pub fn is_cluster_scoped(&self) -> bool
    where
        K::Scope: 'static,
    {
        TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
    }

    /// The path of the collection: of a namespace, or of the whole cluster.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        K::url_path(&self.dynamic_type, namespace)
    }
}

impl<K: Resource<DynamicType: Clone>> Clone for Kind<K> {
    fn clone(&self) -> Kind<K> {
        Kind { dynamic_type: self.dynamic_type.clone(), resource: self.resource.clone(), form: self.form }
    }
}

/// As people name it: `Deployment.apps`, `Pod`.
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
