//! `CertificateSigningRequests`: approves those that may be approved automatically, has approved ones signed, and deletes old
//! ones, as Kubernetes' controllers do.
//!
//! Who signs is given by the program ([`CertificateSigner`]): this crate knows nothing of certificates.

mod age;
mod approval;

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use k1s_env::Env;
use k1s_runtime::{
    Action, BoxError, Context, Kind, Manager, ObjectKey, Reconciler, Request,
    client::{Client, DeleteOptions, KindClient, Patch},
    controller::{BuildError, Builder},
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::feed::{Feed, Interest, Signal};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";

/// What a `CertificateSigningRequest` asks for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CertificateRequest<'a> {
    /// The tenant that it is in; empty if these are the controllers of one cluster.
    pub tenant: &'a str,
    /// `spec.signerName`.
    pub signer: &'a str,
    /// `spec.request`: PEM in base64.
    pub request: &'a str,
    /// `spec.usages`.
    pub usages: &'a [String],
    /// `spec.expirationSeconds`.
    pub expiration_seconds: Option<i64>,
    /// Maximum validity, and that of requests that ask for none.
    pub validity: Duration,
}

/// Signs approved requests.
pub trait CertificateSigner: fmt::Debug + Send + Sync {
    /// The certificate, as in `status.certificate`; `None` for requests that another signer signs.
    ///
    /// # Errors
    /// Why the request is not signed, now or ever.
    fn sign(&self, request: &CertificateRequest<'_>) -> Result<Option<String>, SignError>;

    /// The `CN` of a request that is a proper one for the client certificate of a kubelet.
    fn kubelet_client_name(&self, request: &CertificateRequest<'_>) -> Option<String>;

    /// When a certificate expires, in seconds since 1970.
    fn certificate_end(&self, certificate: &str) -> Option<i64>;
}

/// Why a request is not signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// It never will be: its condition `Failed` says why.
    #[error("{message}")]
    Failed {
        /// The reason of the condition.
        reason: &'static str,
        /// The message of the condition.
        message: String,
    },
    /// It is tried again.
    #[error("{0}")]
    Later(String),
}

/// A shared [`CertificateSigner`]. Two of them are equal if they are the same one.
#[derive(Debug, Clone)]
pub struct SharedSigner(Arc<dyn CertificateSigner>);

impl SharedSigner {
    /// Shares a signer.
    pub fn new(signer: impl CertificateSigner + 'static) -> SharedSigner {
        SharedSigner(Arc::new(signer))
    }
}

impl PartialEq for SharedSigner {
    fn eq(&self, other: &SharedSigner) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedSigner {}

/// Settings of the controller of `CertificateSigningRequests`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificatesOptions {
    /// Who signs. `None` by default: requests are only approved and deleted.
    pub signer: Option<SharedSigner>,
    /// Maximum validity of a certificate, and that of requests that ask for none. A year by default.
    pub validity: Duration,
    /// Whether requests of the signer `kubernetes.io/kube-apiserver-client` are approved if their requester may approve
    /// them. Off by default.
    pub auto_approve: bool,
    /// The tenant that the controllers are for.
    pub(crate) tenant: Arc<str>,
}

impl Default for CertificatesOptions {
    fn default() -> CertificatesOptions {
        CertificatesOptions {
            signer: None,
            validity: Duration::from_secs(365 * 24 * 3600),
            auto_approve: false,
            tenant: "".into(),
        }
    }
}

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed, options: CertificatesOptions) -> Result<(), BuildError> {
    let gvk = GroupVersionKind::gvk(GROUP, "v1", "CertificateSigningRequest");
    let kind = Kind::<DynamicObject>::dynamic(ApiResource::from_gvk_with_plural(&gvk, PLURAL));
    let requests = Requests {
        requests: feed.client().kind(kind),
        client: feed.client().clone(),
        env: feed.env().clone(),
        options,
    };
    let controller = Builder::<Request>::new(manager)
        .named("certificatesigningrequest")
        .watches_raw_source(feed.source())
        .build(requests)?;
    let queue = controller.queue().clone();
    feed.want([Interest::all(GROUP, PLURAL)]);
    feed.listen(move |signal| match signal {
        Signal::Stored(resource, meta) if resource.is(GROUP, PLURAL) => {
            queue.add(ObjectKey::cluster(&*meta.name));
        }
        Signal::Deleted(resource, meta) if resource.is(GROUP, PLURAL) => {
            queue.remove(&ObjectKey::cluster(&*meta.name));
        }
        _ => {}
    });
    Ok(())
}

struct Requests {
    requests: KindClient<DynamicObject>,
    client: Client,
    env: Env,
    options: CertificatesOptions,
}

/// The conditions of a request.
fn conditions(request: &DynamicObject) -> &[Value] {
    request.data["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}

fn has(request: &DynamicObject, kind: &str) -> bool {
    conditions(request).iter().any(|condition| condition["type"] == kind)
}

/// The certificate, empty while there is none.
fn certificate(request: &DynamicObject) -> &str {
    request.data["status"]["certificate"].as_str().unwrap_or_default()
}

impl Reconciler<Request> for Requests {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(found) = self.requests.live().get_opt(&request).await? else { return Ok(Action::done()) };
        let mut found = DynamicObject::clone(&found);
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(Action::done());
        }
        let now = Timestamp::try_from(self.env.wall())?;
        let end = |certificate: &str| {
            let signer = self.options.signer.as_ref()?;
            Timestamp::from_second(signer.0.certificate_end(certificate)?).ok()
        };
        if age::due(&found, end).is_some_and(|due| due < now) {
            return match self.requests.delete_with(&request, DeleteOptions::exactly(&found)).await {
                Err(error) if error.is_conflict() => Ok(Action::requeue_with_backoff()),
                Err(error) if !error.is_not_found() => Err(error.into()),
                _ => Ok(Action::done()),
            };
        }
        self.approve(&mut found).await?;
        self.sign(&mut found, now).await?;
        // Until it has to be deleted.
        let Some(due) = age::due(&found, end) else { return Ok(Action::done()) };
        let left = Duration::try_from(due.duration_since(now)).unwrap_or_default();
        Ok(Action::requeue_after(left + Duration::from_secs(1)))
    }
}

impl Requests {
    async fn sign(&self, found: &mut DynamicObject, now: Timestamp) -> Result<(), BoxError> {
        let Some(signer) = &self.options.signer else { return Ok(()) };
        let approved = has(found, "Approved") && !has(found, "Denied");
        if !approved || has(found, "Failed") || !certificate(found).is_empty() {
            return Ok(());
        }
        let usages = approval::usages(found);
        let status = match signer.0.sign(&self.asked(found, &usages)) {
            Ok(None) => return Ok(()),
            Ok(Some(certificate)) => json!({ "certificate": certificate }),
            Err(SignError::Failed { reason, message }) => {
                let mut all = conditions(found).to_vec();
                all.push(json!({"type": "Failed", "status": "True", "reason": reason, "message": message,
                    "lastUpdateTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}));
                json!({ "conditions": all })
            }
            Err(error @ SignError::Later(_)) => return Err(format!("error auto signing csr: {error}").into()),
        };
        self.patch(found, "status", &status).await
    }

    fn asked<'a>(&'a self, found: &'a DynamicObject, usages: &'a [String]) -> CertificateRequest<'a> {
        let spec = &found.data["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default();
        CertificateRequest {
            tenant: &self.options.tenant,
            signer: text("signerName"),
            request: text("request"),
            usages,
            expiration_seconds: spec["expirationSeconds"].as_i64(),
            validity: self.options.validity,
        }
    }

    /// Changes the status of a request, if it is still the same.
    async fn patch(&self, found: &mut DynamicObject, part: &str, status: &Value) -> Result<(), BoxError> {
        let patch =
            json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "status": status});
        let key = ObjectKey::cluster(found.metadata.name.as_deref().unwrap_or_default());
        *found = self.requests.sub_resource(part).patch(&key, Patch::merge(&patch)).await?;
        Ok(())
    }
}
