//! What the tests of this crate share.

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

/// How long something that is due may take. Only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server, or `None` where there is no etcd.
pub(crate) async fn server(env: &Env) -> Option<EtcdServer> {
    EtcdServer::start(env).await.unwrap()
}

pub(crate) async fn connect(env: &Env, options: EtcdOptions) -> EtcdStore {
    EtcdStore::connect(env.clone(), options).await.unwrap()
}

/// Options with which failures come soon.
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

/// Puts until it works, and returns the revision of the put that did.
pub(crate) async fn put_at_last(env: &Env, store: &EtcdStore, key: &str, value: &str) -> Revision {
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
    env.timeout(PATIENCE, due).await.expect("this is due")
}

/// The next item of a watch, which must come.
pub(crate) async fn item(env: &Env, watch: &mut Watch) -> Result<WatchItem> {
    within(env, watch.next()).await.expect("the watch goes on")
}

/// The next change of a watch, which must come.
pub(crate) async fn change(env: &Env, watch: &mut Watch) -> Arc<Change> {
    match item(env, watch).await.unwrap() {
        WatchItem::Change(change) => change,
        WatchItem::Progress(mark) => panic!("a mark at {mark} that nobody asked for"),
    }
}

/// Asks for a mark, and returns the revisions of the changes before it, and the mark.
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

/// The error a watch ends with, after whatever it yields.
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

/// Shows the tasks that did not end, if there are any.
pub(crate) async fn assert_no_tasks(env: &Env) {
    let ended = env.timeout(PATIENCE, env.tasks_ended()).await;
    assert!(ended.is_ok(), "left over: {:?}", env.tasks());
}

/// One of etcd's metrics.
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
