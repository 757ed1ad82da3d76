//! Schedules of `CronJobs`: five fields, or a descriptor such as `@hourly`.

use super::zones;

struct Bounds {
    low: u64,
    high: u64,
    names: &'static [&'static str],
    /// The value of the first name.
    first: u64,
}

const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[], first: 0 },
    Bounds { low: 0, high: 23, names: &[], first: 0 },
    Bounds { low: 1, high: 31, names: &[], first: 0 },
    Bounds {
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
        first: 1,
    },
    Bounds { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], first: 0 },
];

/// Parses a schedule; the error is that of the Go library.
pub(crate) fn parse(schedule: &str) -> Result<(), String> {
    let mut spec = schedule;
    if spec.starts_with("TZ=") || spec.starts_with("CRON_TZ=") {
        let Some((zone, rest)) = spec.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".into());
        };
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if !zone.is_empty() && zone != "Local" && !is_known_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        spec = rest.trim();
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (text, bounds) in fields.iter().zip(&FIELDS) {
        for expression in text.split(',').filter(|part| !part.is_empty()) {
            range(expression, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    match text {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        _ => match text.strip_prefix("@every ") {
            Some(duration) => {
                is_duration(duration).map_err(|why| format!("failed to parse duration {text}: {why}"))
            }
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

/// A duration in Go's format: `1h30m`.
fn is_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(end).unwrap_or((tail, ""));
        match unit {
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            _ => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        }
        rest = next;
    }
    Ok(())
}

fn range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let slashes: Vec<&str> = expression.split('/').collect();
    let hyphens: Vec<&str> = slashes.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end);
    match hyphens.as_slice() {
        ["*" | "?", ..] => (start, end) = (bounds.low, bounds.high),
        [one] => {
            start = number_or_name(one, bounds)?;
            end = start;
        }
        [first, last] => {
            start = number_or_name(first, bounds)?;
            end = number_or_name(last, bounds)?;
        }
        [first, ..] => {
            number_or_name(first, bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
        [] => return Ok(()),
    }
    let step = match slashes.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if hyphens.len() == 1 {
                end = bounds.high;
            }
            step
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    let Bounds { low, high, .. } = bounds;
    if start < *low {
        return Err(format!("beginning of range ({start}) below minimum ({low}): {expression}"));
    }
    if end > *high {
        return Err(format!("end of range ({end}) above maximum ({high}): {expression}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(at) => Ok(bounds.first + at as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            k1s_object::field::quote(text)
        ));
    }
    match text.parse::<i64>() {
        Ok(value) => {
            u64::try_from(value).map_err(|_| format!("negative number ({value}) not allowed: {text}"))
        }
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: value out of range"
        )),
    }
}

/// Whether the name has the form of a time zone.
pub(crate) fn is_zone_name(name: &str) -> bool {
    name.split('/').all(|part| {
        (1..=14).contains(&part.len())
            && part != "."
            && part != ".."
            && !part.starts_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    })
}

/// Whether the time zone exists.
pub(crate) fn is_known_zone(name: &str) -> bool {
    name == "Local" || zones::is_known(name)
}

#[cfg(test)]
mod tests {
    use super::{is_known_zone, parse};

    #[test]
    fn schedules_are_read_or_refused_in_their_words() {
        for good in ["*/5 * * * *", "0 0 31 2 *", "@hourly", "@every 1h30m", "0 9-17 * jan-mar MON,fri"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(bad), Err(why.to_owned()), "{bad}");
        }
        assert!(is_known_zone("Europe/Zurich") && is_known_zone("UTC") && !is_known_zone("Mars/Phobos"));
    }
}
