//! The entries of the chain.

use k1s_kinds::{
    admission::pod_security as security_levels, rules::certificates::certificate_signing_request as csr,
};
use k1s_store::Op;
use serde_json::Value;

use super::{
    Admission, Attributes, Write, accounts, classes, limits, namespaces, nodes, owners, pods, policies,
    quota, refused, security, signers, webhooks,
};
use crate::{
    context::Cx,
    errors::Error,
    hooks::Operation,
    objectmeta::{meta_text, metadata_mut},
    parts::Part,
    plugins::Plugin,
};

use Plugin::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest,
    DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, LimitRanger, MutatingAdmissionPolicy,
    MutatingAdmissionWebhook, NamespaceLifecycle, NodeRestriction, OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize, PodSecurity, Priority, ResourceQuota, RuntimeClass, ServiceAccount,
    ValidatingAdmissionPolicy, ValidatingAdmissionWebhook,
};

/// What changes an object, in this order.
pub(super) const MUTATING: [Plugin; 11] = [
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    RuntimeClass,
    DefaultIngressClass,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
];

/// What checks an object after its schema was validated, in this order. The quota is last: what it charges is only for
/// objects that nothing else rejects.
pub(super) const VALIDATING: [Plugin; 14] = [
    LimitRanger,
    ServiceAccount,
    PodSecurity,
    Priority,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    ClusterTrustBundleAttest,
    CertificateSubjectRestriction,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
];

impl Plugin {
    /// Whether it is one that users define, which sees requests that change nothing and bodies of subresources, too.
    pub(super) fn is_users_own(self) -> bool {
        matches!(
            self,
            MutatingAdmissionPolicy
                | MutatingAdmissionWebhook
                | ValidatingAdmissionPolicy
                | ValidatingAdmissionWebhook
        )
    }

    /// Whether it looks at bodies that are no objects of the resource.
    pub(super) fn sees_other_bodies(self) -> bool {
        self == NodeRestriction
    }

    /// Whether it looks at updates that change nothing, because it is about who sends them: approving again what is approved
    /// needs the permission, too.
    pub(super) fn sees_unchanged(self) -> bool {
        matches!(self, CertificateApproval | NodeRestriction)
    }

    /// Whether it may change the object of a request.
    pub(super) fn admits(self, a: &Attributes<'_>) -> bool {
        let creates = a.operation == Operation::Create;
        let pod = || a.is("", "Pod");
        match self {
            NamespaceLifecycle => {
                creates && a.cx.resource.namespaced
                    || a.operation == Operation::Delete && a.is("", "Namespace")
            }
            LimitRanger => creates && (pod() || a.is("", "LimitRange")),
            Priority => pod() && (creates || a.operation == Operation::Update && a.part == Part::Main),
            DefaultTolerationSeconds | RuntimeClass | ServiceAccount => creates && pod(),
            NodeRestriction => nodes::concerns(a),
            DefaultStorageClass => creates && a.is("", "PersistentVolumeClaim"),
            DefaultIngressClass => creates && a.is("networking.k8s.io", "Ingress"),
            _ => false,
        }
    }

    /// Changes the object of a request. There is none for a DELETE.
    pub(super) async fn admit(
        self,
        admission: &mut Admission<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        let cx = admission.attributes.cx;
        if self == NodeRestriction {
            return nodes::check(&admission.attributes, object.as_deref(), old).await;
        }
        let Some(object) = object else {
            if self == NamespaceLifecycle {
                namespaces::may_be_deleted(cx, old.unwrap_or(&Value::Null))?;
            }
            return Ok(());
        };
        match self {
            NamespaceLifecycle => admission.namespace = Some(namespaces::require(cx, object).await?),
            LimitRanger if admission.attributes.is("", "LimitRange") => name_range(cx, object),
            LimitRanger => limits::apply(cx, object).await?,
            Priority => match old {
                Some(old) => pods::keep_priority(object, old),
                None => pods::resolve_priority(cx, object).await?,
            },
            DefaultTolerationSeconds => k1s_kinds::rules::core::pod::admission_defaults(object),
            DefaultStorageClass => classes::default_storage_class(cx, object).await?,
            ServiceAccount => accounts::apply(&admission.attributes, object).await?,
            RuntimeClass => pods::apply_runtime_class(cx, object).await?,
            DefaultIngressClass => classes::default_ingress_class(cx, object).await?,
            _ => {}
        }
        Ok(())
    }

    /// Whether it may reject a valid object of a request.
    pub(super) fn validates(self, a: &Attributes<'_>) -> bool {
        let creates = a.operation == Operation::Create;
        let main = a.part == Part::Main && matches!(a.operation, Operation::Create | Operation::Update);
        let (pod, csr) = (|| a.is("", "Pod"), || a.is("certificates.k8s.io", "CertificateSigningRequest"));
        match self {
            LimitRanger => creates && pod() || main && a.is("", "PersistentVolumeClaim"),
            PodSecurity if pod() => {
                main || a.operation == Operation::Update
                    && matches!(a.part, Part::EphemeralContainers | Part::Resize)
            }
            PodSecurity => main && (a.is("", "Namespace") || security::has_template(a.cx)),
            Priority => main && a.is("scheduling.k8s.io", "PriorityClass"),
            PersistentVolumeClaimResize => {
                main && a.operation == Operation::Update && a.is("", "PersistentVolumeClaim")
            }
            RuntimeClass => creates && pod(),
            ServiceAccount => {
                pod() && (creates || a.operation == Operation::Update && a.part == Part::EphemeralContainers)
            }
            OwnerReferencesPermissionEnforcement => {
                matches!(a.operation, Operation::Create | Operation::Update)
            }
            CertificateApproval => a.part == Part::Approval,
            CertificateSigning => a.part == Part::Status && csr(),
            ClusterTrustBundleAttest => main && a.is("certificates.k8s.io", "ClusterTrustBundle"),
            CertificateSubjectRestriction => main && csr(),
            ResourceQuota => matches!(a.operation, Operation::Create | Operation::Update),
            _ => false,
        }
    }

    /// Checks a valid object. Returns further operations of its transaction.
    pub(super) async fn validate(
        self,
        a: &Attributes<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Op>, Error> {
        let cx = a.cx;
        let write = if old.is_none() { Write::Create } else { Write::Update };
        match self {
            LimitRanger => limits::check(cx, object).await?,
            PodSecurity if a.is("", "Pod") => {
                let counts = old.is_none_or(|old| security_levels::is_significant(object, old));
                return match counts {
                    true => Ok(security::check_pod(cx, object, write).await.map(|()| Vec::new())?),
                    false => Ok(Vec::new()),
                };
            }
            PodSecurity if a.is("", "Namespace") => security::check_namespace(cx, object, old).await?,
            PodSecurity => security::check_template(cx, object, write).await?,
            Priority => classes::one_default_priority(cx, object).await?,
            PersistentVolumeClaimResize => {
                if let Some(old) = old {
                    classes::may_grow(cx, object, old).await?;
                }
            }
            RuntimeClass => pods::check(cx, object).await?,
            ServiceAccount => accounts::check(a, object).await?,
            OwnerReferencesPermissionEnforcement => owners::check(a, object, old).await?,
            CertificateApproval => signers::approve(cx, old.unwrap_or(object)).await?,
            CertificateSigning => signers::sign(cx, object, old.unwrap_or(&Value::Null)).await?,
            ClusterTrustBundleAttest => signers::attest(cx, object, old).await?,
            CertificateSubjectRestriction => {
                if let Some(why) = csr::forbidden_subject(object) {
                    return Err(refused(cx, meta_text(object, "name"), why).into());
                }
            }
            ResourceQuota => return Ok(quota::charge(cx, object, old).await?),
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Runs one of the users' own plugins that change objects. Returns whether it has changed this one.
    pub(super) async fn admit_users_own(
        self,
        admission: &mut Admission<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<bool, Error> {
        match self {
            MutatingAdmissionPolicy => policies::mutate(admission, object, old).await,
            MutatingAdmissionWebhook => webhooks::mutate(admission, object, old).await,
            _ => Ok(false),
        }
    }

    /// Runs one of the users' own plugins that check objects.
    pub(super) async fn validate_users_own(
        self,
        admission: &mut Admission<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        match self {
            ValidatingAdmissionPolicy => policies::validate(admission, object, old).await,
            ValidatingAdmissionWebhook => webhooks::validate(admission, object, old).await,
            _ => Ok(()),
        }
    }
}

/// Names a limit range that has no name, as `LimitRanger` does.
fn name_range(cx: &Cx, range: &mut Value) {
    if meta_text(range, "name").is_empty() && meta_text(range, "generateName").is_empty() {
        let name = cx.tenant.env().uuid().to_string();
        metadata_mut(range).insert("name".into(), name.into());
    }
}
