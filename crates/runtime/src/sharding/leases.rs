//! The Leases of a group on the server. All writes of the table are compare-and-swap.

use std::{future::Future, time::Duration};

use k1s_env::Env;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};

use super::{
    Inner, ShardingError,
    members::GROUP,
    table::{TABLE, Table},
};
use crate::leader::{
    lock::{CallError, bounded, call_timeout, resource},
    record::Lease,
};

pub(super) struct Leases {
    env: Env,
    api: Api<Lease>,
    namespace: String,
    group: String,
    table: String,
    call_timeout: Duration,
}

impl Leases {
    pub(super) fn new(inner: &Inner) -> Leases {
        let namespace = inner.member.namespace.clone();
        Leases {
            env: inner.env.clone(),
            api: Api::namespaced_with(inner.client.clone(), &namespace, &resource()),
            namespace,
            group: inner.options.name.clone(),
            table: inner.options.table_name(),
            call_timeout: call_timeout(inner.options.renew_deadline),
        }
    }

    /// The Lease with the table, if there is one, and those of the members.
    pub(super) async fn read(&self) -> Result<(Option<Lease>, Vec<Lease>), CallError> {
        let params = ListParams::default().labels(&format!("{GROUP}={}", self.group));
        let found = self.call(self.api.list(&params)).await?.items;
        let is_table = |lease: &Lease| lease.metadata.name.as_ref() == Some(&self.table);
        let (table, members): (Vec<_>, Vec<_>) = found.into_iter().partition(is_table);
        Ok((table.into_iter().next(), members))
    }

    pub(super) async fn read_table(&self) -> Result<Lease, CallError> {
        self.call(self.api.get(&self.table)).await
    }

    pub(super) async fn create(&self, table: &Table) -> Result<(), CallError> {
        let mut lease = Lease::new(&self.table, &resource());
        lease.metadata.labels.get_or_insert_default().insert(GROUP.to_owned(), self.group.clone());
        record(&mut lease, table);
        self.call(self.api.create(&PostParams::default(), &lease)).await.map(drop)
    }

    /// Replaces the table, if it has not changed since it was read.
    pub(super) async fn replace(&self, mut lease: Lease, table: &Table) -> Result<(), CallError> {
        if lease.metadata.resource_version.as_deref().unwrap_or_default().is_empty() {
            // Without one, the server would overwrite unconditionally.
            return Err(CallError::Refused("the server gave the table no resourceVersion".to_owned()));
        }
        record(&mut lease, table);
        self.call(self.api.replace(&self.table, &PostParams::default(), &lease)).await.map(drop)
    }

    /// Deletes a Lease, if it has not changed since it was read.
    pub(super) async fn delete(&self, lease: Lease) -> Result<(), CallError> {
        let (name, uid, resource_version) =
            (lease.metadata.name.unwrap_or_default(), lease.metadata.uid, lease.metadata.resource_version);
        let preconditions = Some(Preconditions { uid, resource_version });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        self.call(self.api.delete(&name, &params)).await.map(drop)
    }

    pub(super) fn parse(&self, lease: &Lease) -> Result<Table, ShardingError> {
        let annotations = lease.metadata.annotations.as_ref();
        let text = annotations.and_then(|annotations| annotations.get(TABLE)).map_or("", String::as_str);
        Table::parse(text).map_err(|problem| ShardingError::InvalidTable {
            lease: format!("{}/{}", self.namespace, self.table),
            problem: problem.to_string(),
        })
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        bounded(&self.env, self.call_timeout, call).await
    }
}

fn record(lease: &mut Lease, table: &Table) {
    lease.metadata.annotations.get_or_insert_default().insert(TABLE.to_owned(), table.encode());
}
