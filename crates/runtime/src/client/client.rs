//! The client: what it is made of, its wrappers, and the verbs for kinds that a type knows.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use k1s_env::{Env, WorkTracker};
use kube::core::{DynamicObject, GroupVersionKind};
use parking_lot::RwLock;

use super::{
    ApplyOptions, CreateOptions, DeleteAllOfOptions, DeleteOptions, Deleted, Error, FieldValidation,
    Interceptor, KindClient, ListOptions, ObjectRef, Patch, PatchOptions, Reader, RestMapper, RestMetrics,
    SubResourceClient, UpdateOptions, telemetry::Telemetry, transport::Transport,
};
use crate::{GroupKind, Kind, Object, ObjectKey, TypedObject, cache::Cache};

/// What a client is made with.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Where time comes from.
    pub env: Env,
    /// Where requests are counted.
    pub metrics: Option<RestMetrics>,
    /// The server's name in metrics. By default the address that its answers come from, since `kube::Client` does not tell
    /// the name; `in-process` for a server without one.
    pub host: Arc<str>,
    /// Where calls of the server are tracked, as component `client`. When it accepts no more work, calls fail.
    pub tracker: Option<WorkTracker>,
    /// How often a request is sent again when the server says that it is too busy and to come back in at most 30 s.
    pub retries: u32,
    /// Whether warnings of the server are logged, each text once.
    pub log_warnings: bool,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            env: Env::system(),
            metrics: None,
            host: "".into(),
            tracker: None,
            retries: 10,
            log_warnings: true,
        }
    }
}

/// Reads from the cache, writes to the server, and never reads less than it has written.
///
/// Cloning is cheap. The wrappers ([`namespaced`](Client::namespaced), [`dry_run`](Client::dry_run), …) are clients that
/// share all else with the one they are made of. Without a cache, reads ask the server.
///
/// The verbs here are for types that know their kind. [`kind`](Client::kind) has the same for kinds that are known at run
/// time, and for metadata alone.
///
/// ```
/// # use k1s_runtime::client::{Client, ClientOptions, Error, ListOptions};
/// # use k1s_runtime::ObjectKey;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn example(kube: kube::Client) -> Result<(), Error> {
/// let client = Client::new(kube, ClientOptions::default());
/// let settings = client.get::<ConfigMap>(&ObjectKey::namespaced("default", "settings")).await?;
/// let mut changed = (*settings).clone();
/// changed.data.get_or_insert_default().insert("colour".into(), "blue".into());
/// let stored = client.update(&changed).await?;
/// client.delete(&stored).await?;
/// assert!(client.list::<ConfigMap>(ListOptions::in_namespace("default")).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: Arc<Settings>,
}

pub(super) struct Shared {
    pub(super) transport: Arc<Transport>,
    pub(super) mapper: RestMapper,
    /// Names of kinds are a handful of strings: made once per type, not once per call.
    kinds: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// What wrappers change.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) cache: Option<Cache>,
    /// Kinds that are read from the server, though there is a cache.
    pub(super) uncached: Vec<GroupKind>,
    pub(super) namespace: Option<Arc<str>>,
    pub(super) dry_run: bool,
    pub(super) field_manager: Option<Arc<str>>,
    pub(super) field_validation: Option<FieldValidation>,
    pub(super) interceptors: Vec<Arc<dyn Interceptor>>,
}

impl Client {
    /// A client without a cache.
    #[must_use]
    pub fn new(client: kube::Client, options: ClientOptions) -> Client {
        let ClientOptions { env, metrics, host, tracker, retries, log_warnings } = options;
        let tracked = tracker.map(|tracker| tracker.component("client"));
        let telemetry = Arc::new(Telemetry::new(metrics, host, log_warnings));
        let transport = Arc::new(Transport { client, env, telemetry, tracked, retries });
        let mapper = RestMapper::new(Arc::clone(&transport));
        let shared = Shared { transport, mapper, kinds: RwLock::default() };
        Client { shared: Arc::new(shared), settings: Arc::default() }
    }

    fn with(&self, change: impl FnOnce(&mut Settings)) -> Client {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        Client { shared: Arc::clone(&self.shared), settings: Arc::new(settings) }
    }

    /// Reads from this cache, and tells it of writes.
    #[must_use]
    pub fn with_cache(&self, cache: Cache) -> Client {
        self.with(|settings| settings.cache = Some(cache))
    }

    /// Reads ask the server, and no cache is told of writes.
    #[must_use]
    pub fn without_cache(&self) -> Client {
        self.with(|settings| settings.cache = None)
    }

    /// Reads of these kinds ask the server, those of others the cache. Calls add up.
    #[must_use]
    pub fn read_past_cache(&self, kinds: impl IntoIterator<Item = GroupKind>) -> Client {
        self.with(|settings| settings.uncached.extend(kinds))
    }

    /// Works in one namespace: it is filled in where none is given, and another one is refused. Objects of the cluster
    /// are not concerned.
    #[must_use]
    pub fn namespaced(&self, namespace: impl Into<Arc<str>>) -> Client {
        self.with(|settings| settings.namespace = Some(namespace.into()))
    }

    /// Stores nothing: each write is a dry run.
    #[must_use]
    pub fn dry_run(&self) -> Client {
        self.with(|settings| settings.dry_run = true)
    }

    /// Writes as this field manager, unless a call says another.
    #[must_use]
    pub fn with_field_owner(&self, field_manager: impl Into<Arc<str>>) -> Client {
        self.with(|settings| settings.field_manager = Some(field_manager.into()))
    }

    /// Treats unknown fields like this, unless a call says otherwise.
    #[must_use]
    pub fn with_field_validation(&self, validation: FieldValidation) -> Client {
        self.with(|settings| settings.field_validation = Some(validation))
    }

    /// Shows all calls to an interceptor, after those that were added before.
    #[must_use]
    pub fn intercept(&self, interceptor: impl Interceptor) -> Client {
        self.with(|settings| settings.interceptors.push(Arc::new(interceptor)))
    }

    pub(crate) fn telemetry(&self) -> Arc<Telemetry> {
        Arc::clone(&self.shared.transport.telemetry)
    }

    /// Where time comes from.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.shared.transport.env
    }

    /// The client underneath, which knows nothing of caches and wrappers.
    #[must_use]
    pub fn kube(&self) -> &kube::Client {
        &self.shared.transport.client
    }

    /// Reads that always ask the server.
    #[must_use]
    pub fn live(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// The name that Go has for [`live`](Client::live).
    #[must_use]
    pub fn api_reader(&self) -> Reader {
        self.live()
    }

    /// Which kinds the server has.
    #[must_use]
    pub fn rest_mapper(&self) -> &RestMapper {
        &self.shared.mapper
    }

    /// The verbs for a kind.
    #[must_use]
    pub fn kind<K: Object>(&self, kind: Kind<K>) -> KindClient<K> {
        KindClient::new(self.clone(), Arc::new(kind))
    }

    /// The verbs for the kind `K`.
    #[must_use]
    pub fn typed<K: TypedObject>(&self) -> KindClient<K> {
        KindClient::new(self.clone(), self.shared.kind())
    }

    /// The verbs for the kind that an object says it is of, as the server has it.
    ///
    /// # Errors
    /// If the object does not say, if the server does not have it, or cannot be asked.
    pub async fn dynamic(&self, object: &DynamicObject) -> Result<KindClient<DynamicObject>, Error> {
        let types = object.types.clone().unwrap_or_default();
        let gvk = GroupVersionKind::try_from(types.clone()).ok().filter(|gvk| !gvk.kind.is_empty());
        let Some(gvk) = gvk else {
            let (api_version, kind) = (types.api_version.into(), types.kind.into());
            return Err(Error::NoKindMatch { api_version, kind });
        };
        let mapping = self.rest_mapper().mapping(&gvk).await?;
        Ok(self.kind(Kind::dynamic(mapping.resource.clone())))
    }

    /// Whether objects of kind `K` are in namespaces. Asks the server only if the type does not say.
    ///
    /// # Errors
    /// If the server does not have the kind, or cannot be asked.
    pub async fn is_namespaced<K: TypedObject>(&self) -> Result<bool, Error> {
        self.typed::<K>().is_namespaced().await
    }

    /// Reads an object. As the cache has it, if there is one.
    ///
    /// # Errors
    /// If there is none (see [`Error::is_not_found`]), or it cannot be read.
    pub async fn get<K: TypedObject>(&self, key: &ObjectKey) -> Result<Arc<K>, Error> {
        self.typed().get(key).await
    }

    /// Reads an object, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt<K: TypedObject>(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Error> {
        self.typed().get_opt(key).await
    }

    /// Reads many objects. As the cache has them, if there is one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list<K: TypedObject>(&self, options: ListOptions) -> Result<Vec<Arc<K>>, Error> {
        self.typed().list(options).await
    }

    /// Makes an object.
    ///
    /// # Errors
    /// If one of that name is there already (see [`Error::is_already_exists`]), or the server refuses it.
    pub async fn create<K: TypedObject>(&self, object: &K) -> Result<K, Error> {
        self.typed().create(object).await
    }

    /// Makes an object.
    ///
    /// # Errors
    /// As [`create`](Client::create).
    pub async fn create_with<K: TypedObject>(&self, object: &K, options: CreateOptions) -> Result<K, Error> {
        self.typed().create_with(object, options).await
    }

    /// Replaces an object. Its resource version says which state is replaced; without one, which many built-in kinds allow,
    /// any is.
    ///
    /// # Errors
    /// If it has changed in the meantime (see [`Error::is_conflict`]), or the server refuses it.
    pub async fn update<K: TypedObject>(&self, object: &K) -> Result<K, Error> {
        self.typed().update(object).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// As [`update`](Client::update).
    pub async fn update_with<K: TypedObject>(&self, object: &K, options: UpdateOptions) -> Result<K, Error> {
        self.typed().update_with(object, options).await
    }

    /// Changes an object, given itself or its key. A patch from an original needs the changed object.
    ///
    /// # Errors
    /// If there is none, or the server refuses the change.
    pub async fn patch<K: TypedObject>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
    ) -> Result<K, Error> {
        self.typed().patch(target, patch).await
    }

    /// Changes an object.
    ///
    /// # Errors
    /// As [`patch`](Client::patch).
    pub async fn patch_with<K: TypedObject>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
        options: PatchOptions,
    ) -> Result<K, Error> {
        self.typed().patch_with(target, patch, options).await
    }

    /// Server-side apply: makes the object have these fields, and own them. The options may be the field manager's name.
    ///
    /// # Errors
    /// If others own the fields and it is not forced (see [`Error::is_conflict`]), or the server refuses it.
    pub async fn apply<K: TypedObject>(
        &self,
        object: &K,
        options: impl Into<ApplyOptions>,
    ) -> Result<K, Error> {
        self.typed().apply(object, options).await
    }

    /// Deletes an object, given itself or its key.
    ///
    /// # Errors
    /// If there is none, or the server refuses it.
    pub async fn delete<K: TypedObject>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
    ) -> Result<Deleted<K>, Error> {
        self.typed().delete(target).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`delete`](Client::delete), and if a precondition does not hold (see [`Error::is_conflict`]).
    pub async fn delete_with<K: TypedObject>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        options: DeleteOptions,
    ) -> Result<Deleted<K>, Error> {
        self.typed().delete_with(target, options).await
    }

    /// Deletes many objects.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn delete_all_of<K: TypedObject>(
        &self,
        options: impl Into<DeleteAllOfOptions>,
    ) -> Result<(), Error> {
        self.typed::<K>().delete_all_of(options).await
    }

    /// Writes the status of objects of kind `K`.
    #[must_use]
    pub fn status<K: TypedObject>(&self) -> SubResourceClient<K> {
        self.typed().status()
    }

    /// Reads and writes a part of objects of kind `K`: `scale`, `eviction`, `token`.
    pub fn sub_resource<K: TypedObject>(&self, name: impl Into<Arc<str>>) -> SubResourceClient<K> {
        self.typed().sub_resource(name)
    }
}

impl Shared {
    fn kind<K: TypedObject>(&self) -> Arc<Kind<K>> {
        let id = TypeId::of::<Kind<K>>();
        let known = self.kinds.read().get(&id).cloned();
        if let Some(Ok(kind)) = known.map(Arc::downcast::<Kind<K>>) {
            return kind;
        }
        let kind = Arc::new(crate::kind::<K>());
        self.kinds.write().insert(id, Arc::clone(&kind) as Arc<dyn Any + Send + Sync>);
        kind
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        f.debug_struct("Client")
            .field("cached", &settings.cache.is_some())
            .field("namespace", &settings.namespace)
            .field("dry_run", &settings.dry_run)
            .field("field_manager", &settings.field_manager)
            .field("field_validation", &settings.field_validation)
            .field("interceptors", &settings.interceptors.len())
            .finish_non_exhaustive()
    }
}
