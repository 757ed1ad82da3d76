//! The queue alone: operations in a second, one after the other, with a million keys in it.

use std::{path::Path, time::Duration};

use k1s_env::Env;
use k1s_runtime::{
    ObjectKey,
    queue::{AddOptions, Queue, QueueOptions},
};
use serde::Deserialize;
use tokio::process::Command;

use super::{Notes, child, widget::NAMESPACE};
use crate::{
    Failure,
    report::{Unit, quantile},
};

/// The Go operator's report of its queue.
#[derive(Deserialize)]
struct OfGo {
    add: f64,
    merge: f64,
    take: f64,
}

const TIMES: usize = 3;

pub(crate) async fn run(
    env: &Env,
    keys: u64,
    go: Option<&Path>,
    notes: &mut Notes<'_>,
) -> Result<(), Failure> {
    let all: Vec<ObjectKey> =
        (0..keys).map(|number| ObjectKey::namespaced(NAMESPACE, format!("widget-{number:07}"))).collect();
    let mut results: [Vec<f64>; 4] = Default::default();
    for _ in 0..TIMES {
        for (result, rate) in results.iter_mut().zip(once(env, &all).await?) {
            result.push(rate);
        }
    }
    for (what, mut rates) in ["add", "merge", "take", "add-after"].into_iter().zip(results) {
        notes.add("k1s", &format!("queue.{what}"), quantile(&mut rates, 0.5), Unit::PerSecond);
    }
    let Some(go) = go else { return Ok(()) };
    let mut results: [Vec<f64>; 3] = Default::default();
    for _ in 0..TIMES {
        let mut command = Command::new(go);
        command.args(["queue", "--objects", &keys.to_string()]);
        let OfGo { add, merge, take } = child::ask(env, command).await?;
        for (result, rate) in results.iter_mut().zip([add, merge, take]) {
            result.push(rate);
        }
    }
    for (what, mut rates) in ["add", "merge", "take"].into_iter().zip(results) {
        notes.add("go", &format!("queue.{what}"), quantile(&mut rates, 0.5), Unit::PerSecond);
    }
    Ok(())
}

/// Adds all keys, adds them again, takes and finishes all of them, and adds them with delays.
async fn once(env: &Env, keys: &[ObjectKey]) -> Result<[f64; 4], Failure> {
    let queue = Queue::new(env, QueueOptions::named("bench"));
    let rate = |began: k1s_env::Instant| keys.len() as f64 / (env.now() - began).as_secs_f64();
    let began = env.now();
    for key in keys {
        queue.add(key.clone());
    }
    let add = rate(began);
    let began = env.now();
    for key in keys {
        queue.add(key.clone());
    }
    let merge = rate(began);
    let began = env.now();
    for _ in keys {
        let item = queue.next().await.ok_or_else(|| Failure("the queue is closed".to_owned()))?;
        queue.forget(item.key());
        queue.done(item);
    }
    let take = rate(began);
    let began = env.now();
    for (number, key) in keys.iter().enumerate() {
        let after = Duration::from_secs(3600 + (number as u64).wrapping_mul(7919) % 3600);
        queue.add_with(AddOptions { after: Some(after), ..AddOptions::default() }, key.clone());
    }
    let add_after = rate(began);
    if queue.state().delayed != keys.len() {
        return Err(Failure(format!("the queue has lost keys: {queue:?}")));
    }
    Ok([add, merge, take, add_after])
}
