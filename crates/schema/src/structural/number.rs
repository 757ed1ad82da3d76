//! Bounds of numbers, with the semantics of Go for integers compared with float limits.

use k1s_object::field::Shown;

use super::{Limits, Type, formats::Format, validate::Found};
use crate::go::{self, GoNumber};

/// Whether a number fits the type and format; `prefix` begins the message.
fn in_range(number: GoNumber, kind: Type, format: Option<Format>, prefix: &str, path: &str) -> Option<Found> {
    let fits = match kind {
        Type::Integer => {
            let (low, high) = match format {
                Some(Format::Int32) => (f64::from(i32::MIN), f64::from(i32::MAX)),
                // The largest float below 2^63.
                _ => (i64::MIN as f64, 9_223_372_036_854_774_784.0),
            };
            match number {
                GoNumber::Int(int) if format == Some(Format::Int32) => i32::try_from(int).is_ok(),
                GoNumber::Int(_) => true,
                GoNumber::Float(float) => float.fract() == 0.0 && (low..=high).contains(&float),
            }
        }
        _ => format != Some(Format::Float) || (number.float() as f32).is_finite(),
    };
    if fits {
        return None;
    }
    let name = kind.name();
    Some(Found::plain(match format {
        Some(format) => {
            format!("{prefix} value must be of type {name} with format {} in {path}", format.name())
        }
        None => format!("{prefix} value must be of type {name} (default format) in {path}"),
    }))
}

/// The errors in a number.
pub(super) fn check(number: GoNumber, kind: Type, limits: Option<&Limits>, path: &str, out: &mut Vec<Found>) {
    let (kind, format) = match kind {
        Type::Integer => {
            (kind, limits.and_then(|l| l.format).filter(|f| matches!(f, Format::Int32 | Format::Int64)))
        }
        Type::Number => {
            (kind, limits.and_then(|l| l.format).filter(|f| matches!(f, Format::Float | Format::Double)))
        }
        _ => (Type::Any, None),
    };
    out.extend(in_range(number, kind, format, "Checked", path));
    let Some(limits) = limits else { return };
    if let Some(factor) = limits.multiple_of {
        match in_range(GoNumber::Float(factor), kind, format, "MultipleOf", path) {
            None => multiple_of(number, factor, path, out),
            Some(error) => {
                out.push(error);
                multiple_of(GoNumber::Float(number.float()), factor, path, out);
            }
        }
    }
    if let Some(limit) = limits.minimum {
        let words = if limits.exclusive_minimum { "greater than" } else { "greater than or equal to" };
        let bound = Bound { limit, words, exclusive: limits.exclusive_minimum, below: true };
        bound.check(number, kind, format, "Minimum boundary", path, out);
    }
    if let Some(limit) = limits.maximum {
        let words = if limits.exclusive_maximum { "less than" } else { "less than or equal to" };
        let bound = Bound { limit, words, exclusive: limits.exclusive_maximum, below: false };
        bound.check(number, kind, format, "Maximum boundary", path, out);
    }
}

struct Bound<'w> {
    limit: f64,
    words: &'w str,
    exclusive: bool,
    below: bool,
}

impl Bound<'_> {
    fn check(
        &self,
        number: GoNumber,
        kind: Type,
        format: Option<Format>,
        prefix: &str,
        path: &str,
        out: &mut Vec<Found>,
    ) {
        let complaint = in_range(GoNumber::Float(self.limit), kind, format, prefix, path);
        let number = if complaint.is_some() { GoNumber::Float(number.float()) } else { number };
        out.extend(complaint);
        let (beyond, shown) = match number {
            GoNumber::Int(int) => {
                // An integer is compared with the integral part of the limit.
                let limit = self.limit as i64;
                let beyond = if self.below { int < limit } else { int > limit };
                (beyond || (self.exclusive && int == limit), limit.to_string())
            }
            GoNumber::Float(float) => {
                let beyond = if self.below { float < self.limit } else { float > self.limit };
                (beyond || (self.exclusive && float == self.limit), go::float(self.limit))
            }
        };
        if beyond {
            out.push(Found::invalid(
                path,
                number.shown(),
                format!("{path} in body should be {} {shown}", self.words),
            ));
        }
    }
}

fn multiple_of(number: GoNumber, factor: f64, path: &str, out: &mut Vec<Found>) {
    let (shown, fits, positive) = match number {
        GoNumber::Int(int) => {
            let factor = factor as i64;
            (factor.to_string(), factor > 0 && int.checked_rem(factor) == Some(0), factor > 0)
        }
        GoNumber::Float(float) => {
            let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (go::float(factor), go::is_whole(quotient), factor > 0.0)
        }
    };
    if !positive {
        out.push(Found::invalid(
            path,
            Shown::Verbatim(shown.clone()),
            format!("factor MultipleOf declared for {path} must be positive: {shown}"),
        ));
    } else if !fits {
        out.push(Found::invalid(
            path,
            number.shown(),
            format!("{path} in body should be a multiple of {shown}"),
        ));
    }
}
