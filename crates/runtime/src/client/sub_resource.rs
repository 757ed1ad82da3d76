//! Subresources: status, scale, eviction, token.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::Method;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Applicable, ApplyOptions, Call, CreateOptions, Error, KindClient, ObjectRef, Patch, PatchOptions,
    UpdateOptions, Verb, decode,
    kind_client::Write,
    transport::{JSON, Outgoing},
};
use crate::{Object, ObjectKey};

/// Reads and writes one subresource. Created by [`Client::status`](super::Client::status) and
/// [`Client::sub_resource`](super::Client::sub_resource).
///
/// `update`, `patch` and `apply` are for subresources that are written as the whole object, like the status. `update_as`,
/// `patch_as` and `apply_as` are for those with their own type, like a Scale.
pub struct SubResourceClient<K: Object> {
    inner: KindClient<K>,
    name: Arc<str>,
}

impl<K: Object> SubResourceClient<K> {
    pub(super) fn new(inner: KindClient<K>, name: Arc<str>) -> SubResourceClient<K> {
        SubResourceClient { inner, name }
    }

    /// Replaces this subresource of an object, and nothing else of it.
    ///
    /// # Errors
    /// If the object has changed in the meantime (see [`Error::is_conflict`]), or the server rejects the request.
    pub async fn update(&self, object: &K) -> Result<K, Error> {
        self.update_with(object, UpdateOptions::default()).await
    }

    /// Replaces this subresource of an object.
    ///
    /// # Errors
    /// As [`update`](SubResourceClient::update).
    pub async fn update_with(&self, object: &K, options: UpdateOptions) -> Result<K, Error> {
        self.inner.send_object(Verb::Update, object, options, Some(&self.name)).await
    }

    /// Patches this subresource of an object, and nothing else of it.
    ///
    /// # Errors
    /// If the object does not exist, or the server rejects the patch.
    pub async fn patch(&self, target: &(impl ObjectRef<K> + ?Sized), patch: Patch) -> Result<K, Error> {
        self.patch_with(target, patch, PatchOptions::default()).await
    }

    /// Patches this subresource of an object.
    ///
    /// # Errors
    /// As [`patch`](SubResourceClient::patch).
    pub async fn patch_with(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
        options: PatchOptions,
    ) -> Result<K, Error> {
        self.inner.send_patch(target, patch, options, Some(&self.name)).await
    }

    /// Server-side apply of this subresource, as [`Client::apply`](super::Client::apply). Of an object, the status is
    /// applied through `status`, and nothing else of it.
    ///
    /// # Errors
    /// As there, and if the object does not exist.
    pub async fn apply(&self, configuration: &(impl Applicable<K> + ?Sized)) -> Result<K, Error> {
        self.apply_with(configuration, ApplyOptions::default()).await
    }

    /// Server-side apply of this subresource. The options may be just the name of the field manager.
    ///
    /// # Errors
    /// As [`apply`](SubResourceClient::apply).
    pub async fn apply_with(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
        options: impl Into<ApplyOptions>,
    ) -> Result<K, Error> {
        self.inner.send_apply(configuration, options.into(), Some(&self.name)).await
    }

    /// Reads this subresource of an object, always from the server.
    ///
    /// # Errors
    /// If the object or subresource does not exist, or cannot be decoded as a `T`.
    pub async fn get<T: DeserializeOwned>(&self, target: &(impl ObjectRef<K> + ?Sized)) -> Result<T, Error> {
        let inner = &self.inner;
        let key = target.key();
        let namespace = inner.namespace(Verb::Get, key.namespace(), Some(key.name())).await?;
        let mut call = Call::new(Verb::Get, inner.resource(), namespace);
        call.name = Some(key.name());
        call.subresource = Some(&self.name);
        let answer = inner.client.call(&call, &Outgoing::get(inner.path(&call, true)?, JSON)).await?;
        decode::any(&call, &answer)
    }

    /// Creates an instance of this subresource: an eviction, a token, a binding. The response often has the body's type.
    ///
    /// # Errors
    /// If the object or subresource does not exist, or the server rejects the request.
    pub async fn create<T: DeserializeOwned>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.create_with(target, body, CreateOptions::default()).await
    }

    /// Creates an instance of this subresource.
    ///
    /// # Errors
    /// As [`create`](SubResourceClient::create).
    pub async fn create_with<T: DeserializeOwned>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        body: &impl Serialize,
        options: CreateOptions,
    ) -> Result<T, Error> {
        self.send((Verb::Create, Method::POST), &target.key(), body, options).await
    }

    /// Replaces this subresource with a body of its own type, like a Scale.
    ///
    /// # Errors
    /// As [`update`](SubResourceClient::update).
    pub async fn update_as<T: Serialize + DeserializeOwned>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        body: &T,
    ) -> Result<T, Error> {
        self.send((Verb::Update, Method::PUT), &target.key(), body, UpdateOptions::default()).await
    }

    /// Patches this subresource of its own type, like a Scale. The patch must not be one from an original.
    ///
    /// # Errors
    /// As [`patch`](SubResourceClient::patch).
    pub async fn patch_as<T: DeserializeOwned>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        patch: Patch,
        options: PatchOptions,
    ) -> Result<T, Error> {
        let (inner, key) = (&self.inner, target.key());
        let kind = patch.patch_type();
        let verb = kind.verb();
        let refuse = |message: &str| inner.refuse(verb, &key, Some(&self.name), message);
        let body = patch.into_body::<K>(inner.resource(), None).map_err(|message| refuse(&message))?;
        let options = inner.client.patch_options(options);
        options.check(kind).map_err(refuse)?;
        let write = Write {
            verb,
            method: Method::PATCH,
            key: &key,
            subresource: Some(&self.name),
            content_type: kind.content_type(),
            body,
            dry_run: options.dry_run,
        };
        let answer = inner.write(write, |query| options.query(query)).await?;
        self.decoded(verb, &key, &answer)
    }

    /// Server-side apply of this subresource of its own type, like a Scale. The configuration has that type's `apiVersion`
    /// and `kind`, and the object's name.
    ///
    /// # Errors
    /// As [`apply`](SubResourceClient::apply).
    pub async fn apply_as<T: DeserializeOwned>(
        &self,
        target: &(impl ObjectRef<K> + ?Sized),
        configuration: &impl Serialize,
        options: impl Into<ApplyOptions>,
    ) -> Result<T, Error> {
        self.patch_as(target, Patch::apply(configuration), options.into().into()).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        (verb, method): (Verb, Method),
        key: &ObjectKey,
        body: &impl Serialize,
        options: CreateOptions,
    ) -> Result<T, Error> {
        let inner = &self.inner;
        let encoded = serde_json::to_vec(body);
        let encoded = encoded.map_err(|source| {
            inner.refuse(verb, key, Some(&self.name), &format!("the body is not JSON: {source}"))
        })?;
        let options = inner.client.write_options(options);
        let write = Write {
            verb,
            method,
            key,
            subresource: Some(&self.name),
            content_type: JSON,
            body: encoded.into(),
            dry_run: options.dry_run,
        };
        let answer = inner.write(write, |query| options.query(query)).await?;
        self.decoded(verb, key, &answer)
    }

    fn decoded<T: DeserializeOwned>(&self, verb: Verb, key: &ObjectKey, answer: &Bytes) -> Result<T, Error> {
        let mut call = Call::new(verb, self.inner.resource(), key.namespace());
        call.name = Some(key.name());
        call.subresource = Some(&self.name);
        decode::any(&call, answer)
    }
}

impl<K: Object> Clone for SubResourceClient<K> {
    fn clone(&self) -> SubResourceClient<K> {
        SubResourceClient { inner: self.inner.clone(), name: Arc::clone(&self.name) }
    }
}

impl<K: Object> fmt::Debug for SubResourceClient<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubResourceClient").field("name", &self.name).field("of", &self.inner).finish()
    }
}
