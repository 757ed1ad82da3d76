//! Quantities, as far as pods need more than their reading.

use k1s_object::quantity::Quantity;

/// Reads a quantity.
pub(crate) fn parse(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok()
}

/// The quantity rounded up to thousandths, if it has finer parts.
pub(crate) fn rounded_to_milli(text: &str) -> Option<String> {
    let quantity = parse(text)?;
    let rounded = Quantity::from_milli(quantity.milli_value());
    // What is too large to be counted in thousandths has no finer parts.
    let exact = rounded == quantity || quantity.milli_value() == i64::MAX;
    (!exact).then(|| rounded.to_string())
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
