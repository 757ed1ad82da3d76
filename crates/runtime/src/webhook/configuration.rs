//! The objects that configure an API server to call webhooks, generated from the registrations.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
        ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceConversion, ServiceReference as CrdServiceReference,
        WebhookClientConfig as CrdWebhookClientConfig, WebhookConversion,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, ObjectMeta, Patch, PatchParams, PostParams},
    core::admission::Operation,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{WebhookServer, paths};

/// Whether a webhook mutates or validates objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookType {
    /// It changes objects: a defaulter.
    Mutating,
    /// It checks objects: a validator.
    Validating,
}

/// What happens to a request when its webhook cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// The request fails.
    #[default]
    Fail,
    /// The request goes on.
    Ignore,
}

/// When an API server calls a webhook, and what happens if it cannot.
#[derive(Debug, Clone)]
pub struct WebhookRules {
    /// The name in the configuration; by default made of type, version and resource, such as
    /// `mutate.v1.widgets.example.com`. It needs at least three parts.
    pub name: Option<String>,
    /// The operations it is called for. By default create and update, and for validators also delete.
    pub operations: Option<Vec<Operation>>,
    /// Subresources that it is also called for, such as `status`.
    pub sub_resources: Vec<String>,
    /// What happens if it cannot be called: by default, the request fails.
    pub failure_policy: FailurePolicy,
    /// Whether it has side effects, except on dry runs. By default none.
    pub side_effects: bool,
    /// The timeout of a call, in whole seconds from 1 to 30: 10 s by default.
    pub timeout: Duration,
    /// Whether a defaulter is called again after other webhooks changed the object. Off by default.
    pub reinvoke: bool,
    /// Only objects in namespaces with these labels.
    pub namespace_selector: Option<LabelSelector>,
    /// Only objects with these labels.
    pub object_selector: Option<LabelSelector>,
    /// Only requests for which these CEL expressions are true.
    pub match_conditions: Vec<MatchCondition>,
}

impl Default for WebhookRules {
    fn default() -> WebhookRules {
        WebhookRules {
            name: None,
            operations: None,
            sub_resources: Vec::new(),
            failure_policy: FailurePolicy::Fail,
            side_effects: false,
            timeout: Duration::from_secs(10),
            reinvoke: false,
            namespace_selector: None,
            object_selector: None,
            match_conditions: Vec::new(),
        }
    }
}

/// A webhook that is registered for a kind.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Whether it mutates or validates.
    pub webhook_type: WebhookType,
    /// Its path.
    pub path: String,
    /// The kind it is for.
    pub resource: ApiResource,
    /// When it is called.
    pub rules: WebhookRules,
}

/// Where an API server reaches the webhook server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// At a URL, to which paths are appended: `https://127.0.0.1:9443`.
    Url(String),
    /// Through a Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port; 443 if none is given.
        port: Option<u16>,
    },
}

impl Endpoint {
    /// At a URL: `https://host:port`.
    pub fn url(url: impl Into<String>) -> Endpoint {
        Endpoint::Url(url.into())
    }

    /// Through a Service on port 443.
    pub fn service(namespace: impl Into<String>, name: impl Into<String>) -> Endpoint {
        Endpoint::Service { namespace: namespace.into(), name: name.into(), port: None }
    }
}

/// Generates the configuration objects of a server's webhooks.
///
/// ```
/// # use k1s_env::Env;
/// # use k1s_runtime::webhook::{Endpoint, Webhook, WebhookConfiguration, WebhookServer};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # let server = WebhookServer::new(&Env::system(), Default::default());
/// # Webhook::for_::<ConfigMap>().default_with(|_, _| Ok(())).complete(&server)?;
/// let configuration = WebhookConfiguration::new("my-operator", Endpoint::service("system", "my-operator"));
/// let mutating = configuration.mutating(&server).expect("there is a defaulter");
/// assert_eq!(mutating.webhooks.unwrap()[0].name, "mutate.v1.configmaps.core");
/// # Ok::<(), k1s_runtime::webhook::RegisterError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WebhookConfiguration {
    name: String,
    endpoint: Endpoint,
    ca_bundle: Option<ByteString>,
}

impl WebhookConfiguration {
    /// Configuration objects of this name, for a webhook server at this endpoint.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> WebhookConfiguration {
        WebhookConfiguration { name: name.into(), endpoint, ca_bundle: None }
    }

    /// The CA of the server's certificate, as PEM.
    #[must_use]
    pub fn ca_bundle(mut self, pem: impl Into<Vec<u8>>) -> WebhookConfiguration {
        self.ca_bundle = Some(ByteString(pem.into()));
        self
    }

    /// The configuration of the server's defaulters, if it has any.
    #[must_use]
    pub fn mutating(&self, server: &WebhookServer) -> Option<MutatingWebhookConfiguration> {
        let webhooks: Vec<_> = of_type(server, WebhookType::Mutating)
            .map(|it| MutatingWebhook {
                name: it.name(),
                admission_review_versions: review_versions(),
                client_config: self.client_config(&it.path),
                rules: Some(vec![it.rule()]),
                side_effects: it.side_effects(),
                failure_policy: Some(it.failure_policy()),
                timeout_seconds: Some(it.timeout_seconds()),
                reinvocation_policy: it.rules.reinvoke.then(|| "IfNeeded".into()),
                match_conditions: it.match_conditions(),
                namespace_selector: it.rules.namespace_selector,
                object_selector: it.rules.object_selector,
                ..MutatingWebhook::default()
            })
            .collect();
        (!webhooks.is_empty())
            .then(|| MutatingWebhookConfiguration { metadata: self.metadata(), webhooks: Some(webhooks) })
    }

    /// The configuration of the server's validators, if it has any.
    #[must_use]
    pub fn validating(&self, server: &WebhookServer) -> Option<ValidatingWebhookConfiguration> {
        let webhooks: Vec<_> = of_type(server, WebhookType::Validating)
            .map(|it| ValidatingWebhook {
                name: it.name(),
                admission_review_versions: review_versions(),
                client_config: self.client_config(&it.path),
                rules: Some(vec![it.rule()]),
                side_effects: it.side_effects(),
                failure_policy: Some(it.failure_policy()),
                timeout_seconds: Some(it.timeout_seconds()),
                match_conditions: it.match_conditions(),
                namespace_selector: it.rules.namespace_selector,
                object_selector: it.rules.object_selector,
                ..ValidatingWebhook::default()
            })
            .collect();
        (!webhooks.is_empty())
            .then(|| ValidatingWebhookConfiguration { metadata: self.metadata(), webhooks: Some(webhooks) })
    }

    /// The `spec.conversion` of a custom resource definition.
    #[must_use]
    pub fn conversion(&self) -> CustomResourceConversion {
        let (url, service) = match &self.endpoint {
            Endpoint::Url(_) => (Some(self.url(paths::CONVERT)), None),
            Endpoint::Service { namespace, name, port } => {
                let service = CrdServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(paths::CONVERT.into()),
                    port: port.map(Into::into),
                };
                (None, Some(service))
            }
        };
        CustomResourceConversion {
            strategy: "Webhook".into(),
            webhook: Some(WebhookConversion {
                client_config: Some(CrdWebhookClientConfig {
                    ca_bundle: self.ca_bundle.clone(),
                    service,
                    url,
                }),
                conversion_review_versions: review_versions(),
            }),
        }
    }

    /// Creates the configuration objects, or updates existing ones.
    ///
    /// # Errors
    /// Errors of the API server.
    pub async fn install(&self, client: &Client, server: &WebhookServer) -> Result<(), kube::Error> {
        if let Some(mutating) = self.mutating(server) {
            install(client, &self.name, &mutating).await?;
        }
        if let Some(validating) = self.validating(server) {
            install(client, &self.name, &validating).await?;
        }
        Ok(())
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() }
    }

    fn url(&self, path: &str) -> String {
        match &self.endpoint {
            Endpoint::Url(url) => format!("{}{path}", url.trim_end_matches('/')),
            Endpoint::Service { .. } => String::new(),
        }
    }

    fn client_config(&self, path: &str) -> WebhookClientConfig {
        let ca_bundle = self.ca_bundle.clone();
        match &self.endpoint {
            Endpoint::Url(_) => WebhookClientConfig { ca_bundle, url: Some(self.url(path)), service: None },
            Endpoint::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                url: None,
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path.into()),
                    port: port.map(Into::into),
                }),
            },
        }
    }
}

fn review_versions() -> Vec<String> {
    vec!["v1".into()]
}

fn of_type(server: &WebhookServer, webhook_type: WebhookType) -> impl Iterator<Item = Registration> {
    server.registrations().into_iter().filter(move |it| it.webhook_type == webhook_type)
}

async fn install<K>(client: &Client, name: &str, object: &K) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let missing = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_not_found());
    let exists =
        |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_already_exists());
    let patch = Patch::Merge(object);
    match api.patch(name, &PatchParams::default(), &patch).await {
        Err(error) if missing(&error) => match api.create(&PostParams::default(), object).await {
            // Created concurrently, most likely by another replica.
            Err(error) if exists(&error) => {
                api.patch(name, &PatchParams::default(), &patch).await?;
            }
            created => {
                created?;
            }
        },
        patched => {
            patched?;
        }
    }
    Ok(())
}

impl Registration {
    fn name(&self) -> String {
        self.rules.name.clone().unwrap_or_else(|| {
            let what = match self.webhook_type {
                WebhookType::Mutating => "mutate",
                WebhookType::Validating => "validate",
            };
            let ApiResource { group, version, plural, .. } = &self.resource;
            let group = if group.is_empty() { "core" } else { group };
            format!("{what}.{version}.{plural}.{group}")
        })
    }

    fn rule(&self) -> RuleWithOperations {
        let default: &[Operation] = match self.webhook_type {
            WebhookType::Mutating => &[Operation::Create, Operation::Update],
            WebhookType::Validating => &[Operation::Create, Operation::Update, Operation::Delete],
        };
        let operations = self.rules.operations.as_deref().unwrap_or(default);
        let operation = |operation: &Operation| match operation {
            Operation::Create => "CREATE".to_owned(),
            Operation::Update => "UPDATE".to_owned(),
            Operation::Delete => "DELETE".to_owned(),
            Operation::Connect => "CONNECT".to_owned(),
        };
        let plural = &self.resource.plural;
        let subresources = self.rules.sub_resources.iter().map(|name| format!("{plural}/{name}"));
        RuleWithOperations {
            api_groups: Some(vec![self.resource.group.clone()]),
            api_versions: Some(vec![self.resource.version.clone()]),
            operations: Some(operations.iter().map(operation).collect()),
            resources: Some(std::iter::once(plural.clone()).chain(subresources).collect()),
            scope: None,
        }
    }

    fn side_effects(&self) -> String {
        if self.rules.side_effects { "NoneOnDryRun".into() } else { "None".into() }
    }

    fn failure_policy(&self) -> String {
        match self.rules.failure_policy {
            FailurePolicy::Fail => "Fail".into(),
            FailurePolicy::Ignore => "Ignore".into(),
        }
    }

    fn timeout_seconds(&self) -> i32 {
        i32::try_from(self.rules.timeout.as_secs().clamp(1, 30)).unwrap_or(30)
    }

    fn match_conditions(&self) -> Option<Vec<MatchCondition>> {
        (!self.rules.match_conditions.is_empty()).then(|| self.rules.match_conditions.clone())
    }
}
