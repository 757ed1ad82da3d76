//! Priority and fairness: whoever floods the server does not starve others.
//!
//! As in kube-apiserver, a request belongs to a flow: it is classified by the first `FlowSchema` of its tenant that matches
//! it, and by its user or namespace. The schema names a priority level, which has a share of the seats, that is of the
//! requests that run at the same time. A request that finds no seat waits in one of the fair queues of its level ([`queues`]).
//! Beyond kube-apiserver, tenants share the server's seats in the same way ([`gate`]): a tenant's configuration divides what
//! the tenant may use, and takes nothing from others.
//!
//! A request that need not wait takes one short lock at its beginning and one at its end. Requests of administrators take
//! none.

mod config;
mod counters;
mod dropped;
mod gate;
mod queues;
mod schema;
mod turns;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderName};
use k1s_env::{Env, Instant};
use k1s_object::Status;
use k1s_store::Revision;
use parking_lot::Mutex;

pub(crate) use self::turns::{Turn, Turns};
use self::{
    config::{Config, Levels, Schema},
    counters::Labelled,
    gate::{Entered, Member, Place, Rejection, Seats},
};
use crate::{
    authz::Attributes,
    cache::{Cache, Snapshot},
    errors,
    identity::User,
};

/// The API group of flow schemas and priority levels.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Their resources, in the order of their caches.
pub(crate) const RESOURCES: [&str; 2] = ["flowschemas", "prioritylevelconfigurations"];

/// The headers by which kube-apiserver tells how a request was classified.
const SCHEMA_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The seats of a server.
#[derive(Debug)]
pub(crate) struct Fairness {
    env: Env,
    seats: Mutex<Seats>,
    /// The seats that the levels of a tenant share.
    most: usize,
    patience: Duration,
    /// Mixed into the hashes of flows, so that nobody can choose who shares their queues.
    seed: u64,
    started: Instant,
}

impl Fairness {
    /// `most`: the seats of a tenant that is alone; `reserve`: those that it leaves to others; `patience`: how long a request
    /// waits.
    pub(crate) fn new(env: &Env, most: usize, reserve: usize, patience: Duration) -> Arc<Fairness> {
        Arc::new(Fairness {
            env: env.clone(),
            seats: Mutex::new(Seats::new(most, reserve)),
            most,
            patience,
            seed: env.random(),
            started: env.now(),
        })
    }
}

/// A tenant among those that share the seats.
#[derive(Debug)]
struct Membership {
    fairness: Arc<Fairness>,
    member: Member,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.fairness.seats.lock().leave(self.member);
    }
}

/// The configuration of a tenant, up to date with the caches of its objects. Costs nothing until it is used.
#[derive(Default)]
pub(crate) struct Flows {
    caches: OnceLock<[Arc<Cache>; 2]>,
    membership: OnceLock<Arc<Membership>>,
    loaded: ArcSwapOption<Loaded>,
    levels: Mutex<Levels>,
}

struct Loaded {
    /// The revisions of the caches.
    reached: [Revision; 2],
    config: Arc<Config>,
}

/// Maximum number of events that are looked at to find that nothing has changed.
const MAX_EVENTS: usize = 1000;

impl Flows {
    /// The configuration, if it can be brought up to date without waiting.
    fn try_current(&self) -> Option<Arc<Config>> {
        let [schemas, levels] = self.caches.get()?;
        let reached = [schemas.reached(Revision::FIRST)?, levels.reached(Revision::FIRST)?];
        if let Some(loaded) = &*self.loaded.load()
            && loaded.reached == reached
        {
            return Some(loaded.config.clone());
        }
        Some(self.update(&[schemas.settled()?, levels.settled()?]))
    }

    async fn current(
        &self,
        fairness: &Arc<Fairness>,
        caches: Vec<Arc<Cache>>,
    ) -> Result<Arc<Config>, Status> {
        let caches = <[Arc<Cache>; 2]>::try_from(caches)
            .map_err(|_| Status::internal("there are two kinds of flow control"))?;
        self.join(fairness);
        let [schemas, levels] = self.caches.get_or_init(|| caches);
        let snapshots = [schemas.with_own_writes().await?, levels.with_own_writes().await?];
        Ok(self.update(&snapshots))
    }

    fn join(&self, fairness: &Arc<Fairness>) -> &Arc<Membership> {
        self.membership.get_or_init(|| {
            Arc::new(Membership { fairness: fairness.clone(), member: fairness.seats.lock().join() })
        })
    }

    fn update(&self, snapshots: &[Arc<Snapshot>; 2]) -> Arc<Config> {
        // Held while compiling: another request waits for the result instead of doing the same.
        let mut levels = self.levels.lock();
        let reached = revisions(snapshots);
        if let Some(loaded) = self.loaded.load_full() {
            let is_older = |(new, old): (&Revision, &Revision)| new <= old;
            if reached.iter().zip(&loaded.reached).all(is_older) {
                return loaded.config.clone();
            }
            if self.is_unchanged(&loaded.reached, &reached) {
                let config = loaded.config.clone();
                self.loaded.store(Some(Arc::new(Loaded { reached, config: config.clone() })));
                return config;
            }
        }
        let [schemas, plain] = snapshots;
        let schemas = schemas.entries.iter().filter_map(|entry| config::read(entry.stored.json())).collect();
        let plain = plain.entries.iter().filter_map(|entry| config::read(entry.stored.json())).collect();
        let config = self.compile(&mut levels, schemas, plain);
        self.loaded.store(Some(Arc::new(Loaded { reached, config: config.clone() })));
        config
    }

    /// Whether the caches have no events between these revisions.
    fn is_unchanged(&self, before: &[Revision; 2], now: &[Revision; 2]) -> bool {
        let Some(caches) = self.caches.get() else { return false };
        caches.iter().zip(before.iter().zip(now)).all(|(cache, (before, now))| {
            let events = cache.ring(|ring| ring.between(*before, *now, MAX_EVENTS));
            before >= now || events.is_some_and(|events| events.is_empty())
        })
    }

    fn compile(
        &self,
        levels: &mut Levels,
        schemas: Vec<config::Object<schema::Spec>>,
        plain: Vec<config::Object<config::LevelSpec>>,
    ) -> Arc<Config> {
        let Some(Membership { fairness, member }) = self.membership.get().map(|one| &**one) else {
            return Arc::default();
        };
        let idle = |number| fairness.seats.lock().level(*member, number) == (0, 0);
        let config = levels.compile(schemas, plain, fairness.most, idle);
        fairness.seats.lock().configure(*member, &levels.limits);
        Arc::new(config)
    }

    /// The configuration of a new tenant, if that of this one cannot be read.
    fn fallback(&self, fairness: &Arc<Fairness>) -> Arc<Config> {
        if let Some(loaded) = self.loaded.load_full() {
            return loaded.config.clone();
        }
        self.join(fairness);
        let (schemas, plain) = config::initial();
        let config = self.compile(&mut self.levels.lock(), schemas, plain);
        self.loaded.store(Some(Arc::new(Loaded { reached: Default::default(), config: config.clone() })));
        config
    }

    /// Classifies a request; `load` starts the caches of [`RESOURCES`].
    pub(crate) async fn classify(
        &self,
        fairness: &Arc<Fairness>,
        load: impl FnOnce() -> Result<Vec<Arc<Cache>>, Status>,
        user: &User,
        wanted: &Attributes<'_>,
    ) -> Flow {
        let config = match self.try_current() {
            Some(config) => config,
            None => {
                let loaded = match load() {
                    Ok(caches) => self.current(fairness, caches).await,
                    Err(error) => Err(error),
                };
                loaded.unwrap_or_else(|error| {
                    tracing::debug!(%error, "flow schemas cannot be read");
                    self.fallback(fairness)
                })
            }
        };
        self.flow(fairness, &config, user, wanted)
    }

    /// The same without waiting, for requests that need no seat: only to count them.
    pub(crate) fn classify_exempt(
        &self,
        fairness: &Arc<Fairness>,
        user: &User,
        wanted: &Attributes<'_>,
    ) -> Flow {
        match self.try_current() {
            Some(config) => Flow { is_exempt: true, ..self.flow(fairness, &config, user, wanted) },
            None => Flow { schema: None, membership: None, hash: 0, is_exempt: true },
        }
    }

    fn flow(&self, fairness: &Arc<Fairness>, config: &Config, user: &User, wanted: &Attributes<'_>) -> Flow {
        let schema = config.classify(user, wanted);
        let mut hasher = DefaultHasher::new();
        if let Some(schema) = schema.as_ref().filter(|schema| !schema.exempt) {
            (fairness.seed, &schema.name, schema.distinguisher(user, wanted)).hash(&mut hasher);
        } else {
            (fairness.seed, &user.name).hash(&mut hasher);
        }
        Flow { schema, membership: self.membership.get().cloned(), hash: hasher.finish(), is_exempt: false }
    }

    /// Writes the metrics of this tenant's schemas and levels.
    pub(crate) fn write_metrics(&self, out: &mut String) {
        let (Some(loaded), Some(membership)) = (self.loaded.load_full(), self.membership.get()) else {
            return;
        };
        let levels = self.levels.lock();
        let name_of = |number: usize| {
            let found = levels.numbers.iter().find(|(_, one)| **one == number);
            found.map_or("", |(name, _)| &**name)
        };
        let labelled: Vec<Labelled<'_>> = loaded
            .config
            .schemas()
            .iter()
            .map(|schema| Labelled {
                schema: &schema.name,
                level: name_of(schema.level),
                counters: &schema.counters,
            })
            .collect();
        counters::write(out, &labelled);
        let mut all: Vec<(&str, usize)> =
            levels.numbers.iter().map(|(name, number)| (&**name, *number)).collect();
        all.sort_unstable();
        let limits = |value: fn(&gate::LevelLimits) -> usize| -> Vec<(&str, usize)> {
            let limits = all.iter().filter_map(|(name, number)| Some((*name, levels.limits.get(*number)?)));
            limits.filter(|(_, limits)| !limits.exempt).map(|(name, limits)| (name, value(limits))).collect()
        };
        let help = "Seats of a level: its share.";
        counters::write_levels(out, "nominal_limit_seats", help, &limits(|limits| limits.nominal));
        let help = "Seats of a level that it does not lend.";
        counters::write_levels(out, "lower_limit_seats", help, &limits(|limits| limits.guaranteed));
        let help = "Seats of a level with all that it may borrow.";
        counters::write_levels(out, "upper_limit_seats", help, &limits(|limits| limits.most));
        let used: Vec<(&str, usize)> = {
            let seats = membership.fairness.seats.lock();
            all.iter().map(|(name, number)| (*name, seats.level(membership.member, *number).0)).collect()
        };
        counters::write_levels(out, "used_seats", "Seats in use by a level.", &used);
    }
}

fn revisions(snapshots: &[Arc<Snapshot>; 2]) -> [Revision; 2] {
    snapshots.each_ref().map(|snapshot| snapshot.revision)
}

/// The flow of a request.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    schema: Option<Arc<Schema>>,
    membership: Option<Arc<Membership>>,
    hash: u64,
    /// Whether it needs no seat.
    is_exempt: bool,
}

impl Flow {
    /// Lets a request that its schema exempts run without a seat: where the tenant's configuration is the server's.
    pub(crate) fn trust(mut self) -> Flow {
        self.is_exempt |= self.schema.as_ref().is_some_and(|schema| schema.exempt);
        self
    }

    /// Adds the headers that tell how the request was classified.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if let Some((schema, level)) = self.schema.as_ref().and_then(|schema| schema.uids.clone()) {
            headers.insert(SCHEMA_HEADER, schema);
            headers.insert(LEVEL_HEADER, level);
        }
    }

    /// What tells this flow apart from others, of any tenant.
    pub(crate) fn hash(&self) -> u64 {
        let member = self.membership.as_ref().map_or(0, |membership| membership.member);
        self.hash ^ member.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Waits for a seat.
    ///
    /// # Errors
    /// 429.
    pub(crate) async fn seat(&self) -> Result<Seat, Status> {
        let Some((schema, membership)) = self.limited() else { return Ok(self.exempt_seat()) };
        let fairness = &membership.fairness;
        let entered = fairness.seats.lock().enter(membership.member, schema.level, self.hash);
        match entered {
            Entered::Seat => Ok(Seat::new(schema, membership, None)),
            Entered::Rejected(why) => Err(reject(schema, membership, why)),
            Entered::Wait(place, turn) => {
                let began = fairness.env.now();
                schema.counters.enqueue();
                let mut waiting = Waiting { schema, membership, place, began, served: false };
                match fairness.env.timeout(fairness.patience, turn).await {
                    Ok(Ok(())) => {
                        waiting.served = true;
                        let now = fairness.env.now();
                        Ok(Seat::new(schema, membership, Some((place.queue, now))))
                    }
                    _ => {
                        drop(waiting);
                        Err(reject(schema, membership, Rejection::TimeOut))
                    }
                }
            }
        }
    }

    /// A seat without waiting, even if there is none: for a request that has already waited for something scarcer.
    pub(crate) fn seat_now(&self) -> Seat {
        let Some((schema, membership)) = self.limited() else { return self.exempt_seat() };
        membership.fairness.seats.lock().take(membership.member, schema.level);
        Seat::new(schema, membership, None)
    }

    fn limited(&self) -> Option<(&Arc<Schema>, &Arc<Membership>)> {
        if self.is_exempt { None } else { self.schema.as_ref().zip(self.membership.as_ref()) }
    }

    fn exempt_seat(&self) -> Seat {
        if let Some(schema) = &self.schema {
            schema.counters.dispatch();
        }
        Seat { schema: self.schema.clone(), taken: None }
    }
}

fn reject(schema: &Schema, membership: &Membership, why: Rejection) -> Status {
    schema.counters.reject(why);
    let fairness = &membership.fairness;
    let second = (fairness.env.now() - fairness.started).as_secs();
    let retry_after = fairness.seats.lock().reject(membership.member, schema.level, second);
    errors::too_many(retry_after)
}

/// A request that waits; leaves its queue when dropped, unless it was served.
struct Waiting<'a> {
    schema: &'a Schema,
    membership: &'a Membership,
    place: Place,
    began: Instant,
    served: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let fairness = &self.membership.fairness;
        self.schema.counters.dequeue(fairness.env.now() - self.began, self.served);
        if !self.served {
            fairness.seats.lock().abandon(self.membership.member, self.schema.level, self.place);
        }
    }
}

/// The seat of a request, given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    schema: Option<Arc<Schema>>,
    taken: Option<Taken>,
}

#[derive(Debug)]
struct Taken {
    membership: Arc<Membership>,
    queue: FromQueue,
}

/// The queue that a request came from, and when it was served.
type FromQueue = Option<(u32, Instant)>;

impl Seat {
    fn new(schema: &Arc<Schema>, membership: &Arc<Membership>, queue: FromQueue) -> Seat {
        schema.counters.dispatch();
        let taken = Some(Taken { membership: membership.clone(), queue });
        Seat { schema: Some(schema.clone()), taken }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(schema) = &self.schema else { return };
        schema.counters.end();
        let Some(Taken { membership, queue }) = &self.taken else { return };
        let fairness = &membership.fairness;
        let queue = queue.map(|(queue, since)| (queue, fairness.env.now() - since));
        fairness.seats.lock().give_back(membership.member, schema.level, queue);
    }
}
