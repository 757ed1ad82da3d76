//! Ranges of sizes and of costs. Sums and products end at `u64::MAX`.

/// How large a string, bytes, a list or a map can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeEstimate {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

/// What something can cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

/// A number times a factor, rounded up.
pub(crate) fn scaled(number: u64, factor: f64) -> u64 {
    // A cast of a float ends at the bounds of its type, which is what overflow is to give.
    (number as f64 * factor).ceil() as u64
}

impl SizeEstimate {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// Exactly this size.
    pub const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    /// Between two sizes.
    pub const fn range(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// The sum of two sizes.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two sizes.
    #[must_use]
    pub fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// So much per unit, rounded up.
    pub fn cost(self, factor: f64) -> CostEstimate {
        CostEstimate { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// A cost for each unit.
    pub fn times(self, each: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(each.min), max: self.max.saturating_mul(each.max) }
    }

    /// A range with both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CostEstimate {
    /// Exactly this cost.
    pub const fn fixed(cost: u64) -> Self {
        Self { min: cost, max: cost }
    }

    /// Between two costs.
    pub const fn range(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// The sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two costs.
    #[must_use]
    pub fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Times a factor, rounded up.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// A range with both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
