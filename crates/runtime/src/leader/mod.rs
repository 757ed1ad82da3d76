//! Leader election over Leases: of several processes, one leads.
//!
//! A [`LeaderElector`] waits until it is elected and returns a [`Leadership`], which renews the Lease until it is
//! released, dropped or lost. The format is that of client-go, so programs in Go can take part in the same election.
//!
//! Guarantees:
//! - **Never two leaders at a time**, as long as clocks run at about the same speed. A leader's claim ends `renew_deadline`
//!   after it *sent* its last successful renewal; other candidates take over `lease_duration` after they *saw* it. Wall
//!   clocks do not matter, nor do their jumps.
//! - Every write of the Lease is a compare-and-swap.
//! - A process that was paused (`SIGSTOP`, a debugger, a starved machine) notices it when it resumes:
//!   [`Fence::is_valid`] reads the clock and does not depend on a task having run. Check it right before each action that
//!   is reserved for the leader.
//!
//! Not guaranteed: a suspended machine may stop its monotonic clock. Editing the Lease by hand, or deleting it before the
//! start of a process that has never seen it, ends a leadership without the leader noticing before its next renewal.
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
//! // ... when everything that only the leader may do has ended:
//! leadership.release().await?;
//! # Ok(())
//! # }
//! ```

mod elector;
mod fence;
mod identity;
mod leadership;
pub(crate) mod lock;
mod metrics;
mod options;
pub(crate) mod record;
mod renewal;

pub use elector::LeaderElector;
pub use fence::{Fence, LeadershipLost};
pub use identity::{hostname, unique_identity};
pub use leadership::{Leadership, ReleaseError};
pub use metrics::LeaderMetrics;
pub use options::{InvalidOptions, LeaderElectionOptions};
