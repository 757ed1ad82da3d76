//! Translates patterns from Go's RE2 to the syntax of the `regex` crate. Patterns that Go rejects are rejected
//! with Go's message.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled pattern.
const MAX_SIZE: usize = 8 << 20;

/// Maximum total size of the compiled patterns of a definition.
const MAX_TOTAL_SIZE: usize = 16 << 20;

/// Maximum length of a pattern in an error message.
const MAX_SHOWN: usize = 1000;

/// Compiles a Go pattern; the error is Go's.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern).map_err(|error| format!("error parsing regexp: {error}"))?;
    build(&translated, MAX_SIZE).ok_or_else(|| too_large(pattern))
}

fn build(translated: &str, size: usize) -> Option<Regex> {
    RegexBuilder::new(translated)
        .size_limit(size)
        // Patterns stay in memory as long as their definition, so their caches are small.
        .dfa_size_limit(256 << 10)
        .nest_limit(1000)
        .build()
        .ok()
}

fn too_large(pattern: &str) -> String {
    let shown = pattern.get(..pattern.floor_char_boundary(MAX_SHOWN)).unwrap_or_default();
    let more = if shown.len() < pattern.len() { "..." } else { "" };
    format!("error parsing regexp: expression too large: `{shown}{more}`")
}

/// The patterns of a definition: each is compiled once, within a common size limit.
#[derive(Debug, Default)]
pub struct Patterns {
    known: HashMap<String, Result<(), String>>,
    spent: usize,
}

impl Patterns {
    /// Whether Go would compile the pattern and it fits the limit.
    pub fn check(&mut self, pattern: &str) -> Result<(), String> {
        if let Some(known) = self.known.get(pattern) {
            return known.clone();
        }
        let checked = self.check_new(pattern);
        self.known.insert(pattern.to_owned(), checked.clone());
        checked
    }

    fn check_new(&mut self, pattern: &str) -> Result<(), String> {
        let translated = translate(pattern).map_err(|error| format!("error parsing regexp: {error}"))?;
        // The compiled size is not exposed, so limits are tried in ascending order; most patterns are small.
        for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, MAX_SIZE] {
            if self.spent + size > MAX_TOTAL_SIZE {
                let shown = too_large(pattern);
                return Err(format!("{shown}: all patterns together take more than {MAX_TOTAL_SIZE} bytes"));
            }
            if build(&translated, size).is_some() {
                self.spent += size;
                return Ok(());
            }
        }
        self.spent += MAX_SIZE;
        Err(too_large(pattern))
    }
}

struct Reader<'p> {
    pattern: &'p str,
    at: usize,
    out: String,
}

impl<'p> Reader<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn from(&self, start: usize) -> &'p str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut r = Reader { pattern, at: 0, out: String::with_capacity(pattern.len() + 8) };
    let mut depth = 0usize;
    // The end of the last repeatable atom, and the start of the last repetition.
    let mut atom = false;
    let mut repeated: Option<usize> = None;
    while let Some(c) = r.peek() {
        let start = r.at;
        match c {
            '(' => {
                depth += 1;
                atom = false;
                repeated = None;
                group(&mut r, &mut depth)?;
                continue;
            }
            ')' => {
                if depth == 0 {
                    return Err(format!("unexpected ): `{pattern}`"));
                }
                depth -= 1;
                r.next();
                r.out.push(')');
                atom = true;
                repeated = None;
                continue;
            }
            '|' => {
                r.next();
                r.out.push('|');
                atom = false;
                repeated = None;
                continue;
            }
            '[' => class(&mut r)?,
            '*' | '+' | '?' => {
                r.next();
                repeat(&mut r, start, atom, &mut repeated)?;
                continue;
            }
            '{' => match counted(r.rest()) {
                None => {
                    r.next();
                    r.out.push_str("\\{");
                }
                Some((length, min, max)) => {
                    r.at += length;
                    if min > 1000 || max.is_some_and(|max| max > 1000 || max < min) {
                        return Err(format!("invalid repeat count: `{}`", r.from(start)));
                    }
                    repeat(&mut r, start, atom, &mut repeated)?;
                    continue;
                }
            },
            '\\' => escape(&mut r)?,
            _ => {
                r.next();
                r.out.push(c);
            }
        }
        atom = true;
        repeated = None;
    }
    if depth > 0 {
        return Err(format!("missing closing ): `{pattern}`"));
    }
    Ok(r.out)
}

/// After a repetition operator that began at `start`: consumes a `?`, and rejects the repetition of nothing or
/// of repetitions.
fn repeat(r: &mut Reader<'_>, start: usize, atom: bool, repeated: &mut Option<usize>) -> Result<(), String> {
    let operator_end = r.at;
    if r.peek() == Some('?') {
        r.next();
    }
    if !atom {
        let operator = r.pattern.get(start..operator_end).unwrap_or_default();
        return Err(format!("missing argument to repetition operator: `{operator}`"));
    }
    if let Some(before) = *repeated {
        return Err(format!("invalid nested repetition operator: `{}`", r.from(before)));
    }
    *repeated = Some(start);
    let text = r.from(start);
    r.out.push_str(text);
    Ok(())
}

/// The length and the bounds of a counted repetition such as `{2,4}`; `None` if the brace is literal.
fn counted(rest: &str) -> Option<(usize, u32, Option<u32>)> {
    let inner = rest.strip_prefix('{')?;
    let end = inner.find('}')?;
    let inner = inner.get(..end)?;
    let number = |text: &str| -> Option<u32> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        if text.len() > 1 && text.starts_with('0') {
            return None;
        }
        Some(text.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => {
            let count = number(inner)?;
            (count, Some(count))
        }
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    Some((end + 2, min, max))
}

/// An opening parenthesis with its flags or name.
fn group(r: &mut Reader<'_>, depth: &mut usize) -> Result<(), String> {
    let start = r.at;
    r.next();
    if r.peek() != Some('?') {
        r.out.push('(');
        return Ok(());
    }
    let rest = r.rest();
    if rest.starts_with("?P<") || rest.starts_with("?<") {
        let Some(end) = rest.find('>') else {
            return Err(format!("invalid named capture: `{}`", r.pattern.get(start..).unwrap_or_default()));
        };
        let name_at = if rest.starts_with("?P<") { 3 } else { 2 };
        let name = rest.get(name_at..end).unwrap_or_default();
        r.at += end + 1;
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return Err(format!("invalid named capture: `{}`", r.from(start)));
        }
        r.out.push('(');
        return Ok(());
    }
    r.next();
    let mut negated = false;
    let mut flags = 0;
    while let Some(c) = r.next() {
        match c {
            'i' | 'm' | 's' | 'U' => flags += 1,
            '-' if !negated => {
                negated = true;
                flags = 0;
            }
            ':' | ')' => {
                if negated && flags == 0 {
                    break;
                }
                if c == ')' {
                    *depth = depth.saturating_sub(1);
                }
                let text = r.from(start);
                r.out.push_str(text);
                return Ok(());
            }
            _ => break,
        }
    }
    Err(format!("invalid or unsupported Perl syntax: `{}`", r.from(start)))
}

fn perl_class(c: char) -> Option<&'static str> {
    match c {
        'd' => Some("0-9"),
        'w' => Some("0-9A-Za-z_"),
        's' => Some("\\t\\n\\x0C\\r "),
        _ => None,
    }
}

/// An escape outside of a class.
fn escape(r: &mut Reader<'_>) -> Result<(), String> {
    let start = r.at;
    r.next();
    let Some(c) = r.peek() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    if let Some(class) = perl_class(c) {
        r.next();
        r.out.push('[');
        r.out.push_str(class);
        r.out.push(']');
        return Ok(());
    }
    if let Some(class) = perl_class(c.to_ascii_lowercase()).filter(|_| c.is_ascii_uppercase()) {
        r.next();
        r.out.push_str("[^");
        r.out.push_str(class);
        r.out.push(']');
        return Ok(());
    }
    match c {
        'b' | 'B' => {
            r.next();
            r.out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
            Ok(())
        }
        'A' | 'z' => {
            r.next();
            r.out.push('\\');
            r.out.push(c);
            Ok(())
        }
        'Q' => {
            r.next();
            let rest = r.rest();
            let (literal, length) = match rest.find("\\E") {
                Some(end) => (rest.get(..end).unwrap_or_default(), end + 2),
                None => (rest, rest.len()),
            };
            r.at += length;
            r.out.push_str(&regex::escape(literal));
            Ok(())
        }
        'p' | 'P' => unicode_class(r, start),
        _ => single(r, start),
    }
}

/// `\pL`, `\p{Greek}`, after the backslash.
fn unicode_class(r: &mut Reader<'_>, start: usize) -> Result<(), String> {
    r.next();
    match r.next() {
        Some('{') => {
            let Some(end) = r.rest().find('}') else {
                return Err(format!(
                    "invalid character class range: `{}`",
                    r.pattern.get(start..).unwrap_or_default()
                ));
            };
            r.at += end + 1;
        }
        Some(_) => {}
        None => return Err(format!("invalid character class range: `{}`", r.from(start))),
    }
    let text = r.from(start);
    if Regex::new(text).is_err() {
        return Err(format!("invalid character class range: `{text}`"));
    }
    r.out.push_str(text);
    Ok(())
}

/// An escape for a single character, after the backslash.
fn single(r: &mut Reader<'_>, start: usize) -> Result<(), String> {
    let invalid = |r: &Reader<'_>| Err(format!("invalid escape sequence: `{}`", r.from(start)));
    let Some(c) = r.next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let code = match c {
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        'x' => {
            let rest = r.rest();
            let (digits, length) = match rest.strip_prefix('{') {
                Some(inner) => match inner.find('}') {
                    Some(end) => (inner.get(..end).unwrap_or_default(), end + 2),
                    None => return invalid(r),
                },
                None => match rest.get(..2) {
                    Some(two) => (two, 2),
                    None => return invalid(r),
                },
            };
            match u32::from_str_radix(digits, 16) {
                Ok(code) if !digits.starts_with('+') && char::from_u32(code).is_some() => {
                    r.at += length;
                    code
                }
                _ => return invalid(r),
            }
        }
        '0'..='7' => {
            if c != '0' && !r.peek().is_some_and(|next| next.is_digit(8)) {
                return invalid(r);
            }
            let mut code = c.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                let Some(digit) = r.peek().and_then(|next| next.to_digit(8)) else { break };
                code = code * 8 + digit;
                r.next();
            }
            code
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c as u32,
        _ => return invalid(r),
    };
    push_literal(&mut r.out, code);
    Ok(())
}

fn push_literal(out: &mut String, code: u32) {
    match char::from_u32(code) {
        Some(c) if c.is_alphanumeric() => out.push(c),
        _ => {
            use std::fmt::Write as _;
            let _ = write!(out, "\\x{{{code:x}}}");
        }
    }
}

/// A class such as `[^a-z[:digit:]\d]`.
fn class(r: &mut Reader<'_>) -> Result<(), String> {
    let start = r.at;
    r.next();
    r.out.push('[');
    if r.peek() == Some('^') {
        r.next();
        r.out.push('^');
    }
    let missing =
        |r: &Reader<'_>| Err(format!("missing closing ]: `{}`", r.pattern.get(start..).unwrap_or_default()));
    let mut first = true;
    loop {
        let Some(c) = r.peek() else { return missing(r) };
        if c == ']' && !first {
            r.next();
            r.out.push(']');
            return Ok(());
        }
        first = false;
        let item = r.at;
        if r.rest().starts_with("[:")
            && let Some(end) = r.rest().find(":]")
        {
            r.at += end + 2;
            let text = r.from(item);
            if Regex::new(&format!("[{text}]")).is_err() {
                return Err(format!("invalid character class range: `{text}`"));
            }
            r.out.push_str(text);
            continue;
        }
        if c == '\\' {
            let mut after = r.rest().chars().skip(1);
            if let Some(next) = after.next() {
                if let Some(class) = perl_class(next) {
                    r.at += 2;
                    r.out.push_str(class);
                    continue;
                }
                if let Some(class) =
                    perl_class(next.to_ascii_lowercase()).filter(|_| next.is_ascii_uppercase())
                {
                    r.at += 2;
                    r.out.push_str("[^");
                    r.out.push_str(class);
                    r.out.push(']');
                    continue;
                }
                if next == 'p' || next == 'P' {
                    r.next();
                    unicode_class(r, item)?;
                    continue;
                }
            }
        }
        let low = class_character(r, start)?;
        let mut rest = r.rest().chars();
        let mut high = low;
        if rest.next() == Some('-') && rest.next().is_some_and(|next| next != ']') {
            r.next();
            high = class_character(r, start)?;
            if high < low {
                return Err(format!("invalid character class range: `{}`", r.from(item)));
            }
        }
        push_literal(&mut r.out, low);
        if high != low {
            r.out.push('-');
            push_literal(&mut r.out, high);
        }
    }
}

fn class_character(r: &mut Reader<'_>, class_start: usize) -> Result<u32, String> {
    let start = r.at;
    match r.peek() {
        None => Err(format!("missing closing ]: `{}`", r.pattern.get(class_start..).unwrap_or_default())),
        Some('\\') => {
            r.next();
            let out = std::mem::take(&mut r.out);
            let result = single(r, start);
            let literal = std::mem::replace(&mut r.out, out);
            result?;
            Ok(literal_code(&literal))
        }
        Some(c) => {
            r.next();
            Ok(c as u32)
        }
    }
}

fn literal_code(literal: &str) -> u32 {
    match literal.strip_prefix("\\x{").and_then(|rest| rest.strip_suffix('}')) {
        Some(hex) => u32::from_str_radix(hex, 16).unwrap_or_default(),
        None => literal.chars().next().map(u32::from).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_go_means() {
        for (pattern, text, matches) in [
            ("^[a-z]{2,4}$", "abc", true),
            ("^[a-z]{2,4}$", "abcde", false),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^[\w.]+$", "a.b_c", true),
            (r"^[^\s]+$", "ab", true),
            (r"^[[]$", "[", true),
            (r"^[a&&b]+$", "&", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^\<$", "<", true),
            (r"\Qa.b\E", "a.b", true),
            (r"^\p{Greek}+$", "αβ", true),
            (r"(?i)^ABC$", "abc", true),
            (r"^(?:a|b)+?$", "ab", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[]a]+$", "]", true),
            (r"^[a\-z]+$", "-", true),
            (r"^(?P<x>a)(?<y>b)$", "ab", true),
            (r"^[+-]?\d+\.\d*$", "-1.5", true),
            (r"^\x41\x{42}$", "AB", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn bad_patterns_are_refused_in_go_words() {
        for (pattern, error) in [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("b(?<=a)", "invalid named capture: `(?<=a)`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"(a)\1", r"invalid escape sequence: `\1`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
        ] {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {error}"), "{pattern}");
        }
    }
}
