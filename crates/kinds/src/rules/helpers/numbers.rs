//! Checks of numbers, percentages and quantities.

use k1s_object::{At, names, quantity::Quantity};

use super::errors::invalid_each;

/// Not negative; a missing number is 0.
pub(crate) fn non_negative(at: At<'_, '_>) {
    if at.number() < 0 {
        at.invalid("must be greater than or equal to 0");
    }
}

/// Greater than zero; a missing number is 0.
pub(crate) fn positive(at: At<'_, '_>) {
    if at.number() <= 0 {
        at.invalid_as(at.number(), "must be greater than zero");
    }
}

/// Between `low` and `high`, both included; a missing number is 0.
pub(crate) fn range(at: At<'_, '_>, low: i64, high: i64) {
    if !(low..=high).contains(&at.number()) {
        at.invalid_as(at.number(), names::inclusive_range_error(low, high));
    }
}

/// A percentage up to 100%, or an integer that is not negative.
pub(crate) fn int_or_percent(at: At<'_, '_>) {
    match at.str() {
        Some(text) => {
            let wrong = names::is_valid_percent(text);
            if wrong.is_empty() {
                let digits = text.trim_end_matches('%').trim_start_matches('0');
                if digits.len() > 3 || digits.parse::<u32>().is_ok_and(|percent| percent > 100) {
                    at.invalid_text("must not be greater than 100%");
                }
            }
            invalid_each(at, wrong);
        }
        None => non_negative(at),
    }
}

/// The sign of a quantity: -1, 0 or 1. A missing one is zero.
pub(crate) fn quantity_sign(at: At<'_, '_>) -> i32 {
    at.value().and_then(|value| Quantity::from_json(value).ok()).map_or(0, |quantity| quantity.sign())
}

/// A quantity that is not negative.
pub(crate) fn non_negative_quantity(at: At<'_, '_>) {
    if quantity_sign(at) < 0 {
        at.invalid("must be greater than or equal to 0");
    }
}
