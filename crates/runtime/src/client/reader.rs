//! Reads that always ask the server.

use std::fmt;

use super::{
    Call, Client, Error, KindClient, List, ListOptions, RawList, RawWatchStream, Verb, WatchOptions,
    WatchStream, decode,
    options::Query,
    transport::{JSON, METADATA, METADATA_LIST, Outgoing},
};
use crate::{Kind, Object, ObjectKey, TypedObject};

/// Reads that always ask the server, for types that know their kind. Made by [`Client::live`].
#[derive(Debug, Clone)]
pub struct Reader {
    client: Client,
}

impl Reader {
    pub(super) fn new(client: Client) -> Reader {
        Reader { client }
    }

    /// The same for a kind that is known at run time, and for metadata alone.
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
    /// If there is none (see [`Error::is_not_found`]), or it cannot be read.
    pub async fn get<K: TypedObject>(&self, key: &ObjectKey) -> Result<K, Error> {
        self.typed().get(key).await
    }

    /// Reads an object, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt<K: TypedObject>(&self, key: &ObjectKey) -> Result<Option<K>, Error> {
        self.typed().get_opt(key).await
    }

    /// Reads many objects: one page, if there is a limit.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list<K: TypedObject>(&self, options: ListOptions) -> Result<List<K>, Error> {
        self.typed().list(options).await
    }

    /// Reads many objects page by page.
    #[must_use]
    pub fn pages<K: TypedObject>(&self, options: ListOptions) -> Pages<K> {
        self.typed().pages(options)
    }

    /// Follows changes.
    ///
    /// # Errors
    /// If the server does not begin.
    pub async fn watch<K: TypedObject>(&self, options: WatchOptions) -> Result<WatchStream<K>, Error> {
        self.typed().watch(options).await
    }
}

/// Reads of one kind that always ask the server. Made by [`KindClient::live`].
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
    /// If there is none (see [`Error::is_not_found`]), or it cannot be read.
    pub async fn get(&self, key: &ObjectKey) -> Result<K, Error> {
        self.get_with_answer(key).await.map(|(object, _)| object)
    }

    /// The object, and the JSON that it was decoded from.
    pub(super) async fn get_with_answer(&self, key: &ObjectKey) -> Result<(K, bytes::Bytes), Error> {
        let inner = &self.inner;
        let namespace = inner.namespace(Verb::Get, key.namespace(), Some(key.name())).await?;
        let mut call = Call::new(Verb::Get, inner.resource(), namespace);
        call.name = Some(key.name());
        let accept = if inner.is_metadata() { METADATA } else { JSON };
        let outgoing = Outgoing::get(inner.path(&call, true)?, accept);
        let answer = inner.client.call(&call, &outgoing).await?;
        Ok((decode::object(&call, &answer)?, answer))
    }

    /// Reads an object, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<K>, Error> {
        super::ignore_not_found(self.get(key).await)
    }

    /// Reads many objects: one page, if there is a limit.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self, options: ListOptions) -> Result<List<K>, Error> {
        self.list_page(&options).await
    }

    async fn list_page(&self, options: &ListOptions) -> Result<List<K>, Error> {
        self.listed(options, decode::list).await
    }

    /// Reads many objects and leaves them JSON. The items are slices of one answer: they keep all of it in memory.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list_raw(&self, options: &ListOptions) -> Result<RawList, Error> {
        self.listed(options, decode::raw_list).await
    }

    async fn listed<T>(
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

    /// Reads many objects page by page; the limit is the size of a page.
    #[must_use]
    pub fn pages(&self, options: ListOptions) -> Pages<K> {
        Pages { reader: self.clone(), next: Some(options) }
    }

    /// Follows changes.
    ///
    /// # Errors
    /// If the server does not begin.
    pub async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, Error> {
        let raw = self.watch_raw(&options).await?;
        Ok(WatchStream::new(raw, self.inner.resource().clone()))
    }

    /// Follows changes and leaves the objects JSON.
    ///
    /// # Errors
    /// If the server does not begin.
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

/// The pages of a list. Each is asked for when it is wanted; all show the same state.
pub struct Pages<K: Object> {
    reader: KindReader<K>,
    next: Option<ListOptions>,
}

impl<K: Object> Pages<K> {
    /// The next page, or `None` after the last.
    ///
    /// # Errors
    /// If it cannot be read. The state of the first page is kept for some minutes; after that, the error
    /// [is "gone"](Error::is_gone).
    pub async fn next(&mut self) -> Result<Option<List<K>>, Error> {
        let Some(mut options) = self.next.take() else { return Ok(None) };
        let page = match self.reader.list_page(&options).await {
            Ok(page) => page,
            Err(error) => {
                // Asking again asks for the same page.
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

    /// All objects of the pages to come.
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
