//! Leader election over Leases: of several processes, one leads.
//!
//! A [`LeaderElector`] waits until it is elected and gives a [`Leadership`]; that one renews the Lease until it is
//! released, dropped or lost. The format is that of client-go, so programs in Go and this one can stand for the same
//! election.
//!
//! What is promised:
//! - **Never two leaders at a time**, as far as clocks run at about the same speed. A leader's claim ends `renew_deadline`
//!   after it *sent* its last successful renewal; others take over `lease_duration` after they *saw* it. What the wall
//!   clocks say does not matter, nor do jumps of them.
//! - Every change of the Lease is a compare-and-swap.
//! - A process that was stopped for a while (`SIGSTOP`, a debugger, a starved machine) knows it when it goes on:
//!   [`Fence::is_valid`] looks at the clock, not at what some task had the time to write down. Ask it right before each act
//!   that only a leader may do.
//!
//! What cannot be promised: a machine that is suspended as a whole may stop its monotonic clock meanwhile; somebody who
//! edits the Lease by hand, or deletes it before a process that never saw it starts, ends another's leadership without its
//! knowledge until its next renewal.
//!
//! ```
//! # async fn example(
//! #     client: kube::Client,
//! #     stop: tokio_util::sync::CancellationToken,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::Env;
//! use k1s_runtime::leader::{LeaderElectionOptions, LeaderElector, LeadershipLost};
//!
//! let options = LeaderElectionOptions::new("my-operator", "default");
//! let elector = LeaderElector::new(client, Env::system(), options)?;
//! let Some(leadership) = elector.acquire(&stop).await else { return Ok(()) };
//! tokio::select! {
//!     lost = leadership.lost() => return Err(lost.into()),
//!     () = stop.cancelled() => {}
//! }
//! // ... when what only a leader may do has ended:
//! leadership.release().await?;
//! # Ok(())
//! # }
//! ```

mod elector;
mod fence;
mod identity;
mod leadership;
mod lock;
mod metrics;
mod options;
mod record;
mod renewal;

pub use elector::LeaderElector;
pub use fence::{Fence, LeadershipLost};
pub use identity::{hostname, unique_identity};
pub use leadership::{Leadership, ReleaseError};
pub use metrics::LeaderMetrics;
pub use options::{InvalidOptions, LeaderElectionOptions};
