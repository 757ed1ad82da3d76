//! Helpers shared by the tests of this crate.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of this")]

mod proxy;

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_store::{Change, Error, Precondition, Result, Revision, Store, Txn, Watch, WatchItem};
use k1s_store_etcd::{EtcdOptions, EtcdStore, testing::EtcdServer};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) use proxy::Proxy;

/// Timeout for an expected result. Only a failing test waits this long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A server, or `None` where there is no etcd.
pub(crate) async fn server(env: &Env) -> Option<EtcdServer> {
    EtcdServer::start(env).await.unwrap()
}

pub(crate) async fn connect(env: &Env, options: EtcdOptions) -> EtcdStore {
    EtcdStore::connect(env.clone(), options).await.unwrap()
}

/// Options with short timeouts.
pub(crate) fn hasty(options: EtcdOptions) -> EtcdOptions {
    EtcdOptions {
        connect_timeout: Duration::from_millis(300),
        request_timeout: Duration::from_millis(600),
        ..options
    }
}

pub(crate) async fn put(store: &EtcdStore, key: &str, value: &str) -> Result<Revision> {
    store.txn(Txn::new().put(key.to_owned(), value.to_owned(), Precondition::Any)).await
}

pub(crate) async fn remove(store: &EtcdStore, key: &str) -> Revision {
    store.txn(Txn::new().delete(key.to_owned(), Precondition::Any)).await.unwrap()
}

/// Retries a put until it succeeds, and returns its revision.
pub(crate) async fn put_with_retries(env: &Env, store: &EtcdStore, key: &str, value: &str) -> Revision {
    within(env, async {
        loop {
            match put(store, key, value).await {
                Ok(revision) => return revision,
                Err(Error::Unavailable { .. }) => env.sleep(Duration::from_millis(20)).await,
                Err(other) => panic!("{other}"),
            }
        }
    })
    .await
}

pub(crate) async fn within<T>(env: &Env, due: impl Future<Output = T>) -> T {
    env.timeout(TIMEOUT, due).await.expect("timed out")
}

/// The next item of a watch, which must arrive in time.
pub(crate) async fn item(env: &Env, watch: &mut Watch) -> Result<WatchItem> {
    within(env, watch.next()).await.expect("the watch ended")
}

/// The next change of a watch, which must arrive in time.
pub(crate) async fn change(env: &Env, watch: &mut Watch) -> Arc<Change> {
    match item(env, watch).await.unwrap() {
        WatchItem::Change(change) => change,
        WatchItem::Progress(mark) => panic!("an unrequested progress mark at {mark}"),
    }
}

/// Requests a progress mark; returns the revisions of the changes before it, and the mark.
pub(crate) async fn mark(env: &Env, watch: &mut Watch) -> (Vec<Revision>, Revision) {
    watch.request_progress();
    let mut before = Vec::new();
    loop {
        match item(env, watch).await.unwrap() {
            WatchItem::Change(change) => before.push(change.revision()),
            WatchItem::Progress(mark) => return (before, mark),
        }
    }
}

/// The error a watch ends with, after the items before it.
pub(crate) async fn end(env: &Env, watch: &mut Watch) -> Option<Error> {
    loop {
        match within(env, watch.next()).await? {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(within(env, watch.next()).await, None, "an error is the last item");
                return Some(error);
            }
        }
    }
}

/// Fails with the tasks that have not ended, if any.
pub(crate) async fn assert_no_tasks(env: &Env) {
    let ended = env.timeout(TIMEOUT, env.tasks_ended()).await;
    assert!(ended.is_ok(), "left over: {:?}", env.tasks());
}

/// The value of an etcd metric.
pub(crate) async fn metric(server: &EtcdServer, name: &str) -> u64 {
    let address = server.endpoint().replace("http://", "");
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    // Large ones are written with an exponent.
    value.expect("etcd counts this").parse::<f64>().unwrap() as u64
}
