//! The webhook: events are sent to it as an `EventList`, many at once.
//!
//! Several requests may be under way, so that one which is not answered delays no other. Events count as waiting until they
//! are delivered or given up, so that a webhook that is down holds no more memory than the limits of the queue allow.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_env::{Env, Instant};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{
    AuditError,
    counters::{Counters, Plugin},
    event::Form,
    options::{AuditMode, AuditThrottle, AuditTruncation, AuditWebhookOptions},
    queue::{Backend, Batch, Entry, Losses, Queue},
};
use crate::webhook::KubeconfigClient;

/// Maximum number of requests under way.
const MAX_CALLS: u32 = 25;
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request is sent.
const ATTEMPTS: u32 = 5;
/// By how much each delay between attempts is longer than the last.
const FACTOR: f64 = 1.5;
/// The random part of a delay.
const JITTER: f64 = 0.2;
/// How long events are still sent when auditing ends.
const CLOSING: Duration = Duration::from_secs(5);

/// Starts the task that sends events.
pub(super) fn start(
    env: &Env,
    options: &AuditWebhookOptions,
    counters: &Arc<Counters>,
) -> Result<Backend, AuditError> {
    let client = KubeconfigClient::load(&options.config_file).map_err(AuditError::Webhook)?;
    let queue = Arc::new(Queue::new(options.queue));
    let losses = Losses::new(env, "webhook", counters);
    let sender = Sender {
        env: env.clone(),
        options: options.clone(),
        queue: queue.clone(),
        client,
        losses: losses.clone(),
        calls: Arc::new(Semaphore::new(MAX_CALLS as usize)),
    };
    let task = env.spawn("audit webhook", Arc::new(sender).run());
    Ok(Backend { mode: options.mode, queue, losses, task: tokio::sync::Mutex::new(Some(task)) })
}

struct Sender {
    env: Env,
    options: AuditWebhookOptions,
    queue: Arc<Queue>,
    client: KubeconfigClient,
    losses: Arc<Losses>,
    /// A permit for each request under way.
    calls: Arc<Semaphore>,
}

impl Sender {
    async fn run(self: Arc<Sender>) {
        let batches = self.options.mode == AuditMode::Batch;
        let throttle =
            self.options.throttle.filter(|_| batches).map(|limits| Throttle::new(&self.env, limits));
        let most = if batches { self.options.max_batch_events.max(1) } else { 1 };
        while self.queue.wait().await {
            if batches {
                self.queue.fill(&self.env, most, self.options.max_batch_wait).await;
            }
            if let Some(throttle) = &throttle {
                throttle.wait(&self.queue).await;
            }
            let Ok(call) = self.calls.clone().acquire_owned().await else { return };
            let Batch { entries, text, held } = self.queue.take(most);
            let sender = self.clone();
            drop(self.env.spawn("audit webhook call", async move {
                sender.deliver(entries, text).await;
                sender.queue.release(&held);
                drop(call);
            }));
        }
        let _ = self.calls.acquire_many(MAX_CALLS).await;
    }

    async fn deliver(&self, entries: Vec<Entry>, text: Vec<u8>) {
        let truncation = self.options.truncation;
        let total = entries.len();
        // Large objects take a while.
        let encoded =
            self.env.drive_apart("audit webhook", async move { encode(entries, &text, truncation) }).await;
        let Encoded { bodies, mut lost } = match encoded {
            Ok(encoded) => encoded,
            Err(error) => return self.losses.count(Plugin::Webhook, total, &error),
        };
        if !lost.is_empty() {
            self.losses.count(Plugin::Truncate, lost.len(), &"event is too large even after truncating");
            lost.iter_mut().for_each(|entry| entry.settle(false));
        }
        for (body, mut entries) in bodies {
            let sent = self.send(body).await;
            if let Err(why) = &sent {
                self.losses.count(Plugin::Webhook, entries.len(), why);
            }
            entries.iter_mut().for_each(|entry| entry.settle(sent.is_ok()));
        }
    }

    /// Sends a body until it is accepted, a few times.
    async fn send(&self, body: Bytes) -> Result<(), String> {
        let attempts = async {
            let mut delay = self.options.initial_backoff.as_secs_f64();
            let mut attempt = 1;
            loop {
                let Err(error) = self.client.post(&self.env, body.clone(), TIMEOUT).await else {
                    return Ok(());
                };
                if attempt == ATTEMPTS || self.queue.is_closed() {
                    return Err(error.to_string());
                }
                attempt += 1;
                let jittered = delay * (1.0 + JITTER * self.env.random_f64());
                delay *= FACTOR;
                // At the end there is one more attempt, at once.
                tokio::select! {
                    () = self.env.sleep(Duration::from_secs_f64(jittered)) => {}
                    () = self.queue.closed() => {}
                }
            }
        };
        let patience = async {
            self.queue.closed().await;
            self.env.sleep(CLOSING).await;
        };
        tokio::select! {
            sent = attempts => sent,
            () = patience => Err("audit backend shut down".into()),
        }
    }
}

/// Events as they are sent.
struct Encoded {
    bodies: Vec<(Bytes, Vec<Entry>)>,
    /// Events that are too large.
    lost: Vec<Entry>,
}

fn encode(entries: Vec<Entry>, text: &[u8], truncation: Option<AuditTruncation>) -> Encoded {
    let mut encoded = Encoded { bodies: Vec::new(), lost: Vec::new() };
    let (mut items, mut members, mut item) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let limit = truncation.map(|truncation| truncation.max_event_bytes);
        if !entry.write(text, Form::Item, limit, &mut item) {
            encoded.lost.push(entry);
            continue;
        }
        let full = truncation.is_some_and(|limits| items.len() + item.len() > limits.max_batch_bytes);
        if full && !members.is_empty() {
            encoded.bodies.push((body(&items), std::mem::take(&mut members)));
            items.clear();
        }
        if !members.is_empty() {
            items.push(b',');
        }
        items.extend_from_slice(&item);
        members.push(entry);
    }
    if !members.is_empty() {
        encoded.bodies.push((body(&items), members));
    }
    encoded
}

fn body(items: &[u8]) -> Bytes {
    const HEAD: &[u8] = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
    [HEAD, items, b"]}\n"].concat().into()
}

/// A token bucket.
struct Throttle {
    env: Env,
    limits: AuditThrottle,
    /// The tokens at a moment.
    tokens: Mutex<(f64, Instant)>,
}

impl Throttle {
    fn new(env: &Env, limits: AuditThrottle) -> Throttle {
        Throttle { env: env.clone(), limits, tokens: Mutex::new((f64::from(limits.burst), env.now())) }
    }

    /// Takes a token. Returns how long to wait for it.
    fn take(&self) -> Duration {
        let now = self.env.now();
        let mut tokens = self.tokens.lock();
        let grown = tokens.0 + (now - tokens.1).as_secs_f64() * f64::from(self.limits.qps);
        let left = grown.min(f64::from(self.limits.burst)) - 1.0;
        *tokens = (left, now);
        if left >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-left / f64::from(self.limits.qps)) }
    }

    /// Waits for a token; not when auditing ends.
    async fn wait(&self, queue: &Queue) {
        let delay = self.take();
        if !delay.is_zero() {
            tokio::select! {
                () = self.env.sleep(delay) => {}
                () = queue.closed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_throttle_allows_a_burst_and_then_a_rate() {
        let (env, clock) = Env::simulated(1);
        let throttle = Throttle::new(&env, AuditThrottle { qps: 10.0, burst: 3 });
        let delays = |count: usize| (0..count).map(|_| throttle.take().as_millis()).collect::<Vec<_>>();
        assert_eq!(delays(5), [0, 0, 0, 100, 200]);
        clock.advance(Duration::from_millis(300));
        assert_eq!(delays(2), [0, 100]);
        clock.advance(Duration::from_secs(60));
        assert_eq!(delays(4), [0, 0, 0, 100]);
    }
}
