//! Reading and writing JSON objects the way Go's structs behave: what is missing is empty.

use k1s_object::{
    At,
    field::{ErrorKind, FieldError, Shown},
    ip, names,
};
pub(crate) use k1s_object::{
    meta::validate_labels as labels, selector::validate_label_selector as label_selector,
};
use serde_json::{Map, Value};

/// What Kubernetes says of a field that must stay as it is.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// What `ConfigMap` and Secret say of a field that `immutable` protects.
pub(crate) const IMMUTABLE_WHEN_SET: &str = "field is immutable when `immutable` is set";

/// How many bytes a base64 text stands for.
pub(crate) fn bytes_len(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

/// The value at this path.
pub(crate) fn find<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The string at this path, empty when missing.
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    find(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at this path, 0 when missing.
pub(crate) fn number(value: &Value, path: &[&str]) -> i64 {
    find(value, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The items of the list at this path.
pub(crate) fn list<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    find(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The strings of the list at this path.
pub(crate) fn strings<'v>(value: &'v Value, path: &[&str]) -> Vec<&'v str> {
    list(value, path).iter().filter_map(Value::as_str).collect()
}

/// The strings of a list.
pub(crate) fn texts<'v>(at: At<'_, 'v>) -> Vec<&'v str> {
    at.items().map(At::text).collect()
}

/// An object's field that is an object itself, made when missing.
pub(crate) fn object<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut Map<String, Value>> {
    let entry = value.as_object_mut()?.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut()
}

/// Sets a field of an object's field, such as the spec.
pub(crate) fn set_in(value: &mut Value, parent: &str, name: &str, new: impl Into<Value>) {
    if let Some(parent) = object(value, parent) {
        parent.insert(name.into(), new.into());
    }
}

/// Sets a field of an object's field when it is missing or the empty string.
pub(crate) fn default_in(value: &mut Value, parent: &str, name: &str, new: impl Into<Value>) {
    if text(value, &[parent, name]).is_empty() {
        set_in(value, parent, name, new);
    }
}

/// Removes a field of an object's field.
pub(crate) fn remove_in(value: &mut Value, parent: &str, name: &str) {
    if let Some(parent) = value.get_mut(parent).and_then(Value::as_object_mut) {
        parent.shift_remove(name);
    }
}

/// Keeps a field of `old` instead of what was sent.
pub(crate) fn keep(new: &mut Value, old: &Value, name: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => {
            new.insert(name.into(), value.clone());
        }
        None => {
            new.shift_remove(name);
        }
    }
}

/// Adds a finalizer that is not there yet.
pub(crate) fn add_finalizer(value: &mut Value, finalizer: &str) {
    let Some(meta) = object(value, "metadata") else { return };
    let finalizers = meta.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(items) = finalizers.as_array_mut()
        && !items.iter().any(|item| item == finalizer)
    {
        items.push(finalizer.into());
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        _ => false,
    }
}

/// Whether two values are the same to Kubernetes: a list or an object that is empty is as good as none.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(one), None) | (None, Some(one)) => is_empty(one),
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_empty(value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b || (is_empty(a) && is_empty(b)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
        Value::Bool(true) => false,
    }
}

/// Like [`same`] for structs whose fields are no pointers: a zero value is as good as none.
pub(crate) fn same_struct(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(one), None) | (None, Some(one)) => is_zero(one),
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same_struct(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_zero(value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_struct(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b || (is_zero(a) && is_zero(b)),
    }
}

/// A string that may not change; shown as it is now.
pub(crate) fn immutable_text(new: At<'_, '_>, old: At<'_, '_>) {
    if new.text() != old.text() {
        new.invalid_text(IMMUTABLE);
    }
}

/// `Duplicate value`, showing `value`.
pub(crate) fn duplicate(at: At<'_, '_>, value: impl Into<Value>) {
    at.check().push(FieldError::duplicate(at.path(), value));
}

/// `Unsupported value`, showing `value`.
pub(crate) fn not_supported(at: At<'_, '_>, value: impl Into<Value>, supported: &[&str]) {
    at.check().push(FieldError::not_supported(at.path(), value, supported));
}

/// `Too many` where a map's entries are counted or the list is not at hand.
pub(crate) fn too_many(at: At<'_, '_>, count: usize, limit: usize) {
    at.check().push(FieldError::too_many(at.path(), count, limit));
}

/// `Internal error`.
pub(crate) fn internal(at: At<'_, '_>, detail: impl Into<String>) {
    at.check().push(FieldError::new(ErrorKind::Internal, at.path(), Shown::Nothing, detail));
}

/// Every message about a text becomes an error.
pub(crate) fn each(at: At<'_, '_>, messages: Vec<String>) {
    for message in messages {
        at.invalid_text(message);
    }
}

/// A DNS label.
pub(crate) fn dns_label(at: At<'_, '_>) {
    each(at, names::is_dns1123_label(at.text()));
}

/// A DNS subdomain.
pub(crate) fn dns_subdomain(at: At<'_, '_>) {
    each(at, names::is_dns1123_subdomain(at.text()));
}

/// A name with or without a domain in front.
pub(crate) fn qualified_name(at: At<'_, '_>) {
    each(at, names::is_qualified_name(at.text()));
}

/// A port number; a missing one is 0.
pub(crate) fn port_number(at: At<'_, '_>) {
    for message in names::is_valid_port_num(at.number()) {
        at.invalid_as(at.number(), message);
    }
}

/// One of these texts, or an error; `Required` when empty.
pub(crate) fn required_one_of(at: At<'_, '_>, supported: &[&str]) {
    if at.text().is_empty() {
        at.required("");
    } else if !supported.contains(&at.text()) {
        at.not_supported(supported);
    }
}

/// A transport protocol.
pub(crate) fn protocol(at: At<'_, '_>) {
    required_one_of(at, &["SCTP", "TCP", "UDP"]);
}

/// An address that something can listen on, in a field where sloppy addresses are fine.
pub(crate) fn endpoint_ip(at: At<'_, '_>) {
    let text = at.text();
    let Some(ip) = ip::parse_ip_sloppy(text).map(|ip| ip.to_canonical()) else {
        return at.invalid_text("must be a valid IP address");
    };
    let (link_local, link_local_multicast) = match ip {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), matches!(v4.octets(), [224, 0, 0, _])),
        std::net::IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        at.invalid_text(format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        at.invalid_text("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        at.invalid_text("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        at.invalid_text("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// An address in a field where sloppy addresses are fine; says whether it is one.
pub(crate) fn legacy_ip(at: At<'_, '_>, old: &[&str]) -> bool {
    let before = at.check().count();
    ip::is_valid_ip_for_legacy_field(at, false, old);
    at.check().count() == before
}

/// A network in a field where sloppy networks are fine.
pub(crate) fn legacy_cidr(at: At<'_, '_>, old: &[&str]) {
    ip::is_valid_cidr_for_legacy_field(at, false, old);
}

/// Whether this is an IPv6 address (an IPv4 address in IPv6's clothes is not).
pub(crate) fn is_ipv6(text: &str) -> bool {
    ip::parse_ip_sloppy(text).is_some_and(|ip| ip.to_canonical().is_ipv6())
}

/// Whether this is an IPv4 address.
pub(crate) fn is_ipv4(text: &str) -> bool {
    ip::parse_ip_sloppy(text).is_some_and(|ip| ip.to_canonical().is_ipv4())
}

#[cfg(test)]
pub(crate) mod testing {
    //! What tests of rules need.
    use k1s_object::Check;
    use serde_json::Value;

    use crate::rules::Rules;

    /// The errors on create, after defaults and preparation.
    pub(crate) fn create(rules: &Rules, mut object: Value) -> Vec<String> {
        (rules.defaults)(&mut object);
        (rules.prepare_create)(&mut object);
        let check = Check::new();
        (rules.validate)(check.root(&object));
        check.take().iter().map(ToString::to_string).collect()
    }

    /// The errors on update, after defaults and preparation.
    pub(crate) fn update(rules: &Rules, mut old: Value, mut new: Value) -> Vec<String> {
        (rules.defaults)(&mut old);
        (rules.defaults)(&mut new);
        (rules.prepare_update)(&mut new, &old);
        let check = Check::new();
        (rules.validate_update)(check.root(&new), check.root(&old));
        check.take().iter().map(ToString::to_string).collect()
    }

    /// An object as it is stored when created.
    pub(crate) fn created(rules: &Rules, mut object: Value) -> Value {
        (rules.defaults)(&mut object);
        (rules.prepare_create)(&mut object);
        object
    }

    /// The warnings on create.
    pub(crate) fn warnings(rules: &Rules, mut object: Value) -> Vec<String> {
        (rules.defaults)(&mut object);
        let mut out = Vec::new();
        (rules.warnings)(&object, None, &mut out);
        out
    }
}
