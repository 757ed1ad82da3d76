//! Server-side apply: a manager declares the fields it wants, and owns them from then on.

mod conflict;

pub(crate) use conflict::is_field_conflict;
pub use conflict::{ApplyConflict, FieldConflict};
