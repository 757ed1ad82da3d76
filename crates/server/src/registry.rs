//! The tenants of a server: those that are open, and how they are found, made and deleted in the store.
//!
//! A tenant is there when its *mark* is: a key whose value says whether it is being made, active, or being deleted. Everything
//! that is written to a tenant is conditional on the revision of its mark ([`Tenant::txn`]). So whoever changes the mark, in
//! this process or another one over the same store, ends all writes at once, and what is deleted afterwards stays so.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use k1s_object::Status;
use k1s_store::{Error as StoreError, Precondition, Range, Revision, Txn, prefix_end};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    bootstrap,
    errors::{self, AlreadyExists, Error},
    keys::{self, mark_key},
    options::TenantEvent,
    paging::Page,
    shared_call::SharedCall,
    tenant::{MAX_OPS, Shared, Tenant, not_found},
};

/// Tenants that are looked for in the store at the same time.
const LOOKUPS: usize = 32;

/// Requests of users that nobody knows which may wait for such a lookup at the same time; more get 429.
const STRANGERS: usize = 8;

/// Maximum attempts to create a tenant, or to mark it as deleted, while other servers change its mark; then 429.
const ATTEMPTS: usize = 10;

/// Where a tenant is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Its first objects are being made; it cannot be used yet.
    Creating,
    Active,
    /// Everything in it is being deleted.
    Terminating,
}

/// What the store says of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) phase: Phase,
    #[serde(default)]
    pub(crate) uid: String,
    /// When it was made.
    #[serde(default)]
    pub(crate) created: String,
}

impl Mark {
    /// The first versions wrote `1`.
    fn read(value: &[u8]) -> Mark {
        let old = || Mark { phase: Phase::Active, uid: String::new(), created: String::new() };
        serde_json::from_slice(value).unwrap_or_else(|_| old())
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
    /// The mark's.
    pub(crate) revision: Revision,
}

/// What to do about a tenant that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Answer 404.
    Fail,
    /// Create it; 409 while an older one of that name is being deleted.
    CreateUnlessTerminating,
    /// Create it, after finishing the deletion of an older one.
    Create,
}

/// The answer to a lookup, for all who wait for it.
type Lookup = SharedCall<Result<Arc<Tenant>, Error>>;

/// The names that somebody waits for, with how many do.
type Turns = Mutex<HashMap<String, (usize, Arc<Lookup>)>>;

pub(crate) struct Registry {
    shared: Arc<Shared>,
    open: RwLock<HashMap<String, Arc<Tenant>>>,
    /// A name is looked up, made or deleted by one at a time, and no other name waits for it.
    turns: Turns,
    lookups: Semaphore,
    strangers: Semaphore,
}

/// A place among those who wait for a name. The name is forgotten with the last of them.
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
            lookups: Semaphore::new(LOOKUPS),
            strangers: Semaphore::new(STRANGERS),
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

    /// A tenant that is open in this process, and was not deleted by another one.
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

    /// A tenant that is there. `known`: whether somebody knows who asks.
    ///
    /// # Errors
    /// 404 if it is not; 429 if too many that nobody knows ask for tenants that are not open.
    pub(crate) async fn find(&self, name: &str, known: bool) -> Result<Arc<Tenant>, Error> {
        if let Some(tenant) = self.opened(name) {
            return Ok(tenant);
        }
        check_name(name)?;
        let _stranger = match known {
            true => None,
            false => Some(self.strangers.try_acquire().map_err(|_| errors::busy())?),
        };
        let turn = self.turn(name);
        turn.lookup.call(|| async { Ok(self.take(name, Absent::Fail).await?.0) }).await
    }

    /// A tenant, which is made if it is not there; whether it was.
    pub(crate) async fn make(&self, name: &str, absent: Absent) -> Result<(Arc<Tenant>, bool), Error> {
        if let Some(tenant) = self.verified(name).await {
            return Ok((tenant, false));
        }
        check_name(name)?;
        let turn = self.turn(name);
        turn.lookup.alone(|| self.take(name, absent)).await
    }

    async fn take(&self, name: &str, absent: Absent) -> Result<(Arc<Tenant>, bool), Error> {
        if let Some(tenant) = self.opened(name) {
            return Ok((tenant, false));
        }
        let _permit = self.lookup().await?;
        let (tenant, made) = self.open(name, absent).await?;
        self.open.write().insert(name.to_owned(), tenant.clone());
        Ok((tenant, made))
    }

    /// Finds or makes a tenant in the store.
    async fn open(&self, name: &str, absent: Absent) -> Result<(Arc<Tenant>, bool), Error> {
        for _ in 0..ATTEMPTS {
            let (mark, revision) = match self.mark(name).await? {
                Some((mark, revision)) if mark.phase == Phase::Active => {
                    let tenant = Tenant::new(self.shared.clone(), name, revision);
                    bootstrap::take_up(&tenant).await?;
                    return Ok((tenant, false));
                }
                _ if absent == Absent::Fail => return Err(not_found(name)),
                Some((mark, _))
                    if mark.phase == Phase::Terminating && absent == Absent::CreateUnlessTerminating =>
                {
                    return Err(being_deleted(name));
                }
                Some((mark, revision)) if mark.phase == Phase::Terminating => {
                    self.purge(name, revision).await?;
                    continue;
                }
                // Whoever began to make it may be gone, or is doing it now: then one of us comes too late and sees it.
                Some(creating) => creating,
                None => {
                    let uid = self.shared.env.uuid().to_string();
                    let created = crate::time::stamp(&self.shared.env);
                    let mark = Mark { phase: Phase::Creating, uid, created };
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

    /// Deletes a tenant and everything in it; whether there was one.
    pub(crate) async fn delete(&self, name: &str) -> Result<Option<Mark>, Error> {
        let turn = self.turn(name);
        let marked = turn.lookup.alone(|| self.terminate(name)).await?;
        drop(turn);
        let Some((mark, revision)) = marked else { return Ok(None) };
        self.purge(name, revision).await?;
        Ok(Some(mark))
    }

    /// Marks a tenant as deleted: from then on nobody writes to it.
    async fn terminate(&self, name: &str) -> Result<Option<(Mark, Revision)>, Error> {
        let marked = self.mark_terminating(name).await?;
        if let Some(tenant) = self.open.write().remove(name) {
            tenant.end();
        }
        if let Some(hook) = &self.shared.options.tenant_hook {
            hook.tell(TenantEvent::Gone(name));
        }
        Ok(marked)
    }

    /// Sets the mark of a tenant to `Terminating`, if there is anything of it.
    async fn mark_terminating(&self, name: &str) -> Result<Option<(Mark, Revision)>, Error> {
        let store = &self.shared.store;
        for _ in 0..ATTEMPTS {
            let (mark, written) = match self.mark(name).await? {
                Some((mark, revision)) if mark.phase == Phase::Terminating => {
                    return Ok(Some((mark, revision)));
                }
                Some((mark, revision)) => {
                    let mark = mark.at(Phase::Terminating);
                    let written = store.update(mark_key(name), mark.encode()?, revision).await;
                    (mark, written)
                }
                // What an older version did not finish to make has no mark.
                None => {
                    let anything = store.range(Range::prefix(keys::prefix(name)).limit(1)).await;
                    if anything?.entries.is_empty() {
                        return Ok(None);
                    }
                    let mark = Mark { phase: Phase::Terminating, uid: String::new(), created: String::new() };
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

    /// Deletes everything in a tenant whose mark says so, and the mark at last. Several may do it at the same time, and none
    /// of them touches a tenant that was made anew under the name.
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
                // Somebody else has done it.
                Err(StoreError::Conflict(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What the store says of a tenant.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Found>, Error> {
        let mark = self.mark(name).await?;
        Ok(mark.map(|(mark, revision)| Found { name: name.to_owned(), mark, revision }))
    }

    /// The tenants in the store whose prefix is not before `start`, at most so many; the store's revision, and where to go on
    /// if there are more. What lies in a tenant is skipped, not read.
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
            // The server's own keys are under names that no tenant can have.
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

/// Whether a tenant can be called so.
pub(crate) fn check_name(name: &str) -> Result<(), Status> {
    let wrong = k1s_object::names::is_dns1123_label(name);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Status::bad_request(format!("the tenant's name {name:?} is invalid: {}", wrong.join("; "))))
}

/// 429: other servers keep changing the tenant.
fn contended() -> Status {
    errors::too_many_requests("the tenant is being made and deleted at the same time", 1)
}

/// 409: the name is free when the deletion has come to its end.
fn being_deleted(name: &str) -> Error {
    Error::AlreadyExists(Box::new(AlreadyExists {
        group: "k1s.dev".into(),
        resource: "tenants".into(),
        name: name.to_owned(),
        generated: false,
        terminating: true,
    }))
}
