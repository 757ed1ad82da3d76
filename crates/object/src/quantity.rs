//! `resource.Quantity`: amounts such as `500m` or `1.5Gi`.
//!
//! A quantity is exact to 1e-9; smaller fractions are rounded up. Its text is Go's canonical form, which keeps
//! the format of the suffix: decimal (`k`, `M`), binary (`Ki`, `Mi`) or an exponent (`e3`).

use std::{cmp::Ordering, fmt};

use serde_json::Value;

/// The error for text that is not a quantity.
pub const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC_WRONG: &str = "unable to parse numeric part of quantity";
const SUFFIX_WRONG: &str = "unable to parse quantity's suffix";

/// The format of the suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// An amount.
#[derive(Debug, Clone)]
pub struct Quantity {
    /// The value is `unscaled` times ten to the power of `scale`.
    unscaled: i128,
    scale: i32,
    format: Format,
    /// Whether Go keeps it as a decimal of any length, and not as an integer with a scale.
    wide: bool,
    /// The text it was parsed from, where Go keeps it.
    text: Option<Box<str>>,
}

impl Default for Quantity {
    fn default() -> Quantity {
        Quantity::from_i64(0)
    }
}

/// The parts of a quantity's text.
struct Parts<'t> {
    positive: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn split(text: &str) -> Option<Parts<'_>> {
    let positive = !text.starts_with('-');
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(rest.trim_start_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let number = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(Parts { positive, whole, fraction, suffix })
}

fn interpret(suffix: &str) -> Option<(i32, Format)> {
    let find =
        |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, power)| *power);
    if let Some(power) = find(&DECIMAL) {
        return Some((power, Format::DecimalSi));
    }
    if let Some(power) = find(&BINARY) {
        return Some((power, Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
    Some((i32::try_from(exponent).ok()?, Format::DecimalExponent))
}

fn pow10(power: u32) -> Option<i128> {
    10_i128.checked_pow(power)
}

impl Quantity {
    /// An integer, decimal.
    pub fn from_i64(value: i64) -> Quantity {
        Quantity { unscaled: value.into(), scale: 0, format: Format::DecimalSi, wide: false, text: None }
    }

    /// Thousandths, decimal.
    pub fn from_milli(value: i64) -> Quantity {
        Quantity { unscaled: value.into(), scale: -3, format: Format::DecimalSi, wide: false, text: None }
    }

    /// Parses a quantity; the error is Go's.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        if text.is_empty() {
            return Err(FORMAT_WRONG);
        }
        if text == "0" {
            return Ok(Quantity { text: Some("0".into()), ..Quantity::from_i64(0) });
        }
        let parts = split(text).ok_or(FORMAT_WRONG)?;
        let (power, format) = interpret(parts.suffix).ok_or(SUFFIX_WRONG)?;
        let digits = format!("{}{}", parts.whole, parts.fraction);
        let number: i128 = digits.parse().map_err(|_| NUMERIC_WRONG)?;
        let sign = if parts.positive { 1 } else { -1 };
        let fraction = i32::try_from(parts.fraction.len()).map_err(|_| NUMERIC_WRONG)?;
        if format == Format::BinarySi {
            // Go's parser for large units requires a digit, the one for small units does not.
            let digitless = !text.contains(|c: char| c.is_ascii_digit());
            if power >= 50 && digitless {
                return Err(NUMERIC_WRONG);
            }
            return Ok(Quantity::binary(text, &parts, number, sign, power, fraction));
        }
        let scale = power.saturating_sub(fraction);
        let plain = digits.len() <= 18 && scale >= -9;
        let canonical = plain && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0');
        let mut quantity = Quantity { unscaled: number, scale, format, wide: !plain, text: None };
        quantity.round_to_nano();
        quantity.unscaled *= sign;
        quantity.text = canonical.then(|| text.into());
        Ok(quantity)
    }

    fn binary(
        text: &str,
        parts: &Parts<'_>,
        number: i128,
        sign: i128,
        power: i32,
        fraction: i32,
    ) -> Quantity {
        let factor = 1_i128 << power.clamp(0, 60);
        let limit = i128::from(i64::MAX);
        let estimate = 15 - i32::try_from(parts.whole.len()).unwrap_or(i32::MAX / 2) - power * 3 / 10 - 1;
        let plain = parts.fraction.is_empty() && estimate >= 0;
        let canonical = plain && number & 0x07 != 0;
        let mut quantity = Quantity {
            unscaled: number.checked_mul(factor).unwrap_or(limit),
            scale: -fraction,
            format: Format::BinarySi,
            wide: !plain,
            text: canonical.then(|| text.into()),
        };
        quantity.round_to_nano();
        if quantity.compare_amount(limit, 0) == Ordering::Greater {
            quantity = Quantity { unscaled: limit, scale: 0, ..quantity };
        }
        let below_one = quantity.unscaled > 0 && quantity.compare_amount(1, 0) == Ordering::Less;
        if below_one {
            quantity.format = Format::DecimalSi;
        }
        quantity.unscaled *= sign;
        quantity
    }

    /// Parses a JSON string or number.
    pub fn from_json(value: &Value) -> Result<Quantity, &'static str> {
        match value {
            Value::String(text) => Quantity::parse(text.trim()),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Null => Ok(Quantity::default()),
            _ => Err(FORMAT_WRONG),
        }
    }

    /// Rounds up to 1e-9.
    fn round_to_nano(&mut self) {
        if self.unscaled == 0 {
            self.scale = 0;
        } else if self.scale < -9 {
            self.unscaled = self.at_scale(-9);
            self.scale = -9;
        }
    }

    /// The value in units of ten to the power of `scale`, rounded away from zero.
    fn at_scale(&self, scale: i32) -> i128 {
        let limit = if self.unscaled < 0 { i128::MIN } else { i128::MAX };
        if self.scale >= scale {
            let factor = pow10(self.scale.abs_diff(scale));
            return factor.and_then(|factor| self.unscaled.checked_mul(factor)).unwrap_or(limit);
        }
        match pow10(self.scale.abs_diff(scale)) {
            Some(divisor) => {
                let rest = (self.unscaled % divisor).signum();
                self.unscaled / divisor + rest
            }
            None => self.unscaled.signum(),
        }
    }

    fn compare_amount(&self, unscaled: i128, scale: i32) -> Ordering {
        let (a, b) = (self.unscaled, unscaled);
        let by_sign = a.signum().cmp(&b.signum());
        if by_sign != Ordering::Equal || a == 0 {
            return by_sign;
        }
        let digits = |value: i128| i64::from(value.unsigned_abs().ilog10());
        let magnitude = (digits(a) + i64::from(self.scale)).cmp(&(digits(b) + i64::from(scale)));
        let ordering = magnitude.then_with(|| {
            // At equal length one value needs at most 38 more digits for the comparison; if they do not fit it
            // is the larger one.
            let factor = pow10(self.scale.abs_diff(scale)).unwrap_or(i128::MAX).unsigned_abs();
            let (mut x, mut y) = (Some(a.unsigned_abs()), Some(b.unsigned_abs()));
            if self.scale > scale {
                x = x.and_then(|value| value.checked_mul(factor));
            } else {
                y = y.and_then(|value| value.checked_mul(factor));
            }
            match (x, y) {
                (Some(x), Some(y)) => x.cmp(&y),
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
            }
        });
        if a > 0 { ordering } else { ordering.reverse() }
    }

    /// The format of its suffix.
    pub fn format(&self) -> Format {
        self.format
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.unscaled.signum() as i32
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.unscaled == 0
    }

    /// The value, if it is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        let whole = self.at_scale(0);
        let exact = self.compare_amount(whole, 0) == Ordering::Equal;
        if exact { i64::try_from(whole).ok() } else { None }
    }

    /// The value as Go's `AsInt64` gives it: only of quantities that were written as an integer. `1.0` is none.
    pub fn as_go_i64(&self) -> Option<i64> {
        if self.wide {
            return None;
        }
        let factor = pow10(u32::try_from(self.scale).ok()?)?;
        i64::try_from(self.unscaled.checked_mul(factor)?).ok()
    }

    /// The nearest floating-point number, as Go's `AsApproximateFloat64` computes it.
    pub fn approximate_f64(&self) -> f64 {
        let base = self.unscaled as f64;
        match self.scale {
            0 => base,
            scale => base * format!("1e{scale}").parse::<f64>().unwrap_or(f64::INFINITY),
        }
    }

    /// Whether it is an integer of any size.
    pub fn is_integer(&self) -> bool {
        self.scale >= 0 || self.compare_amount(self.at_scale(0), 0) == Ordering::Equal
    }

    /// The value rounded away from zero, saturating.
    pub fn value(&self) -> i64 {
        clamp(self.at_scale(0))
    }

    /// The value in thousandths, rounded away from zero, saturating.
    pub fn milli_value(&self) -> i64 {
        clamp(self.at_scale(-3))
    }

    /// The sum, in the format of `self` unless that is zero.
    #[must_use]
    pub fn add(&self, other: &Quantity) -> Quantity {
        let format = if self.is_zero() { other.format } else { self.format };
        let scale = match (self.unscaled, other.unscaled) {
            (0, _) => other.scale,
            (_, 0) => self.scale,
            _ => self.scale.min(other.scale),
        };
        let unscaled = self.at_scale(scale).saturating_add(other.at_scale(scale));
        let wide = self.wide || other.wide || i64::try_from(unscaled).is_err();
        Quantity { unscaled, scale, format, wide, text: None }
    }

    /// The difference.
    #[must_use]
    pub fn sub(&self, other: &Quantity) -> Quantity {
        let negative = Quantity { unscaled: other.unscaled.saturating_neg(), text: None, ..other.clone() };
        self.add(&negative)
    }

    /// The canonical form: number and suffix.
    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".into();
        }
        let thousands = |limit: i128| self.compare_amount(limit, 0);
        let small = thousands(1024) == Ordering::Less && thousands(-1024) == Ordering::Greater;
        if self.format == Format::BinarySi && !small && self.is_integer() {
            let mut number = self.at_scale(0);
            let mut power = 0;
            while number != 0 && number % 1024 == 0 {
                number /= 1024;
                power += 10;
            }
            let suffix = BINARY.iter().find(|(_, known)| *known == power).map_or("", |(name, _)| name);
            return format!("{number}{suffix}");
        }
        let (mut number, mut power) = (self.unscaled, self.scale);
        while number % 10 == 0 {
            number /= 10;
            power = power.saturating_add(1);
        }
        let mut zeros = "";
        match power.rem_euclid(3) {
            1 => (zeros, power) = ("0", power - 1),
            2 => (zeros, power) = ("00", power - 2),
            _ => {}
        }
        match self.format {
            Format::DecimalExponent if power == 0 => format!("{number}{zeros}"),
            Format::DecimalExponent => format!("{number}{zeros}e{power}"),
            _ => {
                let suffix = DECIMAL.iter().find(|(_, known)| *known == power).map_or("", |(name, _)| name);
                format!("{number}{zeros}{suffix}")
            }
        }
    }
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    /// By value: `1Gi` equals `1024Mi`.
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.compare_amount(other.unscaled, other.scale)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).expect(text)
    }

    #[test]
    fn quantities_are_written_as_go_writes_them() {
        let cases = [
            ("0", "0"),
            ("0Ki", "0"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1024Mi", "1Gi"),
            ("1025Ki", "1025Ki"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.5Ki", "512"),
            ("1000Ki", "1000Ki"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("1E3", "1E3"),
            ("12e1", "120"),
            ("1.234", "1.234"),
            ("-5Gi", "-5Gi"),
            ("0.0000000001", "1n"),
            ("1.0000000001", "1000000001n"),
            ("100Ei", "9223372036854775807"),
            ("1Ei", "1Ei"),
            ("1E", "1E"),
            ("0.1Ki", "102400m"),
            ("100000000000000000000", "100E"),
        ];
        for (text, written) in cases {
            assert_eq!(quantity(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn wrong_quantities_have_gos_words() {
        let cases = [
            ("", FORMAT_WRONG),
            ("abc", FORMAT_WRONG),
            ("1.1.1", FORMAT_WRONG),
            ("1 Gi", FORMAT_WRONG),
            ("1mi", SUFFIX_WRONG),
            ("1i", SUFFIX_WRONG),
            ("1KM", SUFFIX_WRONG),
            ("1e", SUFFIX_WRONG),
            ("Ei", NUMERIC_WRONG),
        ];
        for (text, error) in cases {
            assert_eq!(Quantity::parse(text).expect_err(text), error, "{text}");
        }
        assert_eq!(
            FORMAT_WRONG,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
    }

    #[test]
    fn quantities_are_compared_by_amount() {
        let same = [("1Gi", "1024Mi"), ("1000m", "1"), ("1e3", "1k"), ("0", "-0")];
        for (a, b) in same {
            assert_eq!(quantity(a), quantity(b), "{a} {b}");
        }
        let ordered = [
            "-1e30",
            "-1",
            "-1n",
            "0",
            "1n",
            "1m",
            "999m",
            "1",
            "1k",
            "1Ki",
            "1M",
            "1Ei",
            "1e30",
            "1e2000000000",
        ];
        for pair in ordered.windows(2) {
            assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn quantities_are_counted() {
        assert_eq!(quantity("1Gi").add(&quantity("512Mi")).to_string(), "1536Mi");
        assert_eq!(quantity("0").add(&quantity("1Gi")).to_string(), "1Gi");
        assert_eq!(quantity("500m").add(&quantity("1.5")).to_string(), "2");
        assert_eq!(quantity("1").sub(&quantity("1500m")).to_string(), "-500m");
        assert_eq!((quantity("1.5").value(), quantity("1.5").milli_value()), (2, 1500));
        assert_eq!((quantity("2k").as_i64(), quantity("1m").as_i64()), (Some(2000), None));
        assert!(quantity("1.0").is_integer() && !quantity("1m").is_integer());
        assert_eq!((quantity("-1m").sign(), quantity("-1m").value()), (-1, -1));
        assert_eq!(Quantity::from_json(&json!(1.5)).map(|quantity| quantity.to_string()), Ok("1500m".into()));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[+-]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,10}|\\PC{0,10}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.value(), quantity.milli_value(), quantity.as_i64(), quantity.to_string());
                let _ = quantity.add(&Quantity::from_milli(1)).cmp(&quantity);
            }
        }

        #[test]
        fn the_canonical_form_means_the_same(whole in -1_000_000_i64..1_000_000, fraction in 0_u32..1000, suffix in "|m|k|M|G|Ki|Mi|Gi|e3|e-3") {
            let first = quantity(&format!("{whole}.{fraction:03}{suffix}"));
            let canonical = Quantity { text: None, ..first };
            let again = quantity(&canonical.to_string());
            prop_assert_eq!(&again, &canonical);
            prop_assert_eq!(Quantity { text: None, ..again }.to_string(), canonical.to_string());
        }
    }
}
