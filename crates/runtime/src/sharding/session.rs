//! One session of a replica: from the acquisition of its member Lease to its end.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use k1s_env::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Inner, ShardToken, ShardingError,
    assign::best,
    leases::Leases,
    members::{Member, Members, View},
    plan::{Local, Plan, plan},
    table::Table,
};
use crate::leader::{Fence, lock::CallError, record::Lease};

pub(super) struct Session<'a> {
    inner: &'a Inner,
    leases: Leases,
    name: String,
    fence: Fence,
    began: Instant,
    members: Members,
    /// What was computed for the members.
    wanted: Option<(Vec<Member>, Vec<bool>)>,
    /// What this replica does with each shard.
    local: Vec<Local>,
    /// Complete when the work on a shard has stopped, or should have.
    draining: FuturesUnordered<BoxFuture<'static, Drained>>,
    /// Whether the table was there, and since when it is not.
    table_seen: bool,
    table_gone: Option<Instant>,
}

struct Drained {
    token: ShardToken,
    confirmed: bool,
}

/// How a session ended.
pub(super) enum Ended {
    /// This replica has to leave.
    Stopped,
    /// The member Lease was not renewed in time.
    Lost(Arc<str>),
    /// This replica cannot take part.
    Failed(ShardingError),
}

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Another replica wrote first.
    Soon,
    Later,
}

const RELEASED: &str = "it was released";

impl<'a> Session<'a> {
    pub(super) fn new(inner: &'a Inner, name: String, fence: Fence) -> Session<'a> {
        Session {
            inner,
            leases: Leases::new(inner),
            name,
            fence,
            began: inner.env.now(),
            members: Members::new(&inner.options.name, inner.options.shards, inner.options.lease_duration),
            wanted: None,
            local: vec![Local::Idle; inner.options.shards as usize],
            draining: FuturesUnordered::new(),
            table_seen: false,
            table_gone: None,
        }
    }

    /// Acquires and releases shards until the session ends.
    pub(super) async fn work(&mut self, stop: &CancellationToken) -> Ended {
        let (env, fence) = (self.inner.env.clone(), self.fence.clone());
        loop {
            let next = tokio::select! {
                // In this order: a task that wakes up too late has lost, whatever else is ready.
                biased;
                lost = fence.lost() => return Ended::Lost(lost.reason),
                () = stop.cancelled() => return Ended::Stopped,
                next = self.turn() => match next {
                    Ok(next) => next,
                    Err(error) => return Ended::Failed(error),
                },
            };
            let period = self.inner.options.retry_period;
            let pause = match next {
                // A random part of the period, so that replicas that collided do not collide again.
                Next::Soon => period.mul_f64(env.random_f64() / 10.0),
                Next::Later => period,
            };
            let pause = env.sleep(pause);
            tokio::select! {
                biased;
                lost = fence.lost() => return Ended::Lost(lost.reason),
                () = stop.cancelled() => return Ended::Stopped,
                Some(drained) = self.draining.next() => self.drained(&drained),
                () = self.inner.wake.notified() => {}
                () = pause => {}
            }
            // Those that stopped at the same time are released by the same write.
            while let Some(Some(drained)) = self.draining.next().now_or_never() {
                self.drained(&drained);
            }
        }
    }

    /// Reads the Leases of the group, and acts once.
    async fn turn(&mut self) -> Result<Next, ShardingError> {
        let env = &self.inner.env;
        let sent = env.now();
        let (lease, members) = match self.leases.read().await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(sharding = %self.inner.options.name, %error, "cannot read the leases of the group");
                return Ok(Next::Later);
            }
        };
        let received = env.now();
        let view = self.members.observe(members, sent, received);
        self.publish(&view);
        let Some(lease) = lease else { return Ok(self.without_table(sent, received).await) };
        (self.table_seen, self.table_gone) = (true, None);
        let table = self.leases.parse(&lease)?;
        let (recorded, configured) = (table.shards(), self.inner.options.shards);
        if recorded != configured {
            return self.other_number(&view, lease, &table, sent).await;
        }
        self.update_wanted(&view);
        let plan = {
            let (members, wanted) = (&mut self.members, self.wanted.as_ref().map(|(_, wanted)| &**wanted));
            let is_wanted = |shard: u32| wanted.is_some_and(|wanted| wanted[shard as usize]);
            plan(&table, &self.name, is_wanted, |session| members.is_dead(&view, session), &self.local)
        };
        self.members.retain(table.owners());
        // The Leases of sessions that own shards stay: other replicas need them to see that the session has ended.
        let unused = view.unused_by(table.owners());
        let next = self.carry_out(plan, table, lease).await;
        self.clean_up(unused).await;
        Ok(next)
    }

    fn publish(&self, view: &View) {
        self.inner.metrics.members.set(i64::try_from(view.members.len()).unwrap_or(i64::MAX));
        let mut members = self.inner.members.lock();
        if *members != view.members {
            let names: Vec<_> = view.members.iter().map(|member| &member.identity).collect();
            tracing::info!(sharding = %self.inner.options.name, members = ?names, "the members changed");
            members.clone_from(&view.members);
        }
    }

    fn update_wanted(&mut self, view: &View) {
        if self.wanted.as_ref().is_some_and(|(members, _)| *members == view.members) {
            return;
        }
        let mine = |shard| {
            let members = view.members.iter().map(|member| (&*member.identity, member.weight));
            best(shard, members).is_some_and(|best| view.members[best].identity == self.inner.identity)
        };
        let wanted = (0..self.inner.options.shards).map(mine).collect();
        self.wanted = Some((view.members.clone(), wanted));
    }

    /// Stops work, and writes the table.
    async fn carry_out(&mut self, plan: Plan, mut table: Table, lease: Lease) -> Next {
        for shard in &plan.lost {
            tracing::error!(sharding = %self.inner.options.name, shard, "the record of an owned shard was changed");
            self.drain(*shard, Some("its record was changed"));
        }
        for shard in &plan.drain {
            self.drain(*shard, None);
        }
        if !plan.writes() {
            return Next::Later;
        }
        for shard in &plan.free {
            table.entries[*shard as usize].owner = None;
        }
        for shard in &plan.claim {
            let entry = &mut table.entries[*shard as usize];
            entry.owner = Some(self.name.clone());
            entry.token += 1;
        }
        match self.leases.replace(lease, &table).await {
            // Otherwise the process was paused: the shards are not used, and expire.
            Ok(()) if self.fence.is_valid() => {}
            Ok(()) => return Next::Later,
            Err(CallError::Conflict) => return Next::Soon,
            Err(error) => {
                tracing::warn!(sharding = %self.inner.options.name, %error, "the shards may not have been changed");
                return Next::Later;
            }
        }
        for shard in &plan.claim {
            let value = table.entries[*shard as usize].token;
            self.local[*shard as usize] = Local::Held(value);
            self.inner.owned.acquired(&ShardToken::new(*shard, value, self.fence.clone()));
        }
        self.inner.metrics.acquisitions.inc_by(plan.claim.len() as u64);
        self.count_owned();
        if !plan.claim.is_empty() {
            tracing::info!(sharding = %self.inner.options.name, shards = ?plan.claim, "acquired shards");
        }
        if !plan.free.is_empty() {
            tracing::info!(sharding = %self.inner.options.name, shards = ?plan.free, "released shards");
        }
        Next::Later
    }

    /// Creates the table, unless it was deleted by hand: its owners may not know yet.
    async fn without_table(&mut self, sent: Instant, received: Instant) -> Next {
        if self.table_seen {
            let gone = *self.table_gone.get_or_insert(received);
            for shard in 0..self.inner.options.shards {
                self.drain(shard, Some("the table of all shards was deleted"));
            }
            if sent < gone + self.inner.options.lease_duration {
                return Next::Later;
            }
        }
        // From the wall clock, so that tokens go on increasing if the table is ever deleted.
        let wall = self.inner.env.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let table = Table::new(self.inner.options.shards, wall.as_secs());
        match self.leases.create(&table).await {
            Ok(_) | Err(CallError::Conflict) => Next::Soon,
            Err(error) => {
                tracing::warn!(sharding = %self.inner.options.name, %error, "cannot record the shards");
                Next::Later
            }
        }
    }

    /// The table is for another number of shards: an error if one of its owners is alive; otherwise it is replaced.
    async fn other_number(
        &mut self,
        view: &View,
        lease: Lease,
        table: &Table,
        sent: Instant,
    ) -> Result<Next, ShardingError> {
        for shard in 0..self.inner.options.shards {
            self.drain(shard, Some("the number of shards was changed"));
        }
        let (recorded, configured) = (table.shards(), self.inner.options.shards);
        let mut owners: Vec<&str> = table.owners().collect();
        owners.dedup();
        if owners.iter().all(|session| self.members.is_dead(view, session)) {
            tracing::info!(sharding = %self.inner.options.name, recorded, configured, "the number of shards changes");
            return match self.leases.replace(lease, &Table::new(configured, table.highest_token())).await {
                Ok(()) | Err(CallError::Conflict) => Ok(Next::Soon),
                Err(error) => {
                    tracing::warn!(sharding = %self.inner.options.name, %error, "cannot record the shards");
                    Ok(Next::Later)
                }
            };
        }
        // An owner that was killed is known to be dead only after its lease duration.
        let options = &self.inner.options;
        if sent < self.began + options.lease_duration + 2 * options.retry_period {
            return Ok(Next::Later);
        }
        Err(ShardingError::ShardsDiffer { name: options.name.clone(), recorded, configured })
    }

    /// Deletes Leases of members that have left or died.
    async fn clean_up(&mut self, unused: Vec<Lease>) {
        for lease in unused {
            let name = lease.metadata.name.clone();
            // It is in use again, or another replica was faster; or the next turn tries again.
            if let Err(error) = self.leases.delete(lease).await {
                tracing::debug!(name, %error, "the lease of a former member was not deleted");
            }
        }
    }

    /// Begins to stop the work on a shard. With a reason it is lost: its token ends at once.
    fn drain(&mut self, shard: u32, lost: Option<&str>) {
        if !matches!(self.local[shard as usize], Local::Held(_)) {
            return;
        }
        self.local[shard as usize] = Local::Draining;
        let Some(token) = self.inner.owned.get(shard) else { return };
        if let Some(reason) = lost {
            token.end(reason);
            self.inner.metrics.losses.inc();
        }
        let confirmed = self.inner.owned.released(&token);
        self.count_owned();
        let (env, limit) = (self.inner.env.clone(), self.inner.options.drain_timeout);
        self.draining.push(Box::pin(async move {
            let confirmed = env.timeout(limit, confirmed.cancelled()).await.is_ok();
            Drained { token, confirmed }
        }));
    }

    fn drained(&mut self, Drained { token, confirmed }: &Drained) {
        let shard = token.shard();
        self.local[shard as usize] = Local::Idle;
        if token.is_valid() {
            let metrics = &self.inner.metrics;
            if *confirmed {
                metrics.releases.inc()
            } else {
                metrics.losses.inc()
            };
        }
        if !confirmed {
            let limit = self.inner.options.drain_timeout;
            tracing::error!(sharding = %self.inner.options.name, shard, ?limit, "work on a shard did not stop in time");
        }
        token.end(if *confirmed { RELEASED } else { "its work did not stop in time" });
    }

    /// Stops all work, and waits for it.
    async fn drain_all(&mut self, lost: Option<&str>) {
        for shard in 0..self.inner.options.shards {
            self.drain(shard, lost);
        }
        while let Some(drained) = self.draining.next().await {
            self.drained(&drained);
        }
    }

    /// After the session was lost: waits until the work has stopped.
    pub(super) async fn abandon(mut self, reason: &str) {
        self.drain_all(Some(reason)).await;
    }

    /// Stops all work and gives the shards back, before the member Lease is released.
    pub(super) async fn leave(mut self) {
        let fence = self.fence.clone();
        let (env, limit) = (self.inner.env.clone(), self.inner.options.renew_deadline);
        tokio::select! {
            biased;
            _ = fence.lost() => {}
            () = self.drain_all(None) => {}
        }
        self.drain_all(Some(RELEASED)).await;
        // Without this write, others see that the session has ended, too; the table is just tidier.
        let _ = env.timeout(limit, self.give_back()).await;
    }

    async fn give_back(&mut self) {
        loop {
            let Ok(lease) = self.leases.read_table().await else { return };
            let Ok(mut table) = self.leases.parse(&lease) else { return };
            let mut changed = false;
            for entry in table.entries.iter_mut().filter(|entry| entry.owner.as_ref() == Some(&self.name)) {
                entry.owner = None;
                changed = true;
            }
            if !changed || !matches!(self.leases.replace(lease, &table).await, Err(CallError::Conflict)) {
                return;
            }
        }
    }

    fn count_owned(&self) {
        let held = self.local.iter().filter(|local| matches!(local, Local::Held(_))).count();
        self.inner.metrics.owned.set(i64::try_from(held).unwrap_or(i64::MAX));
    }
}
