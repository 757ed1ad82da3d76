//! Owner references: the owners and the controller of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, core::DynamicObject};
use serde_json::{Value, json};

use crate::{Kind, Object, ObjectKey, client::ApplyConfiguration};

/// An owner: the content of a reference to it, and its namespace. Made from `&object` for types with a static kind, and by
/// [`Owner::of_kind`] for others.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    reference: OwnerReference,
    namespace: Option<String>,
}

impl Owner {
    /// An owner whose kind is known only at run time.
    #[must_use]
    pub fn of_kind<K: Object>(kind: &Kind<K>, object: &K) -> Owner {
        Owner::new(kind.dynamic_type(), object)
    }

    fn new<K: Resource>(dynamic_type: &K::DynamicType, object: &K) -> Owner {
        let meta = object.meta();
        Owner {
            reference: OwnerReference {
                api_version: K::api_version(dynamic_type).into_owned(),
                kind: K::kind(dynamic_type).into_owned(),
                name: meta.name.clone().unwrap_or_default(),
                uid: meta.uid.clone().unwrap_or_default(),
                ..OwnerReference::default()
            },
            namespace: meta.namespace.clone(),
        }
    }

    /// Whether a foreground deletion of the owner waits until the owned object is gone. By default, controller references
    /// block and others do not.
    #[must_use]
    pub fn block_owner_deletion(mut self, block: bool) -> Owner {
        self.reference.block_owner_deletion = Some(block);
        self
    }
}

impl<K: Resource<DynamicType: Default>> From<&K> for Owner {
    fn from(object: &K) -> Owner {
        Owner::new(&K::DynamicType::default(), object)
    }
}

/// Why an object cannot be owned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another object controls it.
    #[error("{object} is already controlled by {} {:?} ({})", owner.kind, owner.name, owner.api_version)]
    AlreadyOwned {
        /// The object.
        object: ObjectKey,
        /// Its controller.
        owner: Box<OwnerReference>,
    },
    /// A cluster-scoped object cannot be owned by a namespaced one.
    #[error("{object} is not in a namespace, so {owner} in namespace {namespace:?} cannot own it")]
    ClusterScoped {
        /// The object.
        object: ObjectKey,
        /// The would-be owner.
        owner: String,
        /// Its namespace.
        namespace: String,
    },
    /// Owner and owned are in different namespaces.
    #[error("{object} cannot be owned by {owner} in another namespace ({namespace:?})")]
    CrossNamespace {
        /// The object.
        object: ObjectKey,
        /// The would-be owner.
        owner: String,
        /// Its namespace.
        namespace: String,
    },
    /// The owner has no uid: it was not received from a server.
    #[error(
        "{owner} has no uid, so it cannot own {object}: create it first, and use the object that the server returns"
    )]
    NoUid {
        /// The object.
        object: ObjectKey,
        /// The would-be owner.
        owner: String,
    },
    /// The object has no such reference.
    #[error("{object} has no owner reference to {owner}")]
    NotOwned {
        /// The object.
        object: ObjectKey,
        /// The object that is not its owner.
        owner: String,
    },
    /// The reference exists, but is not a controller reference.
    #[error("{owner} owns {object}, but does not control it")]
    NotController {
        /// The object.
        object: ObjectKey,
        /// The owner.
        owner: String,
    },
}

/// Makes `owner` the controller of the object in memory, so that it is deleted with it and watched for it.
///
/// # Errors
/// If the object has another controller, or the owner's scope does not allow it.
pub fn set_controller_reference<C: Resource>(
    owner: impl Into<Owner>,
    object: &mut C,
) -> Result<(), OwnerError> {
    let Owner { mut reference, namespace } = owner.into();
    check(&reference, namespace, object)?;
    reference.controller = Some(true);
    reference.block_owner_deletion = reference.block_owner_deletion.or(Some(true));
    if let Some(other) = controller_of(object).filter(|known| !same_object(known, &reference)) {
        let owner = Box::new(other.clone());
        return Err(OwnerError::AlreadyOwned { object: ObjectKey::of(object), owner });
    }
    upsert(reference, object);
    Ok(())
}

impl<K: Object> ApplyConfiguration<K> {
    /// Makes `owner` the controller, as [`set_controller_reference`] does for objects. The server rejects a second
    /// controller.
    ///
    /// # Errors
    /// If the configuration has another controller, or the owner's scope does not allow it.
    pub fn controlled_by(self, owner: impl Into<Owner>) -> Result<ApplyConfiguration<K>, OwnerError> {
        let key = self.key();
        let references = self.get("/metadata/ownerReferences").cloned().unwrap_or_default();
        let mut object = DynamicObject {
            types: None,
            metadata: ObjectMeta {
                name: Some(key.name().to_owned()),
                namespace: key.namespace().map(str::to_owned),
                owner_references: serde_json::from_value(references).ok(),
                ..ObjectMeta::default()
            },
            data: Value::Null,
        };
        set_controller_reference(owner, &mut object)?;
        Ok(self.with(json!({"metadata": {"ownerReferences": object.metadata.owner_references}})))
    }
}

/// Makes `owner` an owner of the object in memory, which is deleted with its last owner. An existing reference to the
/// same owner is replaced.
///
/// # Errors
/// If the owner's scope does not allow it.
pub fn set_owner_reference<C: Resource>(owner: impl Into<Owner>, object: &mut C) -> Result<(), OwnerError> {
    let Owner { reference, namespace } = owner.into();
    check(&reference, namespace, object)?;
    upsert(reference, object);
    Ok(())
}

/// Whether the object has a reference to this owner, compared by group, kind and name.
pub fn has_owner_reference<C: Resource>(owner: impl Into<Owner>, object: &C) -> bool {
    position(&owner.into().reference, object).is_some()
}

/// Whether the object has a controller.
pub fn has_controller_reference<C: Resource>(object: &C) -> bool {
    controller_of(object).is_some()
}

/// The object's controller, if it has one.
pub fn controller_of<C: Resource>(object: &C) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// Removes the reference to this owner from the object in memory.
///
/// # Errors
/// If there is none.
pub fn remove_owner_reference<C: Resource>(
    owner: impl Into<Owner>,
    object: &mut C,
) -> Result<(), OwnerError> {
    let reference = owner.into().reference;
    match position(&reference, object) {
        Some(at) => remove(at, object),
        None => return Err(OwnerError::NotOwned { object: ObjectKey::of(object), owner: named(&reference) }),
    }
    Ok(())
}

/// Removes the reference to this controller from the object in memory.
///
/// # Errors
/// If there is none, or it is not a controller reference.
pub fn remove_controller_reference<C: Resource>(
    owner: impl Into<Owner>,
    object: &mut C,
) -> Result<(), OwnerError> {
    let reference = owner.into().reference;
    let Some(at) = position(&reference, object) else {
        return Err(OwnerError::NotOwned { object: ObjectKey::of(object), owner: named(&reference) });
    };
    let known = object.meta().owner_references.as_deref().and_then(|all| all.get(at));
    if known.is_none_or(|known| known.controller != Some(true)) {
        return Err(OwnerError::NotController { object: ObjectKey::of(object), owner: named(&reference) });
    }
    remove(at, object);
    Ok(())
}

fn check<C: Resource>(
    reference: &OwnerReference,
    namespace: Option<String>,
    object: &C,
) -> Result<(), OwnerError> {
    let key = ObjectKey::of(object);
    let owner = || named(reference);
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        match key.namespace() {
            None => return Err(OwnerError::ClusterScoped { object: key, owner: owner(), namespace }),
            Some(own) if own != namespace => {
                return Err(OwnerError::CrossNamespace { object: key, owner: owner(), namespace });
            }
            Some(_) => {}
        }
    }
    if reference.uid.is_empty() {
        return Err(OwnerError::NoUid { object: key, owner: owner() });
    }
    Ok(())
}

fn named(reference: &OwnerReference) -> String {
    format!("{} {:?}", reference.kind, reference.name)
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Ignores the version: versions of a group are views of the same object.
fn same_object(a: &OwnerReference, b: &OwnerReference) -> bool {
    group(&a.api_version) == group(&b.api_version) && a.kind == b.kind && a.name == b.name
}

fn position<C: Resource>(reference: &OwnerReference, object: &C) -> Option<usize> {
    object.meta().owner_references.iter().flatten().position(|known| same_object(known, reference))
}

fn upsert<C: Resource>(reference: OwnerReference, object: &mut C) {
    let at = position(&reference, object);
    let all = object.meta_mut().owner_references.get_or_insert_default();
    match at.and_then(|at| all.get_mut(at)) {
        Some(known) => *known = reference,
        None => all.push(reference),
    }
}

fn remove<C: Resource>(at: usize, object: &mut C) {
    let references = &mut object.meta_mut().owner_references;
    if let Some(all) = references {
        all.remove(at);
        if all.is_empty() {
            *references = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace},
    };
    use kube::api::{ApiResource, GroupVersionKind};

    use super::*;

    fn deployment(name: &str, namespace: &str) -> Deployment {
        let meta = json!({"name": name, "namespace": namespace, "uid": format!("uid-{name}")});
        serde_json::from_value(json!({"metadata": meta})).expect("a deployment")
    }

    fn config_map(namespace: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": "c", "namespace": namespace}}))
            .expect("a config map")
    }

    #[test]
    fn a_controller_is_set_once() {
        let owner = deployment("web", "default");
        let mut child = config_map("default");
        set_controller_reference(&owner, &mut child).expect("owned");
        set_controller_reference(&owner, &mut child).expect("owned again");
        assert_eq!(
            child.metadata.owner_references,
            Some(vec![OwnerReference {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                name: "web".into(),
                uid: "uid-web".into(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }])
        );
        assert!(has_owner_reference(&owner, &child));
        assert_eq!(controller_of(&child).map(|owner| owner.uid.as_str()), Some("uid-web"));
    }

    #[test]
    fn a_second_controller_is_refused_and_the_first_is_named() {
        let mut child = config_map("default");
        set_controller_reference(&deployment("web", "default"), &mut child).expect("owned");
        let before = child.clone();
        let error = set_controller_reference(&deployment("api", "default"), &mut child).unwrap_err();
        assert_eq!(error.to_string(), r#"default/c is already controlled by Deployment "web" (apps/v1)"#);
        assert_eq!(child, before);
        // An owner that is not a controller is allowed.
        set_owner_reference(&deployment("api", "default"), &mut child).expect("owned");
        assert_eq!(child.metadata.owner_references.as_ref().map(Vec::len), Some(2));
    }

    #[test]
    fn a_recreated_owner_replaces_the_old_one() {
        let mut child = config_map("default");
        set_controller_reference(&deployment("web", "default"), &mut child).expect("owned");
        let mut anew = deployment("web", "default");
        anew.metadata.uid = Some("other".into());
        set_controller_reference(&anew, &mut child).expect("owned");
        let uids: Vec<_> = child.metadata.owner_references.iter().flatten().map(|owner| &owner.uid).collect();
        assert_eq!(uids, ["other"]);
    }

    #[test]
    fn an_owner_cannot_own_objects_outside_its_namespace() {
        let owner = deployment("web", "default");
        let error = set_controller_reference(&owner, &mut config_map("other")).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"other/c cannot be owned by Deployment "web" in another namespace ("default")"#
        );
        let mut namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": "n"}})).expect("one");
        let error = set_owner_reference(&owner, &mut namespace).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"n is not in a namespace, so Deployment "web" in namespace "default" cannot own it"#
        );
        namespace.metadata.uid = Some("u".into());
        set_controller_reference(&namespace, &mut config_map("other"))
            .expect("a cluster-scoped owner owns anything");
    }

    #[test]
    fn an_owner_without_a_uid_is_refused() {
        let mut owner = deployment("web", "default");
        owner.metadata.uid = None;
        let error = set_controller_reference(&owner, &mut config_map("default")).unwrap_err();
        assert!(error.to_string().starts_with(r#"Deployment "web" has no uid"#), "{error}");
    }

    #[test]
    fn references_are_removed_by_group_kind_and_name() {
        let owner = deployment("web", "default");
        let mut child = config_map("default");
        assert!(matches!(remove_owner_reference(&owner, &mut child), Err(OwnerError::NotOwned { .. })));
        set_owner_reference(Owner::from(&owner).block_owner_deletion(true), &mut child).expect("owned");
        assert_eq!(
            child.metadata.owner_references.iter().flatten().next().map(|o| o.block_owner_deletion),
            Some(Some(true))
        );
        assert!(matches!(
            remove_controller_reference(&owner, &mut child),
            Err(OwnerError::NotController { .. })
        ));
        child
            .metadata
            .owner_references
            .iter_mut()
            .flatten()
            .for_each(|o| o.api_version = "apps/v1beta1".into());
        remove_owner_reference(&owner, &mut child).expect("removed");
        assert_eq!(child, config_map("default"));
        set_controller_reference(&owner, &mut child).expect("owned");
        assert!(has_controller_reference(&child));
        remove_controller_reference(&owner, &mut child).expect("removed");
        assert_eq!(child, config_map("default"));
    }

    #[test]
    fn an_apply_configuration_is_owned_as_an_object_is() {
        let owner = deployment("web", "default");
        let child = || ApplyConfiguration::<ConfigMap>::new(&ObjectKey::namespaced("default", "c"));
        let owned = child().controlled_by(&owner).expect("owned").controlled_by(&owner).expect("owned again");
        assert_eq!(
            owned.get("/metadata/ownerReferences"),
            Some(&json!([{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": true,
                "blockOwnerDeletion": true,
            }]))
        );
        let error = owned.controlled_by(&deployment("api", "default")).unwrap_err();
        assert!(matches!(error, OwnerError::AlreadyOwned { .. }), "{error}");
        let error = child().controlled_by(&deployment("web", "other")).unwrap_err();
        assert!(matches!(error, OwnerError::CrossNamespace { .. }), "{error}");
    }

    #[test]
    fn a_dynamic_object_owns_by_its_kind() {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("a.dev", "v1", "Widget"));
        let mut owner = DynamicObject::new("w", &resource).within("default");
        owner.metadata.uid = Some("u".into());
        let mut child = config_map("default");
        let kind = Kind::dynamic(resource);
        set_controller_reference(Owner::of_kind(&kind, &owner), &mut child).expect("owned");
        let owner = controller_of(&child).expect("a controller");
        assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("a.dev/v1", "Widget"));
    }
}
