//! The Lease on the server: read, and changed by compare-and-swap only.

use std::{future::Future, time::Duration};

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
    api: Api<Lease>,
}

/// Why a call did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// Somebody else was first; nothing was changed.
    #[error("the lease was changed by somebody else")]
    Conflict,
    /// There is no such Lease; nothing was changed.
    #[error("there is no such lease")]
    Missing,
    /// The server said no; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// The server failed. Nobody knows whether it was done.
    #[error("{0}")]
    Failed(String),
    /// Nobody knows whether it was done, or will be.
    #[error("{0}")]
    NoAnswer(String),
}

impl LeaseLock {
    pub(super) fn new(client: Client, env: Env, options: LeaderElectionOptions) -> LeaseLock {
        let api = Api::namespaced_with(client, &options.namespace, &resource());
        LeaseLock { env, options, api }
    }

    /// `namespace/name`, for people.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.options.namespace, self.options.id)
    }

    /// A Lease that is not there yet.
    pub(super) fn blank(&self) -> Lease {
        Lease::new(&self.options.id, &resource()).within(&self.options.namespace)
    }

    pub(super) async fn get(&self) -> Result<Option<Lease>, CallError> {
        self.call(self.api.get_opt(&self.options.id)).await
    }

    pub(super) async fn create(&self, lease: &Lease) -> Result<Lease, CallError> {
        self.call(self.api.create(&PostParams::default(), lease)).await
    }

    /// Puts the Lease in place of the one that it was made from.
    pub(super) async fn update(&self, lease: &Lease) -> Result<Lease, CallError> {
        if lease.metadata.resource_version.as_deref().unwrap_or_default().is_empty() {
            // Without it, the server would overwrite whatever is there.
            return Err(CallError::Refused("the server gave the lease no resourceVersion".to_owned()));
        }
        self.call(self.api.replace(&self.options.id, &PostParams::default(), lease)).await
    }

    /// A call that hangs is given up while there is time for two more.
    fn patience(&self) -> Duration {
        self.options.renew_deadline / 3
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        match self.env.timeout(self.patience(), call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(CallError::from(error)),
            Err(elapsed) => Err(CallError::NoAnswer(format!("no answer: {elapsed}"))),
        }
    }
}

fn resource() -> ApiResource {
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
