//! Webhooks: what an API server asks before it stores an object, and to convert one version of it into another.
//!
//! - [`WebhookServer`]: handlers by path; HTTPS with certificates that are read again when they change
//!   ([`run`](WebhookServer::run)), and a door in process ([`handle`](WebhookServer::handle)).
//! - [`Webhook`]: the builder that puts the [`Defaulter`](admission::Defaulter) and the
//!   [`Validator`](admission::Validator) of a kind at their paths.
//! - [`admission`], [`conversion`]: what they are made of.
//! - [`WebhookConfiguration`]: the objects that tell an API server about them.
//! - [`certs`], [`inject`]: certificates for development, and how their authority becomes known.
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
