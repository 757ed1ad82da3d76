//! Leader election on a virtual clock, against an in-process server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod line;

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_runtime::{
    Metrics,
    leader::{Fence, LeaderElectionOptions, LeaderElector, LeaderMetrics, Leadership},
};
use k1s_server::ApiServer;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use line::{BROKEN, Line, Network, Time};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

struct World {
    time: Time,
    server: ApiServer,
    leases: Api<Lease>,
}

impl std::ops::Deref for World {
    type Target = Time;

    fn deref(&self) -> &Time {
        &self.time
    }
}

impl World {
    async fn new(seed: u64) -> World {
        let server = line::server().await;
        let leases = Api::namespaced(Client::new(server.clone(), "default"), "default");
        World { time: Time::new(seed), server, leases }
    }

    fn line(&self) -> Line {
        Line::new(&self.env, &self.server)
    }

    fn candidate(&self, identity: &str, client: Client) -> LeaderElector {
        let mut options = LeaderElectionOptions::new("test", "default");
        options.identity = Some(identity.to_owned());
        LeaderElector::new(client, self.env.clone(), options).unwrap()
    }

    /// Starts a candidate, which leads as soon as it can.
    fn stand(&self, identity: &str, line: &Line) -> k1s_env::Task<Option<Leadership>> {
        let candidate = self.candidate(identity, line.client());
        self.env.spawn("candidate", async move { candidate.acquire(&CancellationToken::new()).await })
    }

    /// Starts a candidate and waits until it leads.
    async fn elect(&self, identity: &str, line: &Line) -> Leadership {
        self.until(self.stand(identity, line)).await.unwrap().unwrap()
    }

    async fn spec(&self) -> LeaseSpec {
        self.leases.get("test").await.unwrap().spec.unwrap()
    }

    /// Creates a Lease that the typed client may not be able to represent.
    async fn create(&self, lease: Value) {
        let kind = ApiResource::erase::<Lease>(&());
        let client = Client::new(self.server.clone(), "default");
        let api: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
        let mut object = DynamicObject::new("test", &kind);
        object.data = json!({"spec": lease["spec"]});
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    async fn patch(&self, patch: Value) {
        self.leases.patch("test", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

#[tokio::test]
async fn the_first_candidate_is_elected_immediately_with_a_lease_like_client_gos() {
    let world = World::new(1).await;
    let metrics = Metrics::new();
    let shown = LeaderMetrics::register(&metrics);
    let candidate = world.candidate("me", world.line().client()).with_metrics(&shown);
    assert!(metrics.encode().contains("leader_election_master_status{name=\"test\"} 0\n"));
    let leader = candidate.leader();
    let leadership = world.until(candidate.acquire(&CancellationToken::new())).await.unwrap();
    assert_eq!(world.clock.now(), Env::simulated(1).0.now(), "no time has passed");
    assert!(leadership.is_valid());
    assert_eq!(leadership.fence().valid_for(), RENEW);
    assert_eq!(leader.borrow().as_deref(), Some("me"));
    let spec = world.spec().await;
    assert_eq!(spec.holder_identity.as_deref(), Some("me"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert_eq!(spec.acquire_time, spec.renew_time);
    assert!(metrics.encode().contains("leader_election_master_status{name=\"test\"} 1\n"));
    world.until(leadership.release()).await.unwrap();
    assert!(metrics.encode().contains("leader_election_master_status{name=\"test\"} 0\n"));
    assert!(world.env.tasks().is_empty());
}

#[tokio::test]
async fn a_leader_renews_its_lease() {
    let world = World::new(2).await;
    let leadership = world.elect("me", &world.line()).await;
    let before = world.spec().await;
    world.pass(Duration::from_secs(3600)).await;
    assert!(leadership.is_valid());
    let after = world.spec().await;
    assert_eq!(after.acquire_time, before.acquire_time);
    assert_eq!(after.lease_transitions, Some(0));
    assert!(after.renew_time > before.renew_time);
}

#[tokio::test]
async fn a_released_lease_is_acquired_without_waiting_for_its_expiry() {
    let world = World::new(3).await;
    let first = world.elect("first", &world.line()).await;
    let second = world.stand("second", &world.line());
    world.pass(20 * SECOND).await;
    assert!(!second.is_finished());
    let fence = first.fence();
    world.until(first.release()).await.unwrap();
    assert!(!fence.is_valid());
    assert_eq!(&*fence.lost().await.reason, "it was released");
    let spec = world.spec().await;
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(1), Some(0)));
    let released = world.env.now();
    let second = world.until(second).await.unwrap().unwrap();
    assert!(world.env.now() - released <= RETRY.mul_f64(2.2));
    assert_eq!(second.fence().transitions(), 1);
    assert_eq!(world.spec().await.lease_transitions, Some(1));
}

#[tokio::test]
async fn a_lease_that_is_not_released_expires() {
    let world = World::new(4).await;
    let mut options = LeaderElectionOptions::new("test", "default");
    options.release_on_cancel = false;
    options.identity = Some("me".to_owned());
    let candidate = LeaderElector::new(world.line().client(), world.env.clone(), options).unwrap();
    let leadership = world.until(candidate.acquire(&CancellationToken::new())).await.unwrap();
    let fence = leadership.fence();
    world.until(leadership.release()).await.unwrap();
    assert!(!fence.is_valid());
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some("me"));
}

#[tokio::test]
async fn a_crashed_leader_is_replaced_after_the_lease_duration_and_not_before() {
    let world = World::new(5).await;
    let first = world.elect("first", &world.line()).await;
    let second = world.stand("second", &world.line());
    world.pass(60 * SECOND).await;
    let died = world.env.now();
    let claimed = died + first.fence().valid_for();
    drop(first); // like a crash: it neither renews nor releases the lease
    let second = world.until(second).await.unwrap().unwrap();
    let took = world.env.now() - died;
    assert!(world.env.now() > claimed, "the previous leader's term had expired");
    // The last renewal was up to a retry period before the crash, and was observed up to a retry period with
    // jitter later.
    assert!(took > LEASE - RETRY && took <= LEASE + RETRY.mul_f64(2.2), "{took:?}");
    assert_eq!(second.fence().transitions(), 1);
}

async fn loses_leadership_at_its_deadline(network: Network) {
    let world = World::new(6).await;
    let line = world.line();
    let leadership = world.elect("me", &line).await;
    let other = world.stand("other", &world.line());
    world.pass(60 * SECOND).await;
    let certain_until = world.env.now() + leadership.fence().valid_for();
    line.set(network);
    let lost = world.until(leadership.lost()).await;
    assert_eq!(world.env.now(), certain_until, "neither earlier nor later");
    assert!(!leadership.is_valid());
    assert_eq!(lost.to_string(), "leader election lost");
    assert!(
        lost.reason.starts_with("the lease default/test was not renewed within 10s: "),
        "{}",
        lost.reason
    );
    assert!(!other.is_finished(), "there is a gap without a leader");
    world.until(other).await.unwrap().unwrap();
    line.set(Network::Fine);
    // A lost leadership does not touch its follower's Lease.
    world.until(leadership.release()).await.unwrap();
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some("other"));
}

#[tokio::test]
async fn a_leader_whose_renewals_fail_loses_leadership_at_its_deadline() {
    loses_leadership_at_its_deadline(BROKEN).await;
}

#[tokio::test]
async fn hanging_requests_do_not_extend_leadership() {
    loses_leadership_at_its_deadline(Network::Hangs).await;
}

#[tokio::test]
async fn a_short_outage_is_survived() {
    let world = World::new(7).await;
    let line = world.line();
    let leadership = world.elect("me", &line).await;
    let other = world.stand("other", &world.line());
    for network in [BROKEN, Network::Hangs, Network::LosesAnswers] {
        line.set(network);
        world.pass(7 * SECOND).await;
        line.set(Network::Fine);
        world.pass(20 * SECOND).await;
        assert!(leadership.is_valid(), "{network:?}");
    }
    assert!(!other.is_finished());
    assert_eq!(world.spec().await.lease_transitions, Some(0));
}

#[tokio::test]
async fn wall_clock_jumps_change_nothing() {
    let world = World::new(8).await;
    let leadership = world.elect("me", &world.line()).await;
    let other = world.stand("other", &world.line());
    let day = Duration::from_secs(86_400);
    for jump in 0..10 {
        let wall = world.env.wall();
        world.clock.set_wall(if jump % 2 == 0 { wall + 3 * day } else { wall - 5 * day });
        world.pass(7 * SECOND).await;
        assert!(leadership.is_valid());
        assert!(!other.is_finished());
    }
}

#[tokio::test]
async fn a_stopped_wall_clock_does_not_hide_renewals() {
    let world = World::new(9).await;
    let leadership = world.elect("me", &world.line()).await;
    let other = world.stand("other", &world.line());
    let stands = world.env.wall();
    for _ in 0..60 {
        world.pass(SECOND).await;
        world.clock.set_wall(stands);
    }
    assert!(leadership.is_valid());
    assert!(!other.is_finished());
}

#[tokio::test]
async fn a_leader_recreates_a_deleted_lease_before_another_candidate_can_lead() {
    let world = World::new(10).await;
    let leadership = world.elect("me", &world.line()).await;
    let other = world.stand("other", &world.line());
    world.pass(10 * SECOND).await;
    for _ in 0..20 {
        world.leases.delete("test", &DeleteParams::default()).await.unwrap();
        world.pass(Duration::from_millis(2_300)).await;
        assert!(leadership.is_valid());
        assert_eq!(world.spec().await.holder_identity.as_deref(), Some("me"));
    }
    assert!(!other.is_finished());
    // If the leader crashes as well, another candidate follows.
    drop(leadership);
    world.leases.delete("test", &DeleteParams::default()).await.unwrap();
    world.until(other).await.unwrap().unwrap();
}

#[tokio::test]
async fn unrelated_changes_of_the_lease_are_harmless() {
    let world = World::new(11).await;
    let leadership = world.elect("me", &world.line()).await;
    for i in 0..20 {
        world.patch(json!({"metadata": {"annotations": {"touched": i.to_string()}}})).await;
        world.pass(3 * SECOND).await;
        assert!(leadership.is_valid());
    }
    let lease = world.leases.get("test").await.unwrap();
    assert_eq!(lease.metadata.annotations.unwrap()["touched"], "19");
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("me"));
    world.patch(json!({"metadata": {"annotations": {"touched": "last"}}})).await;
    world.until(leadership.release()).await.unwrap();
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn a_leader_whose_lease_was_reassigned_loses_leadership_at_its_next_renewal() {
    let world = World::new(12).await;
    let leadership = world.elect("me", &world.line()).await;
    world.patch(json!({"spec": {"holderIdentity": "usurper"}})).await;
    let changed = world.env.now();
    let lost = world.until(leadership.lost()).await;
    assert!(world.env.now() - changed <= RETRY);
    assert_eq!(&*lost.reason, "the lease default/test is held by usurper");
    assert!(!leadership.is_valid());
    assert!(leadership.fence().check().is_err());
}

#[tokio::test]
async fn a_paused_process_sees_the_loss_before_any_task_has_run() {
    let world = World::new(13).await;
    let leadership = world.elect("me", &world.line()).await;
    world.pass(5 * SECOND).await;
    let rest = leadership.fence().valid_for();
    world.clock.advance(rest - Duration::from_nanos(1)); // nothing runs meanwhile
    assert!(leadership.is_valid());
    world.clock.advance(Duration::from_nanos(1));
    assert!(!leadership.is_valid());
    assert!(leadership.fence().check().is_err());
    // When it runs again it does not renew an expired term, though the Lease is still its own.
    world.until(leadership.lost()).await;
    world.pass(SECOND).await;
    assert!(!leadership.is_valid());
}

#[tokio::test]
async fn an_election_whose_response_was_lost_is_detected() {
    let world = World::new(14).await;
    let line = world.line();
    line.set(Network::LosesAnswers);
    let candidate = world.stand("me", &line);
    world.pass(SECOND).await;
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some("me"), "the server has it");
    line.set(Network::Fine);
    let started = world.env.now();
    let leadership = world.until(candidate).await.unwrap().unwrap();
    assert!(world.env.now() - started < LEASE, "it did not wait for the end of its own lease");
    assert!(leadership.is_valid());
    assert_eq!(world.spec().await.lease_transitions, Some(0));
}

#[tokio::test]
async fn a_late_request_does_not_create_a_second_leader() {
    let world = World::new(20).await;
    let (line, other_line) = (world.line(), world.line());
    line.set(Network::Late(60 * SECOND));
    let late = world.stand("late", &line);
    world.pass(SECOND).await;
    line.set(Network::Fine);
    let leadership = world.elect("leader", &other_line).await;
    world.pass(Duration::from_millis(58_500)).await;
    assert!(leadership.is_valid());
    // The leader cannot renew, its Lease is deleted, and the late request of the other candidate arrives.
    other_line.set(Network::Hangs);
    world.leases.delete("test", &DeleteParams::default()).await.unwrap();
    let certain = leadership.fence().valid_for();
    assert!(certain > 7 * SECOND, "{certain:?}");
    world.pass(certain - Duration::from_millis(1)).await;
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some("late"));
    assert!(leadership.is_valid());
    assert!(!late.is_finished(), "it sees the other leader");
    let late = world.until(late).await.unwrap().unwrap();
    assert!(late.is_valid() && !leadership.is_valid());
}

#[tokio::test]
async fn two_candidates_with_the_same_name_are_distinct() {
    let world = World::new(15).await;
    let leadership = world.elect("same", &world.line()).await;
    let other = world.stand("same", &world.line());
    world.pass(60 * SECOND).await;
    assert!(leadership.is_valid());
    assert!(!other.is_finished());
    drop(leadership);
    world.until(other).await.unwrap().unwrap();
}

#[tokio::test]
async fn unusual_leases_are_waited_for_or_acquired() {
    for (spec, waits) in [
        (Value::Null, Duration::ZERO),
        (json!({}), Duration::ZERO),
        (json!({"holderIdentity": ""}), Duration::ZERO),
        (json!({"holderIdentity": "", "leaseDurationSeconds": 100, "leaseTransitions": 3}), Duration::ZERO),
        (json!({"holderIdentity": "ghost"}), LEASE),
        (json!({"holderIdentity": "ghost", "leaseDurationSeconds": 40}), 40 * SECOND),
        (
            json!({"holderIdentity": "ghost", "leaseDurationSeconds": 5, "renewTime": "9999-12-31T23:59:59.000000Z"}),
            5 * SECOND,
        ),
        (
            json!({"holderIdentity": "ghost", "leaseDurationSeconds": 5, "renewTime": "1970-01-01T00:00:00.000000Z"}),
            5 * SECOND,
        ),
    ] {
        let world = World::new(16).await;
        let strange = json!({"metadata": {"name": "test"}, "spec": spec});
        world.create(strange).await;
        let started = world.env.now();
        let leadership = world.elect("me", &world.line()).await;
        assert_eq!(world.env.now() - started, waits, "{spec}");
        assert!(leadership.is_valid());
    }
}

#[tokio::test]
async fn a_candidate_that_is_cancelled_holds_nothing() {
    let world = World::new(17).await;
    let first = world.elect("first", &world.line()).await;
    let cancel = CancellationToken::new();
    let candidate = world.candidate("second", world.line().client());
    let second = world.env.spawn("candidate", {
        let cancel = cancel.clone();
        async move { candidate.acquire(&cancel).await }
    });
    world.pass(30 * SECOND).await;
    cancel.cancel();
    let now = world.env.now();
    assert!(world.until(second).await.unwrap().is_none());
    assert_eq!(world.env.now(), now, "it did not wait");
    assert!(first.is_valid());
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some("first"));
}

#[tokio::test]
async fn run_leads_and_releases_the_lease_or_reports_the_loss() {
    let world = World::new(18).await;
    let (cancel, line) = (CancellationToken::new(), world.line());
    let env = world.env.clone();
    let lead = |fence: Fence| async move {
        env.sleep(60 * SECOND).await;
        fence.is_valid()
    };
    let led = world.until(world.candidate("me", line.client()).run(&cancel, lead.clone())).await;
    assert_eq!(led, Ok(Some(true)));
    assert_eq!(world.spec().await.holder_identity.as_deref(), Some(""));

    let losing = world.env.spawn("lead", {
        let (candidate, cancel) = (world.candidate("me", line.client()), cancel.clone());
        async move { candidate.run(&cancel, lead).await }
    });
    world.pass(10 * SECOND).await;
    line.set(BROKEN);
    let lost = world.until(losing).await.unwrap();
    assert_eq!(lost.unwrap_err().to_string(), "leader election lost");
    cancel.cancel();
    let led = world.until(world.candidate("me", line.client()).run(&cancel, |_| async {})).await;
    assert_eq!(led, Ok(None));
}

#[tokio::test]
async fn elections_with_different_names_are_independent() {
    let world = World::new(19).await;
    let metrics = Metrics::new();
    let shown = LeaderMetrics::register(&metrics);
    let mut leaders = Vec::new();
    for id in ["widgets", "gadgets"] {
        let options = LeaderElectionOptions::new(id, "default");
        let candidate = LeaderElector::new(world.line().client(), world.env.clone(), options).unwrap();
        let candidate = candidate.with_metrics(&shown);
        leaders.push(world.until(candidate.acquire(&CancellationToken::new())).await.unwrap());
    }
    assert!(leaders.iter().all(Leadership::is_valid));
    let text = metrics.encode();
    assert!(text.contains("{name=\"widgets\"} 1") && text.contains("{name=\"gadgets\"} 1"), "{text}");
    assert_eq!(text.matches("# TYPE leader_election_master_status").count(), 1);
}

/// Candidates start and crash, their networks fail, hang and lose responses, and other clients touch and delete
/// the Lease; at any time at most one may consider itself the leader. `K1S_TEST_SEEDS` is the number of runs.
#[tokio::test]
async fn there_are_never_two_leaders() {
    let seeds = std::env::var("K1S_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    for seed in 0..seeds {
        chaos(seed).await;
    }
}

async fn chaos(seed: u64) {
    let world = World::new(seed).await;
    let (dice, _) = Env::simulated(seed ^ 0xc4a0);
    let fences: Arc<Mutex<Vec<(usize, Fence)>>> = Arc::default();
    let lines: Vec<Line> = (0..4).map(|_| world.line()).collect();
    let start = |i: usize| {
        let (candidate, fences) = (world.candidate(&format!("c{i}"), lines[i].client()), fences.clone());
        world.env.spawn("candidate", async move {
            let leadership = candidate.acquire(&CancellationToken::new()).await.unwrap();
            fences.lock().push((i, leadership.fence()));
            leadership.lost().await;
        })
    };
    let mut candidates: Vec<_> = (0..lines.len()).map(&start).collect();
    let mut terms = 0;
    for step in 0..150 {
        world.settle().await;
        let valid: Vec<usize> = {
            let mut fences = fences.lock();
            terms += fences.len();
            fences.retain(|(_, fence)| fence.is_valid());
            terms -= fences.len();
            fences.iter().map(|(i, _)| *i).collect()
        };
        assert!(valid.len() <= 1, "seed {seed}, step {step}: {valid:?} lead at the same time");
        let i = usize::try_from(dice.random_below(4)).unwrap();
        match dice.random_below(12) {
            0 => {
                // It crashes; another candidate starts in its place.
                candidates[i].abort();
                candidates[i] = start(i);
            }
            1 => lines[i].set(BROKEN),
            2 => lines[i].set(Network::Hangs),
            3 => lines[i].set(Network::LosesAnswers),
            4 | 5 => lines[i].set(Network::Fine),
            8 => lines[i].set(Network::Late(Duration::from_millis(dice.random_below(30_000)))),
            6 if world.leases.get_opt("test").await.unwrap().is_some() => {
                world.patch(json!({"metadata": {"labels": {"step": step.to_string()}}})).await;
            }
            // All processes are paused: time passes, and nothing runs.
            7 => world.clock.advance(Duration::from_millis(dice.random_below(12_000))),
            _ => {}
        }
        if candidates[i].is_finished() {
            candidates[i] = start(i);
        }
        world.pass(Duration::from_millis(dice.random_below(3_000))).await;
    }
    assert!(terms > 0, "seed {seed}: there was never a leader");
    // Once all networks work again, one leads.
    for (i, line) in lines.iter().enumerate() {
        line.set(Network::Fine);
        candidates[i].abort();
        candidates[i] = start(i);
    }
    world.pass(2 * LEASE).await;
    let leading = fences.lock().iter().filter(|(_, fence)| fence.is_valid()).count();
    assert_eq!(leading, 1, "seed {seed}: one leads in the end");
}
