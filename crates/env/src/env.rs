//! The environment: one handle for all of it.

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
/// Cloning is cheap, and clones are one environment: they share the clock, the sequence of random numbers
/// and the count of tasks. Two environments share nothing.
#[derive(Clone)]
pub struct Env {
    inner: Arc<Inner>,
    registry: Arc<Registry>,
}

struct Inner {
    clock: Clock,
    random: Random,
    /// Only a simulation asks whether its tasks have settled, so only there do they pay for it.
    activity: Option<Arc<Activity>>,
}

impl Env {
    /// The real clock and the operating system's randomness.
    ///
    /// The clock is tokio's, which differs from the system's only where a test has paused it.
    pub fn system() -> Env {
        Env::new(Clock::System, Random::System, None)
    }

    /// A clock that stands still until it is moved by the [`VirtualClock`], and ids and random numbers
    /// that follow from `seed`: the same calls in the same order give the same results. That is a promise
    /// for one version of this crate; a sequence may change with the next.
    pub fn simulated(seed: u64) -> (Env, VirtualClock) {
        let timeline = Arc::new(Timeline::new());
        let activity = Arc::new(Activity::default());
        let clock = VirtualClock::new(Arc::clone(&timeline), Arc::clone(&activity));
        (Env::new(Clock::Virtual(timeline), Random::seeded(seed), Some(activity)), clock)
    }

    fn new(clock: Clock, random: Random, activity: Option<Arc<Activity>>) -> Env {
        Env { inner: Arc::new(Inner { clock, random, activity }), registry: Arc::default() }
    }

    /// A part of this environment: the same clock and the same random numbers, with a count of its own of the tasks that are
    /// started by it. They are tasks of this environment, too. For something that has to know that all its tasks have
    /// ended, whatever else runs.
    #[must_use]
    pub fn scope(&self) -> Env {
        Env { inner: Arc::clone(&self.inner), registry: self.registry.child() }
    }

    /// Whether this is a simulation: its clock stands still until somebody moves it.
    pub fn is_simulated(&self) -> bool {
        self.inner.activity.is_some()
    }

    /// Now, on the monotonic clock.
    pub fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    /// Now, on the wall clock, which may jump; for people and for timestamps, not for measuring.
    pub fn wall(&self) -> SystemTime {
        self.inner.clock.wall()
    }

    /// A future that ends when `d` has passed from now. A duration beyond the range of [`Instant`]
    /// means for ever.
    pub fn sleep(&self, d: Duration) -> Sleep {
        self.sleep_until(self.now() + d)
    }

    /// A future that ends at `t`; at once, if that has passed.
    pub fn sleep_until(&self, t: Instant) -> Sleep {
        self.inner.clock.sleep_until(t)
    }

    /// Runs `f` for at most `d`, counted from the first poll; then drops it.
    ///
    /// `f` is asked first: one that is ready wins over a time that is up.
    pub async fn timeout<F: Future>(&self, d: Duration, f: F) -> Result<F::Output, Elapsed> {
        let (mut f, mut sleep) = (pin!(f), self.sleep(d));
        poll_fn(|cx| match f.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed { after: d })),
        })
        .await
    }

    /// Like [`timeout`](Self::timeout), but by the system's clock, also in a simulation: for bounds that have to hold when
    /// nobody moves the simulated clock.
    pub async fn timeout_in_real_time<F: Future>(&self, d: Duration, f: F) -> Result<F::Output, Elapsed> {
        let Some(activity) = &self.inner.activity else { return self.timeout(d, f).await };
        let (mut f, mut sleep) = (Box::pin(f), activity.real_time.sleep(d));
        poll_fn(|cx| match f.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed { after: d })),
        })
        .await
    }

    /// Runs `f`, and watches whether anything moves: `stalled` is called when, in a simulation, nothing has for `after` in
    /// real time. Then all that can still happen is that somebody moves the clock, or something from outside
    /// of the environment: a socket, a timer of tokio. Told to [`Break`](ControlFlow::Break), this ends.
    ///
    /// Nothing moves if the clock stands still, every task waits ([`VirtualClock::settle`]), `f` is not woken, and
    /// `progress` gives the same as before. Outside of a simulation this only runs `f`.
    ///
    /// # Errors
    /// If `stalled` said so; `f` is dropped then.
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

    /// Counts as something that has to be done until it is dropped: a simulation does not take itself for settled
    /// before. For work that is handed to a thread, which [`VirtualClock::settle`] would not know: it goes there along
    /// with the work, and is dropped when those who wait for it were told. It costs nothing outside of a simulation.
    pub fn outside_work(&self) -> OutsideWork {
        OutsideWork { _busy: self.inner.activity.as_ref().map(Busy::new) }
    }

    /// Lets other tasks that are ready run first.
    ///
    /// Unlike tokio's, which puts the task aside for a while, this one leaves no doubt that the task has
    /// more to do: [`VirtualClock::settle`] waits for it.
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

    /// A random number in `0..bound`, each as likely as the other. For a bound of 0 it is 0.
    pub fn random_below(&self, bound: u64) -> u64 {
        self.inner.random.below(bound)
    }

    /// A random number, at least 0 and less than 1.
    pub fn random_f64(&self) -> f64 {
        self.inner.random.unit()
    }

    /// Fills `buf` with random bytes; those of the system environment are good enough for secrets.
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

    /// Runs a closure that may block on one of the runtime's threads for such.
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

    /// Drives a future to its end on one of the runtime's threads for blocking work: for what computes for long
    /// between its awaits, and would keep other tasks waiting on a thread that it shares with them. It goes on
    /// when the caller stops waiting.
    ///
    /// In a simulation the caller drives it: there, nothing runs beside the tasks whose order is fixed.
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

    /// Starts a thread of that name. It is counted until `f` has returned or panicked; what is left of the
    /// thread ends a moment later, which `join` waits for.
    ///
    /// # Errors
    /// The operating system's, if it cannot start one; and if the name contains a zero byte.
    pub fn spawn_thread<T, F>(&self, name: impl Into<Cow<'static, str>>, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let name = name.into();
        let counted = self.registry.count(name.clone(), Kind::Thread);
        task::spawn_thread(&name, counted, f)
    }

    /// What was started by this environment and has not ended, sorted by name; empty if nothing is left.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.registry.infos()
    }

    /// Waits until nothing runs that this environment started. It ends at the first moment at which
    /// that is so; in a task of the same environment, it never does.
    pub async fn tasks_ended(&self) {
        self.registry.ended().await;
    }
}

/// Something that has to be done, though no task of the environment is about to; from
/// [`Env::outside_work`].
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
