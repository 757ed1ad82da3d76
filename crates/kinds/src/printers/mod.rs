//! The tables of `kubectl get`: the columns of all built-in kinds, and the cells of a row.
//!
//! A server always prints the wide table: clients hide columns of priority 1 themselves.

mod cluster;
#[rustfmt::skip]
mod columns;
mod core;
mod object;
mod pods;
mod workloads;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use object::human_duration;

use object::Object;

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `number` or `date`.
    pub ty: &'static str,
    /// `name` for the column that names the object, else empty.
    pub format: &'static str,
    /// Its description.
    pub description: &'static str,
    /// 0 for columns that are always shown, 1 for wide output.
    pub priority: i32,
}

impl Column {
    /// The column as in `columnDefinitions`.
    #[must_use]
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.ty,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

/// Prints the cells of a row.
type Cells = fn(&Object<'_>) -> Vec<Value>;

/// The printer of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    /// The columns of the table.
    pub columns: &'static [Column],
    cells: Cells,
    /// Storage classes: a list marks the default one.
    marks_default: bool,
    /// Whether a table without rows has `null` instead of a list, as for kinds without a printer of their own.
    pub null_when_empty: bool,
}

impl Printer {
    /// The cells of an object's row.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.cells)(&Object::new(object, now))
    }

    /// Whether the rows of a list must be printed together, not in chunks.
    #[must_use]
    pub fn needs_all(&self) -> bool {
        self.marks_default
    }

    /// The rows of a list, which show more than single rows for some kinds.
    #[must_use]
    pub fn rows(&self, items: &[&Value], now: Timestamp) -> Vec<Vec<Value>> {
        let mut rows: Vec<Vec<Value>> = items.iter().map(|item| self.row(item, now)).collect();
        if self.marks_default
            && let Some(at) = cluster::default_storage_class(items)
            && let Some(Value::String(name)) = rows.get_mut(at).and_then(|row| row.first_mut())
        {
            name.push_str(" (default)");
        }
        rows
    }
}

/// The printer of a kind; kinds without their own show name and creation time.
#[must_use]
pub fn printer(group: &str, kind: &str) -> Printer {
    let (columns, cells): (_, Cells) = match (group, kind) {
        ("", "Pod") => (columns::POD, pods::pod),
        ("", "PodTemplate") => (columns::POD_TEMPLATE, workloads::pod_template),
        ("", "ReplicationController") => (columns::REPLICATION_CONTROLLER, workloads::replication_controller),
        ("", "Service") => (columns::SERVICE, core::service),
        ("", "Endpoints") => (columns::ENDPOINTS, core::endpoints),
        ("", "Node") => (columns::NODE, core::node),
        ("" | "events.k8s.io", "Event") => (columns::EVENT, core::event),
        ("", "Namespace") => (columns::NAMESPACE, core::namespace),
        ("", "Secret") => (columns::SECRET, core::secret),
        ("", "ServiceAccount") => (columns::SERVICE_ACCOUNT, name_and_age),
        ("", "PersistentVolume") => (columns::PERSISTENT_VOLUME, core::persistent_volume),
        ("", "PersistentVolumeClaim") => (columns::PERSISTENT_VOLUME_CLAIM, core::persistent_volume_claim),
        ("", "ComponentStatus") => (columns::COMPONENT_STATUS, core::component_status),
        ("", "ConfigMap") => (columns::CONFIG_MAP, core::config_map),
        ("", "ResourceQuota") => (columns::RESOURCE_QUOTA, core::resource_quota),
        ("", "Status") => (columns::STATUS, core::status),
        ("apps", "ReplicaSet") => (columns::REPLICA_SET, workloads::replica_set),
        ("apps", "Deployment") => (columns::DEPLOYMENT, workloads::deployment),
        ("apps", "StatefulSet") => (columns::STATEFUL_SET, workloads::stateful_set),
        ("apps", "DaemonSet") => (columns::DAEMON_SET, workloads::daemon_set),
        ("apps", "ControllerRevision") => (columns::CONTROLLER_REVISION, workloads::controller_revision),
        ("batch", "Job") => (columns::JOB, workloads::job),
        ("batch", "CronJob") => (columns::CRON_JOB, workloads::cron_job),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            (columns::HORIZONTAL_POD_AUTOSCALER, workloads::horizontal_pod_autoscaler)
        }
        ("autoscaling", "Scale") => (columns::SCALE, workloads::scale),
        ("policy", "PodDisruptionBudget") => {
            (columns::POD_DISRUPTION_BUDGET, workloads::pod_disruption_budget)
        }
        ("networking.k8s.io", "Ingress") => (columns::INGRESS, core::ingress),
        ("networking.k8s.io", "IngressClass") => (columns::INGRESS_CLASS, core::ingress_class),
        ("networking.k8s.io", "NetworkPolicy") => (columns::NETWORK_POLICY, core::network_policy),
        ("networking.k8s.io", "ServiceCIDR") => (columns::SERVICE_CIDR, core::service_cidr),
        ("networking.k8s.io", "IPAddress") => (columns::IP_ADDRESS, core::ip_address),
        ("discovery.k8s.io", "EndpointSlice") => (columns::ENDPOINT_SLICE, core::endpoint_slice),
        ("rbac.authorization.k8s.io", "RoleBinding") => (columns::ROLE_BINDING, cluster::role_binding),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            (columns::CLUSTER_ROLE_BINDING, cluster::role_binding)
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            (columns::CERTIFICATE_SIGNING_REQUEST, cluster::certificate_signing_request)
        }
        ("certificates.k8s.io", "ClusterTrustBundle") => {
            (columns::CLUSTER_TRUST_BUNDLE, cluster::cluster_trust_bundle)
        }
        ("certificates.k8s.io", "PodCertificateRequest") => {
            (columns::POD_CERTIFICATE_REQUEST, cluster::pod_certificate_request)
        }
        ("coordination.k8s.io", "Lease") => (columns::LEASE, cluster::lease),
        ("storage.k8s.io", "StorageClass") => (columns::STORAGE_CLASS, cluster::storage_class),
        ("storage.k8s.io", "VolumeAttributesClass") => {
            (columns::VOLUME_ATTRIBUTES_CLASS, cluster::volume_attributes_class)
        }
        ("storage.k8s.io", "VolumeAttachment") => (columns::VOLUME_ATTACHMENT, cluster::volume_attachment),
        ("storage.k8s.io", "CSINode") => (columns::CSI_NODE, cluster::csi_node),
        ("storage.k8s.io", "CSIDriver") => (columns::CSI_DRIVER, cluster::csi_driver),
        ("scheduling.k8s.io", "PriorityClass") => (columns::PRIORITY_CLASS, cluster::priority_class),
        ("node.k8s.io", "RuntimeClass") => (columns::RUNTIME_CLASS, cluster::runtime_class),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            (columns::MUTATING_WEBHOOK_CONFIGURATION, cluster::webhooks)
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            (columns::VALIDATING_WEBHOOK_CONFIGURATION, cluster::webhooks)
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            (columns::VALIDATING_ADMISSION_POLICY, cluster::validating_policy)
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
            (columns::MUTATING_ADMISSION_POLICY, cluster::mutating_policy)
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            (columns::VALIDATING_ADMISSION_POLICY_BINDING, cluster::policy_binding)
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            (columns::MUTATING_ADMISSION_POLICY_BINDING, cluster::policy_binding)
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => (columns::FLOW_SCHEMA, cluster::flow_schema),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            (columns::PRIORITY_LEVEL_CONFIGURATION, cluster::priority_level)
        }
        ("resource.k8s.io", "DeviceClass") => (columns::DEVICE_CLASS, name_and_age),
        ("resource.k8s.io", "ResourceClaim") => (columns::RESOURCE_CLAIM, cluster::resource_claim),
        ("resource.k8s.io", "ResourceClaimTemplate") => (columns::RESOURCE_CLAIM_TEMPLATE, name_and_age),
        ("resource.k8s.io", "ResourceSlice") => (columns::RESOURCE_SLICE, cluster::resource_slice),
        ("resource.k8s.io", "DeviceTaintRule") => (columns::DEVICE_TAINT_RULE, cluster::device_taint_rule),
        ("storagemigration.k8s.io", "StorageVersionMigration") => {
            (columns::STORAGE_VERSION_MIGRATION, cluster::storage_version_migration)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            (columns::CUSTOM_RESOURCE_DEFINITION, cluster::custom_resource_definition)
        }
        ("apiregistration.k8s.io", "APIService") => (columns::API_SERVICE, cluster::api_service),
        _ => (columns::OTHER, |object| vec![object.name(), object.created_at()]),
    };
    Printer {
        columns,
        cells,
        marks_default: kind == "StorageClass" && group == "storage.k8s.io",
        null_when_empty: std::ptr::eq(columns, columns::OTHER) || kind == "CustomResourceDefinition",
    }
}

/// The columns of a kind.
#[must_use]
pub fn columns(group: &str, kind: &str) -> &'static [Column] {
    printer(group, kind).columns
}

/// The cells of an object's row.
#[must_use]
pub fn row(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    printer(group, kind).row(object, now)
}

/// The `conditions` of a row; terminated pods have one.
#[must_use]
pub fn conditions(group: &str, kind: &str, object: &Value) -> Option<Value> {
    (group.is_empty() && kind == "Pod").then(|| pods::conditions(object)).flatten()
}

fn name_and_age(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.age()]
}
