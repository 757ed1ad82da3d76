//! The parts of timestamps and durations.

use super::member;
use crate::{
    error::EvalError,
    function::{Call, Function},
    types::Type,
    value::{Timestamp, Value, time::Civil},
};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn functions() -> Vec<Function> {
    let part = |name, ids: [&'static str; 2], call: Call| {
        let utc = member(ids[0], &[Type::Timestamp], Type::Int, call);
        let zoned = member(ids[1], &[Type::Timestamp, Type::String], Type::Int, call);
        Function::new(name, vec![utc, zoned])
    };
    let with_duration = |mut function: Function, id, call: Call| {
        function.overloads.push(member(id, &[Type::Duration], Type::Int, call));
        function
    };
    vec![
        part("getFullYear", ["timestamp_to_year", "timestamp_to_year_with_tz"], |args| {
            civil(args, |civil| civil.year)
        }),
        part("getMonth", ["timestamp_to_month", "timestamp_to_month_with_tz"], |args| {
            civil(args, |civil| civil.month - 1)
        }),
        part("getDayOfYear", ["timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz"], |args| {
            civil(args, |civil| civil.day_of_year)
        }),
        part("getDayOfMonth", ["timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz"], |args| {
            civil(args, |civil| civil.day - 1)
        }),
        part(
            "getDate",
            ["timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz"],
            |args| civil(args, |civil| civil.day),
        ),
        part("getDayOfWeek", ["timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz"], |args| {
            civil(args, |civil| civil.weekday)
        }),
        with_duration(
            part("getHours", ["timestamp_to_hours", "timestamp_to_hours_with_tz"], |args| {
                civil(args, |civil| civil.hour)
            }),
            "duration_to_hours",
            |args| duration(args, 3_600_000_000_000),
        ),
        with_duration(
            part("getMinutes", ["timestamp_to_minutes", "timestamp_to_minutes_with_tz"], |args| {
                civil(args, |civil| civil.minute)
            }),
            "duration_to_minutes",
            |args| duration(args, 60_000_000_000),
        ),
        with_duration(
            part("getSeconds", ["timestamp_to_seconds", "timestamp_to_seconds_tz"], |args| {
                civil(args, |civil| civil.second)
            }),
            "duration_to_seconds",
            |args| duration(args, 1_000_000_000),
        ),
        with_duration(
            part(
                "getMilliseconds",
                ["timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz"],
                milliseconds,
            ),
            "duration_to_milliseconds",
            |args| duration(args, 1_000_000),
        ),
    ]
}

fn duration<'a>(args: &[Value<'a>], unit: i64) -> Outcome<'a> {
    match args.first() {
        Some(Value::Duration(nanos)) => Ok(Value::Int(nanos / unit)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// The moment, and the offset of the zone that was asked for.
fn zoned(args: &[Value<'_>]) -> Result<(Timestamp, i64), EvalError> {
    match args {
        [Value::Timestamp(moment)] => Ok((*moment, 0)),
        [Value::Timestamp(moment), Value::String(zone)] => Ok((*moment, offset(moment, zone)?)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn civil<'a>(args: &[Value<'a>], part: fn(Civil) -> i64) -> Outcome<'a> {
    let (moment, offset) = zoned(args)?;
    Ok(Value::Int(part(moment.civil(offset))))
}

fn milliseconds<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (moment, _) = zoned(args)?;
    Ok(Value::Int(i64::from(moment.nanos() / 1_000_000)))
}

/// The offset from UTC in seconds of a zone: by its name, or `+hh:mm`.
fn offset(moment: &Timestamp, zone: &str) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named_offset(moment, zone).ok_or_else(|| EvalError::new(format!("unknown time zone {zone}")));
    };
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| EvalError::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let hours = hours.saturating_mul(60);
    let offset =
        if zone.starts_with('-') { hours.saturating_sub(minutes) } else { hours.saturating_add(minutes) };
    // Beyond a day there are no offsets; the calendar must not overflow either.
    Ok(offset.saturating_mul(60).clamp(-1 << 40, 1 << 40))
}

fn named_offset(moment: &Timestamp, zone: &str) -> Option<i64> {
    if matches!(zone, "" | "UTC" | "Local") {
        return Some(0);
    }
    // Names are those of the database to the letter, as Go has them.
    let zone = jiff::tz::TimeZone::get(zone).ok().filter(|found| found.iana_name() == Some(zone))?;
    // The library's timestamps end a little before and after the years 1 and 9999.
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let at = jiff::Timestamp::from_second(moment.seconds().clamp(first, last)).ok()?;
    Some(i64::from(zone.to_offset(at).seconds()))
}
