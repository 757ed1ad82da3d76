//! The tenants of a server: keeps those that are open, and finds, creates and deletes them in the store.
//!
//! A tenant exists if it has a *mark*: a key whose value is its phase (creating, active or terminating). Every write to a
//! tenant is conditional on the revision of its mark ([`Tenant::txn`]). So a change of the mark, in this process or in another
//! one over the same store, makes all further writes fail, and what is deleted afterwards stays deleted.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use k1s_object::Status;
use k1s_store::{Error as StoreError, Precondition, Range, Revision, Txn, prefix_end};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit, broadcast};

use crate::{
    bootstrap,
    errors::{self, AlreadyExists, Error},
    keys::{self, mark_key},
    options::TenantEvent,
    paging::Page,
    shared_call::SharedCall,
    tenant::{MAX_OPS, Shared, Tenant, not_found},
};

/// Maximum number of concurrent lookups of tenants in the store.
const MAX_LOOKUPS: usize = 32;

/// Maximum number of unauthenticated requests that wait for such a lookup; more get 429.
const MAX_ANONYMOUS_LOOKUPS: usize = 8;

/// Maximum attempts to create a tenant, or to mark it as deleted, while other servers change its mark; then 429.
const ATTEMPTS: usize = 10;

/// Maximum number of changes that a receiver of [`Registry::changes`] may be behind.
const MAX_CHANGES: usize = 1024;

/// The phase of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Its initial objects are being created; it cannot be used yet.
    Creating,
    Active,
    /// Everything in it is being deleted.
    Terminating,
}

/// The object for which a tenant was created, and which alone deletes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The value of a tenant's mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) phase: Phase,
    #[serde(default)]
    pub(crate) uid: String,
    /// When it was created.
    #[serde(default)]
    pub(crate) created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Owner>,
}

impl Mark {
    /// Marks of the first versions have the value `1`.
    fn read(value: &[u8]) -> Mark {
        serde_json::from_slice(value).unwrap_or_else(|_| Mark::unnamed(Phase::Active))
    }

    /// A mark of a tenant from an older version.
    fn unnamed(phase: Phase) -> Mark {
        Mark { phase, uid: String::new(), created: String::new(), owner: None }
    }

    fn encode(&self) -> Result<Bytes, Error> {
        Ok(serde_json::to_vec(self).map(Bytes::from).map_err(Status::internal)?)
    }

    fn at(&self, phase: Phase) -> Mark {
        Mark { phase, ..self.clone() }
    }
}

/// A tenant in the store.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// The revision of the mark.
    pub(crate) revision: Revision,
}

/// What to do about a tenant that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent<'a> {
    /// Answer 404.
    Fail,
    /// Create it; 409 while an older one of that name is being deleted.
    CreateUnlessTerminating,
    /// The same, for an owner; 409 also for a tenant that is being created for another one.
    CreateFor(&'a Owner),
    /// Create it, after finishing the deletion of an older one.
    Create,
}

/// A lookup whose result is shared by all requests that wait for it.
type Lookup = SharedCall<Result<Arc<Tenant>, Error>>;

/// The names with lookups in progress, and the number of requests that wait for each.
type Turns = Mutex<HashMap<String, (usize, Arc<Lookup>)>>;

pub(crate) struct Registry {
    shared: Arc<Shared>,
    open: RwLock<HashMap<String, Arc<Tenant>>>,
    /// Serializes lookup, creation and deletion per name.
    turns: Turns,
    lookups: Semaphore,
    anonymous_lookups: Semaphore,
    /// The names of tenants that this server creates and deletes.
    changes: broadcast::Sender<Arc<str>>,
}

/// A request that waits for a name. The name is removed with its last waiter.
struct Turn<'a> {
    turns: &'a Turns,
    name: &'a str,
    lookup: Arc<Lookup>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        if let Some((waiting, _)) = turns.get_mut(self.name) {
            *waiting -= 1;
            if *waiting == 0 {
                turns.remove(self.name);
            }
        }
    }
}

impl Registry {
    pub(crate) fn new(shared: Arc<Shared>) -> Registry {
        Registry {
            shared,
            open: RwLock::default(),
            turns: Turns::default(),
            lookups: Semaphore::new(MAX_LOOKUPS),
            anonymous_lookups: Semaphore::new(MAX_ANONYMOUS_LOOKUPS),
            changes: broadcast::Sender::new(MAX_CHANGES),
        }
    }

    /// The names of the tenants that are open in this process.
    pub(crate) fn names(&self) -> Vec<String> {
        let open = self.open.read();
        let mut names: Vec<String> =
            open.values().filter(|tenant| !tenant.is_gone()).map(|tenant| tenant.name.clone()).collect();
        names.sort();
        names
    }

    /// A tenant that is open in this process.
    pub(crate) fn opened(&self, name: &str) -> Option<Arc<Tenant>> {
        let tenant = self.open.read().get(name)?.clone();
        if !tenant.is_gone() {
            return Some(tenant);
        }
        let mut open = self.open.write();
        if open.get(name).is_some_and(|now| Arc::ptr_eq(now, &tenant)) {
            open.remove(name);
        }
        None
    }

    /// A tenant that is open in this process and that no other process has deleted.
    pub(crate) async fn verified(&self, name: &str) -> Option<Arc<Tenant>> {
        let tenant = self.opened(name)?;
        tenant.verify().await.then_some(tenant)
    }

    fn turn<'a>(&'a self, name: &'a str) -> Turn<'a> {
        let mut turns = self.turns.lock();
        let (waiting, lookup) = turns.entry(name.to_owned()).or_default();
        *waiting += 1;
        Turn { turns: &self.turns, name, lookup: lookup.clone() }
    }

    async fn lookup(&self) -> Result<SemaphorePermit<'_>, Error> {
        Ok(self.lookups.acquire().await.map_err(Status::internal)?)
    }

    /// An existing tenant. `authenticated`: whether the request is.
    ///
    /// # Errors
    /// 404 if it does not exist; 429 if too many unauthenticated requests are for tenants that are not open.
    pub(crate) async fn find(&self, name: &str, authenticated: bool) -> Result<Arc<Tenant>, Error> {
        if let Some(tenant) = self.opened(name) {
            return Ok(tenant);
        }
        check_name(name)?;
        let _permit = match authenticated {
            true => None,
            false => Some(self.anonymous_lookups.try_acquire().map_err(|_| errors::busy())?),
        };
        let turn = self.turn(name);
        turn.lookup.call(|| async { Ok(self.take(name, Absent::Fail).await?.0) }).await
    }

    /// A tenant, created if it does not exist; and whether it was created.
    pub(crate) async fn make(&self, name: &str, absent: Absent<'_>) -> Result<(Arc<Tenant>, bool), Error> {
        if let Some(tenant) = self.verified(name).await {
            return Ok((tenant, false));
        }
        check_name(name)?;
        let turn = self.turn(name);
        turn.lookup.alone(|| self.take(name, absent)).await
    }

    async fn take(&self, name: &str, absent: Absent<'_>) -> Result<(Arc<Tenant>, bool), Error> {
        if let Some(tenant) = self.opened(name) {
            return Ok((tenant, false));
        }
        let _permit = self.lookup().await?;
        let (tenant, made) = self.open(name, absent).await?;
        self.open.write().insert(name.to_owned(), tenant.clone());
        if made {
            self.changed(name);
        }
        Ok((tenant, made))
    }

    /// The names of tenants that this server creates and deletes from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }

    fn changed(&self, name: &str) {
        // Fails if nobody listens.
        let _ = self.changes.send(name.into());
    }

    /// Finds or creates a tenant in the store.
    async fn open(&self, name: &str, absent: Absent<'_>) -> Result<(Arc<Tenant>, bool), Error> {
        for _ in 0..ATTEMPTS {
            let (mark, revision) = match self.mark(name).await? {
                Some((mark, revision)) if mark.phase == Phase::Active => {
                    let tenant = Tenant::new(self.shared.clone(), name, revision);
                    bootstrap::resume(&tenant).await?;
                    return Ok((tenant, false));
                }
                _ if absent == Absent::Fail => return Err(not_found(name)),
                Some((mark, _)) if mark.phase == Phase::Terminating && absent != Absent::Create => {
                    return Err(being_deleted(name));
                }
                Some((mark, revision)) if mark.phase == Phase::Terminating => {
                    self.purge(name, revision).await?;
                    continue;
                }
                Some((mark, _)) if matches!(absent, Absent::CreateFor(owner) if mark.owner.as_ref() != Some(owner)) =>
                {
                    return Err(Status::already_exists("k1s.dev", "tenants", name).into());
                }
                // Another server began to create it, and has stopped or still does: the update of the mark decides.
                Some(creating) => creating,
                None => {
                    let uid = self.shared.env.uuid().to_string();
                    let created = crate::time::stamp(&self.shared.env);
                    let owner = match absent {
                        Absent::CreateFor(owner) => Some(owner.clone()),
                        _ => None,
                    };
                    let mark = Mark { phase: Phase::Creating, uid, created, owner };
                    match self.shared.store.create(mark_key(name), mark.encode()?).await {
                        Ok(revision) => (mark, revision),
                        Err(StoreError::Conflict(_)) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            let tenant = Tenant::new(self.shared.clone(), name, revision);
            match bootstrap::bootstrap(&tenant).await {
                Ok(()) => {}
                Err(_) if tenant.is_gone() => continue,
                Err(status) => return Err(status),
            }
            let active = mark.at(Phase::Active).encode()?;
            match self.shared.store.update(mark_key(name), active, revision).await {
                Ok(revision) => {
                    tenant.set_mark(revision);
                    return Ok((tenant, true));
                }
                Err(StoreError::Conflict(_)) => tenant.end(),
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended().into())
    }

    async fn mark(&self, name: &str) -> Result<Option<(Mark, Revision)>, Error> {
        let found = self.shared.store.get(&mark_key(name), None).await;
        let entry = found?.entry;
        Ok(entry.map(|entry| (Mark::read(&entry.value), entry.revision)))
    }

    /// Deletes a tenant and everything in it; `None` if there was none. With a `uid`, only the tenant that has it: 409 for
    /// any other.
    pub(crate) async fn delete(&self, name: &str, uid: Option<&str>) -> Result<Option<Mark>, Error> {
        let turn = self.turn(name);
        let marked = turn.lookup.alone(|| self.terminate(name, uid)).await?;
        drop(turn);
        let Some((mark, revision)) = marked else { return Ok(None) };
        self.purge(name, revision).await?;
        Ok(Some(mark))
    }

    /// Marks a tenant as terminating, which makes all further writes to it fail.
    async fn terminate(&self, name: &str, uid: Option<&str>) -> Result<Option<(Mark, Revision)>, Error> {
        let marked = self.mark_terminating(name, uid).await?;
        if let Some(tenant) = self.open.write().remove(name) {
            tenant.end();
        }
        if let Some(hook) = &self.shared.options.tenant_hook {
            hook.tell(TenantEvent::Gone(name));
        }
        self.changed(name);
        Ok(marked)
    }

    /// Sets the mark of a tenant to `Terminating`, if it has a mark or any key.
    async fn mark_terminating(
        &self,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Option<(Mark, Revision)>, Error> {
        let store = &self.shared.store;
        for _ in 0..ATTEMPTS {
            let (mark, written) = match self.mark(name).await? {
                Some((mark, _)) if uid.is_some_and(|uid| mark.uid != uid) => {
                    let why = format!("its uid is {:?}, not that of the precondition", mark.uid);
                    return Err(Status::conflict("k1s.dev", "tenants", name, why).into());
                }
                Some((mark, revision)) if mark.phase == Phase::Terminating => {
                    return Ok(Some((mark, revision)));
                }
                Some((mark, revision)) => {
                    let mark = mark.at(Phase::Terminating);
                    let written = store.update(mark_key(name), mark.encode()?, revision).await;
                    (mark, written)
                }
                // A tenant that an older version did not finish creating has keys but no mark.
                None => {
                    let anything = store.range(Range::prefix(keys::prefix(name)).limit(1)).await;
                    if anything?.entries.is_empty() {
                        return Ok(None);
                    }
                    let mark = Mark::unnamed(Phase::Terminating);
                    let written = store.create(mark_key(name), mark.encode()?).await;
                    (mark, written)
                }
            };
            match written {
                Ok(revision) => return Ok(Some((mark, revision))),
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended().into())
    }

    /// Deletes everything in a terminating tenant, and finally its mark. Several servers may do so at the same time; none of
    /// them touches a tenant that was created again under the name.
    async fn purge(&self, name: &str, revision: Revision) -> Result<(), Error> {
        let (store, mark) = (&self.shared.store, mark_key(name));
        let mut page = Page::default();
        loop {
            let range = Range::prefix(keys::prefix(name)).limit(page.entries().min(MAX_OPS));
            let found = store.range(range).await?;
            page.adapt(&found.entries);
            let keys: Vec<Bytes> =
                found.entries.into_iter().map(|entry| entry.key).filter(|key| *key != mark).collect();
            let done = keys.is_empty();
            let expected = Precondition::Revision(revision);
            let txn = match done {
                true => Txn::new().delete(mark.clone(), expected),
                false => {
                    let txn = Txn::new().check(mark.clone(), expected);
                    keys.into_iter().fold(txn, |txn, key| txn.delete(key, Precondition::Any))
                }
            };
            match store.txn(txn).await {
                Ok(_) if done => return Ok(()),
                Ok(_) => {}
                // Another server has completed the deletion.
                Err(StoreError::Conflict(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A tenant in the store.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Found>, Error> {
        let mark = self.mark(name).await?;
        Ok(mark.map(|(mark, revision)| Found { name: name.to_owned(), mark, revision }))
    }

    /// A page of the tenants in the store whose prefix is not before `start`, the store's revision, and the start of the next
    /// page if there are more. The contents of tenants are skipped, not read.
    pub(crate) async fn list(
        &self,
        start: Option<Bytes>,
        limit: usize,
    ) -> Result<(Vec<Found>, Revision, Option<Bytes>), Error> {
        let mut tenants = Vec::new();
        let mut start = start.unwrap_or_else(|| Bytes::from_static(b"/"));
        loop {
            let range = Range::prefix("/").start(start.clone()).limit(1);
            let found = self.shared.store.range(range).await?;
            let Some(first) = found.entries.first() else { return Ok((tenants, found.revision, None)) };
            if tenants.len() == limit {
                return Ok((tenants, found.revision, Some(start)));
            }
            let rest = first.key.get(1..).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let name = rest.get(..length).unwrap_or_default();
            // The server's own keys are under names that are not valid for tenants.
            if let Ok(name) = std::str::from_utf8(name)
                && check_name(name).is_ok()
                && let Some(tenant) = self.get(name).await?
            {
                tenants.push(tenant);
            }
            let Some(next) = prefix_end(&[b"/", name, b"/"].concat()) else {
                return Ok((tenants, found.revision, None));
            };
            start = next;
        }
    }
}

/// Validates the name of a tenant.
pub(crate) fn check_name(name: &str) -> Result<(), Status> {
    let wrong = k1s_object::names::is_dns1123_label(name);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Status::bad_request(format!("the tenant's name {name:?} is invalid: {}", wrong.join("; "))))
}

/// 429: other servers keep changing the tenant.
fn contended() -> Status {
    errors::too_many_requests("the tenant is being created and deleted at the same time", 1)
}

/// 409: the name is free once the deletion is complete.
fn being_deleted(name: &str) -> Error {
    Error::AlreadyExists(Box::new(AlreadyExists {
        group: "k1s.dev".into(),
        resource: "tenants".into(),
        name: name.to_owned(),
        generated: false,
        terminating: true,
    }))
}
