//! Time, ids, randomness and tasks: the only crate of k1s that gets them from the system.
//!
//! - [`Env`] reads the time, sleeps, creates ids, draws random numbers and spawns tasks. Code that needs any
//!   of these is given an `Env`. Environments are independent, so two control planes in one process are, too.
//! - [`Env::system`] is the real one. [`Env::simulated`] has a [`VirtualClock`] that moves only when it is
//!   advanced, and ids and random numbers determined by a seed.
//! - [`Env::spawn`] returns a [`Task`]. Every task is named and counted: [`Env::tasks`] lists those running,
//!   [`Env::tasks_ended`] waits for their end.
//! - [`work`] counts work in flight, refuses new work and waits for the rest: how a component becomes idle or drained.
//!
//! Lints keep the rest of the workspace from reading a clock, creating an id or spawning a task in any other
//! way. This crate in turn has no notion of objects, stores, network or configuration, and no process-global
//! state through which one `Env` could affect another.
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
