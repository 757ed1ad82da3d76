//! Times and durations in the formats of Kubernetes: RFC 3339 in UTC, `1h30m0s`, and ages such as `5d3h`.

use std::fmt::{self, Write as _};

/// Quotes like Go's `time` package: bytes other than printable ASCII are escaped.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='\u{7f}' => out.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    seconds: i64,
    nanos: u32,
}

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

impl Time {
    /// From seconds since 1970 and additional nanoseconds.
    pub fn from_unix(seconds: i64, nanos: u32) -> Time {
        Time { seconds, nanos: nanos.min(999_999_999) }
    }

    /// Seconds since 1970.
    pub fn unix(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// Parses a `metav1.Time`; the error is Go's.
    pub fn parse(text: &str) -> Result<Time, String> {
        Layout { text, layout: LAYOUT }.parse()
    }

    /// Parses a `metav1.MicroTime`, with exactly six fractional digits.
    pub fn parse_micro(text: &str) -> Result<Time, String> {
        Layout { text, layout: MICRO_LAYOUT }.parse()
    }

    /// Whether this is Go's zero time, which is encoded as `null`.
    pub fn is_zero(self) -> bool {
        self.seconds == days_from_civil(1, 1, 1) * 86_400 && self.nanos == 0
    }

    /// As a `metav1.MicroTime`: `2026-01-02T03:04:05.000006Z`.
    pub fn to_micro(self) -> String {
        let whole = self.to_string();
        format!("{}.{:06}Z", whole.trim_end_matches('Z'), self.nanos / 1000)
    }

    /// The time since this instant at `now`; negative if it is in the future.
    pub fn elapsed_at(self, now: Time) -> Duration {
        let nanos = i128::from(now.seconds - self.seconds) * 1_000_000_000
            + (i128::from(now.nanos) - i128::from(self.nanos));
        Duration(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl fmt::Display for Time {
    /// As a `metav1.Time`: `2026-01-02T03:04:05Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// An age: `5d3h`, or `<unknown>` if the time is missing or invalid.
pub fn age(since: Option<&str>, now: Time) -> String {
    match since.map(Time::parse) {
        Some(Ok(since)) if !since.is_zero() => since.elapsed_at(now).human(),
        _ => "<unknown>".into(),
    }
}

/// Days since 1970 of a Gregorian date, counted in eras of 400 years that begin in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses by one of Go's layouts, for Go's error messages.
struct Layout<'t> {
    text: &'t str,
    layout: &'static str,
}

impl Layout<'_> {
    fn cannot(&self, rest: &str, element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.text),
            quote(self.layout),
            quote(rest),
            quote(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quote(self.text))
    }

    /// `least` to `most` leading digits, and the text after them.
    fn digits<'r>(
        &self,
        rest: &'r str,
        least: usize,
        most: usize,
        element: &str,
    ) -> Result<(i64, &'r str), String> {
        let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let split = if count < least { None } else { rest.split_at_checked(count) };
        let (digits, after) = split.ok_or_else(|| self.cannot(rest, element))?;
        let value = digits.parse().map_err(|_| self.cannot(rest, element))?;
        Ok((value, after))
    }

    fn skip<'r>(&self, rest: &'r str, prefix: &str) -> Result<&'r str, String> {
        rest.strip_prefix(prefix).ok_or_else(|| self.cannot(rest, prefix))
    }

    fn parse(&self) -> Result<Time, String> {
        let (year, rest) = self.digits(self.text, 4, 4, "2006")?;
        let (month, rest) = self.digits(self.skip(rest, "-")?, 2, 2, "01")?;
        if !(1..=12).contains(&month) {
            return Err(self.out_of_range("month"));
        }
        let (day, rest) = self.digits(self.skip(rest, "-")?, 2, 2, "02")?;
        let (hour, rest) = self.digits(self.skip(rest, "T")?, 1, 2, "15")?;
        if hour > 23 {
            return Err(self.out_of_range("hour"));
        }
        let (minute, rest) = self.digits(self.skip(rest, ":")?, 2, 2, "04")?;
        if minute > 59 {
            return Err(self.out_of_range("minute"));
        }
        let (second, rest) = self.digits(self.skip(rest, ":")?, 2, 2, "05")?;
        if second > 59 {
            return Err(self.out_of_range("second"));
        }
        let (nanos, rest) = self.fraction(rest)?;
        let offset = self.zone(rest)?;
        if day < 1 || day > days_in(year, month) {
            return Err(self.out_of_range("day"));
        }
        let days = days_from_civil(year, month, day);
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Time { seconds, nanos })
    }

    fn fraction<'r>(&self, rest: &'r str) -> Result<(u32, &'r str), String> {
        let exact = self.layout == MICRO_LAYOUT;
        let after = rest.strip_prefix(['.', ',']).unwrap_or_default();
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        let count = if exact { count.min(6) } else { count };
        if exact && count < 6 {
            return Err(self.cannot(rest, ".000000"));
        }
        if count == 0 {
            return Ok((0, rest));
        }
        let (digits, after) = after.split_at_checked(count).unwrap_or_default();
        let nanos = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
        Ok((nanos.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')), after))
    }

    /// The offset from UTC in seconds, at the end of the text.
    fn zone(&self, rest: &str) -> Result<i64, String> {
        let (offset, after) = match rest.strip_prefix('Z') {
            Some(after) => (0, after),
            None => {
                let number = |range: std::ops::Range<usize>| {
                    rest.get(range)
                        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                        .and_then(|digits| digits.parse::<i64>().ok())
                };
                let sign = match rest.as_bytes().first() {
                    Some(b'+') => Some(1),
                    Some(b'-') => Some(-1),
                    _ => None,
                };
                let parts = (sign, number(1..3), rest.get(3..4), number(4..6));
                if let (Some(_), Some(":"), Some(61..)) = (parts.1, parts.2, parts.3) {
                    return Err(self.out_of_range("time zone offset minute"));
                }
                if let (Some(25..), Some(":"), Some(_)) = (parts.1, parts.2, rest.get(4..6)) {
                    return Err(self.out_of_range("time zone offset hour"));
                }
                let (Some(sign), Some(hours), Some(":"), Some(minutes)) = parts else {
                    return Err(self.cannot(rest, "Z07:00"));
                };
                (sign * (hours * 3600 + minutes * 60), rest.get(6..).unwrap_or_default())
            }
        };
        if after.is_empty() {
            return Ok(offset);
        }
        Err(format!("parsing time {}: extra text: {}", quote(self.text), quote(after)))
    }
}

/// A duration in nanoseconds: `metav1.Duration`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub i64);

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

impl Duration {
    /// A number of seconds.
    pub fn from_secs(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(1_000_000_000))
    }

    /// Whole seconds, rounded towards zero.
    pub fn as_secs(self) -> i64 {
        self.0 / 1_000_000_000
    }

    /// Parses `1h30m` or `1.5s`; the error is Go's.
    pub fn parse(text: &str) -> Result<Duration, String> {
        let invalid = || format!("time: invalid duration {}", quote(text));
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(Duration(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0_i128;
        while !rest.is_empty() {
            let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
            let whole = digits(rest);
            let fraction = rest.get(whole..).and_then(|rest| rest.strip_prefix('.')).map(digits);
            let end = whole + fraction.map_or(0, |digits| digits + 1);
            let (number, after) = rest.split_at_checked(end).ok_or_else(invalid)?;
            if !number.bytes().any(|byte| byte.is_ascii_digit()) {
                return Err(invalid());
            }
            let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, after) = after.split_at_checked(end).ok_or_else(invalid)?;
            if unit.is_empty() {
                return Err(format!("time: missing unit in duration {}", quote(text)));
            }
            let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
            };
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
            let fraction: f64 = format!("0.{fraction}0").parse().unwrap_or_default();
            let part = whole.checked_mul(*scale as i128).ok_or_else(invalid)?;
            total = total.checked_add(part + (fraction * scale) as i128).ok_or_else(invalid)?;
            rest = after;
        }
        let total = if negative { -total } else { total };
        i64::try_from(total).map(Duration).map_err(|_| invalid())
    }

    /// As an age in a table, with two or three significant figures.
    pub fn human(self) -> String {
        let seconds = self.as_secs();
        let (minutes, hours) = (seconds / 60, seconds / 3600);
        let (days, years) = (hours / 24, hours / 24 / 365);
        let pair = |large: i64, large_unit: char, small: i64, small_unit: char| match small {
            0 => format!("{large}{large_unit}"),
            _ => format!("{large}{large_unit}{small}{small_unit}"),
        };
        match () {
            () if seconds < -1 => "<invalid>".into(),
            () if seconds < 0 => "0s".into(),
            () if seconds < 120 => format!("{seconds}s"),
            () if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
            () if minutes < 180 => format!("{minutes}m"),
            () if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
            () if hours < 48 => format!("{hours}h"),
            () if hours < 192 => pair(days, 'd', hours % 24, 'h'),
            () if hours < 24 * 365 * 2 => format!("{days}d"),
            () if hours < 24 * 365 * 8 => pair(years, 'y', days % 365, 'd'),
            () => format!("{years}y"),
        }
    }

    /// As an age in one unit.
    pub fn short_human(self) -> String {
        let seconds = self.as_secs();
        match seconds {
            ..-1 => "<invalid>".into(),
            -1 => "0s".into(),
            0..60 => format!("{seconds}s"),
            60..3600 => format!("{}m", seconds / 60),
            3600..86_400 => format!("{}h", seconds / 3600),
            86_400..31_536_000 => format!("{}d", seconds / 86_400),
            _ => format!("{}y", seconds / 31_536_000),
        }
    }
}

impl fmt::Display for Duration {
    /// Go's format: `1h30m0s`, `1.5s`, `100ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let decimal = |value: u64, scale: u64| {
            let digits = scale.ilog10() as usize;
            let text = format!("{}.{:0digits$}", value / scale, value % scale);
            if digits == 0 {
                value.to_string()
            } else {
                text.trim_end_matches('0').trim_end_matches('.').into()
            }
        };
        match nanos {
            ..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let minutes = nanos / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", decimal(nanos % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_and_written_in_utc() {
        let cases = [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.987Z", "2026-01-02T03:04:05Z"),
            ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"),
            ("2024-02-29T23:59:59-00:30", "2024-03-01T00:29:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ];
        for (text, written) in cases {
            assert_eq!(Time::parse(text).map(|time| time.to_string()), Ok(written.into()), "{text}");
        }
        assert!(Time::parse("0001-01-01T00:00:00Z").is_ok_and(Time::is_zero));
        let micro = Time::parse_micro("2026-01-02T03:04:05.000006Z").expect("valid");
        assert_eq!(micro.to_micro(), "2026-01-02T03:04:05.000006Z");
    }

    #[test]
    fn wrong_times_have_gos_words() {
        let layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        let cases = [
            ("nope", format!("parsing time \"nope\" {layout} \"nope\" as \"2006\"")),
            ("2020-01-01", format!("parsing time \"2020-01-01\" {layout} \"\" as \"T\"")),
            ("2020-1-01", format!("parsing time \"2020-1-01\" {layout} \"1-01\" as \"01\"")),
            (
                "2020-01-01T00:00:00",
                format!("parsing time \"2020-01-01T00:00:00\" {layout} \"\" as \"Z07:00\""),
            ),
            ("2020-13-01T00:00:00Z", "parsing time \"2020-13-01T00:00:00Z\": month out of range".into()),
            ("2021-02-29T00:00:00Z", "parsing time \"2021-02-29T00:00:00Z\": day out of range".into()),
            ("2020-01-01T00:00:00Zx", "parsing time \"2020-01-01T00:00:00Zx\": extra text: \"x\"".into()),
        ];
        for (text, expected) in cases {
            assert_eq!(Time::parse(text).expect_err(text), expected);
        }
        assert_eq!(
            Time::parse_micro("2020-01-01T00:00:00Z").expect_err("no fraction"),
            "parsing time \"2020-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
    }

    #[test]
    fn durations_are_gos() {
        let cases = [
            ("1h30m", "1h30m0s"),
            ("90s", "1m30s"),
            ("1.5s", "1.5s"),
            ("100ms", "100ms"),
            ("-2us", "-2µs"),
            ("0", "0s"),
            ("1h", "1h0m0s"),
        ];
        for (text, written) in cases {
            assert_eq!(Duration::parse(text).map(|duration| duration.to_string()), Ok(written.into()));
        }
        let errors = [
            ("x", "time: invalid duration \"x\""),
            ("", "time: invalid duration \"\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5µ", "time: unknown unit \"\\xc2\\xb5\" in duration \"5\\xc2\\xb5\""),
            ("5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("1.2.3s", "time: missing unit in duration \"1.2.3s\""),
        ];
        for (text, error) in errors {
            assert_eq!(Duration::parse(text).expect_err(text), error);
        }
    }

    #[test]
    fn ages_are_short() {
        let cases = [
            (-2, "<invalid>", "<invalid>"),
            (-1, "0s", "0s"),
            (119, "119s", "1m"),
            (120, "2m", "2m"),
            (599, "9m59s", "9m"),
            (600, "10m", "10m"),
            (3 * 3600, "3h", "3h"),
            (3 * 3600 + 60, "3h1m", "3h"),
            (8 * 3600 + 60, "8h", "8h"),
            (48 * 3600, "2d", "2d"),
            (49 * 3600, "2d1h", "2d"),
            (8 * 86_400 + 3600, "8d", "8d"),
            (2 * 365 * 86_400, "2y", "2y"),
            (2 * 365 * 86_400 + 86_400, "2y1d", "2y"),
            (8 * 365 * 86_400 + 86_400, "8y", "8y"),
        ];
        for (seconds, human, short) in cases {
            let duration = Duration::from_secs(seconds);
            assert_eq!(
                (duration.human().as_str(), duration.short_human().as_str()),
                (human, short),
                "{seconds}"
            );
        }
        let now = Time::from_unix(1_000_000, 0);
        assert_eq!(age(Some("1970-01-12T13:46:00Z"), now), "40s");
        assert_eq!(age(None, now), "<unknown>");
    }

    proptest! {
        #[test]
        fn written_times_are_read_back(seconds in -62_135_596_800_i64..253_402_300_799) {
            let time = Time::from_unix(seconds, 0);
            prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        }

        #[test]
        fn written_durations_are_read_back(seconds in -1_000_000_000_i64..1_000_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        }

        #[test]
        fn no_text_makes_a_reader_panic(text in "[0-9:.TZ+hmsµ-]{0,30}|\\PC{0,12}") {
            let _ = Time::parse(&text);
            let _ = Time::parse_micro(&text);
            let _ = Duration::parse(&text);
        }
    }
}
