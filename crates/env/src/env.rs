//! The environment: one handle for time, ids, randomness and tasks.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::activity::{Activity, Busy};
use crate::clock::{Clock, Elapsed, Sleep};
use crate::instant::Instant;
use crate::random::Random;
use crate::registry::{Kind, Registry, TaskInfo};
use crate::stall::{self, Stall};
use crate::task::{self, Task, TaskError};
use crate::virtual_clock::{Timeline, VirtualClock};

/// Time, ids, randomness and tasks.
///
/// Cloning is cheap, and clones are the same environment: they share the clock, the random sequence and the
/// task count. Two environments share nothing.
#[derive(Clone)]
pub struct Env {
    inner: Arc<Inner>,
    registry: Arc<Registry>,
}

struct Inner {
    clock: Clock,
    random: Random,
    /// `Some` in a simulation only: other environments need not track whether tasks have settled.
    activity: Option<Arc<Activity>>,
}

impl Env {
    /// The real clock and the operating system's randomness.
    ///
    /// The clock is tokio's, which differs from the system's only where a test has paused it.
    pub fn system() -> Env {
        Env::new(Clock::System, Random::System, None)
    }

    /// A simulation: the clock stands still until the [`VirtualClock`] advances it, and ids and random
    /// numbers are determined by `seed`: the same calls in the same order give the same results. The sequence
    /// may change between versions of this crate.
    pub fn simulated(seed: u64) -> (Env, VirtualClock) {
        let timeline = Arc::new(Timeline::new());
        let activity = Arc::new(Activity::default());
        let clock = VirtualClock::new(Arc::clone(&timeline), Arc::clone(&activity));
        (Env::new(Clock::Virtual(timeline), Random::seeded(seed), Some(activity)), clock)
    }

    fn new(clock: Clock, random: Random, activity: Option<Arc<Activity>>) -> Env {
        Env { inner: Arc::new(Inner { clock, random, activity }), registry: Arc::default() }
    }

    /// A child environment with the same clock and random sequence, and its own task count. Its tasks also
    /// count in this environment. Useful to wait for the end of one component's tasks, whatever else runs.
    #[must_use]
    pub fn scope(&self) -> Env {
        Env { inner: Arc::clone(&self.inner), registry: self.registry.child() }
    }

    /// Whether this is a simulation, whose clock stands still until it is advanced.
    pub fn is_simulated(&self) -> bool {
        self.inner.activity.is_some()
    }

    /// The current time on the monotonic clock.
    pub fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    /// The current time on the wall clock, which may jump; for display and timestamps, not for measuring.
    pub fn wall(&self) -> SystemTime {
        self.inner.clock.wall()
    }

    /// A future that completes after `d`. A duration beyond the range of [`Instant`] never ends.
    pub fn sleep(&self, d: Duration) -> Sleep {
        self.sleep_until(self.now() + d)
    }

    /// A future that completes at `t`; immediately, if that has passed.
    pub fn sleep_until(&self, t: Instant) -> Sleep {
        self.inner.clock.sleep_until(t)
    }

    /// Runs `f` for at most `d`, counted from the first poll; then drops it.
    ///
    /// `f` is polled first: if it is ready, it wins over an expired timeout.
    pub async fn timeout<F: Future>(&self, d: Duration, f: F) -> Result<F::Output, Elapsed> {
        let (mut f, mut sleep) = (pin!(f), self.sleep(d));
        poll_fn(|cx| match f.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed { after: d })),
        })
        .await
    }

    /// Like [`timeout`](Self::timeout), but on the system clock even in a simulation: for limits that must
    /// hold while the simulated clock stands still.
    pub async fn timeout_in_real_time<F: Future>(&self, d: Duration, f: F) -> Result<F::Output, Elapsed> {
        let Some(activity) = &self.inner.activity else { return self.timeout(d, f).await };
        let (mut f, mut sleep) = (Box::pin(f), activity.real_time.sleep(d));
        poll_fn(|cx| match f.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed { after: d })),
        })
        .await
    }

    /// Runs `f` with a watchdog: in a simulation, `stalled` is called when nothing has progressed for `after`
    /// in real time. From then on, only an advance of the clock or an event from outside the environment (a
    /// socket, a tokio timer) can make progress. If `stalled` returns [`Break`](ControlFlow::Break), this ends.
    ///
    /// Nothing progresses if the clock stands still, every task waits ([`VirtualClock::settle`]), `f` is not
    /// woken, and `progress` returns the same value as before. Outside of a simulation this only runs `f`.
    ///
    /// # Errors
    /// If `stalled` returned `Break`; `f` is dropped then.
    pub async fn watch_stalls<F: Future, P: PartialEq>(
        &self,
        after: Duration,
        progress: impl Fn() -> P,
        stalled: impl FnMut(Stall) -> ControlFlow<()>,
        f: F,
    ) -> Result<F::Output, Stall> {
        match (&self.inner.clock, &self.inner.activity) {
            (Clock::Virtual(timeline), Some(activity)) => {
                stall::watch(timeline, activity, after, progress, stalled, Box::pin(f)).await
            }
            _ => Ok(f.await),
        }
    }

    /// Keeps a simulation from settling until it is dropped. For work handed to a thread, which
    /// [`VirtualClock::settle`] does not track: move it to the thread along with the work and drop it after
    /// notifying the waiting tasks. Outside of a simulation it costs nothing.
    pub fn outside_work(&self) -> OutsideWork {
        OutsideWork { _busy: self.inner.activity.as_ref().map(Busy::new) }
    }

    /// Lets other tasks that are ready run first.
    ///
    /// Unlike tokio's, which defers the wake, this one wakes the task at once, so that
    /// [`VirtualClock::settle`] waits for it.
    pub fn yield_now(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut yielded = false;
        poll_fn(move |cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// A random UUID (version 4).
    pub fn uuid(&self) -> Uuid {
        self.inner.random.uuid()
    }

    /// Five random characters out of `bcdfghjklmnpqrstvwxz2456789`, as Kubernetes appends them to a
    /// `generateName`.
    pub fn name_suffix(&self) -> String {
        self.inner.random.name_suffix()
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.inner.random.next()
    }

    /// A uniformly distributed random number in `0..bound`; 0 for a bound of 0.
    pub fn random_below(&self, bound: u64) -> u64 {
        self.inner.random.below(bound)
    }

    /// A random number in `0.0..1.0`.
    pub fn random_f64(&self) -> f64 {
        self.inner.random.unit()
    }

    /// Fills `buf` with random bytes; in the system environment they are cryptographically secure.
    pub fn fill_random(&self, buf: &mut [u8]) {
        self.inner.random.fill(buf);
    }

    /// Starts a task on the current tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn<F>(&self, name: impl Into<Cow<'static, str>>, f: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let name = name.into();
        let counted = self.registry.count(name.clone(), Kind::Task);
        task::spawn(name, counted, self.inner.activity.as_ref(), f)
    }

    /// Runs a blocking closure on the runtime's blocking thread pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn spawn_blocking<T, F>(&self, name: impl Into<Cow<'static, str>>, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let name = name.into();
        let counted = self.registry.count(name.clone(), Kind::Blocking);
        task::spawn_blocking(name, counted, self.inner.activity.as_ref(), f)
    }

    /// Drives a future to completion on the runtime's blocking thread pool: for futures that compute for long
    /// between awaits and would delay other tasks on their thread. It continues if the caller stops waiting.
    ///
    /// In a simulation the caller's task drives it, since nothing may run outside of the fixed task order.
    ///
    /// # Errors
    /// If it panicked, or the runtime was shut down.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn drive_apart<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        f: F,
    ) -> Result<F::Output, TaskError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if self.inner.activity.is_some() {
            return Ok(f.await);
        }
        let runtime = tokio::runtime::Handle::current();
        self.spawn_blocking(name, move || runtime.block_on(f)).await
    }

    /// Starts a named thread. It is counted until `f` has returned or panicked; the thread itself ends
    /// shortly after, which `join` waits for.
    ///
    /// # Errors
    /// The operating system's error if it cannot start a thread; or if the name contains a zero byte.
    pub fn spawn_thread<T, F>(&self, name: impl Into<Cow<'static, str>>, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let name = name.into();
        let counted = self.registry.count(name.clone(), Kind::Thread);
        task::spawn_thread(&name, counted, f)
    }

    /// The tasks started by this environment that have not ended, sorted by name.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.registry.infos()
    }

    /// Waits until nothing started by this environment runs, and completes as soon as the count reaches zero.
    /// Awaited in a task of the same environment, it never completes.
    pub async fn tasks_ended(&self) {
        self.registry.ended().await;
    }
}

/// Pending work outside of the environment's tasks; from [`Env::outside_work`].
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct OutsideWork {
    _busy: Option<Busy>,
}

impl Default for Env {
    fn default() -> Env {
        Env::system()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.inner.clock {
            Clock::System => "system",
            Clock::Virtual(_) => "simulated",
        };
        f.debug_struct("Env").field("kind", &kind).field("running", &self.registry.running()).finish()
    }
}
