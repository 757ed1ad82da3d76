//! How a string is written: plain, quoted, or as a block.

use std::{cmp::Ordering, fmt::Write as _};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What the characters of a text allow.
#[derive(Default)]
struct Marks {
    /// Something in it has a meaning in YAML.
    indicators: bool,
    /// Characters that cannot be written as they are.
    special: bool,
    breaks: bool,
    edge_space: bool,
    trailing_space: bool,
    /// A space before a line break, or after it.
    space_break: bool,
    break_space: bool,
}

pub(super) fn style(text: &str) -> Style {
    let marks = marks(text);
    let plain =
        !marks.edge_space && !marks.breaks && !marks.break_space && !marks.space_break && !marks.indicators;
    if marks.breaks {
        let block = !marks.trailing_space && !marks.space_break && !marks.special;
        return if block { Style::Literal } else { Style::Double };
    }
    if marks.special || is_another_type(text) {
        return Style::Double;
    }
    if plain { Style::Plain } else { Style::Single }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_break(c: Option<char>) -> bool {
    c.is_none_or(|c| c == ' ' || c == '\t' || is_break(c))
}

fn marks(text: &str) -> Marks {
    let mut marks =
        Marks { indicators: text.starts_with("---") || text.starts_with("..."), ..Marks::default() };
    let mut characters = text.chars().peekable();
    let (mut first, mut previous) = (true, None);
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        let ends = is_blank_or_break(next);
        if first {
            marks.indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`' => true,
                '?' | ':' | '-' => ends,
                _ => false,
            };
        } else {
            marks.indicators |= match c {
                ':' => ends,
                '#' => is_blank_or_break(previous),
                _ => false,
            };
        }
        let printable = c == '\n'
            || (' '..='~').contains(&c)
            || (c >= '\u{a0}' && c != '\u{feff}' && !('\u{fffe}'..='\u{ffff}').contains(&c));
        // Go reads other breaks as line breaks, and does not write them in blocks.
        marks.special |= !printable || (is_break(c) && c != '\n');
        if c == ' ' {
            marks.edge_space |= first || next.is_none();
            marks.trailing_space |= next.is_none();
            marks.break_space |= previous.is_some_and(is_break);
        } else if is_break(c) {
            marks.breaks = true;
            marks.space_break |= previous == Some(' ');
        }
        previous = Some(c);
        first = false;
    }
    marks
}

/// Whether YAML 1.1 reads a plain text as something else than a string.
fn is_another_type(text: &str) -> bool {
    const WORDS: [&str; 37] = [
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On",
        "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan", ".NaN",
        ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "<<",
    ];
    if WORDS.contains(&text) || matches!(text, "-.inf" | "-.Inf" | "-.INF") {
        return true;
    }
    let starts = |c: u8| c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.');
    text.bytes().next().is_some_and(starts) && (is_number(text) || is_sexagesimal(text) || is_timestamp(text))
}

fn is_number(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    is_integer(&plain) || is_float(&plain)
}

/// Go's `ParseInt` with base 0, for 64 bits.
fn is_integer(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let (digits, base) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    !digits.starts_with(['+', '-']) && u64::from_str_radix(digits, base).is_ok()
}

/// Digits with a point and an exponent.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = match mantissa.split_once('.') {
        Some((whole, part)) => {
            all_digits(whole) && all_digits(part) && !(whole.is_empty() && part.is_empty())
        }
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let power = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    number && power
}

/// `12:30:45.5`: base 60 in YAML 1.1.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits_or_underscores = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let leading = parts.next().unwrap_or_default();
    let mut more = 0;
    for part in parts {
        more += 1;
        let fits = match part.as_bytes() {
            [one] => one.is_ascii_digit(),
            [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    more > 0
        && leading.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && digits_or_underscores(leading)
        && digits_or_underscores(fraction)
}

/// `2006-1-2`, alone or with a time.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, time) = text.split_at(end);
    let number = |text: &str, from: u8, to: u8| {
        (1..=2).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u8>().is_ok_and(|number| (from..=to).contains(&number))
    };
    let mut parts = date[5..].split('-');
    let (month, day, rest) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    if !number(month, 1, 12) || !number(day, 1, 31) || rest.is_some() {
        return false;
    }
    if time.is_empty() {
        return true;
    }
    // Go wants a zone after `T`, and none after a space.
    let (clock, zoned) = match time[1..].strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, true),
        None => match time[1..].find(['+', '-']) {
            Some(at) => {
                let zone = &time[1 + at + 1..];
                let zone = zone.split_once(':').is_some_and(|(h, m)| number(h, 0, 23) && number(m, 0, 59));
                if !zone {
                    return false;
                }
                (&time[1..=at], true)
            }
            None => (&time[1..], false),
        },
    };
    if zoned == time.starts_with(' ') {
        return false;
    }
    let mut parts = clock.split(':');
    let (hour, minute, second) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let second = second.split_once('.').map_or(second, |(second, _)| second);
    number(hour, 0, 23) && number(minute, 0, 59) && number(second, 0, 59) && parts.next().is_none()
}

pub(super) fn single_quoted(out: &mut String, text: &str) {
    out.push('\'');
    for c in text.chars() {
        if c == '\'' {
            out.push('\'');
        }
        out.push(c);
    }
    out.push('\'');
}

pub(super) fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        let escaped = match c {
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\t' => "\\t",
            '\n' => "\\n",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\r' => "\\r",
            '\u{1b}' => "\\e",
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{85}' => "\\N",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            '\u{feff}' => "\\uFEFF",
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02X}", u32::from(c));
                continue;
            }
            '\u{fffe}' => "\\uFFFE",
            '\u{ffff}' => "\\uFFFF",
            c => {
                out.push(c);
                continue;
            }
        };
        out.push_str(escaped);
    }
    out.push('"');
}

/// `|` and the lines, with what their beginning and end need.
pub(super) fn literal(out: &mut String, text: &str, indent: usize) {
    // At the top of a document, a block is indented as well.
    let indent = indent.max(2);
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    out.push('\n');
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// The order of keys: letters after everything else, numbers by their value.
pub(super) fn by_key(a: &str, b: &str) -> Ordering {
    // Most keys are words.
    if a.bytes().chain(b.bytes()).all(|byte| byte.is_ascii_alphabetic()) {
        return a.cmp(b);
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let digits = |text: &[char], from: usize| {
        let end = text[from..].iter().position(|c| !c.is_ascii_digit()).map_or(text.len(), |at| from + at);
        let number = text[from..end].iter().fold(0_u64, |number, digit| {
            number.wrapping_mul(10).wrapping_add(u64::from(digit.to_digit(10).unwrap_or_default()))
        });
        (number, end)
    };
    for at in 0..a.len().min(b.len()) {
        if a[at] == b[at] {
            continue;
        }
        match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
            (true, true) => return a[at].cmp(&b[at]),
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let (mut x, x_end) = digits(&a, at);
        let (mut y, y_end) = digits(&b, at);
        if a[at] == '0' || b[at] == '0' {
            // A zero inside of a number is a digit like others.
            let inside = a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
            if inside {
                let lead = |end: usize, number: u64| {
                    10_u64.wrapping_pow(u32::try_from(end - at).unwrap_or(u32::MAX)).wrapping_add(number)
                };
                (x, y) = (lead(x_end, x), lead(y_end, y));
            }
        }
        return x.cmp(&y).then_with(|| x_end.cmp(&y_end)).then_with(|| a[at].cmp(&b[at]));
    }
    a.len().cmp(&b.len())
}
