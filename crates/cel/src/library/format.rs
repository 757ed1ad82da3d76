//! The named formats of `format.named` and their messages.

use k1s_object::names;

use super::{opaque, text, unit_cost, unit_estimate, url, wrap};
use crate::{
    cost::{CallEstimate, CallNodes, REGEX_FACTOR, STRING_FACTOR},
    error::EvalError,
    function::{Call, Function, Overload},
    types::Type,
    value::{Opaque, Value},
};

/// A named format.
#[derive(Debug)]
pub struct Format {
    /// The name in `format.named`.
    pub key: &'static str,
    /// The name by which formats are compared.
    pub name: &'static str,
    /// The messages for a text; none if it is valid.
    pub check: fn(&str) -> Vec<String>,
    /// The length of the regular expression of the format, for its cost.
    pub regex_size: u64,
}

fn one(holds: bool, message: &str) -> Vec<String> {
    if holds { Vec::new() } else { vec![message.to_owned()] }
}

/// All named formats.
pub static FORMATS: [Format; 13] = [
    Format {
        key: "dns1123Label",
        name: "DNS1123Label",
        check: |text| names::name_is_dns_label(text, false),
        regex_size: 30,
    },
    Format {
        key: "dns1123Subdomain",
        name: "DNS1123Subdomain",
        check: |text| names::name_is_dns_subdomain(text, false),
        regex_size: 60,
    },
    Format {
        key: "dns1035Label",
        name: "DNS1035Label",
        check: |text| names::name_is_dns1035_label(text, false),
        regex_size: 30,
    },
    Format {
        key: "qualifiedName",
        name: "QualifiedName",
        check: |text| names::is_qualified_name(text),
        regex_size: 60,
    },
    Format {
        key: "dns1123LabelPrefix",
        name: "DNS1123LabelPrefix",
        check: |text| names::name_is_dns_label(text, true),
        regex_size: 30,
    },
    Format {
        key: "dns1123SubdomainPrefix",
        name: "DNS1123SubdomainPrefix",
        check: |text| names::name_is_dns_subdomain(text, true),
        regex_size: 60,
    },
    Format {
        key: "dns1035LabelPrefix",
        name: "DNS1035LabelPrefix",
        check: |text| names::name_is_dns1035_label(text, true),
        regex_size: 30,
    },
    Format {
        key: "labelValue",
        name: "LabelValue",
        check: |text| names::is_valid_label_value(text),
        regex_size: 40,
    },
    Format {
        key: "uri",
        name: "URI",
        check: |text| url::check_request_uri(text).err().into_iter().collect(),
        regex_size: 1103,
    },
    Format {
        key: "uuid",
        name: "uuid",
        check: |text| one(is_uuid(text), "does not match the UUID format"),
        regex_size: 70,
    },
    Format {
        key: "byte",
        name: "byte",
        check: |text| one(is_base64(text), "invalid base64"),
        regex_size: 84,
    },
    Format { key: "date", name: "date", check: |text| one(is_date(text), "invalid date"), regex_size: 71 },
    Format {
        key: "datetime",
        name: "datetime",
        check: |text| one(is_date_time(text), "invalid datetime"),
        regex_size: 71,
    },
];

/// The format with a name.
pub fn named(key: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.key == key)
}

/// Whether a text is a UUID; each of its dashes is optional.
pub fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8usize, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else { return false };
        if !part.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// Whether a text is standard base64 with padding, and not empty.
pub fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    padding <= 2 && bytes.iter().take(bytes.len() - padding).all(is_digit)
}

/// Whether a text is an existing date: `2006-01-02`.
pub fn is_date(text: &str) -> bool {
    let digits = |part: Option<&str>| {
        part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|part| part.parse::<u16>().ok())
    };
    if text.len() != 10 || text.get(4..5) != Some("-") || text.get(7..8) != Some("-") {
        return false;
    }
    match (digits(text.get(..4)), digits(text.get(5..7)), digits(text.get(8..10))) {
        (Some(year), Some(month), Some(day)) => {
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let days = match month {
                1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
                4 | 6 | 9 | 11 => 30,
                2 if leap => 29,
                2 => 28,
                _ => 0,
            };
            (1..=days).contains(&day)
        }
        _ => false,
    }
}

/// Whether a text is a date and time, as the format `date-time` of schemas accepts it.
pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    if !is_date(date) || !time.is_char_boundary(8.min(time.len())) {
        return false;
    }
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    is_clock(clock) && clock <= "23:59:59" && sixty(clock) && is_zone(after_fraction(rest))
}

/// Whether minutes and seconds are below 60.
fn sixty(clock: &str) -> bool {
    [clock.get(3..5), clock.get(6..8)].into_iter().flatten().all(|part| part <= "59")
}

/// `00:00:00`, digits only.
fn is_clock(text: &str) -> bool {
    text.len() == 8
        && text.bytes().enumerate().all(|(index, byte)| match index {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

/// What follows the fraction. Any character is accepted before its digits, as in the published pattern.
fn after_fraction(text: &str) -> &str {
    if is_zone(text) {
        return text;
    }
    let mut chars = text.chars();
    if chars.next().is_none_or(|c| c == '\n') {
        return text;
    }
    let rest = chars.as_str();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() < rest.len() { after } else { text }
}

/// `z` or `+00:00`.
fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    text == "z"
        || (bytes.len() == 6
            && bytes.iter().enumerate().all(|(index, byte)| match index {
                0 => matches!(byte, b'+' | b'-'),
                3 => *byte == b':',
                _ => byte.is_ascii_digit(),
            }))
}

/// A format as a value.
#[derive(Debug)]
struct Named(&'static Format);

impl Opaque for Named {
    fn type_name(&self) -> &str {
        "kubernetes.NamedFormat"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Named>().is_some_and(|other| other.0.name == self.0.name)
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

/// The length of a regular expression that upstream's estimates assume.
const MAX_REGEX: f64 = 128.0;

fn validate_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let scan = nodes.size(nodes.args().first()?).cost(STRING_FACTOR);
    Some(CallEstimate::new(scan.scale(MAX_REGEX * REGEX_FACTOR)))
}

fn validate_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let format = opaque::<Named>(args, 0).ok()?;
    let scan = super::scaled(super::size(args, 1).saturating_add(1), STRING_FACTOR);
    Some(scan.saturating_mul(super::scaled(format.0.regex_size, REGEX_FACTOR)))
}

/// The functions of the library `kubernetes.format`.
pub(super) fn functions() -> Vec<Function> {
    let format = || Type::opaque("kubernetes.NamedFormat");
    let constant =
        |name, call: Call| Function::new(name, vec![Overload::global(name, Vec::new(), format(), call)]);
    macro_rules! constants {
        ($($name:literal: $key:literal),*) => {
            vec![$(constant($name, |_| {
                named($key).map(|format| wrap(Named(format))).ok_or(EvalError::NoSuchOverload)
            })),*]
        };
    }
    let mut functions = constants![
        "format.dns1123Label": "dns1123Label",
        "format.dns1123Subdomain": "dns1123Subdomain",
        "format.dns1035Label": "dns1035Label",
        "format.qualifiedName": "qualifiedName",
        "format.dns1123LabelPrefix": "dns1123LabelPrefix",
        "format.dns1123SubdomainPrefix": "dns1123SubdomainPrefix",
        "format.dns1035LabelPrefix": "dns1035LabelPrefix",
        "format.labelValue": "labelValue",
        "format.uri": "uri",
        "format.uuid": "uuid",
        "format.byte": "byte",
        "format.date": "date",
        "format.datetime": "datetime"
    ];
    functions.push(Function::new(
        "format.named",
        vec![
            Overload::global("format-named", vec![Type::String], Type::optional(format()), |args| {
                let found = named(text(args, 0)?).map(|format| Value::some(wrap(Named(format))));
                Ok(found.unwrap_or(Value::Optional(None)))
            })
            .with_cost(unit_estimate, unit_cost),
        ],
    ));
    functions.push(Function::new(
        "validate",
        vec![
            Overload::member(
                "format-validate",
                vec![format(), Type::String],
                Type::optional(Type::list(Type::String)),
                |args| {
                    let messages = (opaque::<Named>(args, 0)?.0.check)(text(args, 1)?);
                    if messages.is_empty() {
                        return Ok(Value::Optional(None));
                    }
                    Ok(Value::some(Value::list(messages.into_iter().map(Value::from).collect())))
                },
            )
            .with_cost(validate_estimate, validate_cost),
        ],
    ));
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_upstreams_messages() {
        for (key, good, bad, message) in [
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123", "does not match the UUID format"),
            ("byte", "aGVsbG8=", "aGVsbG8", "invalid base64"),
            ("date", "2024-02-29", "2023-02-29", "invalid date"),
            ("datetime", "2011-08-18T19:03:37.010+01:00", "2011-08-18 19:03:37Z", "invalid datetime"),
            ("uri", "http://example.com", "../x", "parse \"../x\": invalid URI for request"),
            (
                "labelValue",
                "a",
                "-",
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
            (
                "dns1123Label",
                "a-b",
                "A",
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ),
        ] {
            let format = named(key).unwrap();
            assert!((format.check)(good).is_empty(), "{key}");
            assert_eq!((format.check)(bad), [message], "{key}");
        }
        assert!((named("dns1123LabelPrefix").unwrap().check)("a-").is_empty());
        assert!(named("unknown").is_none());
    }

    #[test]
    fn times_are_read_as_by_schemas() {
        for text in ["2024-02-29T00:00:00Z", "2024-01-01t10:00:00.5+01:00", "2024-01-01T10:00:00x5z"] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "yesterday",
            "2024-02-30T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00.Z",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }
}
