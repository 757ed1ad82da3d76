//! The client: its options, its wrappers, and the verbs for typed objects.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use k1s_env::{Env, WorkTracker};
use kube::core::{DynamicObject, GroupVersionKind, TypeMeta};
use parking_lot::RwLock;

use super::{
    CreateOptions, DeleteAllOfOptions, DeleteOptions, Deleted, Error, FieldValidation, Interceptor,
    KindClient, ListOptions, ObjectRef, Patch, PatchOptions, Reader, RestMapper, RestMetrics,
    SubResourceClient, UpdateOptions, telemetry::Telemetry, transport::Transport,
};
use crate::{GroupKind, Kind, Object, ObjectKey, TypedObject, cache::Cache};

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The source of time.
    pub env: Env,
    /// Counts requests.
    pub metrics: Option<RestMetrics>,
    /// The server's name in metrics. By default the remote address of its responses, since `kube::Client` does not expose
    /// the name; `in-process` for a server without an address.
    pub host: Arc<str>,
    /// Tracks requests, as component `client`. When it accepts no more work, calls fail.
    pub tracker: Option<WorkTracker>,
    /// Maximum number of retries of a request that a busy server rejected with a `Retry-After` of at most 30 s.
    pub retries: u32,
    /// Whether warnings of the server are logged, each message once.
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

/// Reads from the cache, writes to the server, and reads its own writes.
///
/// Cloning is cheap. The wrappers ([`namespaced`](Client::namespaced), [`dry_run`](Client::dry_run), …) are clients that
/// share everything else with the original. Without a cache, reads are sent to the server.
///
/// The verbs here are for typed objects. [`kind`](Client::kind) has the same verbs for kinds known at run time only, and
/// for metadata only.
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
    /// Avoids allocating the names of a kind for each call.
    kinds: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// The settings that wrappers change.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) cache: Option<Cache>,
    /// Kinds that are read from the server even if there is a cache.
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

    /// Reads from this cache, and updates it after writes.
    #[must_use]
    pub fn with_cache(&self, cache: Cache) -> Client {
        self.with(|settings| settings.cache = Some(cache))
    }

    /// Reads from the server, and updates no cache after writes.
    #[must_use]
    pub fn without_cache(&self) -> Client {
        self.with(|settings| settings.cache = None)
    }

    /// Reads these kinds from the server, other kinds from the cache. Repeated calls add kinds.
    #[must_use]
    pub fn read_past_cache(&self, kinds: impl IntoIterator<Item = GroupKind>) -> Client {
        self.with(|settings| settings.uncached.extend(kinds))
    }

    /// Works in one namespace: it is the default, and calls for another one fail. Cluster-scoped objects are not affected.
    #[must_use]
    pub fn namespaced(&self, namespace: impl Into<Arc<str>>) -> Client {
        self.with(|settings| settings.namespace = Some(namespace.into()))
    }

    /// Stores nothing: each write is a dry run.
    #[must_use]
    pub fn dry_run(&self) -> Client {
        self.with(|settings| settings.dry_run = true)
    }

    /// Whether each write is a dry run.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.settings.dry_run
    }

    /// Writes as this field manager, unless a call sets another one.
    #[must_use]
    pub fn with_field_owner(&self, field_manager: impl Into<Arc<str>>) -> Client {
        self.with(|settings| settings.field_manager = Some(field_manager.into()))
    }

    /// The field manager that it writes as, if one is set.
    #[must_use]
    pub fn field_owner(&self) -> Option<&str> {
        self.settings.field_manager.as_deref()
    }

    /// Sets the validation of unknown fields, unless a call sets another one.
    #[must_use]
    pub fn with_field_validation(&self, validation: FieldValidation) -> Client {
        self.with(|settings| settings.field_validation = Some(validation))
    }

    /// Adds an interceptor, called after those that were added before.
    #[must_use]
    pub fn intercept(&self, interceptor: impl Interceptor) -> Client {
        self.with(|settings| settings.interceptors.push(Arc::new(interceptor)))
    }

    pub(crate) fn telemetry(&self) -> Arc<Telemetry> {
        Arc::clone(&self.shared.transport.telemetry)
    }

    /// The source of time.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.shared.transport.env
    }

    /// The underlying client, without cache and wrappers.
    #[must_use]
    pub fn kube(&self) -> &kube::Client {
        &self.shared.transport.client
    }

    /// Reads that bypass the cache.
    #[must_use]
    pub fn live(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// The name of [`live`](Client::live) in Go's controller-runtime.
    #[must_use]
    pub fn api_reader(&self) -> Reader {
        self.live()
    }

    /// The kinds that the server serves.
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

    /// The verbs for the kind in an object's `apiVersion` and `kind`, resolved by discovery.
    ///
    /// # Errors
    /// If the object has no kind, the server does not serve it, or discovery fails.
    pub async fn dynamic(&self, object: &DynamicObject) -> Result<KindClient<DynamicObject>, Error> {
        self.dynamic_of(object.types.clone().unwrap_or_default()).await
    }

    pub(super) async fn dynamic_of(&self, types: TypeMeta) -> Result<KindClient<DynamicObject>, Error> {
        let gvk = GroupVersionKind::try_from(types.clone()).ok().filter(|gvk| !gvk.kind.is_empty());
        let Some(gvk) = gvk else {
            let (api_version, kind) = (types.api_version.into(), types.kind.into());
            return Err(Error::NoKindMatch { api_version, kind });
        };
        let mapping = self.rest_mapper().mapping(&gvk).await?;
        Ok(self.kind(Kind::dynamic(mapping.resource.clone())))
    }

    /// Whether objects of kind `K` are namespaced. Uses discovery only if the type does not define its scope.
    ///
    /// # Errors
    /// If the server does not serve the kind, or discovery fails.
    pub async fn is_namespaced<K: TypedObject>(&self) -> Result<bool, Error> {
        self.typed::<K>().is_namespaced().await
    }

    /// Reads an object, from the cache if there is one.
    ///
    /// # Errors
    /// If it does not exist (see [`Error::is_not_found`]), or cannot be read.
    pub async fn get<K: TypedObject>(&self, key: &ObjectKey) -> Result<Arc<K>, Error> {
        self.typed().get(key).await
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt<K: TypedObject>(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Error> {
        self.typed().get_opt(key).await
    }

    /// Lists objects, from the cache if there is one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list<K: TypedObject>(&self, options: ListOptions) -> Result<Vec<Arc<K>>, Error> {
        self.typed().list(options).await
    }

    /// Creates an object.
    ///
    /// # Errors
    /// If one of that name exists already (see [`Error::is_already_exists`]), or the server rejects the request.
    pub async fn create<K: TypedObject>(&self, object: &K) -> Result<K, Error> {
        self.typed().create(object).await
    }

    /// Creates an object.
    ///
    /// # Errors
    /// As [`create`](Client::create).
    pub async fn create_with<K: TypedObject>(&self, object: &K, options: CreateOptions) -> Result<K, Error> {
        self.typed().create_with(object, options).await
    }

    /// Replaces an object, if its resource version is still current. Without one, which many built-in kinds allow, any
    /// state is replaced.
    ///
    /// # Errors
    /// If it has changed in the meantime (see [`Error::is_conflict`]), or the server rejects the request.
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

    /// Patches an object, identified by itself or its key. A patch from an original needs the changed object.
    ///
    /// # Errors
    /// If it does not exist, or the server rejects the patch.
    pub async fn patch<K: TypedObject>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
    ) -> Result<K, Error> {
        self.typed().patch(target, patch).await
    }

    /// Patches an object.
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

    /// Deletes an object, identified by itself or its key.
    ///
    /// # Errors
    /// If it does not exist, or the server rejects the request.
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

    /// Deletes all matching objects.
    ///
    /// # Errors
    /// If the server rejects the request.
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

    /// Reads and writes a subresource of kind `K`: `scale`, `eviction`, `token`.
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
