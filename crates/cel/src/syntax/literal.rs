//! The values of literals.

use std::sync::Arc;

use crate::value::{Bytes, Value};

/// The value of a number token, with its sign; `None` if it is out of range.
pub(crate) fn int(text: &str, negative: bool) -> Option<Value<'static>> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let sign = if negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Value::Int)
}

pub(crate) fn uint(text: &str) -> Option<Value<'static>> {
    let text = text.strip_suffix(['u', 'U'])?;
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(Value::Uint)
}

pub(crate) fn double(text: &str, negative: bool) -> Option<Value<'static>> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Value::Double(if negative { -value } else { value }))
}

/// The value of a string token, or why it has none.
pub(crate) fn string(token: &str) -> Result<Value<'static>, &'static str> {
    let bytes = unescape(token, false)?;
    String::from_utf8(bytes).map(Value::from).map_err(|_| "invalid unicode code point")
}

/// The value of a bytes token.
pub(crate) fn bytes(token: &str) -> Result<Value<'static>, &'static str> {
    let bytes = unescape(token.get(1..).unwrap_or_default(), true)?;
    Ok(Value::Bytes(Bytes::Shared(Arc::from(bytes))))
}

const UNABLE: &str = "unable to unescape string";

fn unescape(token: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let token = token.replace("\r\n", "\n").replace('\r', "\n");
    let (token, raw) = match token.strip_prefix(['r', 'R']) {
        Some(rest) => (rest, true),
        None => (token.as_str(), false),
    };
    let quotes =
        if token.len() >= 6 && (token.starts_with("\"\"\"") || token.starts_with("'''")) { 3 } else { 1 };
    let body = token.get(quotes..token.len().saturating_sub(quotes)).ok_or(UNABLE)?;
    if raw {
        return Ok(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            out.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let (digits, radix, value) = match escape {
            'a' => (0, 16, 0x07),
            'b' => (0, 16, 0x08),
            'f' => (0, 16, 0x0c),
            'n' => (0, 16, 0x0a),
            'r' => (0, 16, 0x0d),
            't' => (0, 16, 0x09),
            'v' => (0, 16, 0x0b),
            '\\' | '\'' | '"' | '`' | '?' => (0, 16, u32::from(escape)),
            'x' | 'X' => (2, 16, 0),
            'u' if !is_bytes => (4, 16, 0),
            'U' if !is_bytes => (8, 16, 0),
            '0'..='3' => (2, 8, u32::from(escape) - u32::from('0')),
            _ => return Err(UNABLE),
        };
        let mut code = value;
        for _ in 0..digits {
            let digit = rest.next().and_then(|c| c.to_digit(radix)).ok_or(UNABLE)?;
            // Eight digits are enough to overflow, and then no character.
            code = code
                .checked_mul(radix)
                .and_then(|code| code.checked_add(digit))
                .ok_or("invalid unicode code point")?;
        }
        match u8::try_from(code) {
            Ok(byte) if is_bytes || byte.is_ascii() => out.push(byte),
            _ => {
                let character = char::from_u32(code).ok_or("invalid unicode code point")?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Ok(out)
}
