//! The formats of schemas and their validation.

use std::{net::IpAddr, sync::OnceLock};

use k1s_cel::library::{
    format::{is_base64, is_date, is_date_time, is_uuid},
    url::check_request_uri,
};
use k1s_object::{ip::parse_ip_sloppy, names};
use regex::Regex;

/// A format that is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text(TextFormat, &'static str),
    Int32,
    Int64,
    Float,
    Double,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

use TextFormat as T;

/// All common spellings, for messages that show the format as written.
const TEXT: &[(&str, T)] = &[
    ("bsonobjectid", T::BsonObjectId),
    ("uri", T::Uri),
    ("email", T::Email),
    ("hostname", T::Hostname),
    ("ipv4", T::Ipv4),
    ("ipv6", T::Ipv6),
    ("cidr", T::Cidr),
    ("mac", T::Mac),
    ("uuid", T::Uuid),
    ("uuid3", T::Uuid3),
    ("uuid4", T::Uuid4),
    ("uuid5", T::Uuid5),
    ("isbn", T::Isbn),
    ("isbn10", T::Isbn10),
    ("isbn13", T::Isbn13),
    ("creditcard", T::CreditCard),
    ("credit-card", T::CreditCard),
    ("ssn", T::Ssn),
    ("hexcolor", T::HexColor),
    ("hex-color", T::HexColor),
    ("rgbcolor", T::RgbColor),
    ("rgb-color", T::RgbColor),
    ("byte", T::Byte),
    ("password", T::Password),
    ("date", T::Date),
    ("duration", T::Duration),
    ("date-time", T::DateTime),
    ("datetime", T::DateTime),
    ("k8s-short-name", T::ShortName),
    ("k8sshortname", T::ShortName),
    ("k8s-long-name", T::LongName),
    ("k8slongname", T::LongName),
];

impl Format {
    pub(crate) fn of_string(name: &str) -> Option<Format> {
        if let Some((name, format)) = TEXT.iter().find(|(known, _)| *known == name) {
            return Some(Format::Text(*format, name));
        }
        let normal = name.replace('-', "");
        TEXT.iter().find(|(known, _)| *known == normal).map(|(name, format)| Format::Text(*format, name))
    }

    pub(crate) fn of_integer(name: &str) -> Option<Format> {
        match name {
            "int32" => Some(Format::Int32),
            "int64" => Some(Format::Int64),
            _ => None,
        }
    }

    pub(crate) fn of_number(name: &str) -> Option<Format> {
        match name {
            "float" => Some(Format::Float),
            "double" => Some(Format::Double),
            _ => None,
        }
    }

    /// Whether the format is known for this type.
    pub(crate) fn is_known(kind: &str, name: &str) -> bool {
        match kind {
            "" | "string" => Format::of_string(name).is_some(),
            "integer" => Format::of_integer(name).is_some(),
            "number" => Format::of_number(name).is_some(),
            _ => false,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Text(_, name) => name,
            Format::Int32 => "int32",
            Format::Int64 => "int64",
            Format::Float => "float",
            Format::Double => "double",
        }
    }
}

macro_rules! pattern {
    ($text:ident, $pattern:expr) => {{
        static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
        PATTERN.get_or_init(|| Regex::new($pattern).ok()).as_ref().is_some_and(|regex| regex.is_match($text))
    }};
}

impl TextFormat {
    pub(crate) fn holds(self, text: &str) -> bool {
        match self {
            T::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            T::Uri => check_request_uri(text).is_ok(),
            T::Email => is_email(text),
            T::Hostname => is_hostname(text),
            T::Ipv4 => parse_ip_sloppy(text).is_some() && text.contains('.'),
            T::Ipv6 => text.contains(':') && text.parse::<IpAddr>().is_ok(),
            T::Cidr => is_cidr(text),
            T::Mac => is_mac(text),
            T::Uuid => is_uuid(text),
            T::Uuid3 => is_uuid_of(text, b'3', false),
            T::Uuid4 => is_uuid_of(text, b'4', true),
            T::Uuid5 => is_uuid_of(text, b'5', true),
            T::Isbn => is_isbn10(text) || is_isbn13(text),
            T::Isbn10 => is_isbn10(text),
            T::Isbn13 => is_isbn13(text),
            T::CreditCard => is_credit_card(text),
            T::Ssn => text.len() == 11 && pattern!(text, "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
            T::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
            }
            T::RgbColor => pattern!(
                text,
                r"^rgb\([\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*,[\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*,[\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*\)$"
            ),
            T::Byte => is_base64(text),
            T::Password => true,
            T::Date => is_date(text),
            T::Duration => is_duration(text),
            T::DateTime => is_date_time(text),
            T::ShortName => names::is_dns1123_label(text).is_empty(),
            T::LongName => names::is_dns1123_subdomain(text).is_empty(),
        }
    }
}

/// Go's durations such as `1h30m`, and Scala's such as `22 ns` or `3 days`.
fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    const UNITS: &[&[&str]] = &[
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    static MATCHER: OnceLock<Option<Regex>> = OnceLock::new();
    let Some(matcher) = MATCHER.get_or_init(|| Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").ok())
    else {
        return false;
    };
    let mut known = false;
    for found in matcher.captures_iter(text) {
        if found.get(1).is_none_or(|number| number.as_str().parse::<i64>().is_err()) {
            return false;
        }
        let unit = found.get(2).map(|unit| unit.as_str().to_lowercase()).unwrap_or_default();
        known |= UNITS.iter().any(|variants| {
            variants.iter().any(|variant| *variant == unit)
                || variants.last().is_some_and(|last| unit.starts_with(last))
        });
    }
    known
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if number.is_empty() || number == "." || number.matches('.').count() > 1 {
            return false;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end).unwrap_or((after, ""));
        let nanoseconds = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return false,
        };
        if number.parse::<f64>().map_or(true, |number| number * nanoseconds > i64::MAX as f64) {
            return false;
        }
        rest = after;
    }
    true
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    match (parse_ip_sloppy(address), length.parse::<u32>()) {
        (Some(IpAddr::V4(_)), Ok(length)) => length <= 32,
        (Some(IpAddr::V6(_)), Ok(length)) => length <= 128,
        _ => false,
    }
}

fn is_mac(text: &str) -> bool {
    let hex = |part: &str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
    for (separator, length) in [(':', 2), ('-', 2), ('.', 4)] {
        if text.contains(separator) {
            let parts: Vec<&str> = text.split(separator).collect();
            let bytes = parts.len() * length / 2;
            return matches!(bytes, 6 | 8 | 20) && parts.iter().all(|part| hex(part, length));
        }
    }
    false
}

/// A UUID of a version, and of the variant of RFC 4122 if that is asked for.
fn is_uuid_of(text: &str, version: u8, variant: bool) -> bool {
    let mut digits = text.bytes().filter(|byte| *byte != b'-').skip(12);
    is_uuid(text)
        && digits.next() == Some(version)
        && (!variant
            || digits.nth(3).is_some_and(|digit| matches!(digit, b'8' | b'9' | b'a' | b'b' | b'A' | b'B')))
}

fn without_spaces_and_dashes(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\x0c' | '\r')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let bytes = text.as_bytes();
    if bytes.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (i, byte) in (1u32..).zip(bytes) {
        let digit = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            b'X' if i == 10 => 10,
            _ => return false,
        };
        sum += i * digit;
    }
    sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let bytes = text.as_bytes();
    if bytes.len() != 13 || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        bytes.iter().zip([1u32, 3].into_iter().cycle()).map(|(b, factor)| u32::from(b - b'0') * factor).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.as_str();
    if !pattern!(
        digits,
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0');
            match i % 2 {
                0 => digit,
                _ if digit >= 5 => digit * 2 - 9,
                _ => digit * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && pattern!(
            text,
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
        )
}

/// `a@b`, `Name <a@b>` or `"Name" <a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    if let Some(inner) = text.strip_suffix('>') {
        let Some((name, address)) = inner.rsplit_once('<') else { return false };
        return is_phrase(name.trim_matches([' ', '\t'])) && is_address(address);
    }
    is_address(text)
}

fn is_atext(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

fn is_phrase(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('"') {
        return inner.strip_suffix('"').is_some_and(|inner| !inner.contains('"') || inner.contains("\\\""));
    }
    text.chars().all(|c| is_atext(c) || matches!(c, ' ' | '\t' | '.'))
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let dotted = |text: &str| text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext));
    let local_fine = match local.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => !inner.is_empty() && !inner.contains(['"', '\\']),
        None => dotted(local),
    };
    let domain_fine = match domain.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(literal) => literal.parse::<IpAddr>().is_ok(),
        None => dotted(domain),
    };
    local_fine && domain_fine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_tell_good_from_bad() {
        for (format, good, bad) in [
            (
                "date-time",
                &["2024-02-29T00:00:00Z", "2024-01-01t10:00:00.5+01:00"][..],
                &["yesterday", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01"][..],
            ),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-13-01", "24-1-1"]),
            ("duration", &["1h30m", "22 ns", "3 days", "1.5s", "0", "-2m"], &["5 parsecs", "", "1"]),
            ("byte", &["aGk=", "YWJj", "YQ=="], &["***", "", "YQ="]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["300.1.1.1", "::1", "1.2.3"]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "x"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["zz:zz", "01:23"]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &["1234"],
            ),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("hostname", &["example.com", "a"], &["-bad-", "a..b"]),
            ("email", &["a@b", "Ann <a@b.c>"], &["nobody", "@b", "a@"]),
            (
                "uri",
                &[
                    "https://example.com/x?y=1",
                    "/path",
                    "/a:b",
                    "mailto:x",
                    "http:",
                    "http://u:p@[::1]:80/%20",
                ],
                &["::not", "path", "", "http://[::1", "http://a b/", "http://a:x/", "/%zz", "1http://x"],
            ),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
            ("hexcolor", &["#fff", "a1b2c3"], &["#ff"]),
            ("rgbcolor", &["rgb(0,100,255)"], &["rgb(0,100,256)"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("ssn", &["111-11-1111"], &["111111111"]),
            ("password", &["x"], &[]),
            ("k8s-short-name", &["a-b"], &["A", "a.b"]),
            ("k8s-long-name", &["a.b"], &["a..b"]),
        ] {
            let Some(Format::Text(kind, name)) = Format::of_string(format) else { panic!("{format}") };
            assert_eq!(name, format);
            for text in good {
                assert!(kind.holds(text), "{format} {text:?}");
            }
            for text in bad {
                assert!(!kind.holds(text), "{format} {text:?}");
            }
        }
    }
}
