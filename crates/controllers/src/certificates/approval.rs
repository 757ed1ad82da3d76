//! Automatic approval. The requester needs a permission for it.

use k1s_runtime::BoxError;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::DynamicObject;
use serde_json::json;

use super::{GROUP, PLURAL, Requests, certificate, conditions, has};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// `spec.usages`.
pub(super) fn usages(request: &DynamicObject) -> Vec<String> {
    let usages = request.data["spec"]["usages"].as_array();
    usages.into_iter().flatten().filter_map(|usage| usage.as_str().map(str::to_owned)).collect()
}

/// `create` on a subresource of requests.
fn subresource(name: &str) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(GROUP.into()),
        resource: Some(PLURAL.into()),
        subresource: Some(name.into()),
        verb: Some("create".into()),
        version: Some("*".into()),
        ..ResourceAttributes::default()
    }
}

/// `approve` on a signer, or on all of its domain.
fn approve(name: &str) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(GROUP.into()),
        resource: Some("signers".into()),
        name: Some(name.into()),
        verb: Some("approve".into()),
        version: Some("*".into()),
        ..ResourceAttributes::default()
    }
}

impl Requests {
    /// Approves a request that nobody has decided, if its requester may have that.
    pub(super) async fn approve(&self, found: &mut DynamicObject) -> Result<(), BoxError> {
        if !certificate(found).is_empty() || has(found, "Approved") || has(found, "Denied") {
            return Ok(());
        }
        for (wanted, message) in self.permissions(found) {
            if !self.may(found, wanted).await? {
                continue;
            }
            let mut all = conditions(found).to_vec();
            all.push(
                json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}),
            );
            return self.patch(found, "approval", &json!({ "conditions": all })).await;
        }
        Ok(())
    }

    /// The permissions each of which is enough, and the message of an approval.
    fn permissions(&self, found: &DynamicObject) -> Vec<(ResourceAttributes, &'static str)> {
        let Some(signer) = &self.options.signer else { return Vec::new() };
        let spec = &found.data["spec"];
        let usages = usages(found);
        if spec["signerName"] == CLIENT && self.options.auto_approve {
            let message = "Auto approving client certificate of a requester who may approve it.";
            return vec![(approve(CLIENT), message), (approve("kubernetes.io/*"), message)];
        }
        let Some(name) = signer.0.kubelet_client_name(&self.asked(found, &usages)) else { return Vec::new() };
        let mut wanted = Vec::new();
        if spec["username"] == *name {
            wanted.push((
                subresource("selfnodeclient"),
                "Auto approving self kubelet client certificate after SubjectAccessReview.",
            ));
        }
        wanted.push((
            subresource("nodeclient"),
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        ));
        wanted
    }

    async fn may(&self, found: &DynamicObject, wanted: ResourceAttributes) -> Result<bool, BoxError> {
        let spec = &found.data["spec"];
        let text = |field: &str| spec[field].as_str().map(str::to_owned);
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: text("username"),
                uid: text("uid"),
                groups: serde_json::from_value(spec["groups"].clone()).unwrap_or_default(),
                extra: serde_json::from_value(spec["extra"].clone()).unwrap_or_default(),
                resource_attributes: Some(wanted),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = self.client.create(&review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
