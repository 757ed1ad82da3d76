//! Label and field selectors: `app=web,tier in (a, b)` and `metadata.name=x`.

mod field;
mod label;

pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelRequirement, LabelSelector, Operator, validate_label_selector};

#[cfg(test)]
mod tests;
