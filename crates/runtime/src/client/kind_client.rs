//! The verbs for one kind.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::Method;
use kube::{
    api::ApiResource,
    core::{Status, response::StatusDetails},
    discovery::Scope,
};
use serde::Serialize;
use serde_json::Value;

use super::{
    Call, Client, CreateOptions, DeleteOptions, Error, KindReader, ListOptions, ObjectRef, Patch,
    PatchOptions, SubResourceClient, UpdateOptions, Verb, WriteOptions, Written, decode,
    options::Query,
    patch::PatchType,
    transport::{JSON, METADATA, Outgoing},
    written::is_gone,
};
use crate::{Form, Kind, Object, ObjectKey, cache::Cache, kind::static_scope};

/// The verbs of a [`Client`] for objects of one kind: typed, dynamic, or metadata only. Cheap to clone.
pub struct KindClient<K: Object> {
    pub(super) client: Client,
    pub(super) kind: Arc<Kind<K>>,
}

/// The outcome of a deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted<K> {
    /// The object is gone.
    Gone {
        /// Its uid, if the server returned it.
        uid: Option<String>,
    },
    /// The object still exists, with a deletion timestamp: it has finalizers, or its grace period has not passed.
    Deleting(Box<K>),
}

impl<K> Deleted<K> {
    /// Whether the object is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Deleted::Gone { .. })
    }
}

/// The parts of a write request that differ between verbs.
pub(super) struct Write<'a> {
    pub(super) verb: Verb,
    pub(super) method: Method,
    pub(super) key: &'a ObjectKey,
    pub(super) subresource: Option<&'a str>,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    pub(super) dry_run: bool,
}

impl<K: Object> KindClient<K> {
    pub(super) fn new(client: Client, kind: Arc<Kind<K>>) -> KindClient<K> {
        KindClient { client, kind }
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    pub(super) fn resource(&self) -> &ApiResource {
        self.kind.resource()
    }

    pub(super) fn is_metadata(&self) -> bool {
        self.kind.form() == Form::Metadata || K::metadata_api()
    }

    /// Reads that bypass the cache.
    #[must_use]
    pub fn live(&self) -> KindReader<K> {
        KindReader::new(self.clone())
    }

    /// Writes the status.
    #[must_use]
    pub fn status(&self) -> SubResourceClient<K> {
        self.sub_resource("status")
    }

    /// Reads and writes a subresource: `scale`, `eviction`, `token`.
    pub fn sub_resource(&self, name: impl Into<Arc<str>>) -> SubResourceClient<K> {
        SubResourceClient::new(self.clone(), name.into())
    }

    /// Whether objects of this kind are namespaced. Uses discovery only if the type does not define its scope.
    ///
    /// # Errors
    /// If the server does not serve the kind, or discovery fails.
    pub async fn is_namespaced(&self) -> Result<bool, Error> {
        if let Some(scope) = static_scope::<K>() {
            return Ok(scope == Scope::Namespaced);
        }
        self.client.rest_mapper().is_namespaced(&self.kind.group_version_kind()).await
    }

    /// The cache that this kind is read from.
    pub(crate) fn cache(&self) -> Option<&Cache> {
        let settings = &self.client.settings;
        settings.cache.as_ref().filter(|_| !settings.uncached.iter().any(|kind| kind.is(self.resource())))
    }

    /// Reads an object, from the cache if there is one.
    ///
    /// # Errors
    /// If it does not exist (see [`Error::is_not_found`]), or cannot be read.
    pub async fn get(&self, key: &ObjectKey) -> Result<Arc<K>, Error> {
        let Some(cache) = self.cache() else {
            return self.live().get(key).await.map(Arc::new);
        };
        let namespace = self.namespace(Verb::Get, key.namespace(), Some(key.name())).await?;
        let resolved;
        // Most keys have the right namespace already, and are not copied.
        let key = if namespace == key.namespace() {
            key
        } else {
            resolved = ObjectKey::new(namespace, key.name());
            &resolved
        };
        let mut call = Call::new(Verb::Get, self.resource(), namespace);
        call.name = Some(key.name());
        call.cached = true;
        self.client.before(&call).await?;
        let found = cache.get(&self.kind, key).await;
        let found = found.map_err(|source| cache_error(&call, source)).and_then(|found| {
            found.ok_or_else(|| Error::api(call.target(), not_found(self.resource(), key.name()), None))
        });
        self.client.after(&call, found.as_ref().map(|_| &EMPTY)).await?;
        found
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Error> {
        super::ignore_not_found(self.get(key).await)
    }

    /// Reads an object from the server and stores it in the cache, so that the next cached read is not older.
    pub(crate) async fn get_past_cache(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Error> {
        let found = super::ignore_not_found(self.live().get_with_json(key).await)?;
        let Some((object, answer)) = found else { return Ok(None) };
        if let Some(cache) = self.client.settings.cache.as_ref().filter(|_| !self.is_metadata()) {
            cache.observe_read(self.resource(), &answer);
        }
        Ok(Some(Arc::new(object)))
    }

    /// Lists objects, from the cache if there is one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self, options: ListOptions) -> Result<Vec<Arc<K>>, Error> {
        let Some(cache) = self.cache() else {
            let list = self.live().list(options).await?;
            return Ok(list.items.into_iter().map(Arc::new).collect());
        };
        let mut options = options;
        let namespace = self.namespace(Verb::List, options.namespace.as_deref(), None).await?;
        if namespace != options.namespace.as_deref() {
            options.namespace = namespace.map(Arc::from);
        }
        let mut call = Call::new(Verb::List, self.resource(), options.namespace.as_deref());
        call.cached = true;
        self.client.before(&call).await?;
        let found = cache.list(&self.kind, &options).await;
        let found = found.map_err(|source| cache_error(&call, source));
        self.client.after(&call, found.as_ref().map(|_| &EMPTY)).await?;
        found
    }

    /// Creates an object.
    ///
    /// # Errors
    /// If one of that name exists already (see [`Error::is_already_exists`]), or the server rejects the request.
    pub async fn create(&self, object: &K) -> Result<K, Error> {
        self.create_with(object, CreateOptions::default()).await
    }

    /// Creates an object.
    ///
    /// # Errors
    /// As [`create`](KindClient::create).
    pub async fn create_with(&self, object: &K, options: CreateOptions) -> Result<K, Error> {
        self.send_object(Verb::Create, object, options, None).await
    }

    /// Replaces an object, if its resource version is still current. Without one, which many built-in kinds allow, any
    /// state is replaced.
    ///
    /// # Errors
    /// If it has changed in the meantime (see [`Error::is_conflict`]), or the server rejects the request.
    pub async fn update(&self, object: &K) -> Result<K, Error> {
        self.update_with(object, UpdateOptions::default()).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// As [`update`](KindClient::update).
    pub async fn update_with(&self, object: &K, options: UpdateOptions) -> Result<K, Error> {
        self.send_object(Verb::Update, object, options, None).await
    }

    pub(super) async fn send_object(
        &self,
        verb: Verb,
        object: &K,
        options: WriteOptions,
        subresource: Option<&str>,
    ) -> Result<K, Error> {
        let key = ObjectKey::of(object);
        if self.is_metadata() {
            let message = "the metadata of an object can be patched; this needs the whole object";
            return Err(self.refuse(verb, &key, subresource, message));
        }
        let body = self.encode(verb, &key, object)?;
        let options = self.client.write_options(options);
        let method = if verb == Verb::Create { Method::POST } else { Method::PUT };
        let dry_run = options.dry_run;
        let write = Write { verb, method, key: &key, subresource, content_type: JSON, body, dry_run };
        let answer = self.write(write, |query| options.query(query)).await?;
        self.stored(verb, &key, subresource, dry_run, &answer)
    }

    /// Patches an object, identified by itself or its key. A patch from an original needs the changed object.
    ///
    /// # Errors
    /// If it does not exist, or the server rejects the patch.
    pub async fn patch(&self, target: &(impl ObjectRef<K> + ?Sized), patch: Patch) -> Result<K, Error> {
        self.patch_with(target, patch, PatchOptions::default()).await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// As [`patch`](KindClient::patch).
    pub async fn patch_with(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
        options: PatchOptions,
    ) -> Result<K, Error> {
        self.send_patch(target, patch, options, None).await
    }

    pub(super) async fn send_patch(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
        options: PatchOptions,
        subresource: Option<&str>,
    ) -> Result<K, Error> {
        let key = target.key();
        let kind = patch.patch_type();
        let verb = kind.verb();
        let body = patch.into_body(self.resource(), target.object());
        let body = body.map_err(|message| self.refuse(verb, &key, subresource, &message))?;
        self.send_patch_body(&key, (kind, body), options, subresource).await
    }

    pub(super) async fn send_patch_body(
        &self,
        key: &ObjectKey,
        (kind, body): (PatchType, Bytes),
        options: PatchOptions,
        subresource: Option<&str>,
    ) -> Result<K, Error> {
        let verb = kind.verb();
        let options = self.client.patch_options(options);
        options.check(kind).map_err(|message| self.refuse(verb, key, subresource, message))?;
        let dry_run = options.dry_run;
        let content_type = kind.content_type();
        let write = Write { verb, method: Method::PATCH, key, subresource, content_type, body, dry_run };
        let answer = self.write(write, |query| options.query(query)).await?;
        self.stored(verb, key, subresource, dry_run, &answer)
    }

    /// Deletes an object, identified by itself or its key.
    ///
    /// # Errors
    /// If it does not exist, or the server rejects the request.
    pub async fn delete(&self, target: &(impl ObjectRef<K> + ?Sized)) -> Result<Deleted<K>, Error> {
        self.delete_with(target, DeleteOptions::default()).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`delete`](KindClient::delete), and if a precondition does not hold (see [`Error::is_conflict`]).
    pub async fn delete_with(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        mut options: DeleteOptions,
    ) -> Result<Deleted<K>, Error> {
        let key = target.key();
        options.dry_run |= self.client.settings.dry_run;
        let dry_run = options.dry_run;
        let body = self.encode_options(Verb::Delete, &key, &options)?;
        let write = Write {
            verb: Verb::Delete,
            method: Method::DELETE,
            key: &key,
            subresource: None,
            content_type: JSON,
            body,
            dry_run,
        };
        let answer = self.write(write, |_| {}).await?;
        let key = self.resolved(Verb::Delete, &key).await?;
        let mut call = Call::new(Verb::Delete, self.resource(), key.namespace());
        call.name = Some(key.name());
        let head = decode::head(&call, &answer)?;
        if head.kind.as_deref() == Some("Status") && head.api_version.as_deref() == Some("v1") {
            let uid = decode::status_uid(&answer);
            self.observe(dry_run, || Written::Deleted { key, uid: uid.clone() });
            return Ok(Deleted::Gone { uid });
        }
        let uid = head.metadata.uid.clone();
        // For some kinds, the response is the last state, whether the object is gone or not.
        if head.metadata.deletion_timestamp.is_none() || is_gone(&head.metadata) {
            self.observe(dry_run, || Written::Deleted { key, uid: uid.clone() });
            return Ok(Deleted::Gone { uid });
        }
        let object = decode::object(&call, &answer)?;
        self.observe(dry_run, || Written::Stored(answer.clone()));
        Ok(Deleted::Deleting(Box::new(object)))
    }

    /// Sends a write and returns the response body.
    pub(super) async fn write(
        &self,
        write: Write<'_>,
        options: impl FnOnce(&mut Query),
    ) -> Result<Bytes, Error> {
        let Write { verb, method, key, subresource, content_type, body, dry_run } = write;
        let name = Some(key.name()).filter(|name| !name.is_empty());
        let namespace = self.namespace(verb, key.namespace(), name).await?;
        let mut call = Call::new(verb, self.resource(), namespace);
        call.name = name;
        call.subresource = subresource;
        call.body = Some(&body).filter(|body| !body.is_empty());
        call.dry_run = dry_run;
        if namespace.is_none() && static_scope::<K>() == Some(Scope::Namespaced) {
            return Err(Error::invalid(call.target(), "the kind is namespaced: a namespace is needed"));
        }
        // The name of a new object is in the body, or generated by the server.
        let to_collection = verb == Verb::Create && subresource.is_none();
        let path = self.path(&call, !to_collection)?;
        let mut query = Query::of(path);
        options(&mut query);
        // The cache needs the whole object, even if the caller wants its metadata only.
        let partial = self.is_metadata() && self.client.settings.cache.is_none();
        let accept = if partial { METADATA } else { JSON };
        let outgoing = Outgoing { method, uri: query.into_uri(), accept, content_type, body: body.clone() };
        self.client.call(&call, &outgoing).await
    }

    /// The path of an object, or of its collection.
    pub(super) fn path(&self, call: &Call<'_>, with_name: bool) -> Result<String, Error> {
        let mut path = self.kind.path(checked(call, call.namespace)?);
        if !with_name {
            return Ok(path);
        }
        let Some(name) = call.name.filter(|name| !name.is_empty()) else {
            return Err(Error::invalid(call.target(), "the object has no name"));
        };
        for part in [checked(call, Some(name))?, checked(call, call.subresource)?].into_iter().flatten() {
            path.push('/');
            path.push_str(part);
        }
        Ok(path)
    }

    /// Decodes the response to a write, and updates the cache.
    pub(super) fn stored(
        &self,
        verb: Verb,
        key: &ObjectKey,
        subresource: Option<&str>,
        dry_run: bool,
        answer: &Bytes,
    ) -> Result<K, Error> {
        let mut call = Call::new(verb, self.resource(), key.namespace());
        call.name = Some(key.name()).filter(|name| !name.is_empty());
        call.subresource = subresource;
        let object: K = decode::object(&call, answer)?;
        // The response may be of another kind, like a Scale: not the object.
        if subresource.is_some_and(|name| name != "status")
            && decode::head(&call, answer)?.kind.as_deref() != Some(self.resource().kind.as_str())
        {
            return Ok(object);
        }
        self.observe(dry_run, || {
            let meta = object.meta();
            if is_gone(meta) {
                Written::Deleted { key: ObjectKey::of(&object), uid: meta.uid.clone() }
            } else {
                Written::Stored(answer.clone())
            }
        });
        Ok(object)
    }

    pub(super) fn observe(&self, dry_run: bool, written: impl FnOnce() -> Written) {
        if let Some(cache) = self.client.settings.cache.as_ref().filter(|_| !dry_run) {
            cache.observe_write(self.resource(), &written());
        }
    }

    async fn resolved(&self, verb: Verb, key: &ObjectKey) -> Result<ObjectKey, Error> {
        let namespace = self.namespace(verb, key.namespace(), Some(key.name())).await?;
        Ok(ObjectKey::new(namespace, key.name()))
    }

    /// The namespace of a call: the given one, or the client's. `None` is all namespaces, or the cluster scope.
    pub(super) async fn namespace<'a>(
        &'a self,
        verb: Verb,
        given: Option<&'a str>,
        name: Option<&str>,
    ) -> Result<Option<&'a str>, Error> {
        let given = given.filter(|namespace| !namespace.is_empty());
        let scope = static_scope::<K>();
        if scope == Some(Scope::Cluster) {
            return Ok(None);
        }
        let needs_one = name.is_some() && scope == Some(Scope::Namespaced);
        let own = match self.client.settings.namespace.as_deref() {
            None if given.is_none() && needs_one => {
                let mut call = Call::new(verb, self.resource(), None);
                call.name = name;
                return Err(Error::invalid(call.target(), "the kind is namespaced: a namespace is needed"));
            }
            None => return Ok(given),
            Some(own) => own,
        };
        if scope.is_none() && !self.is_namespaced().await? {
            return Ok(None);
        }
        match given {
            Some(given) if given != own => {
                let mut call = Call::new(verb, self.resource(), Some(given));
                call.name = name;
                let message = format!("this client works in namespace {own:?} only");
                Err(Error::invalid(call.target(), message))
            }
            _ => Ok(Some(own)),
        }
    }

    /// Encodes an object with its `apiVersion` and `kind`: dynamic objects may lack them, metadata has its own.
    pub(super) fn encode(&self, verb: Verb, key: &ObjectKey, object: &K) -> Result<Bytes, Error> {
        let failed = |source| Error::Encode { target: Box::new(self.target(verb, key, None)), source };
        let bytes = serde_json::to_vec(object).map_err(failed)?;
        if !self.is_metadata() && bytes.starts_with(br#"{"apiVersion":""#) {
            return Ok(bytes.into());
        }
        let mut value: Value = serde_json::from_slice(&bytes).map_err(failed)?;
        if let Some(object) = value.as_object_mut() {
            let resource = self.resource();
            object.insert("apiVersion".into(), resource.api_version.as_str().into());
            object.insert("kind".into(), resource.kind.as_str().into());
        }
        serde_json::to_vec(&value).map(Bytes::from).map_err(failed)
    }

    fn encode_options(&self, verb: Verb, key: &ObjectKey, options: &impl Serialize) -> Result<Bytes, Error> {
        let encoded = serde_json::to_vec(options).map(Bytes::from);
        encoded.map_err(|source| Error::Encode { target: Box::new(self.target(verb, key, None)), source })
    }

    fn target(&self, verb: Verb, key: &ObjectKey, subresource: Option<&str>) -> super::Target {
        let mut call = Call::new(verb, self.resource(), key.namespace());
        call.name = Some(key.name()).filter(|name| !name.is_empty());
        call.subresource = subresource;
        call.target()
    }

    pub(super) fn refuse(
        &self,
        verb: Verb,
        key: &ObjectKey,
        subresource: Option<&str>,
        message: &str,
    ) -> Error {
        Error::invalid(self.target(verb, key, subresource), message)
    }
}

static EMPTY: Bytes = Bytes::new();

/// Rejects names that would change the path that they become part of.
pub(super) fn checked<'a>(call: &Call<'_>, segment: Option<&'a str>) -> Result<Option<&'a str>, Error> {
    let bad = |text: &&str| {
        matches!(*text, "." | "..")
            || text
                .contains(|c: char| matches!(c, '/' | '%' | '?' | '#') || c.is_whitespace() || c.is_control())
    };
    match segment.filter(bad) {
        Some(text) => Err(Error::invalid(call.target(), format!("{text:?} cannot be part of a path"))),
        None => Ok(segment),
    }
}

fn not_found(resource: &ApiResource, name: &str) -> Status {
    let ApiResource { group, plural, .. } = resource;
    let qualified = k1s_object::status::qualified(group, plural);
    let details = StatusDetails {
        name: name.to_owned(),
        group: group.clone(),
        kind: plural.clone(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    };
    Status::failure(&format!("{qualified} {name:?} not found"), "NotFound")
        .with_code(404)
        .with_details(details)
}

fn cache_error(call: &Call<'_>, source: crate::cache::CacheError) -> Error {
    Error::Cache { target: Box::new(call.target()), source: Box::new(source) }
}

impl<K: Object> Clone for KindClient<K> {
    fn clone(&self) -> KindClient<K> {
        KindClient { client: self.client.clone(), kind: Arc::clone(&self.kind) }
    }
}

impl<K: Object> fmt::Debug for KindClient<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindClient").field("kind", &self.kind).field("client", &self.client).finish()
    }
}
