//! Timestamps and durations: Go's text forms, and the calendar.

use std::{cmp::Ordering, fmt::Write as _};

use crate::error::EvalError;

/// `0001-01-01T00:00:00Z`
const FIRST: i64 = -62_135_596_800;
/// `9999-12-31T23:59:59Z`
const LAST: i64 = 253_402_300_799;
const NANOS: i64 = 1_000_000_000;

/// A moment between the years 1 and 9999, and the offset from UTC that it was written with. The offset only matters for
/// its text.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// A date and a time of day in some zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// From 0, Sunday.
    pub(crate) weekday: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
}

impl Timestamp {
    /// A moment by its Unix time, or an error outside of the years 1 to 9999.
    pub fn new(seconds: i64, nanos: u32) -> Result<Self, EvalError> {
        if (FIRST..=LAST).contains(&seconds) {
            Ok(Self { seconds, nanos, offset: 0 })
        } else {
            Err(EvalError::TimestampOverflow)
        }
    }

    /// The Unix time, rounded down.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// The nanoseconds after it.
    pub fn nanos(&self) -> u32 {
        self.nanos
    }

    /// The moment as long after this one as a duration says.
    pub(crate) fn plus(self, nanos: i64) -> Result<Self, EvalError> {
        let total = i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos) + i128::from(nanos);
        let seconds =
            i64::try_from(total.div_euclid(i128::from(NANOS))).map_err(|_| EvalError::TimestampOverflow)?;
        let rest = u32::try_from(total.rem_euclid(i128::from(NANOS))).unwrap_or_default();
        Ok(Self { offset: self.offset, ..Self::new(seconds, rest)? })
    }

    /// The duration since another moment.
    pub(crate) fn since(self, other: Self) -> Result<i64, EvalError> {
        let nanos = |moment: Self| i128::from(moment.seconds) * i128::from(NANOS) + i128::from(moment.nanos);
        i64::try_from(nanos(self) - nanos(other)).map_err(|_| EvalError::IntOverflow)
    }

    /// The date and time at an offset from UTC in seconds.
    pub(crate) fn civil(&self, offset: i64) -> Civil {
        let local = self.seconds.saturating_add(offset);
        let days = local.div_euclid(86_400);
        let second = local.rem_euclid(86_400);
        let (year, month, day) = date_of(days);
        Civil {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_to(year, 1, 1),
        }
    }

    /// RFC 3339, with as many digits of the second as there are.
    pub fn to_text(&self) -> String {
        let civil = self.civil(i64::from(self.offset));
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
        );
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            let _ = write!(text, ".{}", digits.trim_end_matches('0'));
        }
        if self.offset == 0 {
            text.push('Z');
        } else {
            let minutes = self.offset.abs() / 60;
            let sign = if self.offset < 0 { '-' } else { '+' };
            let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        text
    }

    /// Reads RFC 3339 as Go does: an hour may have one digit, and a comma may begin the fraction.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (moment, zone) = parse_local(text)?;
        let offset = match zone {
            "Z" => 0,
            zone => {
                let sign = match zone.as_bytes().first()? {
                    b'+' => 1,
                    b'-' => -1,
                    _ => return None,
                };
                let (hours, minutes) = zone.get(1..)?.split_once(':')?;
                let (hours, minutes) = (digits(hours, 2, 2)?, digits(minutes, 2, 2)?);
                if hours > 24 || minutes > 60 {
                    return None;
                }
                sign * (hours * 3600 + minutes * 60)
            }
        };
        Some(Self { seconds: moment.seconds - offset, offset: i32::try_from(offset).ok()?, ..moment })
    }

    /// `timestamp(string)`: RFC 3339 within the range of timestamps.
    pub(crate) fn parse_checked(text: &str) -> Result<Option<Self>, EvalError> {
        let Some(moment) = Self::parse(text) else { return Ok(None) };
        Self::new(moment.seconds, moment.nanos)?;
        Ok(Some(moment))
    }

    /// The format `date-time` of schemas: RFC 3339, perhaps without a zone, or nothing.
    pub(crate) fn parse_date_time(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self { seconds: 0, nanos: 0, offset: 0 });
        }
        Self::parse(text)
            .or_else(|| parse_local(text).filter(|(_, zone)| zone.is_empty()).map(|(moment, _)| moment))
    }

    /// The format `date` of schemas.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        let (days, rest) = parse_date(text)?;
        rest.is_empty().then_some(Self { seconds: days * 86_400, nanos: 0, offset: 0 })
    }
}

/// A number of so many digits.
fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

/// The days since 1970 of a date at the beginning of a text, and the rest.
fn parse_date(text: &str) -> Option<(i64, &str)> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, '-');
    let year = digits(parts.next()?, 4, 4)?;
    let month = digits(parts.next()?, 2, 2)?;
    let day = digits(parts.next()?, 2, 2)?;
    if !(1..=12).contains(&month) || day < 1 || day > month_length(year, month) {
        return None;
    }
    Some((days_to(year, month, day), rest))
}

/// A date and time as if it were in UTC, and what follows it.
fn parse_local(text: &str) -> Option<(Timestamp, &str)> {
    let (days, rest) = parse_date(text)?;
    let rest = rest.strip_prefix('T')?;
    let (hour, rest) = rest.split_once(':')?;
    let hour = digits(hour, 1, 2)?;
    let (minute, rest) = rest.split_once(':')?;
    let minute = digits(minute, 2, 2)?;
    let (second, mut rest) = rest.split_at_checked(2)?;
    let second = digits(second, 2, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let (fraction, after) = fraction.split_at_checked(length)?;
        let shown = fraction.get(..length.min(9))?;
        nanos = format!("{shown:0<9}").parse().ok().filter(|_| length > 0)?;
        rest = after;
    }
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some((Timestamp { seconds, nanos, offset: 0 }, rest))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The days from 1970 to a date of the Gregorian calendar. Years begin in March here, so that a leap day is the last.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// The date so many days after 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A duration as Go reads it: `1h30m`, `-1.5s`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut rest = rest;
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (whole, after) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, after) =
            after.split_at(after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len()));
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let number: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part = number.checked_mul(unit)?.checked_add(fraction_of(fraction, unit))?;
        total = total.checked_add(part).filter(|total| *total <= 1 << 63)?;
        rest = after;
    }
    if negative {
        return 0i64.checked_sub_unsigned(total);
    }
    i64::try_from(total).ok()
}

/// The digits after the point of a number of units, in nanoseconds, rounded down.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        // Further digits are below a nanosecond.
        let Some(next) = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')))
        else {
            break;
        };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// The format `duration` of schemas: Go's, or words such as `3 days`.
pub(crate) fn parse_swagger_duration(text: &str) -> Option<i64> {
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = rest.get(start..)?;
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = after.split_at_checked(length)?;
        let trimmed = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let length = trimmed.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(trimmed.len());
        let (unit, after_unit) = trimmed.split_at_checked(length)?;
        rest = if unit.is_empty() { after } else { after_unit };
        if unit.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        for unit in swagger_units(&unit.to_lowercase()) {
            found = true;
            total = total.wrapping_add(number.wrapping_mul(unit));
        }
    }
    found.then_some(total)
}

/// The lengths of the units that a word can mean. The last name of a unit is also a prefix.
fn swagger_units(word: &str) -> impl Iterator<Item = i64> {
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], NANOS),
        (&["m", "min"], 60 * NANOS),
        (&["h", "hr", "hour"], 3600 * NANOS),
        (&["d", "day"], 86_400 * NANOS),
        (&["w", "wk", "week"], 7 * 86_400 * NANOS),
    ];
    let means = move |names: &[&str]| {
        names.contains(&word) || names.last().is_some_and(|last| word.starts_with(last))
    };
    UNITS.into_iter().filter(move |(names, _)| means(names)).map(|(_, length)| length)
}

/// A duration as CEL writes it: seconds, `1.5s`.
pub(crate) fn duration_text(nanos: i64) -> String {
    let seconds = (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9;
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_and_written_as_go_does() {
        for (text, written) in [
            ("2009-02-13T23:31:30Z", Some("2009-02-13T23:31:30Z")),
            ("2009-02-13T23:31:30.120Z", Some("2009-02-13T23:31:30.12Z")),
            ("2009-02-13T23:31:30,5+01:30", Some("2009-02-13T23:31:30.5+01:30")),
            ("2009-02-13T3:31:30Z", Some("2009-02-13T03:31:30Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
            ("2009-02-29T00:00:00Z", None),
            ("2009-02-13T24:00:00Z", None),
            ("2009-02-13 23:31:30Z", None),
            ("2009-02-13T23:31:30", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|moment| moment.to_text()).as_deref(), written, "{text}");
        }
        assert!(matches!(
            Timestamp::parse_checked("0000-01-01T00:00:00Z"),
            Err(EvalError::TimestampOverflow)
        ));
    }

    #[test]
    fn dates_and_days_agree() {
        for days in (-719_162..=2_932_896).step_by(97) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_to(year, month, day), days);
            assert!(day <= month_length(year, month));
        }
    }

    #[test]
    fn durations_are_read_as_go_does() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("1h30m", Some(5400 * NANOS)),
            ("-1.5s", Some(-1_500_000_000)),
            (".5ms", Some(500_000)),
            ("1us2ns", Some(1002)),
            ("", None),
            ("-", None),
            ("1", None),
            ("1d", None),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text}");
        }
        assert_eq!(parse_swagger_duration("3 days"), Some(3 * 86_400 * NANOS));
        assert_eq!(parse_swagger_duration("3 foos"), None);
        assert_eq!(duration_text(1_500_000_000), "1.5s");
        assert_eq!(duration_text(-60 * NANOS), "-60s");
    }
}
