//! Defaulters, which fill in unset fields.

use std::{future::Future, marker::PhantomData, sync::Arc};

use serde_json::Value;

use super::{
    AdmissionHook, AdmissionRequest, AdmissionResponse, Handler, Operation, Rejection, merge::merge,
};
use crate::Object;

/// Fills in unset fields of objects of kind `K`.
///
/// ```
/// use k1s_runtime::webhook::admission::{AdmissionRequest, Defaulter, Rejection};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct Labels;
///
/// impl Defaulter<ConfigMap> for Labels {
///     async fn default(&self, object: &mut ConfigMap, request: &AdmissionRequest) -> Result<(), Rejection> {
///         let labels = object.metadata.labels.get_or_insert_default();
///         labels.entry("created-by".into()).or_insert_with(|| request.user().replace(':', "."));
///         Ok(())
///     }
/// }
/// ```
pub trait Defaulter<K>: Send + Sync + 'static {
    /// Changes the object in place. Called for create and update.
    ///
    /// # Errors
    /// The request is rejected.
    fn default(
        &self,
        object: &mut K,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<(), Rejection>> + Send;
}

/// A closure as a [`Defaulter`].
pub(crate) struct DefaulterFn<F>(pub(crate) F);

impl<K, F> Defaulter<K> for DefaulterFn<F>
where
    K: Send,
    F: Fn(&mut K, &AdmissionRequest) -> Result<(), Rejection> + Send + Sync + 'static,
{
    async fn default(&self, object: &mut K, request: &AdmissionRequest) -> Result<(), Rejection> {
        (self.0)(object, request)
    }
}

struct Defaulting<K, D> {
    defaulter: D,
    remove_unknown_fields: bool,
    kind: PhantomData<fn() -> K>,
}

impl AdmissionHook {
    /// A hook that responds with the changes of the defaulter as a JSON patch.
    ///
    /// The patch has only these changes: fields that `K` does not have, or would serialize differently, stay as they were
    /// sent. With `remove_unknown_fields` the object becomes exactly the serialization of `K`.
    pub fn defaulting<K: Object>(defaulter: impl Defaulter<K>, remove_unknown_fields: bool) -> AdmissionHook {
        AdmissionHook::new(Defaulting { defaulter, remove_unknown_fields, kind: PhantomData })
    }
}

impl<K: Object, D: Defaulter<K>> Handler for Defaulting<K, D> {
    async fn handle(&self, request: Arc<AdmissionRequest>) -> AdmissionResponse {
        if request.operation == Some(Operation::Delete) {
            return AdmissionResponse::allowed();
        }
        let mut object: K = match request.object() {
            Ok(object) => object,
            Err(error) => return AdmissionResponse::errored(400, error),
        };
        let before = match serde_json::to_value(&object) {
            Ok(before) => before,
            Err(error) => return AdmissionResponse::errored(500, error),
        };
        if let Err(rejection) = self.defaulter.default(&mut object, &request).await {
            return rejection.into_response(&request);
        }
        let after = match serde_json::to_value(&object) {
            Ok(after) => after,
            Err(error) => return AdmissionResponse::errored(500, error),
        };
        if before == after && !self.remove_unknown_fields {
            return AdmissionResponse::allowed();
        }
        let sent: Value = match request.object() {
            Ok(sent) => sent,
            Err(error) => return AdmissionResponse::errored(400, error),
        };
        let wanted = if self.remove_unknown_fields { after } else { merge(&sent, &before, after) };
        AdmissionResponse::patched(json_patch::diff(&sent, &wanted))
    }
}
