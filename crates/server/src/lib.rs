//! A Kubernetes API server without nodes, as a [`tower::Service`].
//!
//! [`ApiServer`] serves Kubernetes' HTTP API over a [`k1s_store::Store`]: to a `kube::Client` in the same process with
//! no socket between them, or, through [`serve`], to kubectl and every other client over HTTP and HTTPS.
//!
//! The modules follow the path of a request: `pipeline` lists its steps; `request` and `negotiate` parse it; `auth` and
//! `authz` authenticate and authorize it; `verbs`, `read`, `watch`, `delete` and `subresource` answer it; every change goes
//! through `write` and `admission`; lists and watches are served from `cache`; `stored` is the format of objects in the store.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use std::sync::Arc;
//!
//! use http_body_util::BodyExt as _;
//! use k1s_server::{ApiServer, Body, ServerOptions, User};
//! use tower::Service as _;
//!
//! let env = k1s_env::Env::system();
//! let store = Arc::new(k1s_store::MemoryStore::default());
//! let server = ApiServer::new(env, store, ServerOptions::default()).await.unwrap();
//! let mut client = server.as_user(User::admin());
//! let request = http::Request::get("/api/v1/namespaces/default").body(Body::empty()).unwrap();
//! let answer = client.call(request).await.unwrap();
//! assert_eq!(answer.status(), 200);
//! # }
//! ```

mod admission;
mod advertise;
mod aggregation;
mod aggregator;
mod apply;
mod audit;
mod auth;
mod authorization;
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "some of it is for webhooks over HTTPS"))]
mod authz;
mod body;
mod bootstrap;
mod cache;
mod capacity;
mod catalog;
mod closing;
mod context;
mod controllers;
mod conversion;
mod converted;
mod dangling;
mod delete;
mod der;
mod discovery;
mod documents;
mod errors;
mod escalation;
mod fairness;
mod flow;
mod health;
mod hooks;
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "some of it is for webhooks over HTTPS"))]
mod https;
mod identity;
mod input;
mod keys;
mod lifecycle;
mod limits;
mod managed;
mod metadata;
mod metrics;
mod negotiate;
mod node_graph;
mod objectmeta;
mod openapi;
mod options;
mod paging;
mod parts;
mod pem;
mod pipeline;
#[cfg(feature = "tls")]
mod pki;
mod plugins;
mod pretty;
mod probe;
mod projects;
mod rbac;
mod read;
mod registry;
mod reload;
mod request;
mod resource;
mod respond;
mod select;
mod serve;
mod server;
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "some of it is for webhooks over HTTPS"))]
mod services;
mod shared_call;
mod stored;
mod subresource;
mod table;
mod tenant;
mod tenants;
mod time;
mod type_checking;
mod unenforced;
mod unfinished;
mod verbs;
mod watch;
mod webhook;
mod write;

pub use audit::{
    AuditLogOptions, AuditMode, AuditOptions, AuditPolicy, AuditPolicyError, AuditQueueOptions,
    AuditThrottle, AuditTruncation, AuditWebhookOptions,
};
pub use authorization::{
    AuthorizationError, AuthorizationMode, AuthorizationOptions, AuthorizationWebhook, AuthorizerOptions,
    ReviewVersion,
};
pub use body::Body;
pub use identity::{
    Algorithm, AnonymousOptions, AuthenticationConfiguration, AuthenticationOptions, ClaimMappings,
    ClaimOrExpression, ClaimValidationRule, ConfigurationError, ExtraMapping, Issuer, JwtAuthenticator,
    JwtError, KeyError, PrefixedClaimOrExpression, PublicKeys, RequestHeaderError, RequestHeaderOptions,
    ServiceAccountError, ServiceAccountOptions, SigningKey, TokenWebhookError, TokenWebhookOptions, Tokens,
    User, UserValidationRule,
};
pub use k1s_object::Status;
pub use limits::{ConnectionOptions, LimitOptions};
pub use options::{CONTROLLERS_LEASE, HealthCheck, ServerOptions, TenantEvent, TenantHook};
#[cfg(feature = "tls")]
pub use pki::{
    Authority, CertificateInfo, PkiError, Signing, SigningError, SigningRequest, TlsFiles, certificate,
    certificate_end, inspect, kubelet_client_name, timestamp,
};
pub use plugins::{AdmissionPlugins, PluginError};
#[cfg(feature = "tls")]
pub use serve::{
    ClientTrust, NamedCertificate, ServedCertificate, TlsNameError, TlsOptions, TlsProtocol, TlsVersion,
};
pub use serve::{Listener, serve};
pub use server::ApiServer;
pub use services::{AggregationOptions, LocalServices, ProxyClient, RequestBody, ServiceOptions};
