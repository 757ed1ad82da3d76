//! What a server is made to do over HTTP.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use http::Method;
use k1s_env::Env;
use tokio::sync::Notify;

use super::{
    client::{Client, Content, Target},
    objects::{self, ConfigMaps, name},
};
use crate::{Failure, report::quantile};

/// A request to be sent.
pub(crate) type Job = (Method, String, Content);

/// What came of many requests.
#[derive(Clone, Copy)]
pub(crate) struct Done {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Done {
    pub(crate) fn per_second(self) -> f64 {
        self.count as f64 / self.seconds
    }
}

/// Sends jobs 0 to `count` from some clients, or as many as the time allows.
pub(crate) async fn spread(
    env: &Env,
    target: &Target,
    clients: usize,
    count: u64,
    limit: Duration,
    job: impl Fn(u64) -> Job + Send + Sync + 'static,
) -> Result<Done, Failure> {
    let clients = Client::several(env, target, clients).await?;
    let (next, job) = (Arc::new(AtomicU64::new(0)), Arc::new(job));
    let began = env.now();
    let mut tasks = Vec::new();
    for mut client in clients {
        let (env, next, job) = (env.clone(), next.clone(), job.clone());
        tasks.push(env.clone().spawn("client", async move {
            let mut done = 0;
            loop {
                if env.now() - began > limit {
                    return Ok::<u64, Failure>(done);
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(done);
                }
                let (method, path, content) = job(number);
                client.call(method, &path, content).await?;
                done += 1;
            }
        }));
    }
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok(Done { count: done, seconds: (env.now() - began).as_secs_f64() })
}

/// Where the `ConfigMaps` of a namespace are.
pub(crate) fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Selects one in a hundred of the `ConfigMaps` of [`create`].
pub(crate) const SELECTOR: &str = "labelSelector=shard%3D7";

/// Creates `ConfigMaps` of 2 KB, which are named by their number.
pub(crate) async fn create(
    env: &Env,
    target: &Target,
    clients: usize,
    namespace: &str,
    count: u64,
    limit: Duration,
) -> Result<Done, Failure> {
    let (path, bodies) = (config_maps(namespace), ConfigMaps::new());
    spread(env, target, clients, count, limit, move |number| {
        (Method::POST, path.clone(), Content::json(bodies.get(&name("cm", number), number)))
    })
    .await
}

/// Reads, or deletes, `ConfigMaps` 0 to `size`, over and over if `count` is more.
pub(crate) async fn by_name(
    env: &Env,
    target: &Target,
    method: Method,
    namespace: &str,
    size: u64,
    count: u64,
    limit: Duration,
) -> Result<Done, Failure> {
    let path = config_maps(namespace);
    spread(env, target, 32, count, limit, move |number| {
        // A step that has no divisor in common with a round number visits every object once.
        let name = name("cm", number.wrapping_mul(7919) % size.max(1));
        (method.clone(), format!("{path}/{name}"), Content::none())
    })
    .await
}

/// An apply of a Deployment.
pub(crate) fn apply(namespace: &str, name: &str, replicas: u64) -> (Method, String, Content) {
    let url =
        format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}?fieldManager=bench&force=true");
    let body = objects::deployment(name).replacen(r#""replicas":3"#, &format!(r#""replicas":{replicas}"#), 1);
    (Method::PATCH, url, Content::apply(body))
}

/// An apply of an annotation of the same Deployment, by somebody else.
pub(crate) fn apply_annotation(namespace: &str, name: &str) -> (Method, String, Content) {
    let url = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}?fieldManager=other");
    let body = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","annotations":{{"team":"{name}"}}}}}}"#
    );
    (Method::PATCH, url, Content::apply(body))
}

/// A namespace for the objects of a run.
pub(crate) async fn make_namespace(client: &mut Client, namespace: &str) -> Result<(), Failure> {
    let body = objects::namespace(namespace);
    client.call(Method::POST, "/api/v1/namespaces", Content::json(body)).await.map(drop)
}

/// The definition of a custom resource, until it is served.
pub(crate) async fn define(env: &Env, client: &mut Client, group: &str, kind: &str) -> Result<(), Failure> {
    define_as(env, client, group, kind, objects::definition(group, kind)).await
}

/// The name of an object that no server has.
pub(crate) const MISSING: &str = "no-such-object";

/// A merge patch of the status: the replicas and the generation are those of a number.
pub(crate) fn status(generation: u64) -> Content {
    let replicas = generation % 100;
    Content::merge_patch(format!(
        r#"{{"status":{{"replicas":{replicas},"observedGeneration":{generation}}}}}"#
    ))
}

/// Creates this definition of a kind, and waits until it is served.
pub(crate) async fn define_as(
    env: &Env,
    client: &mut Client,
    group: &str,
    kind: &str,
    body: String,
) -> Result<(), Failure> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.call(Method::POST, path, Content::json(body)).await?;
    let path = format!("/apis/{group}/v1/namespaces/default/{}/{MISSING}", objects::plural(kind));
    for _ in 0..1000 {
        let mut answer = Vec::new();
        client.exchange(Method::GET, &path, Content::none(), |data| answer.extend_from_slice(data)).await?;
        // Where the resource is served, it is the object that is not found.
        if String::from_utf8_lossy(&answer).contains(MISSING) {
            return Ok(());
        }
        env.sleep(Duration::from_millis(10)).await;
    }
    Err(Failure(format!("{kind} is not served")))
}

/// Lists something some times; the median of the seconds to the last byte, and the number of bytes.
pub(crate) async fn list(
    env: &Env,
    client: &mut Client,
    times: usize,
    path: &str,
    items: usize,
) -> Result<(f64, u64), Failure> {
    let (mut seconds, mut size) = (Vec::new(), 0);
    for _ in 0..times {
        size = 0;
        let began = env.now();
        let status =
            client.exchange(Method::GET, path, Content::none(), |data| size += data.len() as u64).await?;
        seconds.push((env.now() - began).as_secs_f64());
        if status != 200 {
            return Err(Failure(format!("{path}: {status}")));
        }
    }
    // Once more, to see that it was what was meant.
    let answer = client.call(Method::GET, path, Content::none()).await?;
    let list: serde_json::Value = serde_json::from_slice(&answer)?;
    // A namespace has a ConfigMap that nobody here made.
    let ours = |item: &&serde_json::Value| item["metadata"]["labels"]["app"] == "bench";
    let found = list["items"].as_array().into_iter().flatten().filter(ours).count();
    if found != items {
        return Err(Failure(format!("{path}: {found} objects instead of {items}")));
    }
    Ok((quantile(&mut seconds, 0.5), size))
}

/// The continue token of a list, if there is another page.
pub(crate) fn next_token(list: &[u8]) -> Option<String> {
    // It is in the head of the list, before the items.
    let head = String::from_utf8_lossy(list.get(..1000).unwrap_or(list));
    let (_, rest) = head.split_once(r#""continue":""#)?;
    let (token, _) = rest.split_once('"')?;
    (!token.is_empty()).then(|| token.to_owned())
}

/// Lists all of a collection in pages; the median of the seconds for all of them.
pub(crate) async fn pages(
    env: &Env,
    client: &mut Client,
    times: usize,
    path: &str,
    limit: usize,
    items: usize,
) -> Result<f64, Failure> {
    let mut seconds = Vec::new();
    for _ in 0..times {
        let mut token = String::new();
        let mut pages = 0;
        let began = env.now();
        loop {
            let page = format!("{path}?limit={limit}&continue={token}");
            let answer = client.call(Method::GET, &page, Content::none()).await?;
            pages += 1;
            match next_token(&answer) {
                Some(next) => token = next,
                None => break,
            }
        }
        seconds.push((env.now() - began).as_secs_f64());
        if pages < items.div_ceil(limit) {
            return Err(Failure(format!("{path}: {pages} pages")));
        }
    }
    Ok(quantile(&mut seconds, 0.5))
}

/// Watchers of one collection, and what they have been told.
pub(crate) struct Watchers {
    env: Env,
    began: k1s_env::Instant,
    count: u64,
    seen: Arc<Seen>,
    tasks: Vec<k1s_env::Task<Result<(), Failure>>>,
}

#[derive(Default)]
struct Seen {
    /// Lines that all watchers received together.
    events: AtomicU64,
    awaited: AtomicU64,
    /// When the awaited one came, in nanoseconds from the beginning.
    at: AtomicU64,
    came: Notify,
}

impl Watchers {
    /// Opens watches, a connection each, and waits until all are open.
    pub(crate) async fn open(
        env: &Env,
        target: &Target,
        path: &str,
        count: u64,
    ) -> Result<Watchers, Failure> {
        let seen = Arc::new(Seen { awaited: AtomicU64::new(u64::MAX), ..Seen::default() });
        let began = env.now();
        let mut watchers = Watchers { env: env.clone(), began, count, seen, tasks: Vec::new() };
        // The newest state is told as one event per object: there is one object.
        let path = format!("{path}&watch=1");
        for _ in 0..count {
            let mut client = Client::connect(env, target).await?;
            let (env, seen, path) = (env.clone(), watchers.seen.clone(), path.clone());
            watchers.tasks.push(env.clone().spawn("watcher", async move {
                let note = |data: &[u8]| {
                    let lines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
                    let before = seen.events.fetch_add(lines, Ordering::Relaxed);
                    let awaited = seen.awaited.load(Ordering::Relaxed);
                    if before < awaited && before + lines >= awaited {
                        let at = u64::try_from((env.now() - began).as_nanos()).unwrap_or(u64::MAX);
                        seen.at.store(at, Ordering::SeqCst);
                        seen.came.notify_one();
                    }
                };
                client.exchange(Method::GET, &path, Content::none(), note).await.map(drop)
            }));
        }
        watchers.announce(1);
        watchers.arrived().await?;
        Ok(watchers)
    }

    /// Says how many events each watcher is to see from the beginning on.
    fn announce(&self, events: u64) {
        self.seen.at.store(0, Ordering::Relaxed);
        self.seen.awaited.store(events * self.count, Ordering::SeqCst);
    }

    /// Waits until all have seen what was announced; the seconds from the beginning until then.
    async fn arrived(&self) -> Result<f64, Failure> {
        let awaited = self.seen.awaited.load(Ordering::SeqCst);
        let began = self.env.now();
        loop {
            let events = self.seen.events.load(Ordering::SeqCst);
            match self.seen.at.load(Ordering::SeqCst) {
                // They came before they were announced.
                0 if events >= awaited => return Ok(self.now()),
                0 if self.env.now() - began > Duration::from_secs(60) => {
                    return Err(Failure(format!("watchers received {events} events instead of {awaited}")));
                }
                0 => drop(self.env.timeout(Duration::from_millis(20), self.seen.came.notified()).await),
                at => return Ok(at as f64 / 1e9),
            }
        }
    }

    fn now(&self) -> f64 {
        (self.env.now() - self.began).as_secs_f64()
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What a fan-out took.
pub(crate) struct FanOut {
    /// Events that arrived, of all watchers together.
    pub(crate) per_second: f64,
    /// From the answer to a write until the last watcher had it.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// A change of a `ConfigMap`.
pub(crate) fn patch(number: u64) -> Content {
    Content::merge_patch(format!(r#"{{"data":{{"setting-00":"{number}"}}}}"#))
}

/// Writes to the object that all watch: one write after the other, then many.
pub(crate) async fn fan_out(
    env: &Env,
    target: &Target,
    watchers: &Watchers,
    object: &str,
    writes: u64,
) -> Result<FanOut, Failure> {
    let mut client = Client::connect(env, target).await?;
    let mut delays = Vec::new();
    for number in 0..writes {
        watchers.announce(number + 2);
        client.call(Method::PATCH, object, patch(number)).await?;
        let answered = watchers.now();
        let arrived = watchers.arrived().await?;
        delays.push((arrived - answered).max(0.0));
    }
    watchers.announce(2 * writes + 1);
    let began = watchers.now();
    for number in 0..writes {
        client.call(Method::PATCH, object, patch(writes + number)).await?;
    }
    let arrived = watchers.arrived().await?;
    let per_second = (writes * watchers.count) as f64 / (arrived - began);
    Ok(FanOut { per_second, p50: quantile(&mut delays, 0.5), p99: quantile(&mut delays, 0.99) })
}
