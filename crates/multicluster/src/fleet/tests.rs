//! A cluster that is replaced, or goes, while its sources are being added.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use k1s_runtime::{
    Action, Context, Handler, Manager, ManagerOptions, Request, controller::Builder, kind, source,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client that never gets an answer.
fn hanging() -> kube::Client {
    let service = tower::service_fn(|_: http::Request<Body>| async {
        pending::<()>().await;
        Ok::<_, Infallible>(http::Response::new(Body::empty()))
    });
    kube::Client::new(service, "default")
}

fn cluster(name: &str) -> Cluster {
    Cluster::new(name, hanging(), ClusterOptions::default())
}

fn fleet() -> Arc<Fleet> {
    let options = MultiClusterOptions::new();
    Fleet::new(&cluster(""), ClusterOptions::default(), options, &Metrics::new())
}

async fn nothing(_: Request, _: Context) -> Result<Action, Infallible> {
    Ok(Action::done())
}

/// What happens while the sources of the first cluster are being added.
type Meanwhile = Box<dyn Fn(&Controller) + Send + Sync>;

/// A controller whose sources of the first cluster take their time.
struct Controller {
    name: Arc<str>,
    /// Has the sources; it does not run.
    inner: k1s_runtime::Controller<Request>,
    requests: Mutex<Vec<&'static str>>,
    added: AtomicUsize,
    removed: AtomicUsize,
    meanwhile: Meanwhile,
}

impl Controller {
    fn new(meanwhile: impl Fn(&Controller) + Send + Sync + 'static) -> Arc<Controller> {
        let manager = Manager::new(hanging(), ManagerOptions::local()).unwrap();
        let inner = Builder::new(&manager).for_(kind::<ConfigMap>()).build(nothing).unwrap();
        Arc::new(Controller {
            name: "test".into(),
            inner,
            requests: Mutex::default(),
            added: AtomicUsize::new(0),
            removed: AtomicUsize::new(0),
            meanwhile: Box::new(meanwhile),
        })
    }
}

impl WorksWith for Controller {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn watch(&self, _: &Cluster) -> Result<Vec<WatchId>, ControllerError> {
        let source = source::kind(kind::<ConfigMap>(), Handler::for_object());
        let watch = self.inner.watch_in_background(source)?;
        if self.added.fetch_add(1, Ordering::SeqCst) == 0 {
            (self.meanwhile)(self);
        } else {
            self.requests.lock().push("the successor's");
        }
        Ok(vec![watch])
    }

    fn unwatch(&self, watch: WatchId) {
        self.inner.unwatch(watch);
        self.removed.fetch_add(1, Ordering::SeqCst);
    }

    fn drop_requests(&self, _: &ClusterName) {
        self.requests.lock().clear();
    }

    fn queued(&self, _: &ClusterName) -> FlowState {
        FlowState::default()
    }

    fn forget(&self, _: &ClusterName) {}

    fn running(&self, _: &ClusterName) -> Vec<String> {
        Vec::new()
    }
}

/// Blocks the thread until a condition holds; tasks go on.
fn wait_until(holds: impl Fn() -> bool) {
    let env = Env::system();
    let until = env.now() + PATIENCE;
    while !holds() {
        assert!(env.now() < until, "it does not happen");
        std::thread::yield_now();
    }
}

/// Engages a cluster on a thread that may block.
async fn engage(fleet: &Arc<Fleet>, cluster: Cluster) {
    let fleet = Arc::clone(fleet);
    Env::system().spawn_blocking("engage", move || fleet.engage(cluster)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_cluster_that_took_its_place_stay() {
    let fleet = fleet();
    let (old, new) = (cluster("a"), cluster("a"));
    let (sender, successor) = mpsc::channel();
    sender.send(new.clone()).unwrap();
    let (of, successor) = (Arc::downgrade(&fleet), Mutex::new(successor));
    let controller = Controller::new(move |controller| {
        let fleet = of.upgrade().unwrap();
        fleet.engage(successor.lock().recv().unwrap());
        wait_until(|| !controller.requests.lock().is_empty());
    });
    fleet.add_controller(&(Arc::clone(&controller) as _));
    engage(&fleet, old.clone()).await;
    assert!(old.stopped().is_cancelled());
    assert!(fleet.live.get(&"a".into()).unwrap().cluster.is_same(&new));
    assert_eq!(*controller.requests.lock(), ["the successor's"]);
    let counts = [&controller.added, &controller.removed].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [2, 1], "the sources of the old cluster are removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_cluster_that_has_gone_are_dropped() {
    let fleet = fleet();
    let of = Arc::downgrade(&fleet);
    let controller = Controller::new(move |controller| {
        let fleet = of.upgrade().unwrap();
        let own = Arc::clone(&fleet);
        drop(Env::system().spawn("disengage", async move { drop(own.disengage(&"a".into()).await) }));
        wait_until(|| fleet.statuses().is_empty());
        controller.requests.lock().push("nobody's");
    });
    fleet.add_controller(&(Arc::clone(&controller) as _));
    engage(&fleet, cluster("a")).await;
    assert!(controller.requests.lock().is_empty());
    assert_eq!(controller.removed.load(Ordering::SeqCst), 1);
}
