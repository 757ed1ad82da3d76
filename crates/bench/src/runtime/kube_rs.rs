//! The operator, written with kube-rs' `Controller`.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use k1s_env::{Env, Task};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt as _,
        controller::{Action, Config, Controller},
        predicates,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    operator::{Mode, Operator, Tally},
    widget::{self, NAMESPACE, Widget},
};
use crate::Failure;

pub(crate) struct KubeRs {
    env: Env,
    widgets: Api<Widget>,
    objects: Vec<ObjectRef<Widget>>,
    sender: mpsc::Sender<ObjectRef<Widget>>,
    store: Store<Widget>,
    running: Task<()>,
}

impl KubeRs {
    pub(crate) fn start(client: kube::Client, tally: &Arc<Tally>, workers: u16, objects: u64) -> KubeRs {
        let widgets: Api<Widget> = Api::namespaced(client.clone(), NAMESPACE);
        // As large as the channels of the other libraries.
        let (sender, receiver) = mpsc::channel(1024);
        let requests = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
            receiver.recv().await.map(|request| (request, receiver))
        });
        let (store, writer) = reflector::store();
        let changes = watcher(Api::<Widget>::all(client), watcher::Config::default())
            .default_backoff()
            .reflect(writer)
            .applied_objects()
            // Otherwise each write of a status would be a reason for another one.
            .predicate_filter(predicates::generation, kube::runtime::PredicateConfig::default());
        let context = Arc::new(Shared { tally: Arc::clone(tally), widgets: widgets.clone() });
        let controller = Controller::for_stream(changes, store.clone())
            .with_config(Config::default().concurrency(workers))
            .reconcile_on(requests)
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), context)
            .for_each(|_| std::future::ready(()));
        let running = tally.env.spawn("controller", controller);
        let objects =
            (0..objects).map(|number| ObjectRef::new(&widget::name(number)).within(NAMESPACE)).collect();
        KubeRs { env: tally.env.clone(), widgets, objects, sender, store, running }
    }
}

struct Shared {
    tally: Arc<Tally>,
    widgets: Api<Widget>,
}

async fn reconcile(widget: Arc<Widget>, shared: Arc<Shared>) -> Result<Action, kube::Error> {
    let name = widget.name_unchecked();
    shared.tally.begins(&name);
    // The library has read the object from its store.
    if shared.tally.mode() == Mode::Status {
        let patch = json!({"status": {"observed": shared.tally.fresh()}});
        shared.widgets.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    shared.tally.ran();
    Ok(Action::await_change())
}

#[async_trait::async_trait]
impl Operator for KubeRs {
    async fn synced(&self) -> Result<(), Failure> {
        // Not by wait_until_ready: only one of those who wait there is woken, and the controller waits, too.
        while self.store.len() < self.objects.len() {
            self.env.sleep(Duration::from_micros(200)).await;
        }
        Ok(())
    }

    async fn requeue(&self, count: u64) -> Result<(), Failure> {
        for object in self.objects.iter().take(usize::try_from(count)?) {
            self.sender.send(object.clone()).await?;
        }
        Ok(())
    }

    async fn write(&self, name: &str, size: u64) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        self.widgets.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn end(&self) -> Result<(), Failure> {
        self.running.abort();
        Ok(())
    }
}
