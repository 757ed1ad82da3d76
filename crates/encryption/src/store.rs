//! The store: encrypts what is written, decrypts what is read.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use k1s_store::{
    Action, Change, Conflict, Error, Event, GetResult, KeyValue, Op, Previous, Range, RangeResult, Result,
    Revision, Stats, Store, Txn, Watch, WatchItem, WatchRequest, unreadable,
};

use crate::{
    Encryption,
    error::Failure,
    providers::{ENCRYPTED, NOT_CONFIGURED, Opened, Providers},
    rules::is_of_server,
};

/// Entries that [`EncryptedStore::rewrite`] reads at a time.
const PAGE: usize = 500;

/// A store whose values are encrypted in another one. Keys, revisions and everything else are those of the other one.
///
/// Values that cannot be decrypted are [placeholders](k1s_store::unreadable), so that they do not hide the others. While a key
/// management service is needed and does not answer, the operation fails with [`Error::Unavailable`].
pub struct EncryptedStore {
    inner: Arc<dyn Store>,
    encryption: Encryption,
}

impl EncryptedStore {
    pub(crate) fn new(inner: Arc<dyn Store>, encryption: Encryption) -> EncryptedStore {
        EncryptedStore { inner, encryption }
    }

    /// Writes the values under `prefix` again that would be encrypted differently now, and returns how many. Values that change
    /// meanwhile are left to those who change them.
    ///
    /// # Errors
    /// Of the store. What was rewritten before stays so.
    pub async fn rewrite(&self, prefix: &[u8]) -> Result<usize> {
        let mut range = Range::prefix(Bytes::copy_from_slice(prefix)).limit(PAGE);
        let mut count = 0;
        loop {
            let page = self.inner.range(range.clone()).await?;
            for entry in &page.entries {
                let Some(providers) = self.encryption.providers(&entry.key) else { continue };
                let Ok(Opened { plain, is_stale: true }) = providers.open(&entry.key, &entry.value).await
                else {
                    continue;
                };
                let plain = plain.map_or_else(|| entry.value.clone(), Bytes::from);
                let sealed = self.seal(&providers, &entry.key, &plain)?;
                match self.inner.update(entry.key.clone(), sealed, entry.revision).await {
                    Ok(_) => count += 1,
                    Err(Error::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(count) };
            // The next key.
            range = range.start([&last.key[..], b"\0"].concat());
        }
    }

    fn seal(&self, providers: &Providers, key: &[u8], plain: &Bytes) -> Result<Bytes> {
        providers.seal(self.encryption.env(), key, plain).map_err(|failure| {
            let (Failure::Value(why) | Failure::Service(why)) = failure;
            Error::unavailable(format!(
                "the value of key \"{}\" cannot be encrypted: {why}",
                key.escape_ascii()
            ))
        })
    }

    async fn entry(&self, entry: KeyValue) -> Result<KeyValue> {
        match self.encryption.decrypt(&entry.key, &entry.value).await? {
            None => Ok(entry),
            // Not sharing the memory of the encrypted value with the key.
            Some(plain) => Ok(KeyValue::detached(&entry.key, &plain, entry.revision)),
        }
    }
}

impl Encryption {
    fn providers(&self, key: &[u8]) -> Option<Arc<Providers>> {
        self.current().rules.of(key).cloned()
    }

    /// The plain value; `None` if the value is stored as it is.
    async fn decrypt(&self, key: &[u8], stored: &Bytes) -> Result<Option<Bytes>> {
        let current = self.current();
        let Some(providers) = current.rules.of(key) else {
            if stored.starts_with(ENCRYPTED) {
                return self.unreadable(key, NOT_CONFIGURED).map(Some);
            }
            return Ok(None);
        };
        let opened = match providers.open_now(key, stored) {
            Some(opened) => opened,
            None => {
                let providers = providers.clone();
                drop(current);
                providers.open(key, stored).await
            }
        };
        match opened {
            Ok(opened) => Ok(opened.plain.map(Bytes::from)),
            Err(Failure::Value(why)) => self.unreadable(key, &why).map(Some),
            Err(Failure::Service(why)) => Err(Error::unavailable(format!(
                "the value of key \"{}\" cannot be decrypted: {why}",
                key.escape_ascii()
            ))),
        }
    }

    /// A placeholder. The server's own keys are read by code that needs their values, so those fail.
    fn unreadable(&self, key: &[u8], why: &str) -> Result<Bytes> {
        if is_of_server(key) {
            return Err(Error::corrupt(format!(
                "the value of key \"{}\" cannot be decrypted: {why}",
                key.escape_ascii()
            )));
        }
        self.note_unreadable();
        Ok(unreadable(&format!("it cannot be decrypted: {why}")))
    }

    async fn item(&self, item: WatchItem, previous: bool) -> Result<WatchItem> {
        let WatchItem::Change(change) = item else { return Ok(item) };
        // Only what was asked for: a previous value that costs the store nothing costs a decryption here.
        let is_touched = change.events().iter().any(|event| {
            let value = event.value.as_deref().or(event.previous.as_ref().map(|previous| &*previous.value));
            value.is_some_and(|value| value.starts_with(ENCRYPTED))
                || self.current().rules.of(&event.key).is_some()
        });
        if !is_touched {
            return Ok(WatchItem::Change(change));
        }
        let mut events = Vec::with_capacity(change.events().len());
        for event in change.events() {
            events.push(self.event(event, previous).await?);
        }
        Ok(WatchItem::Change(Arc::new(Change::new(change.revision(), events))))
    }

    async fn event(&self, event: &Event, previous: bool) -> Result<Event> {
        let (mut key, mut value) = (event.key.clone(), event.value.clone());
        if let Some(stored) = &event.value {
            // Most events are of what this process has just written. As the store itself does without encryption, the event
            // shares the value with whoever wrote it.
            let known = self.current().recent().find(&event.key, stored);
            if let Some(plain) = known {
                (key, value) = (Bytes::copy_from_slice(&event.key), Some(plain));
            } else if let Some(plain) = self.decrypt(&event.key, stored).await? {
                let entry = KeyValue::detached(&event.key, &plain, Revision::FIRST);
                (key, value) = (entry.key, Some(entry.value));
            }
        }
        let previous = match event.previous.as_ref().filter(|_| previous) {
            None => None,
            Some(old) => {
                let plain = self.decrypt(&event.key, &old.value).await?;
                Some(Previous { value: plain.unwrap_or_else(|| old.value.clone()), revision: old.revision })
            }
        };
        Ok(Event { key, value, created: event.created, previous })
    }
}

#[async_trait]
impl Store for EncryptedStore {
    async fn revision(&self) -> Result<Revision> {
        self.inner.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        let mut found = self.inner.get(key, at).await?;
        if let Some(entry) = found.entry.take() {
            found.entry = Some(self.entry(entry).await?);
        }
        Ok(found)
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        let mut found = self.inner.range(range).await?;
        for entry in &mut found.entries {
            if let Some(plain) = self.encryption.decrypt(&entry.key, &entry.value).await? {
                *entry = KeyValue::detached(&entry.key, &plain, entry.revision);
            }
        }
        Ok(found)
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        let sealed = |op: Op| -> Result<Op> {
            let Action::Put(plain) = &op.action else { return Ok(op) };
            let current = self.encryption.current();
            let Some(providers) = current.rules.of(&op.key) else { return Ok(op) };
            let value = self.seal(providers, &op.key, plain)?;
            // Encrypted, it is longer.
            if value.len() != plain.len() {
                current.recent().add(op.key.clone(), value.clone(), plain.clone());
            }
            Ok(Op { action: Action::Put(value), ..op })
        };
        let mut out = Txn::new();
        for op in txn.into_ops() {
            out = out.op(sealed(op)?);
        }
        match self.inner.txn(out).await {
            Err(Error::Conflict(conflict)) => {
                let Conflict { key, expected, current } = *conflict;
                let current = match current {
                    Some(entry) => Some(self.entry(entry).await?),
                    None => None,
                };
                Err(Error::conflict(key, expected, current))
            }
            outcome => outcome,
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        let previous = request.previous;
        let reloads = self.encryption.reloads();
        let watch = self.inner.watch(request).await?;
        let progress = watch.progress_handle();
        let encryption = self.encryption.clone();
        let state = Some((watch, reloads));
        let items = stream::unfold(state, move |state| {
            let encryption = encryption.clone();
            async move {
                let (mut watch, mut reloads) = state?;
                let item = tokio::select! {
                    biased;
                    Ok(()) = reloads.changed() => {
                        let why = "the configuration of encryption has changed; values that could not be read may be readable";
                        return Some((Err(Error::unavailable(why)), None));
                    }
                    item = watch.next() => item?,
                };
                match item {
                    Ok(item) => match encryption.item(item, previous).await {
                        Ok(item) => Some((Ok(item), Some((watch, reloads)))),
                        Err(error) => Some((Err(error), None)),
                    },
                    Err(error) => Some((Err(error), None)),
                }
            }
        });
        Ok(Watch::new(items, progress))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.inner.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.inner.stats().await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }

    async fn close(&self) -> Result<()> {
        self.encryption.close();
        self.inner.close().await
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn is_stale(&self, key: &[u8]) -> Result<bool> {
        let Some(providers) = self.encryption.providers(key) else { return Ok(false) };
        let Some(entry) = self.inner.get(key, None).await?.entry else { return Ok(false) };
        // What cannot be read is not written again.
        Ok(providers.open(key, &entry.value).await.is_ok_and(|opened| opened.is_stale))
    }
}

impl fmt::Debug for EncryptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedStore").finish_non_exhaustive()
    }
}
