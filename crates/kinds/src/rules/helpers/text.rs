//! Checks of strings: names, choices and paths.

use k1s_object::{At, names};

use super::errors::invalid_each;

/// A DNS label.
pub(crate) fn dns_label(at: At<'_, '_>) {
    invalid_each(at, names::is_dns1123_label(at.text()));
}

/// A DNS subdomain.
pub(crate) fn dns_subdomain(at: At<'_, '_>) {
    invalid_each(at, names::is_dns1123_subdomain(at.text()));
}

/// A qualified name: `name` or `example.com/name`.
pub(crate) fn qualified_name(at: At<'_, '_>) {
    invalid_each(at, names::is_qualified_name(at.text()));
}

/// `Required value` if the string, list or map is empty.
pub(crate) fn required(at: At<'_, '_>) {
    if at.is_empty() {
        at.required("");
    }
}

/// One of these; `Required value` if empty.
pub(crate) fn one_of(at: At<'_, '_>, supported: &[&str]) {
    if at.text().is_empty() {
        at.required("");
    } else {
        one_of_or_unset(at, supported);
    }
}

/// One of these, or not set.
pub(crate) fn one_of_or_unset(at: At<'_, '_>, supported: &[&str]) {
    if at.is_set() && !supported.contains(&at.text()) {
        at.not_supported(supported);
    }
}

/// The strings of a list.
pub(crate) fn texts<'v>(at: At<'_, 'v>) -> Vec<&'v str> {
    at.items().map(At::text).collect()
}

/// The name of a CSI or DRA driver: a DNS subdomain in any case of at most 63 characters.
pub(crate) fn driver_name(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return at.required("");
    }
    if name.len() > 63 {
        at.too_long(63);
    }
    invalid_each(at, names::is_dns1123_subdomain(&name.to_lowercase()));
}

/// A relative path without `..`.
pub(crate) fn descending_path(at: At<'_, '_>, path: &str) {
    if path.starts_with('/') {
        at.invalid_as(path, "must be a relative path");
    }
    no_backsteps(at, path);
}

/// A path without `..`.
pub(crate) fn no_backsteps(at: At<'_, '_>, path: &str) {
    if has_backsteps(path) {
        at.invalid_as(path, "must not contain '..'");
    }
}

/// Whether a segment of the path is `..`.
pub(crate) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A relative path without `..` that does not begin with two dots.
pub(crate) fn non_reserved_path(at: At<'_, '_>, path: &str) {
    descending_path(at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        at.invalid_as(path, "must not start with '..'");
    }
}
