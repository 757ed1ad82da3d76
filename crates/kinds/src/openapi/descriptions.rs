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
        "Annotations are arbitrary texts by name that tools and controllers keep with the object. They cannot be selected on.",
    ),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp of when the server created the object. Clients cannot set it.",
    ),
    (
        "deletionGracePeriodSeconds",
        "How many seconds the object has to end by itself once it is being deleted. Set by the server with deletionTimestamp.",
    ),
    (
        "deletionTimestamp",
        "When the object is to be gone. Set by the server when somebody deletes an object that has to wait for finalizers or its grace period.",
    ),
    (
        "finalizers",
        "What has to happen before the object can go: each entry names a task and is removed by whoever has done it. While there are any, a deleted object stays.",
    ),
    ("generateName", "A prefix that the server makes a unique name of if name is empty."),
    ("generation", "Counts the changes of the desired state. Set by the server."),
    ("labels", "Labels are short values by name that objects are selected by."),
    ("managedFields", "Which manager set which fields, kept by the server."),
    ("name", "The name of the object, unique for its kind within its namespace. It cannot be changed."),
    ("namespace", "The namespace of the object; objects of the cluster have none. It cannot be changed."),
    (
        "ownerReferences",
        "The objects that this one belongs to. When all of them are gone, it is deleted, too.",
    ),
    (
        "resourceVersion",
        "The version of the object as the server counts them. An update that names an older one is refused. Compare it for equality only.",
    ),
    ("selfLink", "No longer set by servers."),
    ("uid", "Tells the object from every other that has or had the same name. Set by the server."),
];

const OWNER_REFERENCE: Descriptions = &[
    ("apiVersion", "The API version of the owner."),
    ("blockOwnerDeletion", "Whether the owner waits for this object when it is deleted in the foreground."),
    ("controller", "Whether the owner is the controller that manages this object. There can be one."),
    ("kind", "The kind of the owner."),
    ("name", "The name of the owner."),
    ("uid", "The uid of the owner."),
];

const MANAGED_FIELDS_ENTRY: Descriptions = &[
    ("apiVersion", "The API version that the fields are named in."),
    ("fieldsType", "The format of the fields; FieldsV1 is the only one."),
    ("fieldsV1", "The fields, as a tree."),
    ("manager", "The name of the manager."),
    ("operation", "How the manager set them: Apply or Update."),
    ("subresource", "The subresource through which they were set."),
    ("time", "When the entry last changed."),
];

const LIST_META: Descriptions = &[
    ("continue", "Where the next page of the list begins, if there are more items."),
    ("remainingItemCount", "How many items follow on later pages, if the server knows."),
    ("resourceVersion", "The version of the list: a watch from here tells what happens after it."),
    ("selfLink", "No longer set by servers."),
    ("shardInfo", "Which part of all objects the list is about, if a part was asked for."),
];
