//! Descriptions of metadata fields. The table of kinds has none; these are written by hand, because every kind
//! has these fields, custom ones included.

/// The description of a field of a type of `meta/v1`.
pub(super) fn of(ty: &str, field: &str) -> Option<&'static str> {
    let fields = match ty {
        "ObjectMeta" => OBJECT_META,
        "OwnerReference" => OWNER_REFERENCE,
        "ManagedFieldsEntry" => MANAGED_FIELDS_ENTRY,
        "ListMeta" => LIST_META,
        _ => return None,
    };
    fields.iter().find(|(name, _)| *name == field).map(|(_, text)| *text)
}

type Descriptions = &'static [(&'static str, &'static str)];

const OBJECT_META: Descriptions = &[
    (
        "annotations",
        "Annotations is a map of arbitrary metadata that tools and controllers store with the object. They are not queryable.",
    ),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp of when the server created the object. Clients cannot set it.",
    ),
    (
        "deletionGracePeriodSeconds",
        "Number of seconds the object has to terminate gracefully before it is deleted. Set by the server with deletionTimestamp.",
    ),
    (
        "deletionTimestamp",
        "The time at which the object will be deleted. Set by the server when the deletion has to wait for finalizers or the grace period.",
    ),
    (
        "finalizers",
        "Must be empty before the object is removed. Each entry identifies a component that removes the entry when its cleanup is done.",
    ),
    ("generateName", "A prefix from which the server generates a unique name if name is empty."),
    ("generation", "A sequence number of the desired state. Set by the server."),
    ("labels", "Labels is a map of short keys and values that selectors match."),
    ("managedFields", "The fields that each manager has set, maintained by the server."),
    ("name", "The name of the object, unique for its kind within its namespace. It cannot be changed."),
    ("namespace", "The namespace of the object; cluster-scoped objects have none. It cannot be changed."),
    (
        "ownerReferences",
        "The objects that this object depends on. When all of them have been deleted, it is garbage collected.",
    ),
    (
        "resourceVersion",
        "An opaque value for the internal version of the object. An update with an older one fails with a conflict. Compare it for equality only.",
    ),
    ("selfLink", "No longer set by servers."),
    ("uid", "Distinguishes the object from all others that have or had the same name. Set by the server."),
];

const OWNER_REFERENCE: Descriptions = &[
    ("apiVersion", "The API version of the owner."),
    ("blockOwnerDeletion", "Whether a foreground deletion of the owner waits for this object."),
    ("controller", "Whether the owner is the managing controller. At most one reference can be."),
    ("kind", "The kind of the owner."),
    ("name", "The name of the owner."),
    ("uid", "The uid of the owner."),
];

const MANAGED_FIELDS_ENTRY: Descriptions = &[
    ("apiVersion", "The API version that the field names refer to."),
    ("fieldsType", "The format of the fields; FieldsV1 is the only one."),
    ("fieldsV1", "The fields, as a tree."),
    ("manager", "The name of the manager."),
    ("operation", "How the manager set them: Apply or Update."),
    ("subresource", "The subresource through which they were set."),
    ("time", "When the entry last changed."),
];

const LIST_META: Descriptions = &[
    ("continue", "The token for the next page of the list, if there are more items."),
    ("remainingItemCount", "The number of items on later pages, if known."),
    ("resourceVersion", "The version of the list: a watch from here delivers all later changes."),
    ("selfLink", "No longer set by servers."),
    ("shardInfo", "The shard that the list covers, if one was requested."),
];
