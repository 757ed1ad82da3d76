//! The connections of a listener: their number, their state, and which of them are closed.
//!
//! At the limit, a new connection replaces an idle one of the peer that has the most: many connections of one peer do not cost
//! others theirs. Those that have not sent a request for a second are closed before those that wait for the next one.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
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

/// Time in which a new connection need not have sent a request.
const FRESH: Duration = Duration::from_secs(1);

/// One connection.
pub(super) struct Connection {
    env: Env,
    peer: IpAddr,
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
    /// Requests that the client has given up, beyond those that it has waited for.
    given_up: AtomicUsize,
    /// Maximum of these.
    max_given_up: usize,
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
    fn new(env: &Env, peer: IpAddr, max_given_up: usize) -> Connection {
        Connection {
            env: env.clone(),
            peer,
            opened: env.now(),
            active: AtomicUsize::new(0),
            writing: AtomicBool::new(false),
            served: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            received: AtomicU64::new(0),
            given_up: AtomicUsize::new(0),
            max_given_up,
            signal: AtomicU8::new(CloseSignal::None as u8),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn send(&self, signal: CloseSignal) {
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

    /// Records whether the client has waited for a response. A connection on which it gives up many requests and waits for
    /// few (HTTP/2 rapid reset) is closed: each of them costs the server more than the client.
    pub(super) fn set_waited(&self, waited: bool) {
        if waited {
            if self.given_up.load(Ordering::Relaxed) > 0 {
                let fewer = |count: usize| Some(count.saturating_sub(1));
                let _ = self.given_up.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
            }
        } else if self.given_up.fetch_add(1, Ordering::Relaxed) >= self.max_given_up {
            tracing::debug!(peer = %self.peer, "a connection on which the client gives up its requests is closed");
            self.send(CloseSignal::Close);
        }
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
    /// The number of connections of each peer.
    peers: HashMap<IpAddr, usize>,
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

    /// Registers a new connection; `None` if a limit is reached and no connection is idle.
    pub(super) fn open(self: &Arc<Connections>, peer: IpAddr) -> Option<Entry> {
        let mut open = self.open.lock();
        let of_peer = open.peers.get(&peer).copied().unwrap_or_default();
        if of_peer >= self.options.max_per_peer && !open.close_idle(&self.env, Some(peer))
            || open.all.len() >= self.options.max && !open.close_idle(&self.env, None)
        {
            return None;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection::new(&self.env, peer, self.options.max_given_up));
        open.all.insert(number, connection.clone());
        *open.peers.entry(peer).or_default() += 1;
        Some(Entry { connections: self.clone(), number, connection })
    }

    /// Closes an idle connection, to free its resources.
    pub(super) fn close_idle(&self) -> bool {
        self.open.lock().close_idle(&self.env, None)
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
    /// Closes an idle connection of a peer, or of the one that has the most.
    fn close_idle(&mut self, env: &Env, peer: Option<IpAddr>) -> bool {
        let (peers, now) = (&self.peers, env.now());
        let idle = self.all.iter().filter(|(_, connection)| connection.is_idle());
        let idle = idle.filter(|(_, connection)| peer.is_none_or(|peer| peer == connection.peer));
        let first = idle.min_by_key(|(_, connection)| {
            let of_peer = peers.get(&connection.peer).copied().unwrap_or_default();
            let since = connection.at(connection.idle_since.load(Ordering::Relaxed));
            let is_useless = !connection.has_served() && now - connection.opened >= FRESH;
            (Reverse(of_peer), !is_useless, since)
        });
        let Some(number) = first.map(|(number, _)| *number) else { return false };
        self.close(number);
        true
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.peers.get_mut(&connection.peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&connection.peer);
            }
        }
        Some(connection)
    }

    fn close(&mut self, number: u64) {
        if let Some(connection) = self.remove(number) {
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
        if open.remove(self.number).is_none() {
            open.going = open.going.saturating_sub(1);
        }
        drop(open);
        self.connections.ended.notify_waiters();
    }
}
