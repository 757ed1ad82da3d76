//! The operator, written with k1s-runtime.

use std::sync::Arc;

use k1s_env::Task;
use k1s_runtime::{
    Action, BoxError, Client, Context, Controller, ControllerOptions, Handler, Manager, ManagerError,
    ManagerOptions, ObjectKey, Request, client::Patch, kind, predicate, source,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    operator::{Mode, Operator, Tally},
    widget::{self, NAMESPACE, Widget},
};
use crate::Failure;

pub(crate) struct K1s {
    manager: Manager,
    objects: Vec<Arc<Widget>>,
    sender: source::EventSender<Widget>,
    stop: CancellationToken,
    running: Mutex<Option<Task<Result<(), ManagerError>>>>,
}

impl K1s {
    pub(crate) fn start(
        client: kube::Client,
        tally: &Arc<Tally>,
        workers: u16,
        objects: u64,
    ) -> Result<K1s, Failure> {
        let env = tally.env.clone();
        let mut options = ManagerOptions::local();
        options.env = Some(env.clone());
        let manager = Manager::new(client, options)?;
        let (sender, source) = source::channel(Handler::for_object());
        let reconciler = Reconciler { client: manager.client(), tally: Arc::clone(tally) };
        Controller::managed_by(&manager)
            // Otherwise each write of a status would be a reason for another one.
            .for_(kind::<Widget>().with_predicate(predicate::generation_changed()))
            .watches_raw_source(source)
            .with_options(ControllerOptions::concurrent(workers.into()))
            .complete(reconciler)?;
        let (stop, running) = (CancellationToken::new(), manager.clone());
        let stopped = stop.clone();
        let task = env.spawn("manager", async move { running.start(stopped).await });
        let objects = (0..objects).map(|number| Arc::new(widget::widget(&widget::name(number)))).collect();
        Ok(K1s { manager, objects, sender, stop, running: Mutex::new(Some(task)) })
    }
}

struct Reconciler {
    client: Client,
    tally: Arc<Tally>,
}

impl k1s_runtime::Reconciler for Reconciler {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        self.tally.begins(request.name());
        let mode = self.tally.mode();
        if mode != Mode::Noop {
            let widget = self.client.get::<Widget>(&request).await?;
            if mode == Mode::Status {
                let patch = Patch::merge(&json!({"status": {"observed": self.tally.fresh()}}));
                self.client.typed::<Widget>().status().patch(&*widget, patch).await?;
            }
        }
        self.tally.ran();
        Ok(Action::done())
    }
}

#[async_trait::async_trait]
impl Operator for K1s {
    async fn synced(&self) -> Result<(), Failure> {
        self.manager.cache().informer(&kind::<Widget>())?.synced().await;
        Ok(())
    }

    async fn requeue(&self, count: u64) -> Result<(), Failure> {
        for object in self.objects.iter().take(usize::try_from(count)?) {
            self.sender.send(Arc::clone(object)).await?;
        }
        Ok(())
    }

    async fn write(&self, name: &str, size: u64) -> Result<(), Failure> {
        let key = ObjectKey::namespaced(NAMESPACE, name);
        let patch = Patch::merge(&json!({"spec": {"size": size}}));
        self.manager.client().patch::<Widget>(&key, patch).await?;
        Ok(())
    }

    async fn end(&self) -> Result<(), Failure> {
        self.stop.cancel();
        let running = self.running.lock().take();
        match running {
            Some(running) => Ok(running.await??),
            None => Ok(()),
        }
    }
}
