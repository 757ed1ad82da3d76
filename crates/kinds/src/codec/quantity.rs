//! The canonical form of `resource.Quantity`, as Go encodes it.

use std::fmt::Write as _;

const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const NANO: i32 = -9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// The parts of a quantity.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn parts(text: &str) -> Result<Parts<'_>, String> {
    let negative = text.starts_with('-');
    let unsigned = if negative { text.get(1..) } else { text.strip_prefix('+') }.unwrap_or(text);
    let rest = unsigned.trim_start_matches('0');
    let (whole, rest) = split_digits(rest);
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let tail = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    if !tail.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORMAT_WRONG.to_owned());
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let find = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, e)| *e);
    if let Some(exponent) = find(&DECIMAL) {
        return Some((Format::Decimal, exponent));
    }
    if let Some(exponent) = find(&BINARY) {
        return Some((Format::Binary, exponent));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Go truncates here; such exponents do not occur in practice.
    Some((Format::Exponent, exponent.clamp(-1_000_000, 1_000_000) as i32))
}

/// Validates a quantity, and returns its canonical form if that differs.
pub(crate) fn quantity(text: &str) -> Result<Option<String>, String> {
    let trimmed = text.trim();
    let unchanged = || (trimmed.len() != text.len()).then(|| trimmed.to_owned());
    if trimmed.is_empty() {
        return Err(FORMAT_WRONG.to_owned());
    }
    if trimmed == "0" {
        return Ok(unchanged());
    }
    let Parts { negative, whole, fraction, suffix } = parts(trimmed)?;
    let (format, exponent) = interpret(suffix).ok_or_else(|| SUFFIX.to_owned())?;

    // For common sizes Go keeps the text if it looks canonical.
    let digits = whole.len() + fraction.len();
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let (fits, scale, shift) = match format {
        Format::Binary => {
            let room = 14 - i64::try_from(whole.len()).unwrap_or(i64::MAX) - i64::from(exponent) * 3 / 10;
            (fraction.is_empty() && room >= 0, 0, exponent)
        }
        _ => (digits <= 18, exponent.saturating_sub(places), 0),
    };
    if fits && scale >= NANO {
        let mut number: i64 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(i64::from(digit - b'0')))
                .ok_or_else(|| NUMERIC.to_owned())?;
        }
        let first = whole.bytes().next().unwrap_or(b'0');
        let thousands = whole.bytes().chain(fraction.bytes()).rev().take(3).eq(*b"000");
        let kept = match format {
            Format::Binary => exponent % 10 == 0 && number & 7 != 0,
            _ => scale % 3 == 0 && !thousands && first != b'0',
        };
        if kept {
            return Ok(unchanged());
        }
        let amount = i128::from(number) << shift;
        return Ok(changed(text, print(amount, scale, negative, format)));
    }

    let mut amount: Option<i128> = Some(0);
    for digit in whole.bytes().chain(fraction.bytes()) {
        amount = amount.and_then(|n| n.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
    }
    if format == Format::Binary {
        amount = amount.and_then(|n| n.checked_mul(1 << shift_of(exponent)));
    }
    let mut scale = match format {
        Format::Binary => places.saturating_neg(),
        _ => exponent.saturating_sub(places),
    };
    let Some(mut amount) = amount else {
        // More than 38 digits: binary quantities are capped, others do not occur in practice.
        return Ok(match format {
            Format::Binary => changed(text, print(i128::from(i64::MAX), 0, negative, format)),
            _ => unchanged(),
        });
    };
    if scale < NANO && amount != 0 {
        let cut = NANO.saturating_sub(scale).unsigned_abs();
        amount = match 10i128.checked_pow(cut) {
            Some(unit) => amount / unit + i128::from(amount % unit != 0),
            None => 1,
        };
        scale = NANO;
    }
    let mut format = format;
    if format == Format::Binary {
        let unit = 10i128.checked_pow(scale.unsigned_abs()).unwrap_or(i128::MAX);
        if amount / unit > i128::from(i64::MAX)
            || (amount / unit == i128::from(i64::MAX) && amount % unit != 0)
        {
            (amount, scale) = (i128::from(i64::MAX), 0);
        } else if amount > 0 && amount < unit {
            format = Format::Decimal;
        }
    }
    Ok(changed(text, print(amount, scale, negative, format)))
}

fn shift_of(exponent: i32) -> u32 {
    u32::try_from(exponent).unwrap_or(0).min(60)
}

fn changed(text: &str, printed: String) -> Option<String> {
    (printed != text).then_some(printed)
}

/// The canonical form: no fraction, and the largest suffix that allows that.
fn print(amount: i128, scale: i32, negative: bool, format: Format) -> String {
    if amount == 0 {
        return "0".to_owned();
    }
    let mut out = if negative { "-".to_owned() } else { String::new() };
    if format == Format::Binary {
        // Binary quantities have no positive scale.
        let unit = 10i128.checked_pow(scale.unsigned_abs()).unwrap_or(i128::MAX);
        let mut number = amount / unit;
        if number >= 1024 && amount % unit == 0 {
            let mut exponent = 0;
            while number % 1024 == 0 {
                number /= 1024;
                exponent += 10;
            }
            let suffix = BINARY.iter().find(|(_, e)| *e == exponent).map_or("", |(name, _)| name);
            let _ = write!(out, "{number}{suffix}");
            return out;
        }
    }
    let (mut number, mut exponent) = (amount, scale);
    while number % 10 == 0 {
        number /= 10;
        exponent = exponent.saturating_add(1);
    }
    let up = exponent.rem_euclid(3);
    exponent -= up;
    let zeros = match up {
        1 => "0",
        2 => "00",
        _ => "",
    };
    let _ = write!(out, "{number}{zeros}");
    if format == Format::Exponent {
        if exponent != 0 {
            let _ = write!(out, "e{exponent}");
        }
    } else {
        out.push_str(DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(name, _)| name));
    }
    out
}
