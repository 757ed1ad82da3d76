//! The formats of names, keys and values.
//!
//! Each function returns the error messages for a value; none if it is valid. Functions that report on a field
//! themselves take an [`At`].

use std::fmt::Display;

use crate::field::{At, FieldError};

/// Maximum length of a DNS label.
pub const DNS1123_LABEL_MAX_LENGTH: usize = 63;
/// Maximum length of a DNS subdomain.
pub const DNS1123_SUBDOMAIN_MAX_LENGTH: usize = 253;
/// Maximum length of a DNS-1035 label.
pub const DNS1035_LABEL_MAX_LENGTH: usize = 63;
/// Maximum length of a label value.
pub const LABEL_VALUE_MAX_LENGTH: usize = 63;

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORMAT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character";
const KEY_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character";
const KEY_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
const DECIMAL_MESSAGE: &str = "must be a valid decimal integer in canonical form";

/// `must be no more than 63 characters`, for DNS names and keys of config maps.
pub fn max_len_error(length: usize) -> String {
    format!("must be no more than {length} characters")
}

/// `must be no more than 63 bytes`, for label keys and values.
pub fn max_bytes_error(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

/// `must be non-empty`
pub fn empty_error() -> &'static str {
    "must be non-empty"
}

/// `must be between 1 and 65535, inclusive`
pub fn inclusive_range_error(low: impl Display, high: impl Display) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// A message with examples and the regular expression.
pub fn regex_error(message: &str, format: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{format}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{format}')", examples.join(" or "))
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `first (inner* last)?`, the form of most formats here.
fn shaped(value: &str, first: fn(u8) -> bool, inner: fn(u8) -> bool, last: fn(u8) -> bool) -> bool {
    match value.as_bytes() {
        [] => false,
        [only] => first(*only),
        [start, middle @ .., end] => first(*start) && last(*end) && middle.iter().all(|&byte| inner(byte)),
    }
}

fn label_shaped(value: &str) -> bool {
    shaped(value, lower_or_digit, |byte| byte == b'-' || lower_or_digit(byte), lower_or_digit)
}

fn subdomain_shaped(value: &str) -> bool {
    value.split('.').all(label_shaped)
}

fn key_shaped(value: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    shaped(value, alphanumeric, inner, alphanumeric)
}

fn made_of(value: &str, allowed: fn(u8) -> bool) -> bool {
    !value.is_empty() && value.bytes().all(allowed)
}

/// A DNS label of RFC 1123: `my-name`.
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_LABEL_MAX_LENGTH {
        errors.push(max_len_error(DNS1123_LABEL_MAX_LENGTH));
    }
    if !label_shaped(value) {
        errors.push(if subdomain_shaped(value) {
            "must not contain dots".into()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                LABEL_FORMAT,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// A DNS subdomain of RFC 1123: `example.com`.
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_len_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !subdomain_shaped(value) {
        errors.push(regex_error(SUBDOMAIN_MESSAGE, SUBDOMAIN_FORMAT, &["example.com"]));
    }
    errors
}

/// A DNS subdomain whose labels may contain, and begin with, underscores.
pub fn is_dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_len_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    let inner = |byte: u8| matches!(byte, b'-' | b'_') || lower_or_digit(byte);
    let shaped = value
        .split('.')
        .all(|label| shaped(label.strip_prefix('_').unwrap_or(label), lower_or_digit, inner, lower_or_digit));
    if !shaped {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
             and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    errors
}

/// A DNS subdomain, case-insensitive.
pub fn is_dns1123_subdomain_caseless(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_bytes_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !subdomain_shaped(&value.to_ascii_lowercase()) {
        errors.push(regex_error(
            "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
             with an alphanumeric character",
            SUBDOMAIN_FORMAT,
            &["Example.com"],
        ));
    }
    errors
}

/// A DNS label of RFC 1035, which begins with a letter.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1035_LABEL_MAX_LENGTH {
        errors.push(max_len_error(DNS1035_LABEL_MAX_LENGTH));
    }
    let inner = |byte: u8| byte == b'-' || lower_or_digit(byte);
    if !shaped(value, |byte| byte.is_ascii_lowercase(), inner, lower_or_digit) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// `*.` and a DNS subdomain.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_len_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !value.strip_prefix("*.").is_some_and(subdomain_shaped) {
        errors.push(regex_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
             consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN_FORMAT}"),
            &["*.example.com"],
        ));
    }
    errors
}

/// The key of a label, an annotation, a taint…: `name` or `example.com/name`.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let (prefix, name) = match value.split_once('/') {
        None => (None, value),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex_error(KEY_MESSAGE, KEY_FORMAT, &KEY_EXAMPLES)
            )];
        }
    };
    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push(format!("prefix part {}", empty_error())),
        Some(prefix) => {
            if prefix.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
                errors.push(format!("prefix part {}", max_bytes_error(DNS1123_SUBDOMAIN_MAX_LENGTH)));
            }
            if !subdomain_shaped(prefix) {
                let error = regex_error(SUBDOMAIN_MESSAGE, SUBDOMAIN_FORMAT, &["example.com"]);
                errors.push(format!("prefix part {error}"));
            }
        }
        None => {}
    }
    if name.is_empty() {
        errors.push(format!("name part {}", empty_error()));
    } else if name.len() > 63 {
        errors.push(format!("name part {}", max_bytes_error(63)));
    }
    if !key_shaped(name) {
        errors.push(format!("name part {}", regex_error(KEY_MESSAGE, KEY_FORMAT, &KEY_EXAMPLES)));
    }
    errors
}

/// A qualified name that must have a prefix.
pub fn is_prefixed_label_key(value: &str) -> Vec<String> {
    let errors = is_qualified_name(value);
    if errors.is_empty() && !value.contains('/') {
        return vec!["must include a prefix (e.g. 'example.com/key')".into()];
    }
    errors
}

/// The value of a label.
pub fn is_valid_label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_VALUE_MAX_LENGTH {
        errors.push(max_bytes_error(LABEL_VALUE_MAX_LENGTH));
    }
    if !value.is_empty() && !key_shaped(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character",
            &format!("({KEY_FORMAT})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A C identifier.
pub fn is_c_identifier(value: &str) -> Vec<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if shaped(value, |byte| byte.is_ascii_alphabetic() || byte == b'_', inner, inner) {
        return Vec::new();
    }
    vec![regex_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
         characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// A port number from 1 to 65535.
pub fn is_valid_port_num(port: i64) -> Vec<String> {
    is_in_range(port, 1, 65535)
}

/// A number within these bounds, both included.
pub fn is_in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) { Vec::new() } else { vec![inclusive_range_error(low, high)] }
}

/// A Unix group id.
pub fn is_valid_group_id(id: i64) -> Vec<String> {
    is_in_range(id, 0, i64::from(i32::MAX))
}

/// A Unix user id.
pub fn is_valid_user_id(id: i64) -> Vec<String> {
    is_in_range(id, 0, i64::from(i32::MAX))
}

/// The name of a port: an IANA service name in lower case.
pub fn is_valid_port_name(port: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if port.len() > 15 {
        errors.push(max_len_error(15));
    }
    if !made_of(port, |byte| byte == b'-' || lower_or_digit(byte)) {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !port.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".into());
    }
    if port.contains("--") {
        errors.push("must not contain consecutive hyphens".into());
    }
    if port.starts_with('-') || port.ends_with('-') {
        errors.push("must not begin or end with a hyphen".into());
    }
    errors
}

/// `25%`
pub fn is_valid_percent(percent: &str) -> Vec<String> {
    if percent.strip_suffix('%').is_some_and(|digits| made_of(digits, |byte| byte.is_ascii_digit())) {
        return Vec::new();
    }
    vec![regex_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of an HTTP header.
pub fn is_http_header_name(value: &str) -> Vec<String> {
    if made_of(value, |byte| byte == b'-' || byte.is_ascii_alphanumeric()) {
        return Vec::new();
    }
    vec![regex_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

fn has_ch_dir_prefix(value: &str) -> Option<String> {
    match value {
        "." => Some("must not be '.'".into()),
        ".." => Some("must not be '..'".into()),
        _ if value.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// The name of an environment variable, before the relaxed format.
pub fn is_env_var_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let first = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'.' | b'_');
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !shaped(value, first, inner, inner) {
        errors.push(regex_error(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
             and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    errors.extend(has_ch_dir_prefix(value));
    errors
}

/// The name of an environment variable: printable ASCII without `=`.
pub fn is_relaxed_env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec![format!("environment variable name {}", empty_error())];
    }
    if value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .into(),
    ]
}

/// A key of a `ConfigMap` or a Secret.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.push(max_len_error(DNS1123_SUBDOMAIN_MAX_LENGTH));
    }
    if !made_of(value, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
        errors.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(has_ch_dir_prefix(value));
    errors
}

/// A decimal integer without plus sign and leading zeros.
pub fn is_decimal_integer(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec![empty_error().into()];
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    let right = value == "0" || (!digits.starts_with('0') && made_of(digits, |byte| byte.is_ascii_digit()));
    if right { Vec::new() } else { vec![DECIMAL_MESSAGE.into()] }
}

/// The reason of a condition.
pub fn is_valid_condition_reason(value: &str) -> Vec<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    let last = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if shaped(value, |byte| byte.is_ascii_alphabetic(), inner, last) {
        return Vec::new();
    }
    vec![regex_error(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
         characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    )]
}

/// A name that can be a segment of a path.
pub fn is_path_segment_name(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => is_path_segment_prefix(name),
    }
}

/// The prefix of a name that can be a path segment.
pub fn is_path_segment_prefix(name: &str) -> Vec<String> {
    ['/', '%'].into_iter().filter(|&c| name.contains(c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// A `generateName` may end in a dash, because a suffix follows.
fn mask_trailing_dash(name: &str, prefix: bool) -> String {
    let bytes = name.as_bytes();
    match bytes {
        [kept @ .., _, b'-'] if prefix => {
            let mut masked = String::from_utf8_lossy(kept).into_owned();
            masked.push('a');
            masked
        }
        _ => name.to_owned(),
    }
}

/// A format of names: gets the name and whether it is a prefix (`generateName`).
pub type NameRule = fn(&str, bool) -> Vec<String>;

/// Names that are DNS subdomains, as for most kinds.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_subdomain(&mask_trailing_dash(name, prefix))
}

/// Names that are DNS labels, as for namespaces.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_label(&mask_trailing_dash(name, prefix))
}

/// Names that are DNS-1035 labels, as for services.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&mask_trailing_dash(name, prefix))
}

/// Names that are path segments, as for RBAC.
pub fn validate_path_segment_name(name: &str, prefix: bool) -> Vec<String> {
    if prefix { is_path_segment_prefix(name) } else { is_path_segment_name(name) }
}

fn invalid(at: At<'_, '_>, value: &str, detail: impl Into<String>) {
    at.check().push(FieldError::invalid(at.path(), value, detail));
}

/// A domain name of at least three segments, such as the name of a webhook.
pub fn is_fully_qualified_name(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return at.required("");
    }
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        invalid(at, name, errors.join(","));
    } else if name.split('.').count() < 3 {
        invalid(at, name, "should be a domain with at least three segments separated by dots");
    }
}

/// A domain name of at least two segments, optionally with a trailing dot.
pub fn is_fully_qualified_domain_name(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return at.required("");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let errors = is_dns1123_subdomain(name);
    if !errors.is_empty() {
        return invalid(at, name, errors.join(","));
    }
    if name.split('.').count() < 2 {
        return invalid(at, name, "should be a domain with at least two segments separated by dots");
    }
    for label in name.split('.') {
        let errors = is_dns1123_label(label);
        if !errors.is_empty() {
            return invalid(at, label, errors.join(","));
        }
    }
}

/// Whether an HTTP path has valid characters only.
pub fn is_http_path(path: &str) -> bool {
    made_of(path, |byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte))
}

/// A domain, a slash and a path: `acme.io/foo`.
pub fn is_domain_prefixed_path(at: At<'_, '_>) {
    let value = at.text();
    if value.is_empty() {
        return at.required("");
    }
    match value.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            for error in is_dns1123_subdomain(host) {
                invalid(at, host, error);
            }
            if !is_http_path(path) {
                invalid(at, path, regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]));
            }
        }
        _ => invalid(at, value, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
}

/// A qualified name that must have a domain: `acme.io/foo`.
pub fn is_domain_prefixed_key(at: At<'_, '_>) {
    let key = at.text();
    if key.is_empty() {
        return at.required("");
    }
    let errors = is_qualified_name(key);
    if errors.is_empty() && !key.contains('/') {
        return invalid(at, key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
    }
    for error in errors {
        invalid(at, key, error);
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
