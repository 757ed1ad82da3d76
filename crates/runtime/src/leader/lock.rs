//! The Lease on the server. All writes are compare-and-swap.

use std::{collections::BTreeMap, future::Future, time::Duration};

use k1s_env::Env;
use k8s_openapi::api::coordination::v1;
use kube::{
    Api, Client,
    api::{ApiResource, PostParams},
};

use super::{LeaderElectionOptions, record::Lease};

pub(super) struct LeaseLock {
    pub(super) env: Env,
    pub(super) options: LeaderElectionOptions,
    /// Labels and annotations that an acquisition adds to the Lease.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    api: Api<Lease>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The Lease was changed since it was read; nothing was written.
    #[error("the lease was changed by another client")]
    Conflict,
    /// The Lease does not exist; nothing was written.
    #[error("there is no such lease")]
    Missing,
    /// The server rejected the request; nothing was written.
    #[error("{0}")]
    Refused(String),
    /// The server failed. The write may have been applied.
    #[error("{0}")]
    Failed(String),
    /// No response: the write may have been applied, or may still be.
    #[error("{0}")]
    NoAnswer(String),
}

impl LeaseLock {
    pub(super) fn new(client: Client, env: Env, options: LeaderElectionOptions) -> LeaseLock {
        let api = Api::namespaced_with(client, &options.namespace, &resource());
        LeaseLock { env, options, labels: BTreeMap::new(), annotations: BTreeMap::new(), api }
    }

    /// `namespace/name`, for logs.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.options.namespace, self.options.id)
    }

    /// A new Lease, not yet on the server.
    pub(super) fn blank(&self) -> Lease {
        Lease::new(&self.options.id, &resource()).within(&self.options.namespace)
    }

    /// Adds the labels and annotations to a Lease that is about to be acquired.
    pub(super) fn describe(&self, lease: &mut Lease) {
        if !self.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.labels.clone());
        }
        if !self.annotations.is_empty() {
            lease.metadata.annotations.get_or_insert_default().extend(self.annotations.clone());
        }
    }

    pub(super) async fn get(&self) -> Result<Option<Lease>, CallError> {
        self.call(self.api.get_opt(&self.options.id)).await
    }

    pub(super) async fn create(&self, lease: &Lease) -> Result<Lease, CallError> {
        self.call(self.api.create(&PostParams::default(), lease)).await
    }

    /// Replaces the Lease, if it has not changed since it was read.
    pub(super) async fn update(&self, lease: &Lease) -> Result<Lease, CallError> {
        if lease.metadata.resource_version.as_deref().unwrap_or_default().is_empty() {
            // Without one, the server would overwrite unconditionally.
            return Err(CallError::Refused("the server gave the lease no resourceVersion".to_owned()));
        }
        self.call(self.api.replace(&self.options.id, &PostParams::default(), lease)).await
    }

    fn call_timeout(&self) -> Duration {
        call_timeout(self.options.renew_deadline)
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        bounded(&self.env, self.call_timeout(), call).await
    }
}

/// Maximum duration of a call: leaves time for two more before the renew deadline.
pub(crate) fn call_timeout(renew_deadline: Duration) -> Duration {
    renew_deadline / 3
}

/// A call of at most this duration.
pub(crate) async fn bounded<T>(
    env: &Env,
    limit: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, CallError> {
    match env.timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(CallError::from(error)),
        Err(elapsed) => Err(CallError::NoAnswer(format!("no response: {elapsed}"))),
    }
}

pub(crate) fn resource() -> ApiResource {
    ApiResource::erase::<v1::Lease>(&())
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> CallError {
        match &error {
            kube::Error::Api(status) => match status.code {
                404 => CallError::Missing,
                409 => CallError::Conflict,
                400..500 => CallError::Refused(status.message.clone()),
                _ => CallError::Failed(status.message.clone()),
            },
            _ => CallError::NoAnswer(error.to_string()),
        }
    }
}
