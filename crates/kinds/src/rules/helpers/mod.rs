//! Helpers that the rules of several groups share.

pub(crate) mod check;
pub(crate) mod cluster_util;
pub(crate) mod core_util;
pub(crate) mod go_json;
pub(crate) mod json;
pub(crate) mod labels;
pub(crate) mod quantity;
pub(crate) mod resources;
