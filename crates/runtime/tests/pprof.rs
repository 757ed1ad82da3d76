//! `/debug/pprof/` of a manager: work in flight and CPU profiles.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    io::Read as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use common::{HANG, World, config_map, idle, start};
use k1s_runtime::{Action, BoxError, Context, Controller, Manager, ManagerOptions, Request, kind};
use k8s_openapi::api::core::v1::ConfigMap;
use prost::Message;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
};

/// The fields of a profile that the tests use.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

impl Profile {
    fn text(&self, place: i64) -> &str {
        &self.string_table[usize::try_from(place).unwrap()]
    }

    /// The names of all functions of a sample.
    fn functions(&self, sample: &Sample) -> Vec<&str> {
        let lines = sample.location_id.iter().flat_map(|id| {
            &self.location.iter().find(|location| location.id == *id).expect("a location").line
        });
        lines
            .map(|line| {
                let found = self.function.iter().find(|function| function.id == line.function_id);
                self.text(found.expect("a function").name)
            })
            .collect()
    }
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..at].to_vec()).unwrap().to_lowercase();
    Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body: answer[at + 4..].to_vec() }
}

fn with_pprof(world: &World) -> Manager {
    let options = ManagerOptions { pprof_bind_address: "127.0.0.1:0".into(), ..world.options() };
    Manager::new(world.kube.clone(), options).unwrap()
}

#[tokio::test]
async fn it_is_off_by_default() {
    let world = World::new().await;
    for address in [None, Some(""), Some("0")] {
        let mut options = world.options();
        options.pprof_bind_address = address.map_or(options.pprof_bind_address, str::to_owned);
        let manager = Manager::new(world.kube.clone(), options).unwrap();
        let running = start(&manager);
        manager.elected().await;
        assert_eq!(manager.addresses().pprof, None);
        running.end().await.unwrap();
    }
    let options = ManagerOptions { pprof_bind_address: "6060".into(), ..world.options() };
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let error = manager.start(Default::default()).await.unwrap_err().to_string();
    assert!(error.contains("pprof") && error.contains("\"6060\" is not a listen address"), "{error}");
}

#[tokio::test]
async fn work_in_flight_is_listed_by_name() {
    let world = World::new().await;
    let manager = with_pprof(&world);
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, wait) = (begun.clone(), go.clone());
    Controller::managed_by(&manager)
        .named("slow")
        .for_(kind::<ConfigMap>())
        .complete(move |request: Request, _: Context| {
            let (started, wait) = (started.clone(), wait.clone());
            async move {
                if request.name() == "stuck" {
                    started.notify_one();
                    wait.notified().await;
                }
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    idle(&manager).await;
    let resource =
        kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget"));
    let widgets = k1s_runtime::Kind::<kube::api::DynamicObject>::dynamic(resource);
    let _informer = manager.cache().informer(&widgets).unwrap();
    manager.client().create(&config_map("stuck", &[])).await.unwrap();
    world.env.timeout(HANG, begun.notified()).await.unwrap();
    let address = manager.addresses().pprof.unwrap();
    let seen = async {
        loop {
            let answer = get(address, "/debug/pprof/goroutine?debug=1").await;
            assert_eq!(answer.status, 200);
            // The informer detects it after a while.
            if answer.text().contains("does not serve") {
                return answer;
            }
        }
    };
    let answer = world.env.timeout(HANG, seen).await.unwrap();
    let text = answer.text();
    for expected in [
        "\nwork: 1 in flight, the oldest first\n  reconcile/slow default/stuck (",
        "reconcile/slow: 1 in flight, the oldest for ",
        "\nqueues:\n  slow: 0 ready, 1 processing, 0 retrying, 0 delayed",
        "\ninformers:\n  ConfigMap: synced, ",
        "  Widget.test.k1s.dev: not synced yet, 0 objects; the server does not serve ",
        "\nelection: none\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }

    let index = get(address, "/debug/pprof/").await;
    assert_eq!(index.status, 200);
    assert!(index.head.contains("text/html") && index.text().contains("goroutine"), "{}", index.text());
    let line = get(address, "/debug/pprof/cmdline").await;
    assert_eq!(line.text().split('\0').next(), std::env::args().next().as_deref());
    for (path, expected) in
        [("/debug/pprof/heap", "exists in Go only"), ("/debug/pprof/x", "Unknown"), ("/debug/pprofx", "404")]
    {
        let answer = get(address, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains(expected), "{path}: {}", answer.text());
    }
    go.notify_one();
    running.end().await.unwrap();
}

/// Uses the CPU until `stop` is set.
#[inline(never)]
fn burns_time(stop: &AtomicBool) -> u64 {
    let mut sum = 1_u64;
    while !stop.load(Ordering::Relaxed) {
        for number in 0..1000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
    }
    sum
}

/// The paths of the commands in the guide.
fn paths_of_the_guide() -> Vec<&'static str> {
    const GUIDE: &str = include_str!("../../../docs/controllers.md");
    let block =
        GUIDE.split("```console\n").find(|block| block.starts_with("curl http://127.0.0.1:6060/")).unwrap();
    let urls = block.split("```").next().unwrap().split("http://127.0.0.1:6060").skip(1);
    urls.map(|rest| rest.split(['"', '\n']).next().unwrap()).collect()
}

/// A single test: only one profile can run at a time in a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_shows_where_the_time_goes() {
    let world = World::new().await;
    let manager = with_pprof(&world);
    let running = start(&manager);
    manager.elected().await;
    let address = manager.addresses().pprof.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let burning = world.env.spawn_thread("burning", move || burns_time(&until)).unwrap();

    let [work, profile] = paths_of_the_guide()[..] else { panic!("two commands") };
    assert!(get(address, work).await.text().contains("\nwork: "));
    // Shorter than in the guide. Of two concurrent requests, one is refused.
    assert!(profile.ends_with("?seconds=10"), "{profile}");
    let profile = profile.replace("=10", "=2");
    let (one, other) = tokio::join!(get(address, &profile), get(address, &profile));
    let (profiled, refused) = if one.status == 200 { (one, other) } else { (other, one) };
    assert_eq!((profiled.status, refused.status), (200, 500), "{}", refused.text());
    assert_eq!(refused.text(), "Could not enable CPU profiling: cpu profiling already in use\n");
    assert!(profiled.head.contains("application/octet-stream"), "{}", profiled.head);
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&profiled.body[..]).read_to_end(&mut bytes).unwrap();
    let profile = Profile::decode(&bytes[..]).unwrap();
    let kinds: Vec<_> =
        profile.sample_type.iter().map(|kind| (profile.text(kind.kind), profile.text(kind.unit))).collect();
    assert_eq!(kinds, [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!((profile.string_table[0].as_str(), profile.period), ("", 10_000_000));
    let found = profile
        .sample
        .iter()
        .filter(|sample| profile.functions(sample).iter().any(|name| name.contains("burns_time")));
    let burnt: i64 = found
        .map(|sample| {
            assert_eq!(sample.value[1], sample.value[0] * profile.period);
            sample.value[0]
        })
        .sum();
    assert!(burnt > 0, "{:?}", profile.string_table);

    // A stopping manager does not wait for a profile, which then ends early with what it has.
    let long = world.env.spawn("long profile", async move {
        loop {
            // A request that checks whether this one has begun may come first.
            let answer = get(address, "/debug/pprof/profile?seconds=3600").await;
            if answer.status != 500 {
                return answer;
            }
        }
    });
    while get(address, "/debug/pprof/profile?seconds=1").await.status != 500 {}
    world.env.timeout(HANG, running.end()).await.unwrap().unwrap();
    assert_eq!(long.await.unwrap().status, 200);
    stop.store(true, Ordering::Relaxed);
    burning.join().unwrap();
}
