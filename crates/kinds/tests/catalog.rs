//! Contents of the generated table, and lookups in it.

use std::collections::BTreeSet;

use k1s_kinds::{
    body, find, find_kind, groups, kinds,
    table::{Field, Omit, Shape, Topology, Type, Wire},
    type_by_name, types,
};

fn ty(name: &str) -> &'static Type {
    type_by_name(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn field(ty_name: &str, name: &str) -> &'static Field {
    ty(ty_name).field(name).unwrap_or_else(|| panic!("no field {name} in {ty_name}"))
}

#[test]
fn groups_come_in_discovery_order_with_their_versions() {
    let shown: Vec<String> =
        groups().iter().map(|group| format!("{} {}", group.name, group.versions.join(","))).collect();
    assert_eq!(
        shown,
        [
            " v1",
            "apiregistration.k8s.io v1",
            "apps v1",
            "events.k8s.io v1",
            "authentication.k8s.io v1",
            "authorization.k8s.io v1",
            "autoscaling v2,v1",
            "batch v1",
            "certificates.k8s.io v1",
            "networking.k8s.io v1",
            "policy v1",
            "rbac.authorization.k8s.io v1",
            "storage.k8s.io v1",
            "admissionregistration.k8s.io v1",
            "apiextensions.k8s.io v1",
            "scheduling.k8s.io v1",
            "coordination.k8s.io v1",
            "node.k8s.io v1",
            "discovery.k8s.io v1",
            "resource.k8s.io v1",
            "flowcontrol.apiserver.k8s.io v1",
            "storagemigration.k8s.io v1",
        ]
    );
}

#[test]
fn every_kind_is_found_by_its_plural_and_by_its_name() {
    for kind in kinds() {
        let found = find(kind.group, kind.version, kind.plural).unwrap();
        assert!(std::ptr::eq(found, kind), "{}", kind.plural);
        let found = find_kind(kind.group, kind.version, kind.kind).unwrap();
        assert!(std::ptr::eq(found, kind), "{}", kind.kind);
    }
    for (group, version, plural) in
        [("", "v1", "deployments"), ("apps", "v2", "deployments"), ("nope", "v1", "pods"), ("", "", "")]
    {
        assert!(find(group, version, plural).is_none());
    }
}

#[test]
fn every_group_version_has_kinds_and_every_kind_a_group_version() {
    let shown: BTreeSet<(&str, &str)> = groups()
        .iter()
        .flat_map(|group| group.versions.iter().map(|version| (group.name, *version)))
        .collect();
    let served: BTreeSet<(&str, &str)> = kinds().iter().map(|kind| (kind.group, kind.version)).collect();
    assert_eq!(shown, served);
}

#[test]
fn every_type_that_a_field_or_kind_names_is_in_the_index() {
    fn check(shape: &Shape) {
        match shape {
            Shape::Struct(found) | Shape::SchemaOr(found, _) => assert!(std::ptr::eq(*found, ty(found.name))),
            Shape::List(item) | Shape::Map(item) => check(item),
            _ => {}
        }
    }
    for ty in types() {
        for field in ty.fields {
            check(&field.shape);
            assert!(std::ptr::eq(ty.field(field.name).unwrap(), field), "{} {}", ty.name, field.name);
        }
        assert!(ty.field("noSuchField").is_none());
    }
    for kind in kinds() {
        assert!(kind.ty.name.ends_with(&format!(".{}", kind.kind)));
        assert!(std::ptr::eq(kind.ty, ty(kind.ty.name)));
        assert!(kind.ty.field("metadata").is_some(), "{}", kind.kind);
        assert_eq!(kind.list_ty.is_some(), kind.verbs.contains(&"list"), "{}", kind.kind);
        for subresource in kind.subresources {
            assert!(subresource.ty.is_some(), "{}/{}", kind.plural, subresource.name);
        }
    }
}

#[test]
fn kinds_know_how_discovery_shows_them() {
    let deployment = find("apps", "v1", "deployments").unwrap();
    assert_eq!(
        (deployment.kind, deployment.singular, deployment.namespaced),
        ("Deployment", "deployment", true)
    );
    assert_eq!((deployment.short_names, deployment.categories), (&["deploy"][..], &["all"][..]));
    assert_eq!(
        deployment.verbs,
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    );
    assert_eq!((deployment.api_version, deployment.list_kind), ("apps/v1", "DeploymentList"));
    assert_eq!(find("", "v1", "pods").unwrap().api_version, "v1");
    assert!(deployment.can("watch") && deployment.subresource("log").is_none());
    assert_eq!(deployment.storage_hash, "8aSe+NMegvE=");
    let scale = &deployment.subresources[0];
    assert_eq!((scale.name, scale.group, scale.version, scale.kind), ("scale", "autoscaling", "v1", "Scale"));
    assert_eq!(deployment.subresources[1].name, "status");

    let hash = |group, version, plural| find(group, version, plural).unwrap().storage_hash;
    assert_eq!(hash("", "v1", "events"), hash("events.k8s.io", "v1", "events"));
    assert_eq!(hash("autoscaling", "v1", "horizontalpodautoscalers"), "qwQve8ut294=");
    assert_eq!(hash("autoscaling", "v2", "horizontalpodautoscalers"), "qwQve8ut294=");
    assert_eq!(hash("authorization.k8s.io", "v1", "subjectaccessreviews"), "");

    assert!(!find("", "v1", "namespaces").unwrap().verbs.contains(&"deletecollection"));
    assert_eq!(find("", "v1", "endpoints").unwrap().singular, "endpoints");
    assert!(find("", "v1", "pods").unwrap().returns_deleted);
    assert!(!find("", "v1", "configmaps").unwrap().returns_deleted);
    let eviction = find("", "v1", "pods").unwrap().subresource("eviction").unwrap();
    assert_eq!((eviction.group, eviction.version, eviction.kind), ("policy", "v1", "Eviction"));
}

#[test]
fn bodies_are_found_by_what_they_say_they_are() {
    for (group, version, kind, expected) in [
        ("", "v1", "Pod", "v1.Pod"),
        ("", "v1", "PodList", "v1.PodList"),
        ("apps", "v1", "DeploymentList", "v1.DeploymentList"),
        ("autoscaling", "v1", "Scale", "v1.Scale"),
        ("policy", "v1", "Eviction", "v1.Eviction"),
        ("authentication.k8s.io", "v1", "TokenRequest", "v1.TokenRequest"),
        ("", "v1", "DeleteOptions", "v1.DeleteOptions"),
        ("apps", "v1", "DeleteOptions", "v1.DeleteOptions"),
        ("meta.k8s.io", "v1", "DeleteOptions", "v1.DeleteOptions"),
        ("meta.k8s.io", "v1", "Table", "v1.Table"),
        ("", "v1", "List", "v1.List"),
        ("", "v1", "Status", "v1.Status"),
    ] {
        assert_eq!(body(group, version, kind).map(|ty| ty.go), Some(expected), "{group} {kind}");
    }
    for (group, version, kind) in [("apps", "v1", "Pod"), ("apps", "v1", "Status"), ("", "v1", "BindingList")]
    {
        assert!(body(group, version, kind).is_none(), "{group} {kind}");
    }
}

#[test]
fn bodies_that_are_no_kinds_have_types() {
    for name in [
        "DeleteOptions",
        "LabelSelector",
        "List",
        "ObjectMeta",
        "PartialObjectMetadata",
        "PartialObjectMetadataList",
        "Status",
        "Table",
        "WatchEvent",
    ] {
        ty(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
    }
    ty("io.k8s.api.autoscaling.v1.Scale");
    ty("io.k8s.api.authentication.v1.TokenRequest");
    ty("io.k8s.api.policy.v1.Eviction");
}

#[test]
fn fields_know_their_go_and_json_sides() {
    let containers = field("io.k8s.api.core.v1.PodSpec", "containers");
    assert_eq!((containers.go, containers.omit, containers.required), ("[]v1.Container", Omit::Never, true));
    assert!(matches!(containers.shape, Shape::List(Shape::Struct(ty)) if ty.go == "v1.Container"));
    let replicas = field("io.k8s.api.apps.v1.DeploymentSpec", "replicas");
    assert!(replicas.pointer && matches!(replicas.shape, Shape::Int32));
    assert_eq!(field("io.k8s.api.core.v1.Pod", "status").omit, Omit::Empty);
    let created = field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "creationTimestamp");
    assert_eq!(created.omit, Omit::Zero);
    assert_eq!(field("io.k8s.api.core.v1.PodSpec", "restartPolicy").go, "v1.RestartPolicy");
    assert_eq!(field("io.k8s.api.core.v1.ResourceRequirements", "limits").go, "v1.ResourceList");
    assert_eq!(field("io.k8s.api.core.v1.Volume", "emptyDir").declared_in, "VolumeSource");
    assert_eq!(field("io.k8s.api.core.v1.Volume", "name").declared_in, "");
    assert_eq!(field("io.k8s.api.core.v1.ContainerPort", "protocol").default, "\"TCP\"");
    let port = field("io.k8s.api.core.v1.ContainerPort", "containerPort");
    assert_eq!((port.default, port.openapi_default()), ("", Some("0")));
}

#[test]
fn fields_know_their_protobuf_numbers() {
    let proto = |ty: &str, name: &str| {
        let proto = field(ty, name).proto.unwrap();
        (proto.number, proto.wire, proto.within, proto.wrapped)
    };
    let core = |ty: &str, name| proto(&format!("io.k8s.api.core.v1.{ty}"), name);
    let free: &[u32] = &[];
    assert_eq!(core("Pod", "spec"), (2, Wire::Bytes, free, false));
    assert_eq!(core("PodSpec", "hostNetwork"), (11, Wire::Varint, free, false));
    assert_eq!(core("Volume", "emptyDir"), (2, Wire::Bytes, &[2][..], false));
    assert_eq!(proto("io.k8s.api.apps.v1.DeploymentSpec", "replicas"), (1, Wire::Varint, free, false));
    assert_eq!(
        proto("io.k8s.apimachinery.pkg.apis.meta.v1.APIResource", "verbs"),
        (4, Wire::Bytes, free, true)
    );
    assert_eq!(
        proto("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", "scope"),
        (4, Wire::Bytes, &[2, 2][..], false)
    );
    // The type meta is in the envelope, not in the message.
    assert!(field("io.k8s.api.core.v1.Pod", "kind").proto.is_none());
}

#[test]
fn a_message_uses_no_field_number_twice() {
    for ty in types() {
        let mut seen = BTreeSet::new();
        for field in ty.fields {
            if let Some(proto) = field.proto {
                assert!(seen.insert((proto.within, proto.number)), "{} {}", ty.name, field.name);
            }
        }
    }
}

#[test]
fn lists_know_how_they_are_merged() {
    let core = |ty: &str, name| field(&format!("io.k8s.api.core.v1.{ty}"), name);
    let containers = core("PodSpec", "containers");
    assert!(containers.merge.merge && containers.merge.key == "name");
    assert_eq!(containers.topology, Topology::Map(&["name"]));
    let volumes = core("PodSpec", "volumes");
    assert!(volumes.merge.merge && volumes.merge.retain_keys && volumes.merge.key == "name");
    let ports = core("Container", "ports");
    assert_eq!(ports.merge.key, "containerPort");
    assert_eq!(ports.topology, Topology::Map(&["containerPort", "protocol"]));
    assert_eq!(core("PodSpec", "nodeSelector").topology, Topology::Atomic);
    assert_eq!(core("PersistentVolumeSpec", "claimRef").topology, Topology::Granular);
    assert_eq!(core("Container", "args").topology, Topology::Atomic);
    assert_eq!(core("PodSpec", "tolerations").topology, Topology::Atomic);
    let finalizers = field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers");
    assert!(finalizers.merge.merge && finalizers.merge.key.is_empty());
    assert_eq!(finalizers.topology, Topology::Set);
    assert!(field("io.k8s.api.apps.v1.DeploymentSpec", "strategy").merge.retain_keys);
    assert!(ty("io.k8s.api.core.v1.LocalObjectReference").atomic);
    assert!(!ty("io.k8s.api.core.v1.Container").atomic);
}
