//! The kind `Application`.

#![allow(unreachable_pub, reason = "the derived schema has a copy of the type, in a function")]

use std::{collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The desired state of an application.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "cloudnative.elide.dev",
    version = "v1",
    kind = "Application",
    plural = "applications",
    singular = "application",
    shortname = "app",
    namespaced,
    status = "ApplicationStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    derive = "PartialEq",
    doc = "An application: a Deployment or a Job, a Service and a ConfigMap.",
    printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".spec.replicas","description":"Replicas that are wanted"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas","description":"Replicas that are ready"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[x_kube(validation = Rule::new("self.run == oldSelf.run").message("cannot be changed").field_path(".run"))]
// As a Job: what has run cannot be run differently.
#[x_kube(validation = Rule::new("self.run != 'Once' || self == oldSelf")
    .message("an application that runs once cannot be changed; delete it, or create another"))]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    /// Number of replicas: those that are kept running, or those that run to completion.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The container image.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Whether the replicas are kept running, or run to completion.
    #[serde(default)]
    pub run: Run,
    /// How a new version replaces the old one.
    #[serde(default)]
    pub strategy: Strategy,
    /// The configuration, passed to the containers as environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

/// How long an application runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Run {
    /// Replicas that end are replaced.
    #[default]
    Always,
    /// Each replica runs to completion.
    Once,
}

/// How a new version replaces the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Replaces one replica after the other.
    #[default]
    RollingUpdate,
    /// Stops all old replicas before new ones start.
    Recreate,
}

impl Strategy {
    /// The name of the strategy in a Deployment.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::RollingUpdate => "RollingUpdate",
            Strategy::Recreate => "Recreate",
        }
    }
}

/// The observed state of an application.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// The generation of the spec that was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of replicas.
    #[serde(default)]
    pub replicas: i32,
    /// Number of ready replicas.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The phase.
    #[serde(default)]
    pub phase: Phase,
    /// `Ready` and `Progressing`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// A one-word summary of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not all replicas are ready, or those of a run have not started.
    #[default]
    Pending,
    /// All replicas are ready, or those of a run have not completed.
    Running,
    /// The rollout, the run or the reconciliation failed.
    Failed,
    /// Zero replicas were requested, and none is left; or all replicas of a run have completed.
    Succeeded,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Applies the width of the format string.
        f.pad(match self {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Failed => "Failed",
            Phase::Succeeded => "Succeeded",
        })
    }
}

/// The schema of conditions: a list that is merged by type.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                "message": {"type": "string", "maxLength": 32768}
            }
        }
    })
}
