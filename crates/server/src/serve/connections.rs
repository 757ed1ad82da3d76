//! The connections of a listener: their number, their state, and which of them are closed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    task::Context,
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
    /// Requests in flight, until their response is sent.
    active: AtomicUsize,
    /// Whether a write waits for the client to read.
    writing: AtomicBool,
    /// Whether there has been a request.
    served: AtomicBool,
    /// Whether it speaks HTTP/2, whose frames need not belong to a request.
    multiplexed: AtomicBool,
    /// When the last request ended, in microseconds since the connection was opened.
    idle_since: AtomicU64,
    /// When the first bytes after that arrived, likewise; 0 if none have.
    received: AtomicU64,
    /// A [`CloseSignal`] as a number.
    signal: AtomicU8,
    waker: AtomicWaker,
}

/// How a connection is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseSignal {
    None,
    /// The server shuts down: requests in flight are answered first.
    Drain,
    /// The connection is closed.
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
            received: AtomicU64::new(0),
            signal: AtomicU8::new(CloseSignal::None as u8),
            waker: AtomicWaker::new(),
        }
    }

    fn send(&self, signal: CloseSignal) {
        self.signal.fetch_max(signal as u8, Ordering::SeqCst);
        self.waker.wake();
    }

    /// The signal so far; the task is woken when it changes. Only one task at a time may call this.
    pub(super) fn signal(&self, cx: &Context<'_>) -> CloseSignal {
        self.waker.register(cx.waker());
        match self.signal.load(Ordering::SeqCst) {
            0 => CloseSignal::None,
            1 => CloseSignal::Drain,
            _ => CloseSignal::Close,
        }
    }

    /// Completes when there is a signal.
    #[cfg(feature = "tls")]
    pub(super) async fn signalled(&self) {
        use std::task::Poll;
        std::future::poll_fn(|cx| match self.signal(cx) {
            CloseSignal::None => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// Microseconds since the connection was opened, at least 1.
    fn elapsed(&self) -> u64 {
        u64::try_from((self.env.now() - self.opened).as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn at(&self, elapsed: u64) -> Instant {
        self.opened + Duration::from_micros(elapsed)
    }

    /// Records that bytes have arrived.
    pub(super) fn set_received(&self) {
        if self.is_idle() && self.received.load(Ordering::Relaxed) == 0 {
            self.received.store(self.elapsed(), Ordering::Relaxed);
        }
    }

    /// Records whether a write is blocked. The end of a response may still be buffered when its request has ended.
    pub(super) fn set_writing(&self, writing: bool) {
        self.writing.store(writing, Ordering::Relaxed);
        if !writing && self.active.load(Ordering::Relaxed) == 0 {
            self.idle_since.store(self.elapsed(), Ordering::Relaxed);
        }
    }

    /// Records a request, which is in flight until the returned guard is dropped.
    pub(super) fn begin_request(self: &Arc<Connection>, multiplexed: bool) -> ActiveRequest {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.served.store(true, Ordering::Relaxed);
        self.multiplexed.store(multiplexed, Ordering::Relaxed);
        ActiveRequest(self.clone())
    }

    /// Whether there has been a request.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0 && !self.writing.load(Ordering::Relaxed)
    }

    /// When the connection times out unless something arrives; `None` while there are requests.
    fn deadline(&self, options: &ConnectionOptions) -> Option<Instant> {
        if !self.is_idle() {
            return None;
        }
        if !self.has_served() {
            return Some(self.opened + options.head_timeout);
        }
        let idle = self.at(self.idle_since.load(Ordering::Relaxed)) + options.idle_timeout;
        match self.received.load(Ordering::Relaxed) {
            0 => Some(idle),
            _ if self.multiplexed.load(Ordering::Relaxed) => Some(idle),
            // The head of a request has begun to arrive.
            received => Some(self.at(received) + options.head_timeout),
        }
    }
}

/// A request in flight.
pub(super) struct ActiveRequest(Arc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let connection = &self.0;
        connection.received.store(0, Ordering::Relaxed);
        connection.idle_since.store(connection.elapsed(), Ordering::Relaxed);
        connection.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All connections of a listener.
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
    /// Connections that are closing: their task has not ended yet.
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

    /// Registers a new connection; `None` if the limit is reached and no connection is idle.
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

    /// Closes the connection that has been idle the longest, to free its resources.
    pub(super) fn close_oldest_idle(&self) -> bool {
        self.open.lock().close_oldest_idle()
    }

    /// Closes connections that have timed out.
    pub(super) fn sweep(&self) {
        let now = self.env.now();
        let mut open = self.open.lock();
        let over: Vec<u64> = open
            .all
            .iter()
            .filter(|(_, connection)| connection.deadline(&self.options).is_some_and(|at| at <= now))
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            open.close(number);
        }
    }

    /// Interval between [sweeps](Self::sweep): a connection may outlive its timeout by as much.
    pub(super) fn sweep_interval(&self) -> Duration {
        let shortest = self.options.head_timeout.min(self.options.idle_timeout);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Lets all connections answer the requests in flight and then end.
    pub(super) fn stop(&self) {
        for connection in self.open.lock().all.values() {
            connection.send(CloseSignal::Drain);
        }
    }

    /// Closes all remaining connections.
    pub(super) fn close_all(&self) {
        let mut open = self.open.lock();
        while let Some(number) = open.all.keys().next().copied() {
            open.close(number);
        }
    }

    /// Waits until no connection is left.
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
            connection.send(CloseSignal::Close);
            self.going += 1;
        }
    }
}

/// The registration of a connection, until it is dropped.
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
