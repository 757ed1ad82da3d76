//! Webhooks: called by an API server before it stores an object, and to convert between versions.
//!
//! - [`WebhookServer`]: handlers by path, served over HTTPS with certificates that are reloaded when they change
//!   ([`run`](WebhookServer::run)), and in process ([`handle`](WebhookServer::handle)).
//! - [`Webhook`]: the builder that registers the [`Defaulter`](admission::Defaulter) and the
//!   [`Validator`](admission::Validator) of a kind at their paths.
//! - [`admission`], [`conversion`]: their building blocks.
//! - [`WebhookConfiguration`]: the objects that configure an API server to call them.
//! - [`certs`], [`inject`]: certificates for development, and injection of their CA.
//!
//! ```no_run
//! use k1s_env::Env;
//! use k1s_runtime::webhook::{
//!     Endpoint, Webhook, WebhookConfiguration, WebhookOptions, WebhookServer,
//!     certs::{DevCertificate, DevCertificateOptions},
//! };
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn main_(client: kube::Client) -> Result<(), k1s_runtime::BoxError> {
//! let env = Env::system();
//! let options = WebhookOptions { cert_dir: "./certs".into(), ..WebhookOptions::default() };
//! let certificate = DevCertificate::open(&env, DevCertificateOptions::new("./certs", ["localhost"]))?;
//!
//! let server = WebhookServer::new(&env, options);
//! Webhook::for_::<ConfigMap>()
//!     .validate_with(|validation, _| match validation.object() {
//!         Some(object) if object.data.is_none() => Err("data is needed".into()),
//!         _ => Ok(vec![]),
//!     })
//!     .complete(&server)?;
//!
//! WebhookConfiguration::new("example", Endpoint::url("https://localhost:9443"))
//!     .ca_bundle(certificate.ca_bundle())
//!     .install(&client, &server)
//!     .await?;
//! server.run(CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```

pub mod admission;
mod builder;
pub mod certs;
mod configuration;
pub mod conversion;
pub mod inject;
mod listen;
mod metrics;
pub mod paths;
mod server;
mod wire;

pub use builder::Webhook;
pub use configuration::{
    Endpoint, FailurePolicy, Registration, WebhookConfiguration, WebhookRules, WebhookType,
};
pub use inject::{InjectInto, inject_ca};
pub use listen::WebhookError;
pub use server::{Hook, RegisterError, WebhookOptions, WebhookServer};
pub use wire::HttpHandler;
