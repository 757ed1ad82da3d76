//! Another client of the same etcd, which is not limited to a root.

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Result, Revision};
use tokio_util::sync::CancellationToken;

use crate::{
    ConnectError, EtcdOptions,
    client::Client,
    connections::Connections,
    failure::Failure,
    keys::{number, revision},
    proto::{self, ResponseHeader},
};

/// Does what other clients of an etcd do: writes any key, compacts.
#[derive(Clone, Debug)]
pub struct RawClient {
    client: Client,
}

impl RawClient {
    /// A client of the endpoints of `options`; the root is ignored. Connects when it is first used.
    ///
    /// # Errors
    /// If these are not endpoints.
    pub fn new(env: &Env, options: &EtcdOptions) -> Result<Self, ConnectError> {
        let connections = Connections::new(env.clone());
        Ok(Self { client: Client::new(env, options, &connections, CancellationToken::new())? })
    }

    /// The newest revision.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn revision(&self) -> Result<Revision> {
        let request = proto::RangeRequest {
            key: Bytes::from_static(b"/"),
            count_only: true,
            ..proto::RangeRequest::default()
        };
        let answer: proto::RangeResponse =
            self.client.read(proto::RANGE, &request).await.map_err(Failure::of_read)?;
        Ok(reached(answer.header))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>> {
        let request = proto::RangeRequest { key: key.into(), ..proto::RangeRequest::default() };
        let answer: proto::RangeResponse =
            self.client.read(proto::RANGE, &request).await.map_err(Failure::of_read)?;
        Ok(answer.kvs.into_iter().next().map(|kv| kv.value))
    }

    /// Gives a key a value.
    ///
    /// # Errors
    /// If etcd does not answer, or has no room.
    pub async fn put(&self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<Revision> {
        let request = proto::PutRequest { key: key.into(), value: value.into() };
        let answer: proto::PutResponse =
            self.client.write(proto::PUT, &request).await.map_err(Failure::of_write)?;
        Ok(reached(answer.header))
    }

    /// Compacts to a revision that is not compacted yet.
    ///
    /// # Errors
    /// If it is, or if etcd does not answer.
    pub async fn compact(&self, to: Revision) -> Result<()> {
        let request = proto::CompactionRequest { revision: number(to) };
        let _: proto::CompactionResponse =
            self.client.write(proto::COMPACT, &request).await.map_err(Failure::of_write)?;
        Ok(())
    }

    /// Raises or ends the alarm that says that etcd's data is damaged: until it ends, etcd does not write.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn alarm(&self, raised: bool) -> Result<()> {
        let request = proto::AlarmRequest { action: if raised { 1 } else { 2 }, alarm: 2 };
        let _: proto::AlarmResponse =
            self.client.write(proto::ALARM, &request).await.map_err(Failure::of_write)?;
        Ok(())
    }
}

fn reached(header: Option<ResponseHeader>) -> Revision {
    revision(header.map_or(0, |header| header.revision))
}
