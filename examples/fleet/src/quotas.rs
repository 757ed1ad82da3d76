//! A uniform controller: every namespace of every project has a quota. Nothing here knows that there are many clusters, except
//! that the client is that of the run's cluster.

use k1s::{
    Action, BoxError, Context, Request,
    controller::{
        BuildError,
        reconcile::with_state,
        util::{OperationResult, create_or_update, set_controller_reference},
    },
    kind,
    multicluster::{Controller, MultiClusterManager},
};
use k8s_openapi::{
    api::core::v1::{Namespace, ResourceQuota, ResourceQuotaSpec},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::api::ObjectMeta;

use crate::Log;

pub(crate) fn add(manager: &MultiClusterManager, log: Log) -> Result<(), BuildError> {
    Controller::managed_by(manager)
        .named("quotas")
        .for_(kind::<Namespace>())
        .owns(kind::<ResourceQuota>())
        .complete(with_state(log, reconcile))
}

async fn reconcile(log: Log, request: Request, context: Context) -> Result<Action, BoxError> {
    let client = context.cluster().client();
    let Some(namespace) = client.get_opt::<Namespace>(&request).await? else { return Ok(Action::done()) };
    if namespace.metadata.deletion_timestamp.is_some() || request.name().starts_with("kube-") {
        return Ok(Action::done());
    }
    let metadata = ObjectMeta {
        name: Some("default".to_owned()),
        namespace: Some(request.name().to_owned()),
        ..ObjectMeta::default()
    };
    let skeleton = ResourceQuota { metadata, ..ResourceQuota::default() };
    let (_, done) = create_or_update(client, skeleton, |quota| {
        let hard = [("count/configmaps".to_owned(), Quantity("100".to_owned()))];
        quota.spec = Some(ResourceQuotaSpec { hard: Some(hard.into()), ..ResourceQuotaSpec::default() });
        set_controller_reference(&*namespace, quota)
    })
    .await?;
    if done != OperationResult::Unchanged {
        log.say(format!("{}: quota of namespace {} {done}", context.cluster().name(), request.name()));
    }
    Ok(Action::done())
}
