//! The builder that registers the defaulter and the validator of a kind at their conventional paths.

use std::fmt;

use super::{
    RegisterError, WebhookServer,
    admission::{
        AdmissionHook, AdmissionRequest, Defaulter, DefaulterFn, Rejection, Validation, Validator,
        ValidatorFn, Warnings,
    },
    configuration::{Registration, WebhookRules, WebhookType},
    paths,
};
use crate::{Kind, Object, kind};

/// The webhooks of one kind.
///
/// ```
/// use k1s_env::Env;
/// use k1s_runtime::webhook::{Webhook, WebhookServer};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let server = WebhookServer::new(&Env::system(), Default::default());
/// Webhook::for_::<ConfigMap>()
///     .default_with(|object, _| {
///         object.data.get_or_insert_default().entry("colour".into()).or_insert("red".into());
///         Ok(())
///     })
///     .validate_with(|validation, request| match validation.object() {
///         Some(object) if object.data.is_none() => Err(format!("{} needs data", request.key()).into()),
///         _ => Ok(vec![]),
///     })
///     .complete(&server)?;
/// assert_eq!(server.paths(), ["/mutate--v1-configmap", "/validate--v1-configmap"]);
/// # Ok::<(), k1s_runtime::webhook::RegisterError>(())
/// ```
#[must_use = "nothing is registered before `complete`"]
pub struct Webhook<K: Object> {
    kind: Kind<K>,
    defaulting: Option<Defaulting>,
    validating: Option<AdmissionHook>,
    defaulter_path: Option<String>,
    validator_path: Option<String>,
    remove_unknown_fields: bool,
    recover_panic: bool,
    defaulter_rules: WebhookRules,
    validator_rules: WebhookRules,
}

/// Built in [`Webhook::complete`], when it is known whether unknown fields are removed.
type Defaulting = Box<dyn FnOnce(bool) -> AdmissionHook + Send>;

// Implemented for a single kind, so that `Webhook::for_::<K>()` names the kind once.
impl Webhook<k8s_openapi::api::core::v1::Pod> {
    /// The webhooks of `K`.
    pub fn for_<K: Object<DynamicType: Default>>() -> Webhook<K> {
        Webhook::for_kind(kind::<K>())
    }
}

impl<K: Object> Webhook<K> {
    /// The webhooks of a kind that may be known only at run time.
    pub fn for_kind(kind: Kind<K>) -> Webhook<K> {
        Webhook {
            kind,
            defaulting: None,
            validating: None,
            defaulter_path: None,
            validator_path: None,
            remove_unknown_fields: false,
            recover_panic: true,
            defaulter_rules: WebhookRules::default(),
            validator_rules: WebhookRules::default(),
        }
    }

    /// Sets the defaulter.
    pub fn defaulter(mut self, defaulter: impl Defaulter<K>) -> Webhook<K> {
        self.defaulting = Some(Box::new(move |remove| AdmissionHook::defaulting(defaulter, remove)));
        self
    }

    /// Sets a closure as the defaulter.
    pub fn default_with<F>(self, default: F) -> Webhook<K>
    where
        F: Fn(&mut K, &AdmissionRequest) -> Result<(), Rejection> + Send + Sync + 'static,
    {
        self.defaulter(DefaulterFn(default))
    }

    /// Sets the validator.
    pub fn validator(mut self, validator: impl Validator<K>) -> Webhook<K> {
        self.validating = Some(AdmissionHook::validating(validator));
        self
    }

    /// Sets a closure as the validator.
    pub fn validate_with<F>(self, validate: F) -> Webhook<K>
    where
        F: Fn(Validation<'_, K>, &AdmissionRequest) -> Result<Warnings, Rejection> + Send + Sync + 'static,
    {
        self.validator(ValidatorFn(validate))
    }

    /// Registers the defaulter at another path.
    pub fn defaulter_path(mut self, path: impl Into<String>) -> Webhook<K> {
        self.defaulter_path = Some(path.into());
        self
    }

    /// Registers the validator at another path.
    pub fn validator_path(mut self, path: impl Into<String>) -> Webhook<K> {
        self.validator_path = Some(path.into());
        self
    }

    /// Whether the defaulter removes fields that `K` does not have. Off by default.
    pub fn remove_unknown_fields(mut self, remove: bool) -> Webhook<K> {
        self.remove_unknown_fields = remove;
        self
    }

    /// Whether panics are recovered into error responses. On by default.
    pub fn recover_panic(mut self, recover: bool) -> Webhook<K> {
        self.recover_panic = recover;
        self
    }

    /// When the API server calls the defaulter, and what happens if it cannot.
    pub fn defaulter_rules(mut self, rules: WebhookRules) -> Webhook<K> {
        self.defaulter_rules = rules;
        self
    }

    /// When the API server calls the validator, and what happens if it cannot.
    pub fn validator_rules(mut self, rules: WebhookRules) -> Webhook<K> {
        self.validator_rules = rules;
        self
    }

    /// Registers all of them or, on an error, none.
    ///
    /// # Errors
    /// If a path is already used or invalid.
    pub fn complete(self, server: &WebhookServer) -> Result<(), RegisterError> {
        let mut hooks = Vec::new();
        let mut add = |hook: AdmissionHook, path: String, webhook_type, rules| {
            let resource = self.kind.resource().clone();
            let registration = Registration { webhook_type, path: path.clone(), resource, rules };
            hooks.push((path, hook.recover_panic(self.recover_panic).into(), Some(registration)));
        };
        if let Some(hook) = self.defaulting {
            let path = self.defaulter_path.unwrap_or_else(|| paths::mutate_kind(&self.kind));
            add(hook(self.remove_unknown_fields), path, WebhookType::Mutating, self.defaulter_rules);
        }
        if let Some(hook) = self.validating {
            let path = self.validator_path.unwrap_or_else(|| paths::validate_kind(&self.kind));
            add(hook, path, WebhookType::Validating, self.validator_rules);
        }
        server.register_all(hooks)
    }
}

impl<K: Object> fmt::Debug for Webhook<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("kind", &self.kind)
            .field("defaulting", &self.defaulting.is_some())
            .field("validating", &self.validating.is_some())
            .finish_non_exhaustive()
    }
}
