//! Quantities, as far as pods need them: compared, added and rounded.

/// A quantity in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

impl Quantity {
    /// Nothing.
    pub(super) const ZERO: Quantity = Quantity(0);

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
        Some(Quantity(if negative { -nanos } else { nanos }))
    }

    /// Whether it is a whole number.
    pub(super) fn is_whole(self) -> bool {
        self.0 % 1_000_000_000 == 0
    }

    /// Whether it is a whole number of thousandths.
    pub(super) fn is_whole_milli(self) -> bool {
        self.0 % 1_000_000 == 0
    }

    /// The whole number, rounded up.
    pub(super) fn value(self) -> i128 {
        self.0.div_euclid(1_000_000_000) + i128::from(self.0.rem_euclid(1_000_000_000) != 0)
    }

    /// Below zero?
    pub(super) fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Zero?
    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both together.
    pub(super) fn plus(self, other: Quantity) -> Quantity {
        Quantity(self.0.saturating_add(other.0))
    }
}

/// The quantity rounded up to thousandths, if it has finer parts.
pub(super) fn rounded_to_milli(text: &str) -> Option<String> {
    let quantity = Quantity::parse(text)?;
    if quantity.is_whole_milli() {
        return None;
    }
    let milli = quantity.0.div_euclid(1_000_000) + 1;
    Some(if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") })
}
