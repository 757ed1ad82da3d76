//! Costs: what an expression could cost at most, and what it did cost. The numbers are upstream's, since they decide
//! which rules are accepted.

mod nodes;
mod size;

pub use nodes::{CallNodes, NoSizes, Node, SizeEstimator};
pub(crate) use size::scaled;
pub use size::{CostEstimate, SizeEstimate};

/// The cost of reading a variable or a field.
pub(crate) const SELECT: u64 = 1;
/// The cost of making a list, beside its items.
pub(crate) const LIST: u64 = 10;
/// The cost of making a map, beside its entries.
pub(crate) const MAP: u64 = 30;
/// The cost of making an object, beside its fields.
pub(crate) const OBJECT: u64 = 40;
/// The cost of looking at one character of a string.
pub const STRING_FACTOR: f64 = 0.1;
/// The cost of one character of a regular expression, for each unit of the cost of the string.
pub const REGEX_FACTOR: f64 = 0.25;

/// What a call is estimated to cost, and how large its result can be.
#[derive(Clone, Copy, Debug)]
pub struct CallEstimate {
    /// The cost, without that of the arguments.
    pub cost: CostEstimate,
    /// The size of the result, if it is a string, bytes, a list or a map.
    pub result_size: Option<SizeEstimate>,
}

impl CallEstimate {
    /// A cost, and a result without a known size.
    pub fn new(cost: CostEstimate) -> Self {
        Self { cost, result_size: None }
    }

    /// A cost, and the size of the result.
    pub fn sized(cost: CostEstimate, result_size: SizeEstimate) -> Self {
        Self { cost, result_size: Some(result_size) }
    }
}
