//! Scalars with a textual format in Go: base64, times, durations and quantities.
//!
//! Each function returns the text that Go would encode, or `None` if that is the input.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

const DAY: i64 = 86_400;
/// Go's zero time, which JSON shows as `null`: 0001-01-01T00:00:00Z.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Decodes base64; the error is Go's, with its position.
pub(crate) fn base64_decode(text: &str) -> Result<Vec<u8>, String> {
    let source = text.as_bytes();
    let corrupt = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let newline = |byte: u8| byte == b'\n' || byte == b'\r';
    let mut out = Vec::with_capacity(source.len() / 4 * 3 + 3);
    let mut quantum = [0u8; 4];
    let mut filled = 0;
    let mut at = 0;
    while let Some(&byte) = source.get(at) {
        at += 1;
        if let Some(bits) = sextet(byte) {
            if let Some(slot) = quantum.get_mut(filled) {
                *slot = bits;
            }
            filled += 1;
            if filled == 4 {
                let [a, b, c, d] = quantum;
                out.extend([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
                filled = 0;
            }
            continue;
        }
        if newline(byte) {
            continue;
        }
        if byte != b'=' || filled < 2 {
            return corrupt(at - 1);
        }
        let skip = |mut at: usize| {
            while source.get(at).is_some_and(|&byte| newline(byte)) {
                at += 1;
            }
            at
        };
        if filled == 2 {
            at = skip(at);
            match source.get(at) {
                None => return corrupt(source.len()),
                Some(b'=') => at += 1,
                Some(_) => return corrupt(at - 1),
            }
        }
        at = skip(at);
        if at < source.len() {
            return corrupt(at);
        }
        let [a, b, c, _] = quantum;
        out.push(a << 2 | b >> 4);
        if filled == 3 {
            out.push(b << 4 | c >> 2);
        }
        return Ok(out);
    }
    if filled > 0 {
        return corrupt(source.len() - filled);
    }
    Ok(out)
}

/// Bytes as base64.
pub(crate) fn base64_encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Validates base64, and returns its canonical form if that differs.
pub(crate) fn base64(text: &str) -> Result<Option<String>, String> {
    if is_canonical_base64(text.as_bytes()) {
        return Ok(None);
    }
    base64_decode(text).map(|bytes| Some(base64_encode(&bytes)))
}

fn is_canonical_base64(text: &[u8]) -> bool {
    let (letters, stray) = match text {
        [letters @ .., b'=', b'='] => (letters, 0b1111),
        [letters @ .., b'='] => (letters, 0b11),
        letters => (letters, 0),
    };
    text.len().is_multiple_of(4)
        && letters.iter().all(|letter| sextet(*letter).is_some())
        && letters.last().is_none_or(|last| sextet(*last).is_some_and(|bits| bits & stray == 0))
}

/// An instant as Go holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub(crate) nanos: u32,
}

/// The layouts of `metav1.Time` and `metav1.MicroTime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// RFC 3339, printed to the second.
    Seconds,
    /// RFC 3339 with exactly six fractional digits.
    Micros,
}

/// Validates a time, and returns its canonical form if that differs; `Some(None)` is Go's zero time.
pub(crate) fn time(text: &str, layout: Layout) -> Result<Option<Option<String>>, String> {
    let instant = parse_time(text, layout)?;
    if instant.seconds == ZERO_TIME && instant.nanos == 0 {
        return Ok(Some(None));
    }
    let canonical = match layout {
        Layout::Seconds => text.len() == 20,
        Layout::Micros => text.len() == 27,
    };
    if canonical && text.ends_with('Z') { Ok(None) } else { Ok(Some(Some(print_time(instant, layout)))) }
}

/// The text of an instant.
pub(crate) fn print_time(instant: Instant, layout: Layout) -> String {
    let (year, month, day) = civil(instant.seconds.div_euclid(DAY));
    let second = instant.seconds.rem_euclid(DAY);
    let mut out = String::with_capacity(27);
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    if layout == Layout::Micros {
        let _ = write!(out, ".{:06}", instant.nanos / 1000);
    }
    out.push('Z');
    out
}

/// The date of a day number (days since 1970), in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number of a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The state of Go's time parser.
struct TimeParser<'t> {
    text: &'t str,
    rest: &'t [u8],
    layout: Layout,
}

impl TimeParser<'_> {
    fn name(&self) -> &'static str {
        match self.layout {
            Layout::Seconds => "2006-01-02T15:04:05Z07:00",
            Layout::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }

    fn cannot(&self, rest: &[u8], element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.text.as_bytes()),
            quote(self.name().as_bytes()),
            quote(rest),
            quote(element.as_bytes())
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quote(self.text.as_bytes()))
    }

    fn literal(&mut self, byte: u8) -> Result<(), String> {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.cannot(self.rest, &char::from(byte).to_string())),
        }
    }

    /// One or two digits, or exactly two.
    fn number(&mut self, element: &str, fixed: bool) -> Result<i64, String> {
        match self.rest {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', rest @ ..] => {
                self.rest = rest;
                Ok(i64::from(a - b'0') * 10 + i64::from(b - b'0'))
            }
            [a @ b'0'..=b'9', rest @ ..] if !fixed => {
                self.rest = rest;
                Ok(i64::from(a - b'0'))
            }
            _ => Err(self.cannot(self.rest, element)),
        }
    }

    /// The fractional digits; Go ignores those after the ninth.
    fn fraction(&mut self, digits: usize) -> Option<u32> {
        let (point, rest) = self.rest.split_first()?;
        let (text, rest) = (rest.get(..digits)?, rest.get(digits..)?);
        if !matches!(point, b'.' | b',') || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.rest = rest;
        let mut nanos = 0;
        for place in 0..9 {
            nanos = nanos * 10 + u32::from(text.get(place).map_or(0, |digit| digit - b'0'));
        }
        Some(nanos)
    }

    fn zone(&mut self) -> Result<i64, String> {
        if let Some((b'Z', rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.cannot(self.rest, "Z07:00");
        let [sign, h1, h2, b':', m1, m2, rest @ ..] = self.rest else {
            return Err(bad);
        };
        let digits = |a: &u8, b: &u8| {
            (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
        };
        let (Some(hours), minutes) = (digits(h1, h2), digits(m1, m2)) else {
            return Err(bad);
        };
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        let Some(minutes) = minutes else {
            return Err(bad);
        };
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        self.rest = rest;
        match sign {
            b'+' => Ok((hours * 60 + minutes) * 60),
            b'-' => Ok((hours * 60 + minutes) * -60),
            _ => Err(bad),
        }
    }
}

/// Parses a time; the error is Go's.
pub(crate) fn parse_time(text: &str, layout: Layout) -> Result<Instant, String> {
    let mut at = TimeParser { text, rest: text.as_bytes(), layout };
    let year = match at.rest {
        [a, b, c, d, rest @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()) => {
            let year = [a, b, c, d].iter().fold(0, |year, digit| year * 10 + i64::from(**digit - b'0'));
            at.rest = rest;
            year
        }
        _ => return Err(at.cannot(at.rest, "2006")),
    };
    at.literal(b'-')?;
    let month = at.number("01", true)?;
    if !(1..=12).contains(&month) {
        return Err(at.out_of_range("month"));
    }
    at.literal(b'-')?;
    let day = at.number("02", true)?;
    at.literal(b'T')?;
    let hour = at.number("15", false)?;
    if hour >= 24 {
        return Err(at.out_of_range("hour"));
    }
    at.literal(b':')?;
    let minute = at.number("04", true)?;
    if minute >= 60 {
        return Err(at.out_of_range("minute"));
    }
    at.literal(b':')?;
    let second = at.number("05", true)?;
    if second >= 60 {
        return Err(at.out_of_range("second"));
    }
    let nanos = match layout {
        Layout::Micros => match at.fraction(6) {
            Some(nanos) => nanos,
            None => return Err(at.cannot(at.rest, ".000000")),
        },
        Layout::Seconds => {
            let digits = at.rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 && matches!(at.rest.first(), Some(b'.' | b',')) {
                at.fraction(digits).unwrap_or(0)
            } else {
                0
            }
        }
    };
    let offset = at.zone()?;
    if !at.rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text.as_bytes()), quote(at.rest)));
    }
    if day < 1 || day > days_in(month, year) {
        return Err(at.out_of_range("day"));
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
    Ok(Instant { seconds, nanos })
}

/// Quotes as Go's time package does: everything but printable ASCII as `\x..`.
fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

/// Parses a Go duration to nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text.as_bytes()));
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest == b"0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    const LIMIT: u64 = 1 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, mut after) = rest.split_at(digits);
        let mut value: u64 = 0;
        for digit in whole {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit - b'0')))
                .filter(|value| *value <= LIMIT)
                .ok_or_else(invalid)?;
        }
        let (mut fraction, mut scale, mut decimals) = (0u64, 1f64, 0);
        if let [b'.', fractional @ ..] = after {
            decimals = fractional.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (places, tail) = fractional.split_at(decimals);
            for digit in places {
                match fraction.checked_mul(10).and_then(|f| f.checked_add(u64::from(digit - b'0'))) {
                    Some(more) if more <= LIMIT => (fraction, scale) = (more, scale * 10.0),
                    _ => break,
                }
            }
            after = tail;
        }
        if digits == 0 && decimals == 0 {
            return Err(invalid());
        }
        let letters = after.iter().take_while(|byte| **byte != b'.' && !byte.is_ascii_digit()).count();
        let (unit, tail) = after.split_at(letters);
        let nanos: u64 = match unit {
            b"" => return Err(format!("time: missing unit in duration {}", quote(text.as_bytes()))),
            b"ns" => 1,
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
            b"ms" => 1_000_000,
            b"s" => 1_000_000_000,
            b"m" => 60_000_000_000,
            b"h" => 3_600_000_000_000,
            _ => {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    quote(unit),
                    quote(text.as_bytes())
                ));
            }
        };
        let whole = value.checked_mul(nanos).filter(|value| *value <= LIMIT).ok_or_else(invalid)?;
        let part = (fraction as f64 * (nanos as f64 / scale)) as u64;
        total = whole
            .checked_add(part)
            .and_then(|value| total.checked_add(value))
            .filter(|total| *total <= LIMIT)
            .ok_or_else(invalid)?;
        rest = tail;
    }
    if negative {
        return Ok((total as i64).wrapping_neg());
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// A duration as Go prints it: `1h0m0s`, `1.5s`, `250ms`.
pub(crate) fn print_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let decimals = |value: u64, places: usize| {
        let fraction = format!("{value:0places$}");
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { String::new() } else { format!(".{fraction}") }
    };
    match total {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{total}ns"),
        1_000..1_000_000 => format!("{sign}{}{}µs", total / 1_000, decimals(total % 1_000, 3)),
        1_000_000..1_000_000_000 => {
            format!("{sign}{}{}ms", total / 1_000_000, decimals(total % 1_000_000, 6))
        }
        _ => {
            let seconds = total / 1_000_000_000;
            let mut out = sign.to_owned();
            if seconds >= 3600 {
                let _ = write!(out, "{}h", seconds / 3600);
            }
            if seconds >= 60 {
                let _ = write!(out, "{}m", seconds / 60 % 60);
            }
            let _ = write!(out, "{}{}s", seconds % 60, decimals(total % 1_000_000_000, 9));
            out
        }
    }
}

/// Validates a duration, and returns its canonical form if that differs.
pub(crate) fn duration(text: &str) -> Result<Option<String>, String> {
    let printed = print_duration(parse_duration(text)?);
    Ok((printed != text).then_some(printed))
}

pub(crate) use super::quantity::quantity;
