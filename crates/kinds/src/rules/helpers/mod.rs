//! Helpers that the rules of several groups share, by subject.

pub(crate) mod equality;
pub(crate) mod errors;
pub(crate) mod go_json;
pub(crate) mod go_values;
pub(crate) mod immutable;
pub(crate) mod json;
pub(crate) mod labels;
pub(crate) mod metadata;
pub(crate) mod network;
pub(crate) mod node_labels;
pub(crate) mod node_selector;
pub(crate) mod numbers;
pub(crate) mod quantities;
pub(crate) mod resource_names;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
