//! Quantities, as far as rules need more than [`Quantity`].

use k1s_object::{At, quantity::Quantity};
use serde_json::Value;

/// The quantity, if it is one.
pub(crate) fn parse(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok()
}

/// The quantity rounded up to thousandths, if it is more precise.
pub(crate) fn rounded_to_milli(text: &str) -> Option<String> {
    let quantity = parse(text)?;
    let rounded = Quantity::from_milli(quantity.milli_value());
    // A value that saturates has no fraction.
    let exact = rounded == quantity || quantity.milli_value() == i64::MAX;
    (!exact).then(|| rounded.to_string())
}

/// Rounds the quantities of a resource list up to thousandths, the precision of Kubernetes.
pub(crate) fn round_up(list: Option<&mut Value>) {
    for amount in list.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        if let Some(rounded) = amount.as_str().and_then(rounded_to_milli) {
            *amount = rounded.into();
        }
    }
}

/// The quantity at this position, 0 if missing.
pub(crate) fn amount(at: At<'_, '_>) -> Quantity {
    Quantity::parse(at.text()).unwrap_or_default()
}

/// Whether the quantity is an integer.
pub(crate) fn is_whole(amount: &Quantity) -> bool {
    amount.milli_value() % 1000 == 0
}

/// Greater than zero.
pub(crate) fn positive_amount(at: At<'_, '_>) {
    let amount = amount(at);
    if amount <= Quantity::default() {
        at.invalid_as(amount.to_string(), "must be greater than zero");
    }
}

/// Not negative; the error shows the value as a number.
pub(crate) fn basic_amount(at: At<'_, '_>) {
    let value = amount(at).value();
    if value < 0 {
        at.invalid_as(value, "must be a valid resource quantity");
    }
}

#[cfg(test)]
mod tests {
    use super::rounded_to_milli;

    #[test]
    fn fine_parts_are_rounded_up_to_thousandths() {
        assert_eq!(rounded_to_milli("1u").as_deref(), Some("1m"));
        assert_eq!(rounded_to_milli("1m"), None);
        assert_eq!(rounded_to_milli("7E"), None);
        assert_eq!(rounded_to_milli("abc"), None);
    }
}
