//! The string functions of CEL's extension library, version 2, which Kubernetes enables. Positions count
//! characters, not bytes.

use k1s_object::field::quote;

use super::{int, scaled, scan_cost, size, text};
use crate::{
    cost::{CallEstimate, CallNodes, STRING_FACTOR, SizeEstimate},
    error::EvalError,
    function::{Call, Function, Overload},
    types::Type,
    value::{MAX_TEXT, Value},
};

fn out_of_range(index: i64) -> String {
    format!("index out of range: {index}")
}

fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// The place in bytes of a character; `None` if there are fewer characters.
fn place(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().nth(index)
}

/// `charAt`: one character, or an empty text at the end.
pub fn char_at(text: &str, index: i64) -> Result<String, String> {
    let at = place(text, index).ok_or_else(|| out_of_range(index))?;
    let rest = text.get(at..).unwrap_or_default();
    Ok(rest.chars().next().map(String::from).unwrap_or_default())
}

/// `indexOf`: the position of the first occurrence at or after `offset`, or -1.
pub fn index_of(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Some(start) = place(text, offset) else {
        return Ok(if part.is_empty() { count(text) } else { -1 });
    };
    let rest = text.get(start..).unwrap_or_default();
    Ok(match rest.find(part) {
        Some(at) => offset + count(rest.get(..at).unwrap_or_default()),
        None => -1,
    })
}

/// `lastIndexOf` without an offset.
pub fn last_index_of(text: &str, part: &str) -> Result<i64, String> {
    if part.is_empty() {
        return Ok(count(text));
    }
    if text.len() < part.len() {
        return Ok(-1);
    }
    last_index_of_from(text, part, count(text) - 1)
}

/// `lastIndexOf`: the position of the last occurrence that begins at or before `offset`, or -1.
pub fn last_index_of_from(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let length = count(text);
    if part.is_empty() {
        return Ok(offset.min(length));
    }
    if offset >= length {
        return Ok(-1);
    }
    // The occurrence may reach beyond the offset, so as many characters after it belong to the search.
    let end = place(text, offset.saturating_add(count(part))).unwrap_or(text.len());
    let searched = text.get(..end).unwrap_or(text);
    Ok(searched.rfind(part).map_or(-1, |at| count(searched.get(..at).unwrap_or_default())))
}

/// `replace`: the first `limit` occurrences, or all of them if it is negative.
pub fn replace(text: &str, old: &str, new: &str, limit: i64) -> String {
    match usize::try_from(limit) {
        Err(_) => text.replace(old, new),
        Ok(limit) => text.replacen(old, new, limit),
    }
}

/// `split`: at most `limit` parts, or all of them if it is negative.
pub fn split<'t>(text: &'t str, separator: &str, limit: i64) -> Vec<&'t str> {
    let limit = match usize::try_from(limit) {
        Ok(0) => return Vec::new(),
        Ok(limit) => limit,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    // Every character is a part; the last one is the rest.
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (first, after) = rest.split_at_checked(c.len_utf8()).unwrap_or((rest, ""));
        parts.push(first);
        rest = after;
    }
    parts
}

/// `substring` to the end.
pub fn substring_from(text: &str, start: i64) -> Result<&str, String> {
    place(text, start).and_then(|at| text.get(at..)).ok_or_else(|| out_of_range(start))
}

/// `substring`
pub fn substring(text: &str, start: i64, end: i64) -> Result<&str, String> {
    if start > end {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let from = place(text, start).ok_or_else(|| out_of_range(start))?;
    let to = place(text, end).ok_or_else(|| out_of_range(end))?;
    Ok(text.get(from..to).unwrap_or_default())
}

/// `strings.quote`: a text in double quotes, with CEL's escapes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `jsonpatch.escapeKey`: a key as a part of a JSON pointer.
pub fn escape_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text to be copied.
    Text(&'t str),
    /// A place for the next argument.
    Clause(Clause),
}

/// How an argument is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    /// `%s`
    Text,
    /// `%d`
    Decimal,
    /// `%f`, with the number of digits.
    Fixed(usize),
    /// `%e`, with the number of digits.
    Scientific(usize),
    /// `%b`
    Binary,
    /// `%x`, or `%X` if true.
    Hex(bool),
    /// `%o`
    Octal,
}

/// The digits after the point if the format has no precision.
pub const DEFAULT_PRECISION: usize = 6;

/// The most digits that are written. Upstream has no limit; without one, a short expression allocates gigabytes.
pub const MAX_PRECISION: usize = 1000;

/// Reads the next piece of a format string, and what follows it. The error is upstream's.
pub fn next_piece(format: &str) -> Result<Option<(Piece<'_>, &str)>, String> {
    if format.is_empty() {
        return Ok(None);
    }
    let Some(after) = format.strip_prefix('%') else {
        let end = format.find('%').unwrap_or(format.len());
        let (text, rest) = format.split_at_checked(end).unwrap_or((format, ""));
        return Ok(Some((Piece::Text(text), rest)));
    };
    if let Some(rest) = after.strip_prefix('%') {
        return Ok(Some((Piece::Text("%"), rest)));
    }
    if after.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let failed = |error: String| format!("could not parse formatting clause: {error}");
    let (precision, rest) = precision(after).map_err(failed)?;
    let Some(verb) = rest.chars().next() else {
        return Err(failed("could not find end of precision specifier".to_owned()));
    };
    let digits = precision.unwrap_or(DEFAULT_PRECISION);
    let clause = match verb {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(digits),
        'e' => Clause::Scientific(digits),
        'b' => Clause::Binary,
        'x' => Clause::Hex(false),
        'X' => Clause::Hex(true),
        'o' => Clause::Octal,
        // Upstream looks at one byte, not at a character.
        _ => {
            let byte = rest.bytes().next().map(char::from).unwrap_or_default();
            return Err(failed(format!("unrecognized formatting clause \"{byte}\"")));
        }
    };
    Ok(Some((Piece::Clause(clause), rest.get(1..).unwrap_or_default())))
}

fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(after) = text.strip_prefix('.') else { return Ok((None, text)) };
    let failed = |error: &str| format!("error while parsing precision: {error}");
    let Some(end) = after.find(|c: char| !c.is_ascii_digit()) else {
        return Err(failed("could not find end of precision specifier"));
    };
    let (digits, rest) = after.split_at_checked(end).unwrap_or((after, ""));
    let wrong = match digits.parse::<i64>() {
        Ok(precision) => {
            let precision = usize::try_from(precision).unwrap_or(usize::MAX);
            if precision > MAX_PRECISION {
                return Err(failed(&format!(
                    "precision {precision} exceeds maximum allowed precision {MAX_PRECISION}"
                )));
            }
            return Ok((Some(precision), rest));
        }
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(failed(&format!(
        "error while converting precision to integer: strconv.Atoi: parsing {}: {wrong}",
        quote(digits)
    )))
}

/// A number with fixed digits after the point, and commas between thousands, as `%f` writes it in American English.
pub fn fixed(value: f64, digits: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{:.digits$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    if value.is_sign_negative() {
        out.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number as `%e` writes it in American English: `1.052033×10⁰³`. As upstream, the precision is the least number of
/// characters, and there are always six digits after the point.
pub fn scientific(value: f64, width: usize) -> String {
    let text = match not_finite(value) {
        Some(text) => text.to_owned(),
        None => {
            let text = format!("{value:.6e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, power) = exponent.strip_prefix('-').map_or(("", exponent), |power| ("⁻", power));
            let raised = format!("{power:0>2}").chars().map(superscript).collect::<String>();
            format!("{mantissa}×10{sign}{raised}")
        }
    };
    format!("{text:>width$}")
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    }
}

fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("∞")
    } else if value == f64::NEG_INFINITY {
        Some("-∞")
    } else {
        None
    }
}

/// The estimated cost of a function of a text that makes another one of at most its length.
fn transform_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.target()?);
    Some(CallEstimate::sized(size.cost(STRING_FACTOR), size))
}

fn index_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(nodes.size(nodes.target()?).cost(STRING_FACTOR)))
}

/// As upstream: the length in bytes, rounded down.
fn index_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some((text(args, 0).ok()?.len() as f64 * STRING_FACTOR) as u64)
}

fn double_scan_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some(scaled(size(args, 0), 2.0 * STRING_FACTOR))
}

fn replace_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let [old, new, ..] = nodes.args() else { return None };
    let (size, old, new) = (nodes.size(nodes.target()?), nodes.size(old), nodes.size(new));
    let (mut count, mut kept) = (SizeEstimate::fixed(0), SizeEstimate::fixed(0));
    let times = |size: u64, part: u64| (size as f64 / part as f64).ceil() as u64;
    // The longest result: an empty part is found around each character.
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = times(size.max, old.min);
    }
    // The shortest.
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = times(size.min, old.max);
    }
    Some(CallEstimate::sized(size.cost(2.0 * STRING_FACTOR), count.multiply(new).plus(kept)))
}

fn split_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.target()?);
    // A limit of -1 is none.
    let most = match nodes.args().get(1).and_then(|node| node.literal()) {
        Some(Value::Int(limit)) => *limit as u64,
        _ => size.max,
    };
    Some(CallEstimate::sized(size.cost(2.0 * STRING_FACTOR), SizeEstimate::range(0, most)))
}

fn join_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let target = nodes.target()?;
    let list = nodes.size(target);
    let mut size = match nodes.element(target) {
        Some(items) => list.multiply(nodes.size(&items)),
        None => SizeEstimate::fixed(0),
    };
    if let Some(separator) = nodes.args().first() {
        let between = SizeEstimate::range(list.min.saturating_sub(1), list.max.saturating_sub(1));
        size = size.plus(nodes.size(separator).multiply(between));
    }
    Some(CallEstimate::sized(size.cost(STRING_FACTOR), size))
}

fn join_cost(_: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    Some(scaled(result.size(), 2.0 * STRING_FACTOR))
}

fn join<'a>(args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some(Value::List(list)) = args.first() else { return Err(EvalError::NoSuchOverload) };
    let separator = if args.len() > 1 { text(args, 1)? } else { "" };
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        let item = item?;
        out.push_str(item.as_str().ok_or_else(|| EvalError::new("join: invalid input"))?);
        // A longer text costs more than any expression may, and is not made.
        if out.len() > MAX_TEXT {
            return Err(EvalError::CostLimit);
        }
    }
    Ok(out.into())
}

fn quote_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.args().first()?);
    let most = size.max.saturating_mul(2).saturating_add(2);
    Some(CallEstimate::sized(size.cost(STRING_FACTOR), SizeEstimate::range(size.min.saturating_add(2), most)))
}

fn format_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(nodes.size(nodes.target()?).cost(STRING_FACTOR)))
}

/// The functions of the library `cel.lib.ext.strings`.
pub(super) fn functions() -> Vec<Function> {
    use Type::{Int, String as Str};
    let strings = || Type::list(Str);
    let transform = |id, params, call: Call| {
        Overload::member(id, params, Str, call).with_cost(transform_estimate, scan_cost)
    };
    let index = |id, params, call: Call| {
        Overload::member(id, params, Int, call).with_cost(index_estimate, index_cost)
    };
    let replacing = |id, params, call: Call| {
        Overload::member(id, params, Str, call).with_cost(replace_estimate, double_scan_cost)
    };
    let splitting = |id, params, call: Call| {
        Overload::member(id, params, strings(), call).with_cost(split_estimate, double_scan_cost)
    };
    let joining = |id, params| Overload::member(id, params, Str, join).with_cost(join_estimate, join_cost);
    vec![
        Function::new(
            "charAt",
            vec![Overload::member("string_char_at_int", vec![Str, Int], Str, |args| {
                Ok(char_at(text(args, 0)?, int(args, 1)?).map_err(EvalError::new)?.into())
            })],
        ),
        Function::new(
            "indexOf",
            vec![
                index("string_index_of_string", vec![Str, Str], |args| {
                    Ok(index_of(text(args, 0)?, text(args, 1)?, 0).map_err(EvalError::new)?.into())
                }),
                index("string_index_of_string_int", vec![Str, Str, Int], |args| {
                    let found = index_of(text(args, 0)?, text(args, 1)?, int(args, 2)?);
                    Ok(found.map_err(EvalError::new)?.into())
                }),
            ],
        ),
        Function::new(
            "lastIndexOf",
            vec![
                index("string_last_index_of_string", vec![Str, Str], |args| {
                    Ok(last_index_of(text(args, 0)?, text(args, 1)?).map_err(EvalError::new)?.into())
                }),
                index("string_last_index_of_string_int", vec![Str, Str, Int], |args| {
                    let found = last_index_of_from(text(args, 0)?, text(args, 1)?, int(args, 2)?);
                    Ok(found.map_err(EvalError::new)?.into())
                }),
            ],
        ),
        Function::new(
            "lowerAscii",
            vec![transform("string_lower_ascii", vec![Str], |args| {
                Ok(text(args, 0)?.to_ascii_lowercase().into())
            })],
        ),
        Function::new(
            "upperAscii",
            vec![transform("string_upper_ascii", vec![Str], |args| {
                Ok(text(args, 0)?.to_ascii_uppercase().into())
            })],
        ),
        Function::new(
            "trim",
            vec![transform("string_trim", vec![Str], |args| Ok(text(args, 0)?.trim().to_owned().into()))],
        ),
        Function::new(
            "substring",
            vec![
                transform("string_substring_int", vec![Str, Int], |args| {
                    let part = substring_from(text(args, 0)?, int(args, 1)?);
                    Ok(part.map_err(EvalError::new)?.to_owned().into())
                }),
                transform("string_substring_int_int", vec![Str, Int, Int], |args| {
                    let part = substring(text(args, 0)?, int(args, 1)?, int(args, 2)?);
                    Ok(part.map_err(EvalError::new)?.to_owned().into())
                }),
            ],
        ),
        Function::new(
            "replace",
            vec![
                replacing("string_replace_string_string", vec![Str, Str, Str], |args| {
                    replaced(text(args, 0)?, text(args, 1)?, text(args, 2)?, -1)
                }),
                replacing("string_replace_string_string_int", vec![Str, Str, Str, Int], |args| {
                    replaced(text(args, 0)?, text(args, 1)?, text(args, 2)?, int(args, 3)?)
                }),
            ],
        ),
        Function::new(
            "split",
            vec![
                splitting("string_split_string", vec![Str, Str], |args| {
                    Ok(owned(split(text(args, 0)?, text(args, 1)?, -1)))
                }),
                splitting("string_split_string_int", vec![Str, Str, Int], |args| {
                    Ok(owned(split(text(args, 0)?, text(args, 1)?, int(args, 2)?)))
                }),
            ],
        ),
        Function::new(
            "join",
            vec![joining("list_join", vec![strings()]), joining("list_join_string", vec![strings(), Str])],
        ),
        Function::new(
            "strings.quote",
            vec![
                Overload::global("strings_quote", vec![Str], Str, |args| Ok(quoted(text(args, 0)?).into()))
                    .with_cost(quote_estimate, scan_cost),
            ],
        ),
        Function::new(
            "format",
            vec![
                Overload::member("string_format", vec![Str, Type::list(Type::Dyn)], Str, |args| {
                    let Some(Value::List(list)) = args.get(1) else { return Err(EvalError::NoSuchOverload) };
                    Ok(super::text_format::format(text(args, 0)?, list)?.into())
                })
                .with_cost(format_estimate, scan_cost),
            ],
        ),
    ]
}

/// The function of the library `kubernetes.jsonpatch`.
pub(super) fn json_patch_functions() -> Vec<Function> {
    fn estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
        let size = nodes.size(nodes.args().first()?);
        Some(CallEstimate::sized(size.cost(STRING_FACTOR), size))
    }
    let escape: Call = |args| Ok(escape_key(text(args, 0)?).into());
    let overload =
        Overload::global("string_jsonpatch_escapeKey_string", vec![Type::String], Type::String, escape);
    vec![Function::new("jsonpatch.escapeKey", vec![overload.with_cost(estimate, scan_cost)])]
}

fn owned<'a>(parts: Vec<&str>) -> Value<'a> {
    Value::list(parts.into_iter().map(|part| Value::from(part.to_owned())).collect())
}

/// The longest text that `replace` makes: a short expression can ask for one of any length.
const MAX_REPLACED: usize = 64 << 20;

fn replaced<'a>(text: &str, old: &str, new: &str, limit: i64) -> Result<Value<'a>, EvalError> {
    let found = text.len() / old.len().max(1) + 1;
    let times = usize::try_from(limit).map_or(found, |limit| limit.min(found));
    if times.saturating_mul(new.len()) > MAX_REPLACED {
        return Err(EvalError::CostLimit);
    }
    Ok(replace(text, old, new, limit).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        assert_eq!(char_at("hello", 4).unwrap(), "o");
        assert_eq!(char_at("©αT", 1).unwrap(), "α");
        assert_eq!(char_at("hello", 5).unwrap(), "");
        assert_eq!(char_at("hello", 6).unwrap_err(), "index out of range: 6");
        assert_eq!(char_at("hello", -1).unwrap_err(), "index out of range: -1");
        for (text, part, offset, expected) in [
            ("tacocat", "", 0, 0),
            ("tacocat", "ac", 0, 1),
            ("tacocat", "none", 0, -1),
            ("tacocat", "a", 3, 5),
            ("tacocat", "at", 3, 5),
            ("ta©o©αT", "©", 3, 4),
            ("ta©o©αT", "©αT", 3, 4),
            ("ta©o©αT", "©α", 5, -1),
            ("tacocat", "", 9, 7),
            ("tacocat", "a", 9, -1),
        ] {
            assert_eq!(index_of(text, part, offset), Ok(expected), "{text} {part} {offset}");
        }
        assert_eq!(index_of("a", "b", -1).unwrap_err(), "index out of range: -1");
        for (text, part, offset, expected) in [
            ("tacocat", "", None, 7),
            ("tacocat", "at", None, 5),
            ("tacocat", "none", None, -1),
            ("tacocat", "", Some(3), 3),
            ("tacocat", "a", Some(3), 1),
            ("tacocat", "a", Some(5), 5),
            ("tacocat", "at", Some(5), 5),
            ("ta©o©αT", "©", Some(3), 2),
            ("ta©o©αT", "©", Some(4), 4),
            ("tacocat", "a", Some(9), -1),
            ("ab", "abc", None, -1),
        ] {
            let found = match offset {
                None => last_index_of(text, part),
                Some(offset) => last_index_of_from(text, part, offset),
            };
            assert_eq!(found, Ok(expected), "{text} {part} {offset:?}");
        }
    }

    #[test]
    fn texts_are_split_replaced_and_cut() {
        assert_eq!(split("hello hello hello", " ", -1), ["hello", "hello", "hello"]);
        assert_eq!(split("hello hello hello", " ", 0), Vec::<&str>::new());
        assert_eq!(split("hello hello hello", " ", 1), ["hello hello hello"]);
        assert_eq!(split("hello hello hello", " ", 2), ["hello", "hello hello"]);
        assert_eq!(split("aé", "", -1), ["a", "é"]);
        assert_eq!(split("abc", "", 2), ["a", "bc"]);
        assert_eq!(split("", "", -1), Vec::<&str>::new());
        assert_eq!(split("", ",", -1), [""]);
        assert_eq!(replace("12 days 12 hours", "12", "1", 1), "1 days 12 hours");
        assert_eq!(replace("12 days 12 hours", "12", "1", -1), "1 days 1 hours");
        assert_eq!(replace("ab", "", "-", -1), "-a-b-");
        assert_eq!(substring_from("tacocat", 4), Ok("cat"));
        assert_eq!(substring("ta©o©αT", 2, 6), Ok("©o©α"));
        assert_eq!(substring("tacocat", 7, 7), Ok(""));
        assert_eq!(substring("tacocat", 2, 1).unwrap_err(), "invalid substring range. start: 2, end: 1");
        assert_eq!(substring("tacocat", 0, 9).unwrap_err(), "index out of range: 9");
        assert_eq!(quoted("first\nsecond \"x\" \\ \u{7}"), r#""first\nsecond \"x\" \\ \a""#);
        assert_eq!(escape_key("k8s.io/my~label"), "k8s.io~1my~0label");
    }

    #[test]
    fn formats_have_pieces() {
        let pieces = |mut format| {
            let mut pieces = Vec::new();
            while let Some((piece, rest)) = next_piece(format)? {
                pieces.push(piece);
                format = rest;
            }
            Ok::<_, String>(pieces)
        };
        assert_eq!(
            pieces("a %s%% %.3f").unwrap(),
            [
                Piece::Text("a "),
                Piece::Clause(Clause::Text),
                Piece::Text("%"),
                Piece::Text(" "),
                Piece::Clause(Clause::Fixed(3))
            ]
        );
        for (format, error) in [
            ("%", "unexpected end of string"),
            ("%a", "could not parse formatting clause: unrecognized formatting clause \"a\""),
            (
                "%.3",
                "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
            ),
            (
                "%.f",
                "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax",
            ),
        ] {
            assert_eq!(pieces(format).unwrap_err(), error);
        }
    }

    #[test]
    fn numbers_are_written_as_in_the_united_states() {
        assert_eq!(fixed(1234567.891, 2), "1,234,567.89");
        assert_eq!(fixed(-0.5, 0), "-0");
        assert_eq!(fixed(999.0, 1), "999.0");
        assert_eq!(scientific(1052.032911275, 6), "1.052033×10⁰³");
        assert_eq!(scientific(0.00012, 1), "1.200000×10⁻⁰⁴");
        assert_eq!(scientific(f64::INFINITY, 6), "     ∞");
        assert_eq!(fixed(f64::NEG_INFINITY, 1), "-∞");
    }
}
