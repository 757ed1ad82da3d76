//! The controller library (`k1s-runtime`), one module per noun of Go's controller-runtime.
//!
//! The types that every controller needs are at the root of this crate: [`Manager`](crate::Manager),
//! [`Controller`](crate::Controller), [`Reconciler`](crate::Reconciler), [`Client`](crate::Client), …
//!
//! | | |
//! |---|---|
//! | [`client`] | reads from the cache, writes to the server; errors, patches, watches |
//! | [`util`] | owners, finalizers, conditions, create-or-update, retry on conflict |
//! | [`source`], [`handler`], [`predicate`], [`event`] | where events come from, which requests they queue, which of them count |
//! | [`reconcile`], [`queue`] | what a reconciler is given and returns; priorities, delays, rate limits |
//! | [`cache`] | shared informers |
//! | [`manager`], [`leader`], [`sharding`] | starting and stopping in order; leader election; replicas that share work |
//! | [`recorder`] | Kubernetes Events |
//! | [`changes`] | a record of changes, and a feed of it for many readers |
//! | `webhook` | admission and conversion webhooks of your own kinds |
//! | [`endpoint`], [`metrics`] | health, readiness, metrics, pprof |

#[cfg(feature = "webhook")]
#[doc(no_inline)]
pub use k1s_runtime::webhook;
#[doc(no_inline)]
pub use k1s_runtime::{
    cache, changes, client,
    controller::{
        AfterFor, BeforeFor, BuildError, Builder, ControllerDefaults, ControllerError, ControllerStats,
        FailedRequest, WatchId,
    },
    endpoint, event, handler, key, kind, leader, manager, metrics, predicate, queue, reconcile, recorder,
    sharding, source, util,
};
