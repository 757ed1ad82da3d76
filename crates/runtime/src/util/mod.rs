//! Helpers for reconcilers: what Go has in `controllerutil`, `meta` and `retry`.
//!
//! - [`create_or_apply`], [`create_or_update`], [`create_or_patch`]: bring an object into the desired state.
//! - [`set_controller_reference`], [`set_owner_reference`] and related functions.
//! - [`add_finalizer`], [`remove_finalizer`], [`contains_finalizer`].
//! - [`set_status_condition`] and queries of conditions.
//! - [`retry_on_conflict`], [`retry_on_error`].

mod conditions;
mod create_or;
mod finalizer;
mod owner;
mod retry;

pub use crate::client::{ignore_already_exists, ignore_not_found};
pub use conditions::{
    ConditionStatus, NewCondition, find_status_condition, is_status_condition_false,
    is_status_condition_present_and_equal, is_status_condition_true, remove_status_condition,
    set_status_condition,
};
pub use create_or::{Mutation, OperationResult, create_or_apply, create_or_patch, create_or_update};
pub use finalizer::{add_finalizer, contains_finalizer, remove_finalizer};
pub use owner::{
    Owner, OwnerError, controller_of, has_controller_reference, has_owner_reference,
    remove_controller_reference, remove_owner_reference, set_controller_reference, set_owner_reference,
};
pub use retry::{Backoff, Conflict, retry_on_conflict, retry_on_error};
