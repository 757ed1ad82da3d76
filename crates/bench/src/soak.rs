//! An operator under steady churn: widgets are created, changed and deleted, and watches are cut now and then. Memory must
//! not grow, every widget must converge, and no task may be left.
//!
//! Server, operator and churn are in this process, so its memory is that of all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use clap::Args;
use http::{Request as HttpRequest, Response};
use http_body_util::BodyExt as _;
use k1s_env::{Env, Task};
use k1s_runtime::{
    Action, BoxError, Client, Context, Controller, ControllerOptions, IdleOptions, Manager, ManagerOptions,
    ObjectKey, Request,
    client::{ListOptions, Patch},
    kind,
    recorder::{EventRecorder, EventType},
    util,
};
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api,
    api::{DeleteParams, ListParams, ObjectMeta},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    Failure,
    report::{self, quantile},
    runtime::widget::{self, NAMESPACE, Widget},
    server::process::resident_bytes,
};

#[derive(Args)]
pub(crate) struct Options {
    /// The duration in minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The number of widgets at a time
    #[arg(long, default_value_t = 500)]
    widgets: u64,
    /// Writes per second of each of four writers; 0 is no limit
    #[arg(long, default_value_t = 100)]
    rate: u64,
    /// The seconds between two cuts of all watches
    #[arg(long, default_value_t = 5.0)]
    cut: f64,
}

const FINALIZER: &str = "bench.k1s.dev/soak";
const WRITERS: u64 = 4;
/// The minutes after which memory has to be flat: until then the watch caches' rings fill.
const SETTLED: f64 = 5.0;
/// Maximum growth of memory from the middle to the end, as a factor; more is a leak.
const GROWTH: f64 = 1.1;

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let store = MemoryOptions { history_revisions: 5000, history_bytes: 8 << 20, ..MemoryOptions::default() };
    let store = Arc::new(MemoryStore::new(env.clone(), store));
    let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await;
    let server = server.map_err(|status| Failure(status.message))?;
    let cut = Cut::default();
    let service = Cuttable { server: server.as_user(User::admin()), cut: cut.clone() };
    let client = kube::Client::new(service, NAMESPACE);
    widget::define(&env, &client).await?;

    let mut manager_options = ManagerOptions::local();
    manager_options.env = Some(env.clone());
    let manager = Manager::new(client.clone(), manager_options)?;
    let recorder = manager.event_recorder_for("soak");
    let reconciler = Widgets { client: manager.client(), recorder };
    Controller::managed_by(&manager)
        .for_(kind::<Widget>())
        .owns(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(16))
        .complete(reconciler)?;
    let stop = CancellationToken::new();
    let (running, stopped) = (manager.clone(), stop.clone());
    let task = env.spawn("manager", async move { running.start(stopped).await });
    let churn = Churn::start(&env, client, &options);

    let rss = watch(&env, &options, &manager, &churn, &cut).await?;
    churn.end().await?;
    let idle = manager.wait_until_idle(IdleOptions::within(Duration::from_secs(60))).await?;
    converged(&manager).await?;
    report::print(&format!(
        "converged: every widget has its ConfigMap, and there is no other; in all {idle}"
    ));
    stop.cancel();
    task.await??;
    drop(manager);
    server.shutdown();
    drop(server);
    let left = env.timeout(Duration::from_secs(10), env.tasks_ended()).await;
    if left.is_err() {
        let names: Vec<String> = env.tasks().iter().map(|task| task.name.to_string()).collect();
        return Err(Failure(format!("tasks are left: {}", names.join(", "))));
    }
    report::print("no task is left");
    if options.minutes < SETTLED {
        report::print(
            "too short to tell whether memory is flat: the server remembers events of the first minutes",
        );
        return Ok(());
    }
    flat(&rss)
}

/// Looks at memory and tasks until the time is over.
async fn watch(
    env: &Env,
    options: &Options,
    manager: &Manager,
    churn: &Churn,
    cut: &Cut,
) -> Result<Vec<f64>, Failure> {
    let began = env.now();
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    let (pause, every) = (Duration::from_secs_f64(options.cut), (length / 60).max(Duration::from_secs(1)));
    let (mut next_cut, mut next_look) = (began + pause, began + every);
    let mut rss = Vec::new();
    let mut before = (0, 0);
    report::print("  seconds   memory MB   tasks     writes/s   reconciles/s   errors   cuts");
    while env.now() - began < length {
        env.sleep_until(next_cut.min(next_look)).await;
        if env.now() >= next_cut {
            cut.all();
            next_cut = env.now() + pause;
        }
        if env.now() < next_look {
            continue;
        }
        next_look = env.now() + every;
        // By default they expire after an hour.
        let events: Api<Event> = Api::namespaced(manager.kube_client(), NAMESPACE);
        events.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        let megabytes = resident_bytes(std::process::id())? as f64 / 1e6;
        rss.push(megabytes);
        let stats = manager.stats().get("widget").copied().unwrap_or_default();
        let now = (churn.writes.load(Ordering::Relaxed), stats.reconciles);
        let per_second = |number: u64| number as f64 / every.as_secs_f64();
        report::print(&format!(
            "{:>9.0} {megabytes:>11.1} {:>7} {:>12.0} {:>14.0} {:>8} {:>6}",
            (env.now() - began).as_secs_f64(),
            env.tasks().iter().map(|task| task.running()).sum::<usize>(),
            per_second(now.0 - before.0),
            per_second(now.1 - before.1),
            stats.errors,
            cut.count.load(Ordering::Relaxed),
        ));
        before = now;
    }
    Ok(rss)
}

/// Checks that memory did not grow from the middle to the end.
fn flat(rss: &[f64]) -> Result<(), Failure> {
    let third = rss.len() / 3;
    if third == 0 {
        return Ok(());
    }
    let middle = quantile(&mut rss[third..2 * third].to_vec(), 0.5);
    let end = quantile(&mut rss[2 * third..].to_vec(), 0.5);
    let told = format!("{middle:.1} MB in the second third of the time, {end:.1} MB in the last");
    if end > middle * GROWTH {
        return Err(Failure(format!("memory grows: {told}")));
    }
    report::print(&format!("memory is flat: {told}"));
    Ok(())
}

/// Every widget has its `ConfigMap` with its size, and there is no other.
async fn converged(manager: &Manager) -> Result<(), Failure> {
    let live = manager.api_reader();
    let all = ListOptions::default();
    let sizes: BTreeMap<String, i64> = live
        .list::<Widget>(all.clone())
        .await?
        .items
        .into_iter()
        .map(|widget| (widget.metadata.name.unwrap_or_default(), widget.spec.size))
        .collect();
    let seen: BTreeMap<String, i64> = live
        .list::<ConfigMap>(all)
        .await?
        .items
        .into_iter()
        .filter(util::has_controller_reference)
        .map(|report| {
            let size = report.data.as_ref().and_then(|data| data.get("size")?.parse().ok());
            (report.metadata.name.unwrap_or_default(), size.unwrap_or(-1))
        })
        .collect();
    if sizes == seen {
        return Ok(());
    }
    let wrong: BTreeSet<&String> =
        sizes.keys().chain(seen.keys()).filter(|name| sizes.get(*name) != seen.get(*name)).collect();
    Err(Failure(format!("{} of {} widgets are not as they should be: {wrong:?}", wrong.len(), sizes.len())))
}

/// Keeps a `ConfigMap` for each widget, with a finalizer.
struct Widgets {
    client: Client,
    recorder: EventRecorder,
}

impl k1s_runtime::Reconciler for Widgets {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(widget) = self.client.get_opt::<Widget>(&request).await? else { return Ok(Action::done()) };
        if widget.metadata.deletion_timestamp.is_some() {
            let deleted = self.client.delete::<ConfigMap>(&request).await;
            util::ignore_not_found(deleted.map(drop))?;
            let mut done = (*widget).clone();
            if util::remove_finalizer(&mut done, FINALIZER) {
                util::ignore_not_found(self.client.update(&done).await.map(drop))?;
            }
            return Ok(Action::done());
        }
        if !util::contains_finalizer(&*widget, FINALIZER) {
            let mut kept = (*widget).clone();
            util::add_finalizer(&mut kept, FINALIZER);
            self.client.update(&kept).await?;
        }
        let report = ConfigMap {
            metadata: ObjectMeta {
                name: Some(request.name().to_owned()),
                namespace: request.namespace().map(str::to_owned),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        util::create_or_update(&self.client, report, |report| {
            report.data = Some([("size".to_owned(), widget.spec.size.to_string())].into());
            util::set_controller_reference(&*widget, report)
        })
        .await?;
        if widget.status.as_ref().is_none_or(|status| status.observed != widget.spec.size) {
            let patch = Patch::merge(&json!({"status": {"observed": widget.spec.size}}));
            self.client.typed::<Widget>().status().patch(&*widget, patch).await?;
            let message = format!("its size is {}", widget.spec.size);
            self.recorder.event(&*widget, EventType::Normal, "Observed", message);
        }
        Ok(Action::done())
    }
}

/// The writers.
struct Churn {
    stop: CancellationToken,
    writes: Arc<AtomicU64>,
    tasks: Vec<Task<Result<(), Failure>>>,
}

impl Churn {
    fn start(env: &Env, client: kube::Client, options: &Options) -> Churn {
        let (stop, writes) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let pause =
            if options.rate == 0 { Duration::ZERO } else { Duration::from_secs(1) / options.rate as u32 };
        let client = Client::new(
            client,
            k1s_runtime::client::ClientOptions { env: env.clone(), ..Default::default() },
        );
        let tasks = (0..WRITERS)
            .map(|_| {
                let (env, stop, writes, client) =
                    (env.clone(), stop.clone(), Arc::clone(&writes), client.clone());
                let widgets = options.widgets;
                env.clone().spawn("churn", async move {
                    while !stop.is_cancelled() {
                        write(&env, &client, widgets).await?;
                        writes.fetch_add(1, Ordering::Relaxed);
                        env.sleep(pause).await;
                    }
                    Ok(())
                })
            })
            .collect();
        Churn { stop, writes, tasks }
    }

    async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}

/// Creates, changes or deletes a widget. Another writer may have done so first.
async fn write(env: &Env, client: &Client, widgets: u64) -> Result<(), Failure> {
    let name = widget::name(env.random_below(widgets));
    let key = ObjectKey::namespaced(NAMESPACE, name.as_str());
    match env.random_below(10) {
        0 | 1 => util::ignore_not_found(client.delete::<Widget>(&key).await.map(drop))?,
        2..=5 => util::ignore_already_exists(client.create(&widget::widget(&name)).await.map(drop))?,
        _ => {
            let patch = Patch::merge(&json!({"spec": {"size": env.random_below(1_000_000)}}));
            util::ignore_not_found(client.patch::<Widget>(&key, patch).await.map(drop))?
        }
    };
    Ok(())
}

/// Cuts all responses that are still streaming: watches.
#[derive(Clone, Default)]
struct Cut {
    token: Arc<Mutex<CancellationToken>>,
    count: Arc<AtomicU64>,
}

impl Cut {
    fn all(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        std::mem::take(&mut *self.token.lock()).cancel();
    }
}

/// The server behind a network that is cut now and then.
#[derive(Clone)]
struct Cuttable {
    server: ApiServer,
    cut: Cut,
}

type Answer = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, std::io::Error>;

impl tower::Service<HttpRequest<kube::client::Body>> for Cuttable {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<kube::client::Body>) -> Self::Future {
        let cut = self.cut.token.lock().clone();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let mut server = self.server.clone();
        Box::pin(async move {
            let answer = tower::Service::call(&mut server, request).await?;
            Ok(answer.map(|body: Body| {
                let body = body.map_err(std::io::Error::other);
                if is_watch {
                    CutBody { body, cut: Box::pin(cut.cancelled_owned()) }.boxed_unsync()
                } else {
                    body.boxed_unsync()
                }
            }))
        })
    }
}

/// A body that ends with an error when it is cut.
struct CutBody<B> {
    body: B,
    cut: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
}

impl<B> http_body::Body for CutBody<B>
where
    B: http_body::Body<Data = bytes::Bytes, Error = std::io::Error> + Unpin,
{
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(std::io::Error::other("cut"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
