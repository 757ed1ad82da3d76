//! Server-side apply: a manager declares the fields it wants, and owns them from then on.
//!
//! - [`ApplyConfiguration`]: some fields of an object; [`Applicable`]: what can be applied, configurations and whole objects.
//! - `verbs.rs`: `apply` of clients; `many.rs`: objects of several kinds.
//! - [`ApplyConflict`]: the fields of other managers that an apply would have changed.
//! - `extract.rs`, over `owned.rs`: what a manager owns of an object.
//! - `strip.rs`: what of an object is not applied.

mod configuration;
mod conflict;
mod extract;
mod many;
mod owned;
mod strip;
mod verbs;

pub use configuration::{Applicable, ApplyConfiguration};
pub(crate) use conflict::is_field_conflict;
pub use conflict::{ApplyConflict, FieldConflict};
pub use extract::ExtractError;
pub use many::ApplyReport;
