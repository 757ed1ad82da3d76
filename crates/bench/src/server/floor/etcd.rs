//! What a write by a user with roles needs at least of etcd, if no right that another server has taken away may be used: a read
//! before it, which those who wait at the same time share. No server is involved.

use std::time::Duration;

use bytes::Bytes;
use k1s_env::Env;
use k1s_store_etcd::{
    EtcdOptions,
    testing::{EtcdServer, RawClient, ServerOptions},
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Failure,
    report::{Measurement, Unit, quantile},
};

/// The floor of what users with roles do over etcd.
pub(super) const SUBJECT: &str = "floor-etcd";

const WRITERS: usize = 32;
/// As long as the objects that are created with and without roles are in the store.
static OBJECT: [u8; 400] = [b'x'; 400];

/// A read of etcd is under way; who comes meanwhile waits for the next one.
type Ask = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// Measures writes with and without the read, in turns.
pub(in crate::server) async fn measure(
    env: &Env,
    turns: u64,
    limit: Duration,
    floors: &mut Vec<Measurement>,
) -> Result<(), Failure> {
    let args = vec![format!("--quota-backend-bytes={}", 8_u64 << 30)];
    let server = EtcdServer::start_with(env, ServerOptions { args, ..ServerOptions::default() }).await?;
    let server = server.ok_or_else(|| Failure("there is no etcd on the PATH".to_owned()))?;
    let client = RawClient::new(env, &EtcdOptions::new([server.endpoint()]))?;
    client.put("/policy", Bytes::new()).await?;
    let (ask, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let reader = client.clone();
    let reading = env.spawn("floor reader", async move {
        while let Some(first) = asked.recv().await {
            let mut waiting = vec![first];
            while let Ok(next) = asked.try_recv() {
                waiting.push(next);
            }
            // Those who wait learn of a failure by what is dropped.
            if reader.get("/policy").await.is_ok() {
                for one in waiting {
                    let _ = one.send(());
                }
            }
        }
    });
    let rates = &mut [Vec::new(), Vec::new()];
    for turn in 0..turns {
        for (reads, rates) in rates.iter_mut().enumerate() {
            let ask = (reads == 1).then_some(&ask);
            rates.push(write(env, &client, ask, &format!("{turn}-{reads}"), limit).await?);
        }
    }
    drop(ask);
    let _ = reading.await;
    let [without, with] = rates;
    for (what, rates) in [("no-rbac", without), ("rbac-10k", with)] {
        let name = format!("{SUBJECT}.secure.create.c32-{what}");
        floors.push(Measurement::new(name, quantile(rates, 0.5), Unit::PerSecond));
    }
    Ok(())
}

/// Writes objects; how many in a second.
async fn write(
    env: &Env,
    client: &RawClient,
    ask: Option<&Ask>,
    turn: &str,
    limit: Duration,
) -> Result<f64, Failure> {
    let began = env.now();
    let writers = (0..WRITERS).map(|writer| {
        let (env, client, ask, turn) = (env.clone(), client.clone(), ask.cloned(), turn.to_owned());
        env.clone().spawn("floor writer", async move {
            let mut count = 0_u64;
            while env.now() - began < limit {
                if let Some(ask) = &ask {
                    let (tell, told) = oneshot::channel();
                    ask.send(tell).map_err(|_| Failure("the reader has ended".to_owned()))?;
                    told.await.map_err(|_| Failure("etcd cannot be read".to_owned()))?;
                }
                client.put(format!("/{turn}/{writer}/{count}"), Bytes::from_static(&OBJECT)).await?;
                count += 1;
            }
            Ok::<u64, Failure>(count)
        })
    });
    let mut count = 0;
    for writer in writers.collect::<Vec<_>>() {
        count += writer.await.map_err(|error| Failure(error.to_string()))??;
    }
    Ok(count as f64 / (env.now() - began).as_secs_f64())
}
