//! Reads that bypass the cache.

use std::fmt;

use super::{
    Call, Client, Error, KindClient, List, ListOptions, RawList, RawWatchStream, Verb, WatchOptions,
    WatchStream, decode,
    options::Query,
    transport::{JSON, METADATA, METADATA_LIST, Outgoing},
};
use crate::{Kind, Object, ObjectKey, TypedObject};

/// Reads that bypass the cache, for typed objects. Created by [`Client::live`].
#[derive(Debug, Clone)]
pub struct Reader {
    client: Client,
}

impl Reader {
    pub(super) fn new(client: Client) -> Reader {
        Reader { client }
    }

    /// A reader for a kind known at run time only, or for metadata only.
    #[must_use]
    pub fn kind<K: Object>(&self, kind: Kind<K>) -> KindReader<K> {
        self.client.kind(kind).live()
    }

    fn typed<K: TypedObject>(&self) -> KindReader<K> {
        self.client.typed().live()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If it does not exist (see [`Error::is_not_found`]), or cannot be read.
    pub async fn get<K: TypedObject>(&self, key: &ObjectKey) -> Result<K, Error> {
        self.typed().get(key).await
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt<K: TypedObject>(&self, key: &ObjectKey) -> Result<Option<K>, Error> {
        self.typed().get_opt(key).await
    }

    /// Lists objects: one page, if there is a limit.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list<K: TypedObject>(&self, options: ListOptions) -> Result<List<K>, Error> {
        self.typed().list(options).await
    }

    /// Lists objects page by page.
    #[must_use]
    pub fn pages<K: TypedObject>(&self, options: ListOptions) -> Pages<K> {
        self.typed().pages(options)
    }

    /// Watches objects.
    ///
    /// # Errors
    /// If the server rejects the watch.
    pub async fn watch<K: TypedObject>(&self, options: WatchOptions) -> Result<WatchStream<K>, Error> {
        self.typed().watch(options).await
    }
}

/// Reads of one kind that bypass the cache. Created by [`KindClient::live`].
pub struct KindReader<K: Object> {
    inner: KindClient<K>,
}

impl<K: Object> KindReader<K> {
    pub(super) fn new(inner: KindClient<K>) -> KindReader<K> {
        KindReader { inner }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If it does not exist (see [`Error::is_not_found`]), or cannot be read.
    pub async fn get(&self, key: &ObjectKey) -> Result<K, Error> {
        self.get_with_json(key).await.map(|(object, _)| object)
    }

    /// Reads an object, and returns it with the JSON that it was decoded from.
    pub(super) async fn get_with_json(&self, key: &ObjectKey) -> Result<(K, bytes::Bytes), Error> {
        let inner = &self.inner;
        let namespace = inner.namespace(Verb::Get, key.namespace(), Some(key.name())).await?;
        let mut call = Call::new(Verb::Get, inner.resource(), namespace);
        call.name = Some(key.name());
        let accept = if inner.is_metadata() { METADATA } else { JSON };
        let outgoing = Outgoing::get(inner.path(&call, true)?, accept);
        let answer = inner.client.call(&call, &outgoing).await?;
        Ok((decode::object(&call, &answer)?, answer))
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<K>, Error> {
        super::ignore_not_found(self.get(key).await)
    }

    /// Lists objects: one page, if there is a limit.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self, options: ListOptions) -> Result<List<K>, Error> {
        self.list_page(&options).await
    }

    async fn list_page(&self, options: &ListOptions) -> Result<List<K>, Error> {
        self.list_with(options, decode::list).await
    }

    /// Lists objects without decoding them. The items are slices of one response: each keeps all of it in memory.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list_raw(&self, options: &ListOptions) -> Result<RawList, Error> {
        self.list_with(options, decode::raw_list).await
    }

    async fn list_with<T>(
        &self,
        options: &ListOptions,
        decode: impl FnOnce(&Call<'_>, &bytes::Bytes) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let inner = &self.inner;
        let namespace = inner.namespace(Verb::List, options.namespace.as_deref(), None).await?;
        let call = Call::new(Verb::List, inner.resource(), namespace);
        let mut query = Query::of(inner.path(&call, false)?);
        options.query(&mut query);
        let accept = if inner.is_metadata() { METADATA_LIST } else { JSON };
        let answer = inner.client.call(&call, &Outgoing::get(query.into_uri(), accept)).await?;
        decode(&call, &answer)
    }

    /// Lists objects page by page; the limit is the page size.
    #[must_use]
    pub fn pages(&self, options: ListOptions) -> Pages<K> {
        Pages { reader: self.clone(), next: Some(options) }
    }

    /// Watches objects.
    ///
    /// # Errors
    /// If the server rejects the watch.
    pub async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, Error> {
        let raw = self.watch_raw(&options).await?;
        Ok(WatchStream::new(raw, self.inner.resource().clone()))
    }

    /// Watches without decoding the objects.
    ///
    /// # Errors
    /// If the server rejects the watch.
    pub async fn watch_raw(&self, options: &WatchOptions) -> Result<RawWatchStream, Error> {
        let inner = &self.inner;
        let namespace = inner.namespace(Verb::Watch, options.namespace.as_deref(), None).await?;
        let call = Call::new(Verb::Watch, inner.resource(), namespace);
        let mut query = Query::of(inner.path(&call, false)?);
        options.query(&mut query);
        let accept = if inner.is_metadata() { METADATA } else { JSON };
        let body = inner.client.open(&call, &Outgoing::get(query.into_uri(), accept)).await?;
        Ok(RawWatchStream::new(&call, body))
    }
}

/// The pages of a list, requested one at a time; all are of the same snapshot.
pub struct Pages<K: Object> {
    reader: KindReader<K>,
    next: Option<ListOptions>,
}

impl<K: Object> Pages<K> {
    /// The next page, or `None` after the last.
    ///
    /// # Errors
    /// If it cannot be read. The server keeps the snapshot for some minutes; after that, the error
    /// [is "gone"](Error::is_gone).
    pub async fn next(&mut self) -> Result<Option<List<K>>, Error> {
        let Some(mut options) = self.next.take() else { return Ok(None) };
        let page = match self.reader.list_page(&options).await {
            Ok(page) => page,
            Err(error) => {
                // The next call retries the same page.
                self.next = Some(options);
                return Err(error);
            }
        };
        if page.continue_token.is_some() {
            options.continue_token.clone_from(&page.continue_token);
            self.next = Some(options);
        }
        Ok(Some(page))
    }

    /// Collects the objects of the remaining pages.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub async fn collect(mut self) -> Result<Vec<K>, Error> {
        let mut items = Vec::new();
        while let Some(page) = self.next().await? {
            items.extend(page.items);
        }
        Ok(items)
    }
}

impl<K: Object> Clone for KindReader<K> {
    fn clone(&self) -> KindReader<K> {
        KindReader { inner: self.inner.clone() }
    }
}

impl<K: Object> fmt::Debug for KindReader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KindReader").field(&self.inner).finish()
    }
}

impl<K: Object> fmt::Debug for Pages<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("next", &self.next).finish_non_exhaustive()
    }
}
