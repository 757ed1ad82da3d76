//! Validators, which decide whether a change of an object is allowed.

use std::{
    future::{Future, ready},
    marker::PhantomData,
    sync::Arc,
};

use super::{
    AdmissionHook, AdmissionRequest, AdmissionResponse, DecodeError, Handler, Operation, Rejection, Warnings,
};
use crate::Object;

/// Decides whether objects of kind `K` may be created, updated or deleted. Methods allow everything by default.
///
/// ```
/// use k1s_runtime::webhook::admission::{AdmissionRequest, Rejection, Validator, Warnings};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct Keep;
///
/// impl Validator<ConfigMap> for Keep {
///     async fn validate_delete(&self, object: &ConfigMap, _: &AdmissionRequest) -> Result<Warnings, Rejection> {
///         match object.metadata.name.as_deref() {
///             Some("precious") => Err("it is precious".into()),
///             _ => Ok(vec!["gone for ever".into()]),
///         }
///     }
/// }
/// ```
pub trait Validator<K: Sync>: Send + Sync + 'static {
    /// Validates an object that is to be created.
    ///
    /// # Errors
    /// The request is rejected.
    fn validate_create(
        &self,
        _object: &K,
        _request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Rejection>> + Send {
        ready(Ok(Warnings::new()))
    }

    /// Validates an update of an object.
    ///
    /// # Errors
    /// The request is rejected.
    fn validate_update(
        &self,
        _old: &K,
        _new: &K,
        _request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Rejection>> + Send {
        ready(Ok(Warnings::new()))
    }

    /// Validates the deletion of an object.
    ///
    /// # Errors
    /// The request is rejected.
    fn validate_delete(
        &self,
        _object: &K,
        _request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Rejection>> + Send {
        ready(Ok(Warnings::new()))
    }
}

/// The argument of a validating closure.
#[derive(Debug)]
pub enum Validation<'a, K> {
    /// The object is to be created.
    Create(&'a K),
    /// The object is to be updated.
    Update {
        /// The stored object.
        old: &'a K,
        /// The object as it is to be stored.
        new: &'a K,
    },
    /// The object is to be deleted.
    Delete(&'a K),
}

impl<'a, K> Validation<'a, K> {
    /// The object as it will be stored; `None` for a deletion.
    #[must_use]
    pub fn object(&self) -> Option<&'a K> {
        match self {
            Validation::Create(object) | Validation::Update { new: object, .. } => Some(object),
            Validation::Delete(_) => None,
        }
    }
}

/// A closure as a [`Validator`].
pub(crate) struct ValidatorFn<F>(pub(crate) F);

impl<K, F> Validator<K> for ValidatorFn<F>
where
    K: Sync,
    F: Fn(Validation<'_, K>, &AdmissionRequest) -> Result<Warnings, Rejection> + Send + Sync + 'static,
{
    async fn validate_create(&self, object: &K, request: &AdmissionRequest) -> Result<Warnings, Rejection> {
        (self.0)(Validation::Create(object), request)
    }

    async fn validate_update(
        &self,
        old: &K,
        new: &K,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Rejection> {
        (self.0)(Validation::Update { old, new }, request)
    }

    async fn validate_delete(&self, object: &K, request: &AdmissionRequest) -> Result<Warnings, Rejection> {
        (self.0)(Validation::Delete(object), request)
    }
}

struct Validating<K, V> {
    validator: V,
    kind: PhantomData<fn() -> K>,
}

impl AdmissionHook {
    /// A hook that calls the validator. Connections (`exec`, `proxy`) are allowed without a call.
    pub fn validating<K: Object>(validator: impl Validator<K>) -> AdmissionHook {
        AdmissionHook::new(Validating { validator, kind: PhantomData })
    }
}

impl<K: Object, V: Validator<K>> Validating<K, V> {
    async fn validate(&self, request: &AdmissionRequest) -> Result<Result<Warnings, Rejection>, DecodeError> {
        let validator = &self.validator;
        Ok(match request.operation {
            Some(Operation::Create) => validator.validate_create(&request.object()?, request).await,
            Some(Operation::Update) => {
                validator.validate_update(&request.old_object()?, &request.object()?, request).await
            }
            Some(Operation::Delete) => validator.validate_delete(&request.old_object()?, request).await,
            Some(Operation::Connect) | None => Ok(Warnings::new()),
        })
    }
}

impl<K: Object, V: Validator<K>> Handler for Validating<K, V> {
    async fn handle(&self, request: Arc<AdmissionRequest>) -> AdmissionResponse {
        if request.operation.is_none() {
            let operation = request.raw_operation();
            return AdmissionResponse::errored(400, format_args!("unknown operation {operation:?}"));
        }
        match self.validate(&request).await {
            Ok(Ok(warnings)) => AdmissionResponse::allowed().with_warnings(warnings),
            Ok(Err(rejection)) => rejection.into_response(&request),
            Err(error) => AdmissionResponse::errored(400, error),
        }
    }
}
