//! Injects the CA of a webhook server into the objects that refer to it.

use k8s_openapi::ByteString;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

/// Maximum number of attempts when the object is changed concurrently.
const MAX_ATTEMPTS: usize = 5;

/// The kind of object that a CA is injected into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectInto {
    /// Every webhook of a `MutatingWebhookConfiguration`.
    MutatingWebhookConfiguration,
    /// Every webhook of a `ValidatingWebhookConfiguration`.
    ValidatingWebhookConfiguration,
    /// The conversion webhook of a `CustomResourceDefinition`.
    CustomResourceDefinition,
}

/// Why a CA could not be injected.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The API server rejected a request.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The definition has no conversion webhook.
    #[error(
        "CustomResourceDefinition {0:?} has no conversion webhook: set spec.conversion.webhook.clientConfig first"
    )]
    NoConversionWebhook(String),
}

/// Sets the `caBundle` fields of an object to a CA, as PEM. Returns whether anything changed.
///
/// # Errors
/// If the object does not exist, cannot be changed, or has no conversion webhook.
pub async fn inject_ca(
    client: &Client,
    into: InjectInto,
    name: &str,
    ca_pem: impl AsRef<[u8]>,
) -> Result<bool, InjectError> {
    let (group, kind, plural) = match into {
        InjectInto::MutatingWebhookConfiguration => {
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        }
        InjectInto::ValidatingWebhookConfiguration => (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
        InjectInto::CustomResourceDefinition => {
            ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions")
        }
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let ca = json!(ByteString(ca_pem.as_ref().to_vec()));
    let mut attempts = MAX_ATTEMPTS;
    loop {
        let object = api.get(name).await?;
        let patch = match into {
            InjectInto::CustomResourceDefinition => definition_patch(&object, &ca)
                .ok_or_else(|| InjectError::NoConversionWebhook(name.to_owned()))?,
            _ => webhooks_patch(&object, &ca),
        };
        let Some(mut patch) = patch else { return Ok(false) };
        // A merge patch replaces the whole list, so it must not have changed in between.
        patch["metadata"] = json!({"resourceVersion": object.metadata.resource_version});
        match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() && attempts > 1 => attempts -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The patch of a configuration; `None` if nothing changes.
fn webhooks_patch(object: &DynamicObject, ca: &Value) -> Option<Value> {
    let mut webhooks = object.data.get("webhooks")?.as_array()?.clone();
    let mut changed = false;
    for webhook in &mut webhooks {
        if let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
            changed |= config.insert("caBundle".into(), ca.clone()).as_ref() != Some(ca);
        }
    }
    changed.then(|| json!({"webhooks": webhooks}))
}

/// The patch of a definition; `Some(None)` if nothing changes, `None` if it has no conversion webhook.
fn definition_patch(object: &DynamicObject, ca: &Value) -> Option<Option<Value>> {
    let config = object.data.pointer("/spec/conversion/webhook/clientConfig")?;
    let changed = config.get("caBundle") != Some(ca);
    Some(changed.then(|| json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": ca}}}}})))
}
