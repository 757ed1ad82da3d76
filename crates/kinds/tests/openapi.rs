//! The `OpenAPI` documents as kubectl reads them.

use std::collections::BTreeSet;

use k1s_kinds::{
    kinds,
    openapi::{Document, Resource, ResourceSubresource, document, documents, encode_v2, v2},
};
use serde_json::{Value, json};

fn parameters(operation: &Value) -> Vec<&str> {
    operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect()
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(text) if key == "$ref" => {
                        found.insert(text);
                    }
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn documents_are_listed_and_found() {
    let names = documents();
    for name in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/autoscaling/v2", "version"] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
    for name in &names {
        let document = document(name).unwrap();
        assert_eq!(document["openapi"], "3.0.0");
        assert_eq!(document["info"]["title"], "Kubernetes");
        assert!(!document["paths"].as_object().unwrap().is_empty(), "{name}");
    }
    for name in ["", "apis/nope", "apis/apps/v2", "api/v2", "apis/apps/v1/x", "apis/"] {
        assert!(document(name).is_none(), "{name}");
    }
}

#[test]
fn every_reference_leads_to_a_schema() {
    for name in documents() {
        let document = document(&name).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in found {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{name}: {reference}");
        }
    }
}

#[test]
fn every_operation_has_its_own_id() {
    let mut seen = BTreeSet::new();
    for name in documents() {
        let document = document(&name).unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in
                item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters")
            {
                let id = operation["operationId"].as_str().unwrap().to_owned();
                assert!(seen.insert(id), "{method} {path}");
            }
        }
    }
}

#[test]
fn every_kind_that_can_be_patched_says_so_with_its_kind_and_parameters() {
    for kind in kinds().iter().filter(|kind| kind.verbs.contains(&"patch")) {
        let root = if kind.group.is_empty() {
            "api/v1".to_owned()
        } else {
            format!("apis/{}/{}", kind.group, kind.version)
        };
        let document = document(&root).unwrap();
        let scope = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let patch = &document["paths"][format!("/{root}/{scope}{}/{{name}}", kind.plural)]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
        );
        assert_eq!(parameters(patch), ["dryRun", "fieldManager", "fieldValidation", "force"]);
        let media: Vec<&String> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
        assert_eq!(
            media,
            [
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json"
            ]
        );
        let schema = &document["components"]["schemas"][kind.ty.name];
        assert_eq!(
            schema["x-kubernetes-group-version-kind"],
            json!([{"group": kind.group, "version": kind.version, "kind": kind.kind}])
        );
    }
}

/// Removes descriptions.
fn bare(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        // A property may have this name.
        fields.retain(|key, value| key != "description" || !value.is_string());
        fields.values_mut().for_each(|value| *value = bare(value.take()));
    }
    value
}

#[test]
fn a_schema_says_what_the_table_knows() {
    let document = bare(document("apis/apps/v1").unwrap());
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.apps.v1.Deployment"],
        json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {
                    "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
                    "default": {},
                },
                "spec": {
                    "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}],
                    "default": {},
                },
                "status": {
                    "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStatus"}],
                    "default": {},
                },
            },
            "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}],
        })
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.ContainerPort"],
        json!({
            "type": "object",
            "required": ["containerPort"],
            "properties": {
                "containerPort": {"type": "integer", "format": "int32", "default": 0},
                "hostIP": {"type": "string"},
                "hostPort": {"type": "integer", "format": "int32"},
                "name": {"type": "string"},
                "protocol": {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]},
            },
        })
    );
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(
        pod["containers"],
        json!({
            "type": "array",
            "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "name",
            "x-kubernetes-patch-strategy": "merge",
        })
    );
    assert_eq!(pod["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
    assert_eq!(pod["nodeSelector"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"],
        "atomic"
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
        json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"],
        json!([
            {"group": "", "kind": "DeleteOptions", "version": "v1"},
            {"group": "apps", "kind": "DeleteOptions", "version": "v1"},
        ])
    );
}

#[test]
fn types_and_fields_are_described_as_upstream() {
    let apps = document("apis/apps/v1").unwrap();
    let schemas = &apps["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(deployment["description"], "Deployment enables declarative updates for Pods and ReplicaSets.");
    assert_eq!(
        deployment["properties"]["metadata"]["description"],
        "Standard object's metadata. More info: \
         https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    );
    let strategy = &schemas["io.k8s.api.apps.v1.DeploymentStrategy"]["properties"]["type"];
    assert_eq!(strategy["enum"], json!(["Recreate", "RollingUpdate"]));
    assert_eq!(
        strategy["description"],
        "Type of deployment. Can be \"Recreate\" or \"RollingUpdate\". Default is RollingUpdate.\n\n\
         Possible enum values:\n \
         - `\"Recreate\"` Kill all existing pods before creating new ones.\n \
         - `\"RollingUpdate\"` Replace the old ReplicaSets by new one using rolling update i.e gradually scale down the \
         old ReplicaSets and scale up the new one."
    );
    // Of a list, its items are the enumeration.
    let modes = &schemas["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"];
    assert_eq!(modes["items"]["enum"][0], "ReadOnlyMany", "{modes}");
    assert!(modes.get("enum").is_none());
    // Types with an encoding of their own.
    for name in ["io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.api.resource.Quantity"]
    {
        assert!(schemas[name]["description"].as_str().unwrap().len() > 50, "{name}");
    }
    let swagger = v2([&apps], &[]);
    let v2 = &swagger["definitions"]["io.k8s.api.apps.v1.DeploymentStrategy"]["properties"]["type"];
    assert_eq!(v2["description"], strategy["description"]);
    let encoded = encode_v2(&swagger);
    let value = b"\x12\x0a\"Recreate\"";
    assert!(encoded.windows(value.len()).any(|window| window == value));
}

#[test]
fn nearly_everything_is_described() {
    let (mut described, mut all) = (0, 0);
    for name in documents() {
        let document = document(&name).unwrap();
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name} has no description");
            for (_, property) in schema["properties"].as_object().into_iter().flatten() {
                all += 1;
                described += usize::from(property["description"].is_string());
            }
        }
    }
    assert!(described * 100 > all * 90, "{described} of {all} fields have a description");
}

#[test]
fn paths_cover_collections_objects_subresources_and_watches() {
    let apps = document("apis/apps/v1").unwrap();
    for (path, methods) in [
        ("/apis/apps/v1/", &["get"][..]),
        ("/apis/apps/v1/deployments", &["get", "parameters"]),
        ("/apis/apps/v1/namespaces/{namespace}/deployments", &["get", "post", "delete", "parameters"]),
        (
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            &["get", "put", "patch", "delete", "parameters"],
        ),
        (
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            &["get", "patch", "put", "parameters"],
        ),
        ("/apis/apps/v1/watch/namespaces/{namespace}/deployments/{name}", &["get", "parameters"]),
    ] {
        let found: Vec<&String> = apps["paths"][path].as_object().unwrap().keys().collect();
        assert_eq!(found, methods, "{path}");
    }
    let core = document("api/v1").unwrap();
    let id =
        |document: &Value, path: &str, method: &str| document["paths"][path][method]["operationId"].clone();
    assert_eq!(id(&core, "/api/v1/pods", "get"), "listCoreV1PodForAllNamespaces");
    assert_eq!(id(&core, "/api/v1/namespaces/{name}/finalize", "put"), "replaceCoreV1NamespaceFinalize");
    assert_eq!(id(&core, "/api/v1/nodes/{name}/proxy/{path}", "head"), "connectCoreV1HeadNodeProxyWithPath");
    assert_eq!(
        id(&core, "/api/v1/namespaces/{namespace}/pods", "delete"),
        "deleteCoreV1CollectionNamespacedPod"
    );
    let rbac = document("apis/rbac.authorization.k8s.io/v1").unwrap();
    let roles = &rbac["paths"]["/apis/rbac.authorization.k8s.io/v1/clusterroles"]["get"];
    assert_eq!(roles["operationId"], "listRbacAuthorizationV1ClusterRole");
    assert_eq!(roles["tags"], json!(["rbacAuthorization_v1"]));
    let object = &core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"];
    assert_eq!(parameters(object), ["name", "namespace", "pretty"]);
    assert_eq!(object["get"].get("parameters"), None);
}

#[test]
fn custom_resources_get_paths_of_their_own() {
    let (own, list) = ("com.example.stable.v1.CronTab", "com.example.stable.v1.CronTabList");
    let status = ResourceSubresource {
        name: "status",
        group: "stable.example.com",
        version: "v1",
        kind: "CronTab",
        verbs: &["get", "patch", "update"],
        schema: own,
    };
    let scale = ResourceSubresource {
        name: "scale",
        group: "autoscaling",
        kind: "Scale",
        schema: "io.k8s.api.autoscaling.v1.Scale",
        ..status
    };
    let mut document = Document::new("stable.example.com", "v1");
    document.resource(&Resource {
        group: "stable.example.com",
        version: "v1",
        kind: "CronTab",
        plural: "crontabs",
        namespaced: true,
        verbs: &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        subresources: &[status, scale],
        schema: own,
        list_schema: list,
        custom: true,
        returns_deleted: false,
    });
    let meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    document.schema(own, json!({"type": "object", "properties": {"metadata": {"$ref": meta}}}));
    document.schema(list, json!({"type": "object"}));
    let document = document.finish();

    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let root = "/apis/stable.example.com/v1";
    assert_eq!(
        paths,
        [
            &format!("{root}/crontabs"),
            &format!("{root}/namespaces/{{namespace}}/crontabs"),
            &format!("{root}/namespaces/{{namespace}}/crontabs/{{name}}"),
            &format!("{root}/namespaces/{{namespace}}/crontabs/{{name}}/scale"),
            &format!("{root}/namespaces/{{namespace}}/crontabs/{{name}}/status"),
        ]
    );
    let patch = &document["paths"][format!("{root}/namespaces/{{namespace}}/crontabs/{{name}}")]["patch"];
    assert_eq!(patch["operationId"], "patchStableExampleComV1NamespacedCronTab");
    let media: Vec<&String> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        media,
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    );
    let scale = &document["paths"][format!("{root}/namespaces/{{namespace}}/crontabs/{{name}}/scale")]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "CronTab");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

#[test]
fn v2_says_the_same_in_one_document() {
    let documents: Vec<Value> = documents().iter().filter_map(|name| document(name)).collect();
    let swagger = bare(v2(&documents, &[]));
    assert_eq!(swagger["swagger"], "2.0");
    let definitions = &swagger["definitions"];
    assert_eq!(
        definitions["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"],
        json!({"type": "string", "enum": ["SCTP", "TCP", "UDP"]})
    );
    assert_eq!(
        definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"],
        json!({"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"})
    );
    assert_eq!(
        definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
        json!({"format": "int-or-string", "type": "string"})
    );
    let delete = &definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    let kinds = delete["x-kubernetes-group-version-kind"].as_array().unwrap();
    assert!(kinds.contains(&json!({"group": "apps", "kind": "DeleteOptions", "version": "v1"})));
    assert!(kinds.contains(&json!({"group": "batch", "kind": "DeleteOptions", "version": "v1"})));
    let post = &swagger["paths"]["/api/v1/namespaces"]["post"];
    assert_eq!(post["consumes"], json!(["*/*"]));
    assert_eq!(
        post["parameters"][0],
        json!({"in": "body", "name": "body", "required": true,
            "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Namespace"}})
    );
    assert_eq!(
        post["parameters"][1],
        json!({"name": "dryRun", "in": "query", "type": "string", "uniqueItems": true})
    );
    assert_eq!(
        post["responses"]["201"],
        json!({"schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Namespace"}})
    );
}

#[test]
fn v2_leaves_open_what_it_cannot_say() {
    let document = json!({"components": {"schemas": {"X": {"type": "object", "properties": {
        "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "maybe": {"type": "object", "nullable": true, "properties": {"a": {"type": "string"}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
        "many": {"type": "array", "default": [], "items": {"type": "string", "default": "x"}},
    }}}}});
    assert_eq!(
        v2([&document], &[])["definitions"]["X"]["properties"],
        json!({
            "port": {"x-kubernetes-int-or-string": true},
            "maybe": {},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "many": {"type": "array", "items": {"type": "string"}},
        })
    );
}

#[test]
fn v2_says_nothing_of_a_kind_that_takes_any_field() {
    let kinds = json!([{"group": "k1s.dev", "kind": "X", "version": "v1"}]);
    let any = json!({"x-kubernetes-preserve-unknown-fields": true, "type": "array", "oneOf": [{"required": ["a"]}]});
    let document = json!({"components": {"schemas": {
        "X": {"type": "object", "description": "An X.", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"metadata": {"type": "object"}}, "x-kubernetes-group-version-kind": kinds},
        "Y": {"type": "object", "required": ["maybe", "sure"], "properties": {
            "maybe": {"type": "string", "nullable": true}, "sure": {"type": "string"}, "any": any,
            "untyped": {"x-kubernetes-preserve-unknown-fields": true, "oneOf": [{"required": ["a"]}]},
            "inner": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true,
                "required": ["a", "kind", "apiVersion"], "properties": {"a": {}}},
        }},
    }}});
    let definitions = v2([&document], &[])["definitions"].clone();
    assert_eq!(definitions["X"], json!({"type": "object", "x-kubernetes-group-version-kind": kinds}));
    assert_eq!(definitions["Y"]["required"], json!(["sure"]));
    let properties = &definitions["Y"]["properties"];
    assert_eq!(properties["any"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(properties["untyped"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(
        properties["inner"],
        json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true, "required": ["a"]})
    );
}

#[test]
fn metadata_is_described() {
    let document = document("api/v1").unwrap();
    for (name, fields) in
        [("ObjectMeta", 15), ("OwnerReference", 6), ("ManagedFieldsEntry", 7), ("ListMeta", 5)]
    {
        let schema =
            &document["components"]["schemas"][format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}")];
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), fields, "{name}");
        for (field, property) in properties {
            assert!(property["description"].is_string(), "{name}.{field}: {property}");
        }
    }
}

#[test]
fn v2_has_a_protobuf_form() {
    let swagger = json!({
        "swagger": "2.0",
        "info": {"title": "K", "version": "1"},
        "definitions": {"A": {"type": "object", "x-y": "z"}},
    });
    let mut expected = b"\x0a\x032.0\x12\x06\x0a\x01K\x12\x011\x42\x00".to_vec();
    // definitions { additional_properties { name: "A" value { type { value: "object" } vendor_extension … } } }
    expected.extend(b"\x4a\x21\x0a\x1f\x0a\x01A\x12\x1a");
    expected.extend(b"\xb2\x01\x08\x0a\x06object");
    expected.extend(b"\xfa\x01\x0c\x0a\x03x-y\x12\x05\x12\x03\"z\"");
    expected.extend(b"\x6a\x00");
    assert_eq!(encode_v2(&swagger), expected);
}
