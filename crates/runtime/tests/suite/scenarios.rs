//! The scenarios that every control plane has to pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k1s_runtime::{
    Action, BoxError, Context, Controller, IdleOptions, Manager, ObjectKey, Reconciler, Request,
    client::{Client, Error, ListOptions},
    kind,
    leader::LeaderElectionOptions,
    predicate, runnable, util,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{ResourceExt as _, api::ObjectMeta};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::plane::{HANG, Plane, Running};

/// The label of the suite's objects; the server has its own.
const OURS: &str = "suite";

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn map(name: &str, text: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("default".into()),
        labels: Some(BTreeMap::from([(OURS.into(), "yes".into())])),
        ..Default::default()
    };
    ConfigMap { metadata, data: Some([("text".into(), text.into())].into()), ..Default::default() }
}

fn text(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("text")).map_or("", String::as_str)
}

fn ours() -> ListOptions {
    ListOptions::in_namespace("default").label_selector(OURS).unwrap()
}

/// Adds a controller of the suite's config maps.
fn control(manager: &Manager, reconciler: impl Reconciler<Request>) {
    Controller::managed_by(manager)
        .for_(kind::<ConfigMap>().with_predicate(predicate::label_selector(OURS).unwrap()))
        .owns(kind::<Secret>())
        .complete(reconciler)
        .unwrap();
}

/// The reconciled keys with their causes.
type Log = Arc<Mutex<Vec<(String, Vec<String>)>>>;

fn noting(log: &Log) -> impl Reconciler<Request> + use<> {
    let log = log.clone();
    move |request: Request, context: Context| {
        let causes = context.causes().iter().map(ToString::to_string).collect();
        log.lock().push((request.name().to_owned(), causes));
        async { Ok::<_, BoxError>(Action::done()) }
    }
}

fn take(log: &Log) -> Vec<(String, Vec<String>)> {
    std::mem::take(&mut *log.lock())
}

/// Retries requests that fail on a bad network.
async fn retry<T>(plane: &Plane, mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> T {
    let tried = async {
        loop {
            match attempt().await {
                Ok(done) => return done,
                Err(error) => {
                    assert!(plane.is_shaky(), "{error}");
                    // Connections are cut by time: there is no signal for a good one.
                    plane.env.sleep(Duration::from_millis(2)).await;
                }
            }
        }
    };
    plane.env.timeout(HANG, tried).await.expect("a retry succeeds")
}

pub(crate) async fn objects_are_reconciled_with_their_causes(plane: &mut Plane) {
    let (user, log) = (plane.user(), Log::default());
    user.create(&map("before", "")).await.unwrap();
    let manager = plane.manager();
    control(&manager, noting(&log));
    let running = Running::start(manager);
    running.idle().await;
    let seen = take(&log);
    assert!(seen.len() == 1 && seen[0].0 == "before" && seen[0].1[0].contains("listed"), "{seen:?}");

    let because = |event: &str, object: &ConfigMap| {
        let version = object.resource_version().unwrap();
        vec![("a".to_owned(), vec![format!("ConfigMap default/a {event} (rv {version})")])]
    };
    let created = user.create(&map("a", "1")).await.unwrap();
    running.idle().await;
    assert_eq!(take(&log), because("created", &created));
    let mut changed = created.clone();
    changed.data = None;
    let changed = user.update(&changed).await.unwrap();
    running.idle().await;
    assert_eq!(take(&log), because("updated", &changed));
    user.delete(&changed).await.unwrap();
    running.idle().await;
    let seen = take(&log);
    assert!(seen.len() == 1 && seen[0].1[0].contains("default/a deleted"), "{seen:?}");
    running.end().await;
}

/// Creates a secret for each of the suite's config maps, with the same text.
fn mirror(client: Client) -> impl Reconciler<Request, Error = BoxError> {
    move |request: Request, _: Context| {
        let client = client.clone();
        async move {
            let Some(owner) = client.get_opt::<ConfigMap>(&request).await? else {
                return Ok::<_, BoxError>(Action::done());
            };
            let metadata = ObjectMeta {
                name: Some(request.name().into()),
                namespace: Some("default".into()),
                ..Default::default()
            };
            util::create_or_update(&client, Secret { metadata, ..Default::default() }, |secret| {
                secret.labels_mut().insert(OURS.into(), "yes".into());
                let text = k8s_openapi::ByteString(text(&owner).as_bytes().to_vec());
                secret.data = Some([("text".into(), text)].into());
                util::set_controller_reference(&*owner, secret)
            })
            .await?;
            Ok(Action::done())
        }
    }
}

/// The texts of the existing secrets by name.
async fn mirrored(user: &Client) -> BTreeMap<String, String> {
    let all = user.live().list::<Secret>(ours()).await.unwrap();
    let show = |secret: &Secret| String::from_utf8(secret.data.as_ref().unwrap()["text"].0.clone()).unwrap();
    all.items.iter().map(|secret| (secret.name_any(), show(secret))).collect()
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

pub(crate) async fn damaged_children_are_repaired(plane: &mut Plane) {
    let user = plane.user();
    let manager = plane.manager();
    control(&manager, mirror(manager.client()));
    let running = Running::start(manager);
    let a = user.create(&map("a", "one")).await.unwrap();
    user.create(&map("b", "two")).await.unwrap();
    running.idle().await;
    assert_eq!(mirrored(&user).await, texts(&[("a", "one"), ("b", "two")]));

    let mut spoiled = user.live().get::<Secret>(&key("a")).await.unwrap();
    spoiled.data = None;
    user.update(&spoiled).await.unwrap();
    user.delete::<Secret>(&key("b")).await.unwrap();
    running.idle().await;
    assert_eq!(mirrored(&user).await, texts(&[("a", "one"), ("b", "two")]));

    user.update(&ConfigMap { data: map("a", "three").data, ..a }).await.unwrap();
    user.delete::<ConfigMap>(&key("b")).await.unwrap();
    running.idle().await;
    // A secret without its owner is collected.
    plane.collected().await;
    assert_eq!(mirrored(&user).await, texts(&[("a", "three")]));
    running.idle().await;
    assert_eq!(mirrored(&user).await, texts(&[("a", "three")]));
    running.end().await;
}

pub(crate) async fn a_client_reads_its_own_writes(plane: &mut Plane) {
    let manager = plane.manager();
    let running = Running::start(manager.clone());
    let client = manager.client();
    retry(plane, async || client.list::<ConfigMap>(ours()).await).await;
    for round in 0..15 {
        let name = format!("m{}", round % 4);
        let wanted = round.to_string();
        let (stored, _) = retry(plane, async || {
            util::create_or_update(&client, map(&name, ""), |map: &mut ConfigMap| {
                map.data = Some([("text".to_owned(), wanted.clone())].into());
            })
            .await
        })
        .await;
        let read = client.get::<ConfigMap>(&key(&name)).await.unwrap();
        assert_eq!(text(&read), wanted, "a write is read");
        assert_eq!(read.resource_version(), stored.resource_version());
        let listed = client.list::<ConfigMap>(ours()).await.unwrap();
        assert!(listed.iter().any(|map| map.name_any() == name && text(map) == wanted), "and listed");
        if round % 3 == 2 {
            // If a response was lost, the object is not found by the retry.
            let gone = retry(plane, async || match client.delete::<ConfigMap>(&key(&name)).await {
                Err(error) if error.is_not_found() => Ok(false),
                deleted => deleted.map(|deleted| deleted.is_gone()),
            })
            .await;
            if gone {
                assert!(client.get_opt::<ConfigMap>(&key(&name)).await.unwrap().is_none(), "it is gone");
                let listed = client.list::<ConfigMap>(ours()).await.unwrap();
                assert!(listed.iter().all(|map| map.name_any() != name));
            } else {
                running.idle().await;
            }
        }
    }
    running.end().await;
}

pub(crate) async fn finalizers_hold_objects_until_they_are_cleaned_up(plane: &mut Plane) {
    const FINALIZER: &str = "suite.k1s.dev/cleanup";
    let user = plane.user();
    let manager = plane.manager();
    let (client, cleaned) = (manager.client(), Arc::new(Mutex::new(BTreeSet::new())));
    let noted = cleaned.clone();
    control(&manager, move |request: Request, _: Context| {
        let (client, noted) = (client.clone(), noted.clone());
        async move {
            let Some(map) = client.get_opt::<ConfigMap>(&request).await? else { return Ok(Action::done()) };
            let mut map = (*map).clone();
            if map.metadata.deletion_timestamp.is_none() {
                if util::add_finalizer(&mut map, FINALIZER) {
                    client.update(&map).await?;
                }
            } else if util::contains_finalizer(&map, FINALIZER) {
                noted.lock().insert(request.name().to_owned());
                util::remove_finalizer(&mut map, FINALIZER);
                client.update(&map).await?;
            }
            Ok::<_, BoxError>(Action::done())
        }
    });
    let running = Running::start(manager);
    for name in ["a", "b", "c"] {
        user.create(&map(name, "")).await.unwrap();
    }
    running.idle().await;
    for name in ["a", "c"] {
        assert!(!user.delete::<ConfigMap>(&key(name)).await.unwrap().is_gone(), "it is held");
    }
    running.idle().await;
    let left = user.live().list::<ConfigMap>(ours()).await.unwrap();
    assert_eq!(left.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
    assert_eq!(*cleaned.lock(), BTreeSet::from(["a".into(), "c".into()]));
    running.end().await;
}

pub(crate) async fn long_lists_come_in_pages(plane: &mut Plane) {
    let (user, log) = (plane.user(), Log::default());
    for n in 0..120 {
        user.create(&map(&format!("m{n:03}"), "")).await.unwrap();
    }
    let mut options = plane.options();
    options.cache.page_size = 7;
    let manager = plane.manager_with(options);
    control(&manager, noting(&log));
    let running = Running::start(manager);
    running.idle().await;
    let mut names: Vec<String> = take(&log).into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, (0..120).map(|n| format!("m{n:03}")).collect::<Vec<_>>(), "each object once");
    running.end().await;
}

pub(crate) async fn run_until_idle_does_all_work(plane: &mut Plane) {
    let user = plane.user();
    for n in 0..10 {
        user.create(&map(&format!("m{n}"), "x")).await.unwrap();
    }
    let manager = plane.manager();
    let mirror = Arc::new(mirror(manager.client()));
    control(&manager, move |request: Request, context: Context| {
        let mirror = mirror.clone();
        async move {
            let later = request.name() == "m3";
            let done = mirror.reconcile(request, context).await?;
            Ok::<_, BoxError>(if later { Action::requeue_after(HANG) } else { done })
        }
    });
    let report = manager.run_until_idle(IdleOptions::within(HANG)).await.unwrap();
    assert_eq!(mirrored(&user).await.len(), 10, "{report}");
    assert_eq!(report.delayed, 1, "{report}");
    assert!(report.reconciles() >= 10, "{report}");
    if !plane.is_shaky() {
        assert_eq!((report.errors(), report.writes), (0, 10), "{report}");
        assert!(report.problems.is_empty(), "{report}");
    }
}

pub(crate) async fn a_shutdown_waits_for_reconciles_in_flight(plane: &mut Plane) {
    let user = plane.user();
    let manager = plane.manager();
    // One runnable is stopped first, the other after the last reconcile.
    let (first, last) = (CancellationToken::new(), CancellationToken::new());
    let stopped = |token: &CancellationToken| {
        let token = token.clone();
        move |stop: CancellationToken| {
            let token = token.clone();
            async move {
                stop.cancelled().await;
                token.cancel();
                Ok(())
            }
        }
    };
    manager.add(runnable("first", stopped(&first)).without_leader_election());
    manager.add(runnable("last", stopped(&last)));
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (started, wait, noted, over) = (begun.clone(), go.clone(), ended.clone(), last.clone());
    control(&manager, move |request: Request, context: Context| {
        let (started, wait, noted, over) = (started.clone(), wait.clone(), noted.clone(), over.clone());
        async move {
            started.notify_one();
            wait.notified().await;
            let cancelled = context.cancellation().is_cancelled() || over.is_cancelled();
            noted.lock().push((request.name().to_owned(), cancelled));
            Ok::<_, BoxError>(Action::done())
        }
    });
    let running = Running::start(manager);
    user.create(&map("a", "")).await.unwrap();
    begun.notified().await;
    user.create(&map("b", "")).await.unwrap();
    running.stop.cancel();
    plane.env.timeout(HANG, first.cancelled()).await.expect("the shutdown begins");
    assert!(!running.task.is_finished());
    go.notify_one();
    running.end().await;
    assert_eq!(*ended.lock(), [("a".to_owned(), false)], "it was not cancelled, and no other began");
    assert!(last.is_cancelled());
}

pub(crate) async fn unfinished_work_is_done_after_a_restart(plane: &mut Plane) {
    let user = plane.user();
    for n in 0..12 {
        user.create(&map(&format!("m{n:02}"), "")).await.unwrap();
    }
    let done = async || user.live().list::<Secret>(ours()).await.unwrap().items.len();
    let mut starts = 0;
    while done().await < 12 {
        starts += 1;
        assert!(starts <= 40, "there is no progress: {}", done().await);
        let manager = plane.manager();
        let mirror = Arc::new(mirror(manager.client()));
        let stop = Arc::new(Notify::new());
        let (enough, count) = (stop.clone(), Mutex::new(0));
        control(&manager, move |request: Request, context: Context| {
            let (mirror, enough) = (mirror.clone(), enough.clone());
            let number = {
                let mut count = count.lock();
                *count += 1;
                *count
            };
            async move {
                if number == 4 {
                    enough.notify_one();
                }
                mirror.reconcile(request, context).await
            }
        });
        let running = Running::start(manager);
        tokio::select! {
            () = stop.notified() => {}
            _ = running.idle() => {}
        }
        running.end().await;
    }
    assert!(starts > 1, "the shutdowns interrupted the work");
}

pub(crate) async fn a_server_restart_loses_nothing(plane: &mut Plane) {
    let manager = plane.manager();
    control(&manager, mirror(manager.client()));
    let running = Running::start(manager);
    let mut expected = BTreeMap::new();
    for round in 0..3 {
        let user = plane.user();
        for n in 0..3 {
            user.create(&map(&format!("m{round}{n}"), "x")).await.unwrap();
            expected.insert(format!("m{round}{n}"), "x".to_owned());
        }
        // During the work, or after it.
        if round != 1 {
            running.idle().await;
        }
        plane.restart().await;
        let spoil = plane.user();
        let _ = spoil.delete::<Secret>(&key(&format!("m{round}0"))).await;
    }
    running.idle().await;
    assert_eq!(mirrored(&plane.user()).await, expected);
    running.end().await;
}

pub(crate) async fn a_follower_takes_over_from_the_leader(plane: &mut Plane) {
    let user = plane.user();
    let worked: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let start = |number: usize| {
        let mut options = plane.options();
        let mut election = LeaderElectionOptions::new("suite", "default");
        election.retry_period = Duration::from_millis(100);
        options.leader_election = Some(election);
        let manager = plane.manager_with(options);
        let worked = worked.clone();
        control(&manager, move |request: Request, _: Context| {
            worked.lock().push((number, request.name().to_owned()));
            async { Ok::<_, BoxError>(Action::done()) }
        });
        Running::start(manager)
    };
    let first = start(1);
    plane.env.timeout(HANG, first.manager.elected()).await.expect("one manager leads");
    let second = start(2);
    user.create(&map("a", "")).await.unwrap();
    first.idle().await;
    assert_eq!(*worked.lock(), [(1, "a".to_owned())]);
    // On a graceful end it releases the lease.
    first.end().await;
    plane.env.timeout(HANG, second.manager.elected()).await.expect("the other one leads");
    user.create(&map("b", "")).await.unwrap();
    second.idle().await;
    let by_second: BTreeSet<String> =
        worked.lock().iter().filter(|(number, _)| *number == 2).map(|(_, name)| name.clone()).collect();
    assert_eq!(by_second, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    second.end().await;
}
