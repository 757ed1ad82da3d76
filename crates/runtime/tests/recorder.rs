//! Events, recorded and read back from an in-process server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod line;

use std::time::Duration;

use http::StatusCode;
use k1s_env::WorkTracker;
use k1s_runtime::recorder::{EventBroadcaster, EventOptions, EventRecorder, EventType, NewEvent};
use k8s_openapi::api::{
    core::v1::{self as core, ConfigMap, Namespace, Node, ObjectReference},
    events::v1 as events,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use line::{BROKEN, Line, Network, Time};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

struct World {
    time: Time,
    line: Line,
    client: Client,
    tracker: WorkTracker,
    events: EventBroadcaster,
    recorder: EventRecorder,
}

impl std::ops::Deref for World {
    type Target = Time;

    fn deref(&self) -> &Time {
        &self.time
    }
}

impl World {
    async fn new(options: EventOptions) -> World {
        let (time, server) = (Time::new(1), line::server().await);
        let line = Line::new(&time.env, &server);
        let tracker = WorkTracker::new(time.env.clone());
        let events = EventBroadcaster::start(line.client(), time.env.clone(), &tracker, options);
        let recorder = events.recorder("widget-controller");
        World { time, line, client: Client::new(server, "default"), tracker, events, recorder }
    }

    /// Waits until all recorded events are delivered.
    async fn idle(&self) {
        self.until(self.tracker.wait_idle(60 * MINUTE)).await.unwrap();
    }

    async fn events(&self) -> Vec<events::Event> {
        let api: Api<events::Event> = Api::all(self.client.clone());
        api.list(&ListParams::default()).await.unwrap().items
    }

    async fn core_events(&self) -> Vec<core::Event> {
        let api: Api<core::Event> = Api::all(self.client.clone());
        api.list(&ListParams::default()).await.unwrap().items
    }
}

fn object(name: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some(format!("uid-of-{name}")),
        resource_version: Some("7".to_owned()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn node() -> Node {
    Node { metadata: ObjectMeta { name: Some("n1".to_owned()), ..ObjectMeta::default() }, ..Node::default() }
}

#[tokio::test]
async fn an_event_is_written_with_all_fields() {
    let world = World::new(EventOptions::default()).await;
    let event = NewEvent::about(&object("a"), EventType::Warning, "BackOff", "it fails")
        .action("Restarting")
        .related(&node())
        .annotation("k1s.dev/test", "yes");
    world.recorder.publish(event);
    world.idle().await;
    let found = world.events().await;
    assert_eq!(found.len(), 1);
    let event = &found[0];
    assert!(event.metadata.name.as_deref().unwrap().starts_with("a.1816"), "{:?}", event.metadata.name);
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.metadata.annotations.as_ref().unwrap()["k1s.dev/test"], "yes");
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!((event.reason.as_deref(), event.note.as_deref()), (Some("BackOff"), Some("it fails")));
    assert_eq!(event.action.as_deref(), Some("Restarting"));
    assert_eq!(event.reporting_controller.as_deref(), Some("widget-controller"));
    assert!(event.reporting_instance.as_deref().unwrap().starts_with("widget-controller-"));
    let regarding = event.regarding.as_ref().unwrap();
    assert_eq!(
        (regarding.kind.as_deref(), regarding.api_version.as_deref()),
        (Some("ConfigMap"), Some("v1"))
    );
    assert_eq!((regarding.name.as_deref(), regarding.uid.as_deref()), (Some("a"), Some("uid-of-a")));
    assert_eq!(event.related.as_ref().unwrap().kind.as_deref(), Some("Node"));
    assert_eq!(event.event_time.as_ref().unwrap().0.to_string(), "2025-01-01T00:00:00Z");
    assert_eq!(event.series, None);
}

#[tokio::test]
async fn an_event_of_the_core_api_is_written_with_all_fields() {
    let world = World::new(EventOptions::core()).await;
    world.recorder.event(&object("a"), EventType::Normal, "Created", "here it is");
    world.pass(SECOND).await;
    world.recorder.event(&object("a"), EventType::Normal, "Created", "here it is");
    world.idle().await;
    let found = world.core_events().await;
    assert_eq!(found.len(), 1);
    let event = &found[0];
    assert_eq!((event.count, event.type_.as_deref()), (Some(2), Some("Normal")));
    assert_eq!((event.reason.as_deref(), event.message.as_deref()), (Some("Created"), Some("here it is")));
    assert_eq!(event.source.as_ref().unwrap().component.as_deref(), Some("widget-controller"));
    assert_eq!(event.involved_object.name.as_deref(), Some("a"));
    assert_eq!(event.first_timestamp.as_ref().unwrap().0.to_string(), "2025-01-01T00:00:00Z");
    assert_eq!(event.last_timestamp.as_ref().unwrap().0.to_string(), "2025-01-01T00:00:01Z");
    assert_eq!(event.event_time, None);
}

#[tokio::test]
async fn events_about_cluster_scoped_objects_are_in_the_default_namespace() {
    for options in [EventOptions::default(), EventOptions::core()] {
        let world = World::new(options).await;
        world.recorder.event(&node(), EventType::Normal, "Ready", "it is");
        world.idle().await;
        assert_eq!(world.core_events().await[0].metadata.namespace.as_deref(), Some("default"));
        assert_eq!(world.events.stats().delivered, 1);
    }
}

#[tokio::test]
async fn long_texts_are_truncated_to_the_servers_limits() {
    let world = World::new(EventOptions::default()).await;
    let (word, note) = ("Very".repeat(100), "long ".repeat(1000));
    world.recorder.publish(NewEvent::about(&object("a"), EventType::Normal, word.clone(), note).action(word));
    let reference =
        ObjectReference { name: Some("system:odd name".to_owned()), ..ObjectReference::default() };
    world.recorder.publish(NewEvent::regarding(reference, EventType::Normal, "Odd", "a name that is none"));
    world.idle().await;
    assert_eq!((world.events.stats().delivered, world.events().await.len()), (2, 2));
}

#[tokio::test]
async fn repeats_become_a_series() {
    let world = World::new(EventOptions::default()).await;
    for repeat in 1..=20 {
        world.recorder.event(&object("a"), EventType::Normal, "Again", "and again");
        world.idle().await;
        if repeat == 2 {
            let series = world.events().await[0].series.clone().unwrap();
            assert_eq!(series.count, 2, "the first repeat is written at once");
        }
        world.pass(SECOND).await;
    }
    let written = world.line.requests();
    assert_eq!(written, 5, "1, 2, 4, 8 and 16");
    // The final count of an ended series is written.
    world.pass(7 * MINUTE).await;
    let found = world.events().await;
    assert_eq!(found.len(), 1);
    let series = found[0].series.clone().unwrap();
    assert_eq!(series.count, 20);
    assert_eq!(series.last_observed_time.0.to_string(), "2025-01-01T00:00:19Z");
    // Later, it is a new event.
    world.recorder.event(&object("a"), EventType::Normal, "Again", "and again");
    world.idle().await;
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test]
async fn events_with_another_note_type_object_or_controller_are_separate() {
    let world = World::new(EventOptions::default()).await;
    world.recorder.event(&object("a"), EventType::Normal, "R", "one");
    world.recorder.event(&object("a"), EventType::Normal, "R", "two");
    world.recorder.event(&object("a"), EventType::Warning, "R", "one");
    world.recorder.event(&object("b"), EventType::Normal, "R", "one");
    world.events.recorder("other").event(&object("a"), EventType::Normal, "R", "one");
    world.recorder.publish(NewEvent::about(&object("a"), EventType::Normal, "R", "one").action("Other"));
    world.idle().await;
    assert_eq!(world.events().await.len(), 6);
}

#[tokio::test]
async fn many_notes_for_one_reason_are_combined() {
    for (options, last) in [(EventOptions::default(), "note 9"), (EventOptions::core(), "note 19")] {
        let world = World::new(options).await;
        for i in 0..20 {
            world.recorder.event(&object("a"), EventType::Warning, "Failed", format!("note {i}"));
        }
        world.until(world.events.shutdown(MINUTE)).await.unwrap();
        let found = world.events().await;
        assert_eq!(found.len(), 10);
        let combined: Vec<_> =
            found.iter().filter(|event| event.note.as_deref().unwrap().starts_with("(combined")).collect();
        assert_eq!(combined.len(), 1);
        assert_eq!(combined[0].note.as_deref(), Some(&*format!("(combined from similar events): {last}")));
        let count = combined[0].series.as_ref().map(|s| s.count).or(combined[0].deprecated_count);
        assert_eq!(count, Some(11));
    }
}

#[tokio::test]
async fn core_events_about_one_object_are_rate_limited() {
    let world = World::new(EventOptions::core()).await;
    for _ in 0..40 {
        world.recorder.event(&object("a"), EventType::Normal, "Again", "and again");
    }
    world.idle().await;
    assert_eq!(world.core_events().await[0].count, Some(25));
    let stats = world.events.stats();
    assert_eq!((stats.recorded, stats.delivered, stats.held_back), (40, 25, 15));
    world.pass(5 * MINUTE).await;
    world.recorder.event(&object("a"), EventType::Normal, "Again", "and again");
    world.idle().await;
    assert_eq!(world.core_events().await[0].count, Some(41));
}

#[tokio::test]
async fn a_full_queue_drops_and_never_waits() {
    let mut options = EventOptions::default();
    options.queue = 10;
    let world = World::new(options).await;
    world.line.set(Network::Hangs);
    for i in 0..100 {
        // No await here: the call must never wait.
        world.recorder.event(&object(&format!("o{i}")), EventType::Normal, "R", "n");
    }
    let stats = world.events.stats();
    assert_eq!((stats.recorded, stats.dropped), (10, 90));
    assert_eq!(world.tracker.component("events").stats().in_flight, 10);
    world.line.set(Network::Fine);
    world.idle().await;
    assert_eq!(world.events().await.len(), 10);
    world.recorder.event(&object("later"), EventType::Normal, "R", "n");
    world.idle().await;
    assert_eq!(world.events().await.len(), 11);
}

#[tokio::test]
async fn recorded_events_are_delivered_before_the_shutdown_ends_and_none_after() {
    let world = World::new(EventOptions::default()).await;
    for i in 0..50 {
        world.recorder.event(&object(&format!("o{i}")), EventType::Normal, "R", "n");
    }
    for _ in 0..3 {
        world.recorder.event(&object("again"), EventType::Normal, "R", "n");
    }
    // As in a shutdown: the tracker refuses new work, and a reconcile in flight still records an event.
    world.tracker.stop_accepting();
    world.recorder.event(&object("last"), EventType::Normal, "R", "n");
    world.until(world.events.shutdown(MINUTE)).await.unwrap();
    let found = world.events().await;
    assert_eq!(found.len(), 52);
    let counts: Vec<i32> = found.iter().filter_map(|event| event.series.as_ref()).map(|s| s.count).collect();
    assert_eq!(counts, [3], "including repeats not written yet");
    world.recorder.event(&object("too-late"), EventType::Normal, "R", "n");
    assert_eq!(world.events.stats().dropped, 1);
    assert!(world.env.tasks().is_empty());
    assert_eq!(world.tracker.in_flight(), 0);
    world.events.shutdown(SECOND).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_without_a_server_is_bounded_and_reports_undelivered_events() {
    let world = World::new(EventOptions::default()).await;
    world.line.set(Network::Hangs);
    for i in 0..5 {
        world.recorder.event(&object(&format!("o{i}")), EventType::Normal, "R", "n");
    }
    let started = world.env.now();
    let left = world.until(world.events.shutdown(30 * SECOND)).await.unwrap_err();
    assert_eq!(world.env.now() - started, 30 * SECOND);
    assert_eq!(left.to_string(), "5 events were not delivered within 30s");
    world.settle().await;
    assert!(world.env.tasks().is_empty());
    let stats = world.tracker.component("events").stats();
    assert_eq!((stats.in_flight, stats.failed), (0, 5));
}

#[tokio::test]
async fn a_failing_server_is_retried() {
    for network in [
        BROKEN,
        Network::Fails(StatusCode::SERVICE_UNAVAILABLE),
        Network::Fails(StatusCode::TOO_MANY_REQUESTS),
        Network::Hangs,
        Network::LosesAnswers,
    ] {
        let world = World::new(EventOptions::default()).await;
        world.line.set(network);
        world.recorder.event(&object("a"), EventType::Normal, "R", "one");
        world.recorder.event(&object("a"), EventType::Normal, "R", "two");
        world.pass(40 * SECOND).await;
        assert_eq!(world.events.stats().delivered, 0);
        world.line.set(Network::Fine);
        world.idle().await;
        assert_eq!(world.events.stats().delivered, 2);
        assert_eq!(world.events().await.len(), 2, "none is there twice");
    }
}

#[tokio::test]
async fn events_are_dropped_if_the_server_never_recovers() {
    let world = World::new(EventOptions::default()).await;
    world.line.set(BROKEN);
    world.recorder.event(&object("a"), EventType::Normal, "R", "n");
    world.idle().await;
    assert_eq!(world.line.requests(), 12);
    assert_eq!(world.events.stats().failed, 1);
    world.line.set(Network::Fine);
    world.recorder.event(&object("b"), EventType::Normal, "R", "n");
    // A repeat of an event that was never delivered creates it.
    world.recorder.event(&object("a"), EventType::Normal, "R", "n");
    world.idle().await;
    let found = world.events().await;
    assert_eq!(found.len(), 2);
    assert_eq!(
        found.iter().filter_map(|event| event.series.as_ref()).map(|s| s.count).collect::<Vec<_>>(),
        [2]
    );
}

#[tokio::test]
async fn an_event_that_the_server_rejects_is_dropped_immediately() {
    let world = World::new(EventOptions::default()).await;
    let mut gone = object("a");
    gone.metadata.namespace = Some("gone".to_owned());
    world.recorder.event(&gone, EventType::Normal, "R", "in a namespace that is not there");
    world.recorder.event(&object("a"), EventType::Normal, "", "without a reason");
    // A terminating namespace, held by a finalizer on an object in it.
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let ending = ObjectMeta { name: Some("ending".to_owned()), ..ObjectMeta::default() };
    let ending = Namespace { metadata: ending, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &ending).await.unwrap();
    let mut held = object("held");
    held.metadata.namespace = Some("ending".to_owned());
    (held.metadata.uid, held.metadata.resource_version) = (None, None);
    held.metadata.finalizers = Some(vec!["test.k1s.dev/held".to_owned()]);
    let held =
        Api::namespaced(world.client.clone(), "ending").create(&PostParams::default(), &held).await.unwrap();
    namespaces.delete("ending", &DeleteParams::default()).await.unwrap();
    world.recorder.event(&held, EventType::Normal, "R", "in a namespace that ends");
    let started = world.env.now();
    world.idle().await;
    let stats = world.events.stats();
    assert_eq!((stats.failed, stats.delivered), (3, 0));
    assert_eq!(world.env.now(), started, "nothing was waited for");
    assert_eq!(world.tracker.component("events").stats().failed, 3);
}

#[tokio::test]
async fn a_deleted_event_is_recreated_with_its_count() {
    let world = World::new(EventOptions::core()).await;
    for _ in 0..3 {
        world.recorder.event(&object("a"), EventType::Normal, "R", "n");
    }
    world.idle().await;
    let api: Api<core::Event> = Api::namespaced(world.client.clone(), "default");
    let name = world.core_events().await[0].metadata.name.clone().unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    world.recorder.event(&object("a"), EventType::Normal, "R", "n");
    world.idle().await;
    assert_eq!(world.core_events().await[0].count, Some(4));
}

#[tokio::test]
async fn two_managers_at_the_same_instant_use_different_event_names() {
    let world = World::new(EventOptions::default()).await;
    let tracker = WorkTracker::new(world.env.clone());
    let other =
        EventBroadcaster::start(world.line.client(), world.env.clone(), &tracker, EventOptions::default());
    for recorder in [&world.recorder, &other.recorder("other")] {
        for _ in 0..2 {
            recorder.event(&object("a"), EventType::Normal, "R", "n");
        }
    }
    world.until(world.events.shutdown(MINUTE)).await.unwrap();
    world.until(other.shutdown(MINUTE)).await.unwrap();
    let mut found: Vec<(String, i32)> = world
        .events()
        .await
        .into_iter()
        .map(|event| (event.reporting_controller.unwrap(), event.series.unwrap().count))
        .collect();
    found.sort();
    assert_eq!(found, [("other".to_owned(), 2), ("widget-controller".to_owned(), 2)]);
}

#[tokio::test]
async fn without_a_shutdown_the_task_ends_with_the_last_recorder() {
    let world = World::new(EventOptions::default()).await;
    world.recorder.event(&object("a"), EventType::Normal, "R", "n");
    let World { time: Time { env, .. }, events, recorder, .. } = world;
    drop(events);
    assert!(!env.tasks().is_empty());
    drop(recorder);
    env.tasks_ended().await;
}
