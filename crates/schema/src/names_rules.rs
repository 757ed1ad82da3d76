//! The few rules about names that schemas and definitions need. Kept apart, in one place, so that they can give
//! way to the workspace's own.

const DNS1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn no_more_than(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

pub(crate) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|b| is_lower_or_digit(*b) || *b == b'-')
        && bytes.first().is_some_and(|b| is_lower_or_digit(*b))
        && bytes.last().is_some_and(|b| is_lower_or_digit(*b))
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

pub(crate) fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(no_more_than(253));
    }
    if !is_subdomain(text) {
        errors.push(DNS1123_SUBDOMAIN.to_owned());
    }
    errors
}

pub(crate) fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(no_more_than(63));
    }
    if !is_label(text) {
        errors.push(DNS1123_LABEL.to_owned());
    }
    errors
}

pub(crate) fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(no_more_than(63));
    }
    if !(is_label(text) && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)) {
        errors.push(DNS1035_LABEL.to_owned());
    }
    errors
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(dns1123_subdomain(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            *name
        }
        _ => {
            errors.push(format!(
                "a qualified name {QUALIFIED_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_qualified_part(name) {
        errors.push(format!("name part {QUALIFIED_NAME}"));
    }
    errors
}

pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if !text.is_empty() && !is_qualified_part(text) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

pub(crate) fn path_segment(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text == "." || text == ".." {
        errors.push(format!("may not be '{text}'"));
    }
    errors.extend(path_segment_prefix(text));
    errors
}

pub(crate) fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|part| text.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}
