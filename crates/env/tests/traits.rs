//! Auto traits of the public types: they can be sent, shared and stored.

use std::error::Error;
use std::hash::Hash;

use k1s_env::{
    Component, Elapsed, Env, Instant, Refused, Sleep, StillRunning, Task, TaskError, VirtualClock, WorkGuard,
    WorkTracker,
};

fn shared<T: Send + Sync + 'static>() {}
fn future<T: Future + Send + Unpin + 'static>() {}
fn error<T: Error + Clone + Send + Sync + 'static>() {}
fn instant<T: Copy + Ord + Hash + Send + Sync + 'static>() {}

#[test]
fn types_can_be_shared_stored_and_awaited_anywhere() {
    shared::<Env>();
    shared::<VirtualClock>();
    shared::<WorkTracker>();
    shared::<Component>();
    shared::<WorkGuard>();
    future::<Sleep>();
    future::<Task<String>>();
    error::<Elapsed>();
    error::<TaskError>();
    error::<Refused>();
    error::<StillRunning>();
    instant::<Instant>();
}

#[tokio::test]
async fn futures_are_send() {
    fn is_send<T: Send>(t: T) -> T {
        t
    }
    let (env, clock) = Env::simulated(0);
    let tracker = WorkTracker::new(env.clone());
    is_send(env.timeout(std::time::Duration::ZERO, async {})).await.unwrap();
    is_send(env.tasks_ended()).await;
    is_send(env.yield_now()).await;
    is_send(clock.advance_and_settle(std::time::Duration::ZERO)).await;
    is_send(tracker.wait_idle(std::time::Duration::ZERO)).await.unwrap();
    is_send(tracker.wait_idle_forever()).await;
}

#[test]
fn debug_shows_the_essentials() {
    let (env, clock) = Env::simulated(0);
    assert_eq!(format!("{env:?}"), r#"Env { kind: "simulated", running: 0 }"#);
    assert_eq!(format!("{clock:?}"), "VirtualClock { now: Instant(+0ns), sleepers: 0 }");
    assert_eq!(format!("{:?}", env.sleep(std::time::Duration::from_secs(1))), "Sleep(until Instant(+1s))");
    assert_eq!(format!("{:?}", WorkTracker::new(env)), "WorkTracker { in_flight: 0, .. }");
}
