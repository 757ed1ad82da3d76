//! Until nothing is left to do: in the queues, in sources that are behind, and for those who work beside a manager.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{Running, World, config_map, start};
use k1s_env::{Env, Task};
use k1s_runtime::{
    Action, BoxError, Connect, Context, Controller, Handler, IdleOptions, Manager, ObjectKey, Request,
    manager::{Companion, IdleReport, NotIdle},
    source::{self, Source, SourceContext, Started},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::{Notify, watch};

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn nothing() -> impl Source<Request> {
    source::func("none", |_: SourceContext| async {})
}

/// A control plane whose controllers run beside.
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

/// A manager with something beside it.
fn beside(world: &World) -> (watch::Sender<Companion>, Manager) {
    let companion = watch::Sender::default();
    let plane = Plane { kube: world.kube.clone(), env: world.env.clone(), companion: companion.subscribe() };
    let manager = Manager::new(plane, world.options()).unwrap();
    (companion, manager)
}

/// A manager whose only controller has these keys to do, each when it is told to.
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
async fn what_is_beside_keeps_a_manager_from_being_idle_and_is_named_at_the_deadline() {
    let (world, clock) = World::simulated(1).await;
    let (companion, manager) = beside(&world);
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
        "not idle after 60s: the control plane's garbage-collector: 1 queued; \
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
async fn those_who_are_about_to_run_are_waited_for_and_say_why_they_do_not() {
    let (world, clock) = World::simulated(2).await;
    let (companion, manager) = beside(&world);
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
async fn those_who_stop_with_work_left_are_not_taken_for_idle() {
    let (world, clock) = World::simulated(3).await;
    let (companion, manager) = beside(&world);
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
    // Others take its place.
    let (second, go) = collector(&world, &["b"]);
    let ending = start(&second);
    companion.send_replace(Companion::Running(second));
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    waiting.await.unwrap().unwrap();
    end([ending]).await;
    // Nobody takes its place: nobody is waited for.
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    companion.send_replace(Companion::Absent);
    waiting.await.unwrap().unwrap();
    drop(companion);
    wait(&manager).await.unwrap().unwrap();
    end([running]).await;
}

/// A source that learns of things in its own time.
struct Slow {
    asked: watch::Sender<u32>,
    go: Arc<Notify>,
}

impl Source<Request> for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn start(self: Box<Self>, context: SourceContext) -> Result<Started, BoxError> {
        let Slow { asked, go } = *self;
        Ok(Started {
            catch_up: Box::new(move || {
                let mut first = false;
                asked.send_modify(|asked| {
                    first = *asked == 0;
                    *asked += 1;
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
async fn a_source_that_is_behind_is_waited_for_and_what_it_then_queues_is_done() {
    let (world, clock) = World::simulated(4).await;
    let (manager, asked, go) = (world.manager(), watch::Sender::new(0), Arc::new(Notify::new()));
    Controller::managed_by(&manager)
        .named("slow")
        .watches_raw_source(Slow { asked: asked.clone(), go: go.clone() })
        .complete(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    let running = start(&manager);
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    go.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().reconciles(), 1);
    assert_eq!(*asked.borrow(), 2, "it is asked again after what it has caused");
    // One that has ended is not waited for.
    asked.send_replace(0);
    let waiting = wait(&manager);
    clock.settle().await;
    assert!(!waiting.is_finished());
    running.end().await.unwrap();
    clock.settle().await;
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn events_that_a_program_has_sent_are_waited_for() {
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
