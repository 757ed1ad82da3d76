//! The one door through which time, ids, randomness and concurrency enter k1s.
//!
//! - [`Env`] tells the time, sleeps, makes ids, draws random numbers and starts tasks. What needs any
//!   of these is given an `Env`; two of them never meet, so two control planes in one process don't.
//! - [`Env::system`] is the real one. [`Env::simulated`] has a [`VirtualClock`] that moves only when
//!   told to, and ids and random numbers that a seed fixes.
//! - [`Task`] is what [`Env::spawn`] returns. Everything started is named and counted:
//!   [`Env::tasks`] says what still runs, [`Env::tasks_ended`] waits for its end.
//! - [`work`] counts work in flight, refuses more of it, and waits for its end: how "idle" and "drained"
//!   become facts.
//!
//! The rest of the workspace may not read a clock, make an id or start a task in any other way; the
//! lints see to it. This crate in turn knows nothing of what it is used for: no objects, no stores, no
//! network, no configuration, and nothing global to the process that one `Env` could see of another.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), k1s_env::TaskError> {
//! use k1s_env::Env;
//! use std::time::Duration;
//!
//! let (env, clock) = Env::simulated(7);
//! let started = env.now();
//! let nap = env.spawn("nap", {
//!     let env = env.clone();
//!     async move {
//!         env.sleep(Duration::from_secs(3600)).await;
//!         env.now()
//!     }
//! });
//!
//! clock.advance_and_settle(Duration::from_secs(3600)).await; // an hour, at once
//! assert_eq!(nap.await? - started, Duration::from_secs(3600));
//! assert!(env.tasks().is_empty());
//! # Ok(())
//! # }
//! ```

mod activity;
mod clock;
mod env;
mod instant;
mod random;
mod real_time;
mod registry;
mod stall;
mod task;
mod virtual_clock;
mod waiters;

pub mod work;

pub use clock::{Elapsed, Sleep};
pub use env::{Env, OutsideWork};
pub use instant::Instant;
pub use registry::TaskInfo;
pub use stall::Stall;
pub use task::{Task, TaskError};
pub use virtual_clock::VirtualClock;
pub use work::{
    Component, ComponentStats, Description, Refused, RunningWork, StillRunning, WorkGuard, WorkTracker,
};
