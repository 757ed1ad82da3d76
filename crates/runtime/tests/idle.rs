//! Waiting until idle: queues, lagging sources, and companion controllers of the control plane.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use common::{HANG, Running, World, config_map, start};
use k1s_env::{Env, Task};
use k1s_runtime::{
    Action, BoxError, Cluster, ClusterOptions, Connect, Context, Controller, Handler, IdleOptions, Kind,
    Manager, ObjectKey, Request, kind,
    leader::LeaderElectionOptions,
    manager::{Companion, IdleReport, NotIdle},
    source::{self, Source, SourceContext, Started},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn nothing() -> impl Source<Request> {
    source::func("none", |_: SourceContext| async {})
}

/// A control plane with companion controllers.
struct Plane {
    kube: kube::Client,
    env: Env,
    companion: watch::Receiver<Companion>,
}

impl Connect for Plane {
    fn client(&self) -> kube::Client {
        self.kube.clone()
    }

    fn env(&self) -> Option<Env> {
        Some(self.env.clone())
    }

    fn companion(&self) -> Option<watch::Receiver<Companion>> {
        Some(self.companion.clone())
    }
}

/// A manager with a companion.
fn manager_with_companion(world: &World) -> (watch::Sender<Companion>, Manager) {
    let companion = watch::Sender::default();
    let plane = Plane { kube: world.kube.clone(), env: world.env.clone(), companion: companion.subscribe() };
    let manager = Manager::new(plane, world.options()).unwrap();
    (companion, manager)
}

/// A manager whose only controller has these keys to process, one for each notification.
fn collector(world: &World, keys: &[&str]) -> (Manager, Arc<Notify>) {
    let (manager, go) = (world.manager(), Arc::new(Notify::new()));
    let wait = go.clone();
    let controller = Controller::managed_by(&manager)
        .named("garbage-collector")
        .watches_raw_source(nothing())
        .build(move |_: Request, _: Context| {
            let wait = wait.clone();
            async move {
                wait.notified().await;
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    for name in keys {
        controller.queue().add(key(name));
    }
    (manager, go)
}

fn wait(manager: &Manager) -> Task<Result<IdleReport, NotIdle>> {
    let waiting = manager.clone();
    manager.env().spawn("wait", async move {
        waiting.wait_until_idle(IdleOptions::within(Duration::from_secs(60))).await
    })
}

async fn end(running: impl IntoIterator<Item = Running>) {
    for one in running {
        one.end().await.unwrap();
    }
}

#[tokio::test]
async fn a_busy_companion_keeps_a_manager_from_being_idle_and_is_named_at_the_deadline() {
    let (world, clock) = World::simulated(1).await;
    let (companion, manager) = manager_with_companion(&world);
    let (collector, go) = collector(&world, &["a", "b"]);
    companion.send_replace(Companion::Running(collector.clone()));
    let running = [start(&manager), start(&collector)];
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    clock.advance_and_settle(Duration::from_secs(60)).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "not idle after 60s: the control plane's garbage-collector: 1 queued (default/b); \
         in flight: reconcile/garbage-collector default/a (60.0s)"
    );
    let waiting = wait(&manager);
    go.notify_one();
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    let report = waiting.await.unwrap().unwrap();
    assert_eq!((report.reconciles(), report.control_plane["garbage-collector"].reconciles), (0, 2));
    end(running).await;
}

#[tokio::test]
async fn a_starting_companion_is_waited_for_and_its_problem_is_reported() {
    let (world, clock) = World::simulated(2).await;
    let (companion, manager) = manager_with_companion(&world);
    companion.send_replace(Companion::Starting { problem: Some("no luck".to_owned()) });
    let mut running = vec![start(&manager)];
    let waiting = wait(&manager);
    clock.advance_and_settle(Duration::from_secs(60)).await;
    let error = waiting.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("the control plane's controllers do not run yet: no luck"), "{error}");

    let waiting = wait(&manager);
    clock.settle().await;
    let (collector, go) = collector(&world, &["a"]);
    companion.send_replace(Companion::Running(collector.clone()));
    clock.settle().await;
    running.push(start(&collector));
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    waiting.await.unwrap().unwrap();
    end(running).await;
}

#[tokio::test]
async fn a_companion_that_stops_with_work_left_is_not_idle() {
    let (world, clock) = World::simulated(3).await;
    let (companion, manager) = manager_with_companion(&world);
    let (first, go) = collector(&world, &["a", "b"]);
    companion.send_replace(Companion::Running(first.clone()));
    let (running, ending) = (start(&manager), start(&first));
    let waiting = wait(&manager);
    clock.settle().await;
    ending.stop.cancel();
    go.notify_one();
    ending.end().await.unwrap();
    clock.settle().await;
    assert!(!waiting.is_finished(), "b is not done");
    // Another companion takes its place.
    let (second, go) = collector(&world, &["b"]);
    let ending = start(&second);
    companion.send_replace(Companion::Running(second));
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    waiting.await.unwrap().unwrap();
    end([ending]).await;
    // There is no companion any more, so none is waited for.
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    companion.send_replace(Companion::Absent);
    waiting.await.unwrap().unwrap();
    drop(companion);
    wait(&manager).await.unwrap().unwrap();
    end([running]).await;
}

/// A source whose first catch-up takes until it is notified.
struct Slow {
    catch_ups: watch::Sender<u32>,
    go: Arc<Notify>,
}

impl Source<Request> for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn start(self: Box<Self>, context: SourceContext) -> Result<Started, BoxError> {
        let Slow { catch_ups, go } = *self;
        Ok(Started {
            catch_up: Box::new(move || {
                let mut first = false;
                catch_ups.send_modify(|catch_ups| {
                    first = *catch_ups == 0;
                    *catch_ups += 1;
                });
                let (go, queue) = (go.clone(), context.queue().clone());
                Box::pin(async move {
                    if first {
                        go.notified().await;
                        queue.add(key("late"));
                    }
                })
            }),
            ..Started::at_once()
        })
    }
}

#[tokio::test]
async fn a_lagging_source_is_waited_for_and_its_requests_are_processed() {
    let (world, clock) = World::simulated(4).await;
    let (manager, catch_ups, go) = (world.manager(), watch::Sender::new(0), Arc::new(Notify::new()));
    Controller::managed_by(&manager)
        .named("slow")
        .watches_raw_source(Slow { catch_ups: catch_ups.clone(), go: go.clone() })
        .complete(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    let running = start(&manager);
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().reconciles(), 1);
    assert_eq!(*catch_ups.borrow(), 2, "it catches up again after the work it has caused");
    // A source that has ended is not waited for.
    catch_ups.send_replace(0);
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    running.end().await.unwrap();
    clock.settle().await;
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn events_sent_through_a_channel_are_waited_for() {
    let (world, _clock) = World::simulated(5).await;
    let manager = world.manager();
    let (sender, channel) = source::channel::<ConfigMap, Request>(Handler::for_object());
    Controller::managed_by(&manager)
        .named("channel")
        .watches_raw_source(channel)
        .complete(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    let running = start(&manager);
    for round in 1..=3 {
        for name in ["a", "b"] {
            sender.send(config_map(name, &[])).await.unwrap();
        }
        assert_eq!(common::idle(&manager).await.reconciles(), 2 * round);
    }
    running.end().await.unwrap();
    assert!(sender.send(config_map("late", &[])).await.is_err());
}

/// Real time without progress after which a wait fails.
const STALLED: Duration = Duration::from_millis(100);

fn soon() -> IdleOptions {
    IdleOptions { stalled_after: STALLED, ..IdleOptions::default() }
}

/// A manager whose only controller, `one`, has these keys to process.
fn with_keys<F, Fut>(world: &World, keys: &[&str], reconcile: F) -> Manager
where
    F: Fn(Request, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send,
{
    let manager = world.manager();
    let controller =
        Controller::managed_by(&manager).named("one").watches_raw_source(nothing()).build(reconcile).unwrap();
    for name in keys {
        controller.queue().add(key(name));
    }
    manager
}

#[tokio::test]
async fn retries_stalled_by_a_stopped_clock_are_named_with_their_time() {
    let (world, clock) = World::simulated(6).await;
    let fails = |request: Request, context: Context| async move {
        match request.name() {
            "later" => Ok(Action::requeue_after(Duration::from_secs(60))),
            "late" if context.attempt() > 2 => Ok(Action::done()),
            "late" => Err(BoxError::from("not yet")),
            _ => Ok(Action::done()),
        }
    };
    let manager = with_keys(&world, &["fine", "late", "later"], fails);
    let running = start(&manager);
    let error = manager.wait_until_idle(soon()).await.unwrap_err();
    assert!(error.stalled);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "not idle, and nothing has moved for 100ms in real time under a simulated clock: \
             controller one: 1 to be retried after errors (default/late in 5ms); \
             not waited for: controller one: 1 requeued for later (default/later in 60s). Advance the clock"
        ),
        "{text}"
    );
    clock.advance_and_settle(Duration::from_secs(1)).await;
    assert_eq!(manager.wait_until_idle(soon()).await.unwrap().reconciles(), 5);
    running.end().await.unwrap();
}

#[tokio::test]
async fn run_until_idle_ends_under_a_stopped_clock() {
    let (world, _clock) = World::simulated(7).await;
    let sleeps = |_: Request, context: Context| async move {
        context.env().sleep(Duration::from_secs(1)).await;
        Ok(Action::done())
    };
    let error = with_keys(&world, &["a"], sleeps).run_until_idle(soon()).await.unwrap_err().to_string();
    assert!(error.contains("in flight: reconcile/one default/a (0ms)"), "{error}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the mistake under test")]
async fn a_reconciler_that_sleeps_on_another_clock_is_named() {
    let (world, clock) = World::simulated(8).await;
    let (go, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (began, ended) = (go.clone(), done.clone());
    let sleeps = move |request: Request, _: Context| {
        let (began, ended) = (began.clone(), ended.clone());
        async move {
            began.notify_one();
            let long = if request.name() == "long" { 3600 } else { 0 };
            tokio::time::sleep(Duration::from_secs(long) + Duration::from_millis(20)).await;
            ended.notify_one();
            Ok(Action::done())
        }
    };
    let manager = with_keys(&world, &["short", "long"], sleeps);
    let running = start(&manager);
    // The clock advances meanwhile.
    go.notified().await;
    clock.advance_and_settle(Duration::from_secs(3600)).await;
    done.notified().await;
    let error = manager.wait_until_idle(soon()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("in flight: reconcile/one default/long"), "{text}");
    assert!(text.contains("context.env().sleep") && text.contains("tokio::time::sleep"), "{text}");
    assert_eq!(error.report.overtaken, ["one default/short"]);
    assert!(
        error.report.to_string().contains("overtaken by the simulated clock: one default/short"),
        "{text}"
    );
    running.stop.cancel();
    clock.settle().await;
    clock.advance_and_settle(Duration::from_secs(60)).await;
    let error = running.end().await.unwrap_err().to_string();
    assert!(error.contains("default/long"), "{error}");
}

#[tokio::test]
async fn a_manager_that_was_not_started_is_never_idle() {
    let (world, _clock) = World::simulated(9).await;
    let error = world.manager().wait_until_idle(soon()).await.unwrap_err().to_string();
    assert!(error.contains("the manager was not started"), "{error}");
}

/// As a controller that reconciles here what changes there.
#[tokio::test]
async fn a_source_of_another_cluster_is_waited_for() {
    let (here, there) = (World::new().await, World::new().await);
    let options = ClusterOptions { env: Some(here.env.clone()), ..ClusterOptions::default() };
    let far = Cluster::new("far", there.kube.clone(), options);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let watching = || {
        let (manager, seen) = (here.manager(), seen.clone());
        let of_far = |map: &ConfigMap| [ObjectKey::namespaced("far", map.metadata.name.clone().unwrap())];
        let source = far.source(source::kind(kind::<ConfigMap>(), Handler::map_object(of_far)));
        Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .watches_raw_source(source.with_catch_up())
            .complete(move |request: Request, _: Context| {
                // Every namespace has that one.
                if request.name() != "kube-root-ca.crt" {
                    seen.lock().insert(request.to_string());
                }
                async { Ok::<_, BoxError>(Action::done()) }
            })
            .unwrap();
        manager
    };
    let create = async |world: &World, name: &str| {
        world.live().create(&config_map(name, &[])).await.unwrap();
    };
    create(&here, "a").await;
    create(&there, "b").await;
    watching().run_until_idle(soon()).await.unwrap();
    let taken = || std::mem::take(&mut *seen.lock()).into_iter().collect::<Vec<_>>();
    assert_eq!(taken(), ["default/a", "far/b"]);

    // The cluster is not the manager's: it works on for another one.
    let manager = watching();
    let running = start(&manager);
    manager.wait_until_idle(soon()).await.unwrap();
    assert_eq!(taken(), ["default/a", "far/b"]);
    for number in 0..20 {
        let name = format!("c{number}");
        create(&there, &name).await;
        manager.wait_until_idle(soon()).await.unwrap();
        assert_eq!(taken(), [format!("far/{name}")]);
    }
    running.end().await.unwrap();
    far.stop(HANG).await.unwrap();
}

/// Captures the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Takes the log and counts the lines that contain all of these parts.
    fn take(&self, parts: &[&str]) -> usize {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_controller_warns_repeatedly_that_its_kind_is_not_served() {
    let (log, _logging) = Log::begin();
    let (world, clock) = World::simulated(10).await;
    let manager = world.manager();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget"));
    Controller::managed_by(&manager)
        .for_(Kind::<DynamicObject>::dynamic(resource))
        .complete(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    let running = start(&manager);
    clock.advance_and_settle(Duration::from_secs(6)).await;
    let warning =
        ["WARN", "widget", "still waiting for", "does not serve widgets.test.k1s.dev (v1)", "is installed"];
    assert_eq!(log.take(&warning), 1);
    let ready = manager.readyz().failures().await;
    assert!(ready.iter().any(|(_, why)| why.contains("does not serve widgets.test.k1s.dev")), "{ready:?}");
    clock.advance_and_settle(Duration::from_secs(60)).await;
    assert_eq!(log.take(&warning), 2, "after 15 and 35 seconds");
    let error = manager.wait_until_idle(soon()).await.unwrap_err().to_string();
    assert!(
        error.contains("controller widget waits for Widget.test.k1s.dev: the server does not serve"),
        "{error}"
    );
    running.end().await.unwrap();
}

#[tokio::test]
async fn a_candidate_and_a_shutdown_log_what_they_wait_for() {
    let (log, _logging) = Log::begin();
    let (world, clock) = World::simulated(11).await;
    let elected = |identity: &str| {
        let mut options = world.options();
        let mut election = LeaderElectionOptions::new("lock", "default");
        election.identity = Some(identity.to_owned());
        options.leader_election = Some(election);
        Manager::new(world.kube.clone(), options).unwrap()
    };
    let (first, second) = (elected("first"), elected("second"));
    let first_runs = start(&first);
    first.elected().await;
    let second_runs = start(&second);
    clock.advance_and_settle(Duration::from_secs(60)).await;
    assert_eq!(log.take(&["still waiting to become the leader", "first"]), 2, "after 10 and 30 seconds");
    let error = second.wait_until_idle(soon()).await.unwrap_err().to_string();
    assert!(error.contains("another replica is the leader"), "{error}");
    second_runs.end().await.unwrap();
    first_runs.end().await.unwrap();

    let sleeps = |_: Request, context: Context| async move {
        context.env().sleep(Duration::from_secs(20)).await;
        Ok(Action::done())
    };
    let running = start(&with_keys(&world, &["a"], sleeps));
    clock.settle().await;
    running.stop.cancel();
    clock.advance_and_settle(Duration::from_secs(20)).await;
    running.end().await.unwrap();
    assert_eq!(log.take(&["Still waiting for reconcile/one default/a"]), 2, "after 5 and 15 seconds");
}
