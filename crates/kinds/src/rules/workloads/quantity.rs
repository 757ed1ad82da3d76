//! Quantities, as far as pods need them: compared, added and rounded.

use std::cmp::Ordering;

/// A quantity in billionths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity {
    nanos: i128,
    /// Whether it was written with a suffix such as `Mi`.
    binary: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Quantity {
    /// Nothing.
    pub(super) const ZERO: Quantity = Quantity { nanos: 0, binary: false };

    /// Reads one; finer parts than a billionth are rounded up.
    pub(super) fn parse(text: &str) -> Option<Quantity> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, suffix) = (rest.get(..end)?, rest.get(end..)?);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let (base, exponent): (i128, i32) = match suffix {
            "Ki" => (1 << 10, 0),
            "Mi" => (1 << 20, 0),
            "Gi" => (1 << 30, 0),
            "Ti" => (1 << 40, 0),
            "Pi" => (1 << 50, 0),
            "Ei" => (1 << 60, 0),
            "n" => (1, -9),
            "u" => (1, -6),
            "m" => (1, -3),
            "" => (1, 0),
            "k" => (1, 3),
            "M" => (1, 6),
            "G" => (1, 9),
            "T" => (1, 12),
            "P" => (1, 15),
            "E" => (1, 18),
            other => (1, other.strip_prefix(['e', 'E'])?.parse().ok()?),
        };
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let shift = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let scaled = mantissa.checked_mul(base)?;
        let nanos = if shift >= 0 {
            scaled.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?
        } else {
            match 10_i128.checked_pow(shift.unsigned_abs()) {
                Some(divisor) => scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0),
                None => i128::from(scaled != 0),
            }
        };
        let binary = base > 1;
        Some(Quantity { nanos: if negative { -nanos } else { nanos }, binary })
    }

    /// Whether it is a whole number.
    pub(super) fn is_whole(self) -> bool {
        self.nanos % 1_000_000_000 == 0
    }

    /// Whether it is a whole number of thousandths.
    pub(super) fn is_whole_milli(self) -> bool {
        self.nanos % 1_000_000 == 0
    }

    /// The whole number, rounded up.
    pub(super) fn value(self) -> i128 {
        self.nanos.div_euclid(1_000_000_000) + i128::from(self.nanos.rem_euclid(1_000_000_000) != 0)
    }

    /// Below zero?
    pub(super) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Zero?
    pub(super) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Both together.
    pub(super) fn plus(self, other: Quantity) -> Quantity {
        let binary = if self.nanos == 0 { other.binary } else { self.binary };
        Quantity { nanos: self.nanos.saturating_add(other.nanos), binary }
    }

    /// Its canonical form.
    pub(super) fn text(self) -> String {
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        if self.nanos == 0 {
            return "0".into();
        }
        if self.binary && self.is_whole() && self.value().abs() >= 1024 {
            let mut value = self.value();
            let mut suffix = 0;
            while value % 1024 == 0 && suffix + 1 < BINARY.len() {
                value /= 1024;
                suffix += 1;
            }
            return format!("{value}{}", BINARY.get(suffix).unwrap_or(&""));
        }
        let mut value = self.nanos;
        let mut suffix = 0;
        while value % 1000 == 0 && suffix + 1 < DECIMAL.len() {
            value /= 1000;
            suffix += 1;
        }
        format!("{value}{}", DECIMAL.get(suffix).unwrap_or(&""))
    }
}

/// The quantity rounded up to thousandths, if it has finer parts.
pub(super) fn rounded_to_milli(text: &str) -> Option<String> {
    let quantity = Quantity::parse(text)?;
    if quantity.is_whole_milli() {
        return None;
    }
    let milli = quantity.nanos.div_euclid(1_000_000) + 1;
    Some(Quantity { nanos: milli.saturating_mul(1_000_000), ..quantity }.text())
}

#[cfg(test)]
mod tests {
    use super::{Quantity, rounded_to_milli};

    #[test]
    fn quantities_are_read_compared_and_written() {
        let read = |text| Quantity::parse(text).unwrap_or(Quantity::ZERO);
        assert_eq!(read("500m"), read("0.5"));
        assert!(read("1Gi") > read("1G"));
        assert_eq!(read("1Gi").plus(read("512Mi")).text(), "1536Mi");
        assert_eq!(read("100m").plus(read("900m")).text(), "1");
        assert_eq!(read("1e3").text(), "1k");
        assert_eq!(read("-1").text(), "-1");
        assert_eq!(rounded_to_milli("1u").as_deref(), Some("1m"));
        assert_eq!(rounded_to_milli("1m"), None);
        assert!(Quantity::parse("abc").is_none());
    }
}
