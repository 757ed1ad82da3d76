//! The owners of an object that are of one kind, as requests. Their namespace depends on the kind's scope, which is known
//! from the type, or from the server.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use k1s_env::WorkGuard;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{core::GroupVersionKind, discovery::Scope};
use parking_lot::Mutex;

use crate::{
    GroupKind, Kind, Object, ObjectKey,
    handler::Enqueue,
    kind::static_scope,
    queue::{AddOptions, Key, Queue},
    source::SourceContext,
};

/// A kind whose objects own others.
#[derive(Debug, Clone)]
pub(crate) struct OwnerKind {
    gvk: GroupVersionKind,
    scope: Option<Scope>,
}

impl OwnerKind {
    pub(crate) fn of<K: Object>(kind: &Kind<K>) -> OwnerKind {
        OwnerKind { gvk: kind.group_version_kind(), scope: static_scope::<K>() }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.gvk.kind
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.gvk.group.clone(), kind: self.gvk.kind.clone() }
    }
}

/// A reference to an owner: the namespace of the owned object, and the name of the owner.
pub(crate) type Reference<'a> = (Option<&'a str>, &'a str);

/// Queues the owners of a kind.
pub(crate) struct Owners<R: Key> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: Key> {
    owner: OwnerKind,
    every: bool,
    scope: OnceLock<Scope>,
    /// References received before the scope was known, with the options to queue them.
    waiting: Mutex<BTreeMap<ObjectKey, (AddOptions, Option<WorkGuard>)>>,
    context: SourceContext<R>,
}

impl<R: Key + From<ObjectKey>> Owners<R> {
    /// Requests the scope from the server, if the type does not define it.
    pub(crate) fn new(owner: OwnerKind, every: bool, context: &SourceContext<R>) -> Owners<R> {
        let scope = owner.scope.clone().map_or_else(OnceLock::new, OnceLock::from);
        let ask = scope.get().is_none();
        let (waiting, context) = (Mutex::default(), context.clone());
        let shared = Arc::new(Shared { owner, every, scope, waiting, context });
        if ask {
            shared.context.spawn("scope of owners", find_scope(Arc::clone(&shared)));
        }
        Owners { shared }
    }

    pub(crate) fn of<'a>(&self, meta: &'a ObjectMeta) -> Vec<Reference<'a>> {
        let references = meta.owner_references.iter().flatten().filter(|reference| self.is_one(reference));
        references.map(|reference| (meta.namespace.as_deref(), &*reference.name)).collect()
    }

    fn is_one(&self, reference: &OwnerReference) -> bool {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        reference.kind == self.shared.owner.gvk.kind
            && group == self.shared.owner.gvk.group
            && (self.shared.every || reference.controller == Some(true))
    }

    /// Queues an owner, at once or as soon as its scope is known.
    pub(crate) fn queue(&self, (namespace, name): Reference<'_>, enqueue: &Enqueue<'_, R>) {
        let shared = &self.shared;
        let key = ObjectKey::new(namespace, name);
        if let Some(scope) = shared.scope.get() {
            return enqueue.add(in_scope(scope, key).into());
        }
        let mut waiting = shared.waiting.lock();
        match shared.scope.get() {
            Some(scope) => enqueue.add(in_scope(scope, key).into()),
            None => {
                // Counts as work in flight, so that the manager is not idle.
                let work = || shared.context.work().begin(format!("scope of {}", shared.owner.gvk.kind)).ok();
                waiting.entry(key).or_insert_with(|| (enqueue.options(), work()));
            }
        }
    }
}

fn in_scope(scope: &Scope, key: ObjectKey) -> ObjectKey {
    match scope {
        Scope::Cluster => ObjectKey::cluster(key.name()),
        Scope::Namespaced => key,
    }
}

/// Asks the server until it serves the kind, then queues the waiting references.
async fn find_scope<R: Key + From<ObjectKey>>(shared: Arc<Shared<R>>) {
    let (env, mapper) = (&shared.context.env, shared.context.cache.rest_mapper());
    let mut pause = Duration::from_millis(200);
    let namespaced = loop {
        match mapper.is_namespaced(&shared.owner.gvk).await {
            Ok(namespaced) => break namespaced,
            Err(error) => {
                tracing::warn!(controller = %shared.context.controller, %error, "cannot determine the scope of owners yet");
            }
        }
        env.sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
    };
    let scope = if namespaced { Scope::Namespaced } else { Scope::Cluster };
    let mut waiting = shared.waiting.lock();
    let scope = shared.scope.get_or_init(|| scope);
    let queue: &Queue<R> = shared.context.queue();
    for (key, (options, work)) in std::mem::take(&mut *waiting) {
        queue.add_with(options, in_scope(scope, key).into());
        drop(work);
    }
}
