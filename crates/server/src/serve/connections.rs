//! The connections of a listener: how many there are, what each is doing, and which of them go.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use k1s_env::{Env, Instant};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::ConnectionOptions;

/// One connection.
pub(super) struct Connection {
    env: Env,
    opened: Instant,
    /// Requests that are worked on or being answered.
    active: AtomicUsize,
    /// Whether a write waits for the client to read.
    writing: AtomicBool,
    /// Whether there was a request.
    served: AtomicBool,
    /// Whether it speaks HTTP/2, whose frames need not belong to a request.
    multiplexed: AtomicBool,
    /// When the last request was done with, in microseconds after it was opened.
    idle_since: AtomicU64,
    /// When something was heard since then; 0 if nothing was.
    heard: AtomicU64,
    /// What it was told: a number of [`Told`].
    told: AtomicU8,
    waker: AtomicWaker,
}

/// What a connection is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Nothing,
    /// The server stops: requests under way are answered.
    Stop,
    /// It has to go.
    Close,
}

impl Connection {
    fn new(env: &Env) -> Connection {
        Connection {
            env: env.clone(),
            opened: env.now(),
            active: AtomicUsize::new(0),
            writing: AtomicBool::new(false),
            served: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            told: AtomicU8::new(Told::Nothing as u8),
            waker: AtomicWaker::new(),
        }
    }

    fn tell(&self, what: Told) {
        self.told.fetch_max(what as u8, Ordering::SeqCst);
        self.waker.wake();
    }

    /// What it was told so far; the task is woken when that changes. One task at a time can ask.
    pub(super) fn told(&self, cx: &Context<'_>) -> Told {
        self.waker.register(cx.waker());
        match self.told.load(Ordering::SeqCst) {
            0 => Told::Nothing,
            1 => Told::Stop,
            _ => Told::Close,
        }
    }

    /// Ends when it is told anything.
    pub(super) async fn is_told(&self) {
        poll_fn(|cx| match self.told(cx) {
            Told::Nothing => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    fn moment(&self) -> u64 {
        u64::try_from((self.env.now() - self.opened).as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn at(&self, moment: u64) -> Instant {
        self.opened + Duration::from_micros(moment)
    }

    /// Bytes have come.
    pub(super) fn hear(&self) {
        if self.is_idle() && self.heard.load(Ordering::Relaxed) == 0 {
            self.heard.store(self.moment(), Ordering::Relaxed);
        }
    }

    /// A write waits, or does not wait any more. The end of an answer may still be on its way when its request is done with.
    pub(super) fn set_writing(&self, writing: bool) {
        self.writing.store(writing, Ordering::Relaxed);
        if !writing && self.active.load(Ordering::Relaxed) == 0 {
            self.idle_since.store(self.moment(), Ordering::Relaxed);
        }
    }

    /// A request has come. It is under way as long as what is returned lives.
    pub(super) fn work(self: &Arc<Connection>, multiplexed: bool) -> Working {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.served.store(true, Ordering::Relaxed);
        self.multiplexed.store(multiplexed, Ordering::Relaxed);
        Working(self.clone())
    }

    /// Whether there was a request.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0 && !self.writing.load(Ordering::Relaxed)
    }

    /// When it has waited for long enough, if nothing else happens; `None` while there are requests.
    fn patience_ends(&self, options: &ConnectionOptions) -> Option<Instant> {
        if !self.is_idle() {
            return None;
        }
        if !self.has_served() {
            return Some(self.opened + options.head_timeout);
        }
        let idle = self.at(self.idle_since.load(Ordering::Relaxed)) + options.idle_timeout;
        match self.heard.load(Ordering::Relaxed) {
            0 => Some(idle),
            _ if self.multiplexed.load(Ordering::Relaxed) => Some(idle),
            // A request has begun.
            heard => Some(self.at(heard) + options.head_timeout),
        }
    }
}

/// A request under way.
pub(super) struct Working(Arc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        let connection = &self.0;
        connection.heard.store(0, Ordering::Relaxed);
        connection.idle_since.store(connection.moment(), Ordering::Relaxed);
        connection.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All of them.
pub(super) struct Connections {
    env: Env,
    options: ConnectionOptions,
    open: Mutex<Open>,
    ended: Notify,
}

#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    /// Those that were told to go and have not gone yet.
    going: usize,
}

impl Connections {
    pub(super) fn new(env: &Env, options: &ConnectionOptions) -> Arc<Connections> {
        Arc::new(Connections {
            env: env.clone(),
            options: options.clone(),
            open: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// A place for a new connection; `None` if there are as many as there can be, and all have something to do.
    pub(super) fn open(self: &Arc<Connections>) -> Option<Entry> {
        let mut open = self.open.lock();
        if open.all.len() >= self.options.max && !open.close_oldest_idle() {
            return None;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection::new(&self.env));
        open.all.insert(number, connection.clone());
        Some(Entry { connections: self.clone(), number, connection })
    }

    /// Closes the one that has been idle for the longest, for want of something else that it holds.
    pub(super) fn close_oldest_idle(&self) -> bool {
        self.open.lock().close_oldest_idle()
    }

    /// Closes those that nothing was heard of for too long.
    pub(super) fn sweep(&self) {
        let now = self.env.now();
        let mut open = self.open.lock();
        let over: Vec<u64> = open
            .all
            .iter()
            .filter(|(_, connection)| connection.patience_ends(&self.options).is_some_and(|end| end <= now))
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            open.close(number);
        }
    }

    /// How often to [sweep](Self::sweep): a connection may live longer than it should by as much.
    pub(super) fn sweep_interval(&self) -> Duration {
        let shortest = self.options.head_timeout.min(self.options.idle_timeout);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Lets all answer what was asked, and then end.
    pub(super) fn stop(&self) {
        for connection in self.open.lock().all.values() {
            connection.tell(Told::Stop);
        }
    }

    /// Closes all that are left.
    pub(super) fn close_all(&self) {
        let mut open = self.open.lock();
        while let Some(number) = open.all.keys().next().copied() {
            open.close(number);
        }
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            {
                let open = self.open.lock();
                if open.all.is_empty() && open.going == 0 {
                    return;
                }
            }
            ended.await;
        }
    }
}

impl Open {
    fn close_oldest_idle(&mut self) -> bool {
        let idle = self.all.iter().filter(|(_, connection)| connection.is_idle());
        let oldest =
            idle.min_by_key(|(_, connection)| connection.at(connection.idle_since.load(Ordering::Relaxed)));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        self.close(number);
        true
    }

    fn close(&mut self, number: u64) {
        if let Some(connection) = self.all.remove(&number) {
            connection.tell(Told::Close);
            self.going += 1;
        }
    }
}

/// The place of a connection among the others, until it is dropped.
pub(super) struct Entry {
    connections: Arc<Connections>,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        if open.all.remove(&self.number).is_none() {
            open.going = open.going.saturating_sub(1);
        }
        drop(open);
        self.connections.ended.notify_waiters();
    }
}
