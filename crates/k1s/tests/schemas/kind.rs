//! The kind of docs/schemas.md.

use std::collections::BTreeMap;

use kube::{
    CustomResource, KubeSchema,
    core::{ListMerge, MapMerge, Rule},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a shop wants.
#[derive(CustomResource, KubeSchema, Debug, Clone, Serialize, Deserialize)]
#[kube(
    group = "example.k1s.dev",
    version = "v1",
    kind = "Shop",
    shortname = "sp",
    category = "all",
    namespaced,
    doc = "A shop.",
    status = "ShopStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    selectable = ".spec.region",
    deprecated = "shops close; use Market",
    annotation("example.k1s.dev/team", "retail"),
    validation = Rule::new("self.metadata.name.size() <= 20").message("a name has at most 20 characters")
)]
#[x_kube(validation = Rule::new("self.minReplicas <= self.replicas").field_path(".minReplicas"))]
#[serde(rename_all = "camelCase")]
pub struct ShopSpec {
    /// How many there are.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,
    #[serde(default = "one")]
    pub min_replicas: i32,
    #[schemars(extend("minimum" = 0, "exclusiveMinimum" = true))]
    pub price: f64,
    #[schemars(extend("multipleOf" = 5))]
    pub step: Option<i32>,
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z-]+$"))]
    pub region: String,
    #[schemars(email)]
    pub owner: Option<String>,
    #[schemars(extend("format" = "ipv4"))]
    pub address: Option<String>,
    #[schemars(length(min = 1, max = 3), inner(length(min = 1)))]
    pub mirrors: Option<Vec<String>>,
    #[schemars(extend("minProperties" = 1, "maxProperties" = 8))]
    pub colours: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub strategy: Strategy,
    #[schemars(extend("nullable" = true))]
    pub note: Option<String>,
    #[x_kube(validation = Rule::new("self == oldSelf").message("it cannot be changed"))]
    pub currency: String,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    #[serde(default)]
    pub ports: Vec<Port>,
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[serde(default)]
    pub tags: Vec<String>,
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[serde(default)]
    pub steps: Vec<String>,
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[serde(default)]
    pub selector: BTreeMap<String, String>,
    #[schemars(schema_with = "int_or_string")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Value>,
    #[schemars(schema_with = "any_object")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Value>,
    #[schemars(schema_with = "embedded")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
}

/// How a new version replaces the old one.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    #[default]
    RollingUpdate,
    Recreate,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Port {
    pub name: String,
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ShopStatus {
    pub replicas: i32,
}

fn one() -> i32 {
    1
}

fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true})
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn embedded(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
}
