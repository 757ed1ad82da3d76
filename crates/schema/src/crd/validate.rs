//! Validation of a `CustomResourceDefinition`.

use std::collections::HashSet;

use k1s_object::{
    field::{At, Check, ErrorKind, Errors, FieldError},
    names,
};
use serde_json::Value;

use super::{
    conversion, default_rules, dump, schema_rules, structural_rules,
    view::{Shared, Version, View},
};
use k1s_cel::go_regex::Patterns;

use crate::{field_path, go, structural::Structural};

const APPROVAL: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MOST_SELECTABLE: usize = 8;
/// Maximum number of versions. Kubernetes has no such limit; definitions in use have fewer than ten.
const MOST_VERSIONS: usize = 256;

/// Validates a definition on create: decoded, defaulted and prepared. Of the metadata only the name is checked,
/// which must consist of plural and group.
pub fn validate_create(crd: At<'_, '_>) {
    let Some(value) = crd.value() else { return };
    let check = crd.check();
    let view = View::new(value);
    for field in ["generateName", "name"] {
        let name = text(value.get("metadata"), field);
        if name.is_empty() {
            continue;
        }
        // A generateName gets a suffix after the dash.
        let whole =
            if field == "name" { name.to_owned() } else { format!("{}a", name.trim_end_matches('-')) };
        let mut wrong = names::is_dns1123_subdomain(&whole);
        if name != format!("{}.{}", text(names(&view), "plural"), view.text("group")) {
            wrong.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        for error in wrong {
            check.push(FieldError::invalid(format!("metadata.{field}"), name, error));
        }
    }
    check_spec(&view, None, check);
    check_status(value, check);
    check_stored_versions(value, &view, check);
    check_approval(value, None, &view, check);
    check_preserve(&view, None, check);
}

/// Validates a definition on update: decoded, defaulted and prepared. Metadata is not checked.
pub fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    let (Some(value), Some(before)) = (new.value(), old.value()) else { return };
    let check = new.check();
    let view = View::new(value);
    let old_view = View::new(before);
    check_spec(&view, Some(before), check);
    let same = |field: &str, new: &str, old: &str| {
        if new != old {
            check.push(FieldError::invalid(format!("spec.{field}"), new, "field is immutable"));
        }
    };
    if is_established(before) {
        same("scope", view.text("scope"), old_view.text("scope"));
        same("names.kind", text(names(&view), "kind"), text(names(&old_view), "kind"));
    }
    same("group", view.text("group"), old_view.text("group"));
    same("names.plural", text(names(&view), "plural"), text(names(&old_view), "plural"));
    check_status(value, check);
    check_stored_versions(value, &view, check);
    check_approval(value, Some(before), &view, check);
    check_preserve(&view, Some(&old_view), check);
}

/// Validates an update of `/status`.
pub fn validate_status_update(new: At<'_, '_>) {
    if let Some(value) = new.value() {
        check_status(value, new.check());
    }
}

fn text<'v>(value: Option<&'v Value>, key: &str) -> &'v str {
    value.and_then(|value| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

fn names<'v>(view: &View<'v>) -> Option<&'v Value> {
    view.spec.and_then(|spec| spec.get("names"))
}

fn texts<'v>(value: Option<&'v Value>, key: &str) -> Vec<&'v str> {
    let list = value.and_then(|value| value.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether the condition `Established` is true.
fn is_established(crd: &Value) -> bool {
    let conditions = crd.get("status").and_then(|status| status.get("conditions")).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text(Some(condition), "type") == "Established" && text(Some(condition), "status") == "True"
    })
}

fn preserves(view: &View<'_>) -> bool {
    view.spec.and_then(|spec| spec.get("preserveUnknownFields")).and_then(Value::as_bool).unwrap_or_default()
}

fn check_spec(view: &View<'_>, old: Option<&Value>, check: &Check<'_>) {
    // The following checks compare versions pairwise.
    if view.versions.len() > MOST_VERSIONS {
        check.push(FieldError::too_many("spec.versions", view.versions.len(), MOST_VERSIONS));
        return;
    }
    // Any CA bundle is accepted until the definition is established, and if the stored one is invalid.
    let check_ca = old.is_some_and(|old| {
        is_established(old)
            && old
                .get("spec")
                .and_then(|spec| spec.get("conversion"))
                .is_none_or(|conversion| conversion::ca_bundle_error(conversion).is_none())
    });
    let group = view.text("group");
    if group.is_empty() {
        check.push(FieldError::required("spec.group", ""));
    } else {
        let wrong = names::is_dns1123_subdomain(group);
        if !wrong.is_empty() {
            check.push(FieldError::invalid("spec.group", group, wrong.join(",")));
        } else if !group.contains('.') {
            check.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
        }
    }
    match view.text("scope") {
        "" => check.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => check.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    if view.shared.schema().is_none() {
        for (index, version) in view.versions.iter().enumerate() {
            if version.shared.schema().is_none() {
                let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
                check.push(FieldError::required(at, ""));
            }
        }
    }
    if preserves(view) && has_defaults(view) {
        check.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "must be false in order to use defaults in the schema",
        ));
    }
    let mut patterns = Patterns::default();
    check_versions(view, old, &mut patterns, check);
    check_names(names(view), "spec.names", true, check);
    let first = view.versions.first().map_or("", |version| version.name);
    let tolerate = is_schema_unchanged(view, old, first);
    check_shared(&view.shared, "spec", "spec.validation", any_status(view), tolerate, &mut patterns, check);
    check_selectable(&view.shared, view.shared.validation, "spec.selectableFields", "", old, check);
    if let Some(conversion) = view.spec.and_then(|spec| spec.get("conversion")) {
        let strategy = text(Some(conversion), "strategy");
        if preserves(view) && strategy != "None" {
            check.push(FieldError::invalid(
                "spec.conversion.strategy",
                strategy,
                "must be None if spec.preserveUnknownFields is true",
            ));
        }
        conversion::check(conversion, check_ca, check);
    }
}

/// Whether an update leaves the schema of a version as it is. Its rules may then cost more than they may otherwise.
fn is_schema_unchanged(view: &View<'_>, old: Option<&Value>, version: &str) -> bool {
    fn schema<'v>(view: &View<'v>, name: &str) -> Option<Option<&'v Value>> {
        if view.versions.iter().all(|version| version.shared.validation.is_none()) {
            return Some(view.shared.validation);
        }
        let version = view.versions.iter().find(|version| version.name == name)?;
        Some(version.shared.validation)
    }
    old.is_some_and(|old| {
        let before = schema(&View::new(old), version);
        before.is_some() && before == schema(view, version)
    })
}

fn any_status(view: &View<'_>) -> bool {
    view.shared.has_status() || view.versions.iter().any(|version| version.shared.has_status())
}

fn has_defaults(view: &View<'_>) -> bool {
    let mut found = false;
    for schema in view.schemas() {
        super::visit(schema, &mut |schema| found |= schema.get("default").is_some());
    }
    found
}

fn check_versions(view: &View<'_>, old: Option<&Value>, patterns: &mut Patterns, check: &Check<'_>) {
    let per_version_subresources = view.versions.iter().any(|version| version.shared.subresources.is_some());
    for (index, version) in view.versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let wrong = names::is_dns1035_label(version.name);
        if !wrong.is_empty() {
            check.push(FieldError::invalid(format!("{at}.name"), version.name, wrong.join(",")));
        }
        check_deprecation(version, &at, check);
        let status =
            if per_version_subresources { version.shared.has_status() } else { view.shared.has_status() };
        let tolerate = is_schema_unchanged(view, old, version.name);
        check_shared(&version.shared, &at, &format!("{at}.schema"), status, tolerate, patterns, check);
        let selectable = format!("{at}.selectableFields");
        // A shared schema is not visible from the version.
        if version.shared.selectable.is_some() && version.shared.schema().is_none() {
            check.push(FieldError::invalid(
                selectable,
                "",
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            ));
        } else {
            check_selectable(
                &version.shared,
                version.shared.validation,
                &selectable,
                version.name,
                old,
                check,
            );
        }
    }
    let complain = |detail: &str| {
        let shown = match view.spec.and_then(|spec| spec.get("versions")) {
            None | Some(Value::Null) => Value::Null,
            Some(_) => dump::versions(&view.versions),
        };
        check.push(FieldError::new(ErrorKind::Invalid, "spec.versions", go::json(&shown), detail));
    };
    let names: HashSet<&str> = view.versions.iter().map(|version| version.name).collect();
    if names.len() < view.versions.len() {
        complain("must contain unique version names");
    }
    if view.versions.iter().filter(|version| version.storage).count() != 1 {
        complain("must have exactly one version marked as storage version");
    }
    if let Some(first) = view.versions.first().map(|version| version.name).filter(|name| !name.is_empty()) {
        let wrong = names::is_dns1035_label(first);
        if !wrong.is_empty() {
            check.push(FieldError::invalid("spec.version", first, wrong.join(",")));
        }
    }
}

fn check_deprecation(version: &Version<'_>, at: &str, check: &Check<'_>) {
    let Some(warning) = version.warning else { return };
    let at = format!("{at}.deprecationWarning");
    let mut wrong = Vec::new();
    if !version.deprecated {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        let unprintable = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| unprintable(*c)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    for error in wrong {
        check.push(FieldError::invalid(at.as_str(), warning, error));
    }
}

fn check_names(names: Option<&Value>, at: &str, needed: bool, check: &Check<'_>) {
    let keys = ["plural", "singular", "kind", "listKind"];
    if needed {
        for key in keys {
            if text(names, key).is_empty() {
                check.push(FieldError::required(format!("{at}.{key}"), ""));
            }
        }
    }
    for key in keys {
        let name = text(names, key);
        let mixed = matches!(key, "kind" | "listKind");
        let wrong =
            if mixed { names::is_dns1035_label(&name.to_lowercase()) } else { names::is_dns1035_label(name) };
        if !name.is_empty() && !wrong.is_empty() {
            let prefix = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            check.push(FieldError::invalid(
                format!("{at}.{key}"),
                name,
                format!("{prefix}{}", wrong.join(",")),
            ));
        }
    }
    let check_list = |key: &str| {
        for (index, name) in texts(names, key).into_iter().enumerate() {
            let wrong = names::is_dns1035_label(name);
            if !wrong.is_empty() {
                check.push(FieldError::invalid(format!("{at}.{key}[{index}]"), name, wrong.join(",")));
            }
        }
    };
    check_list("shortNames");
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        check.push(FieldError::invalid(
            format!("{at}.listKind"),
            kind,
            "kind and listKind may not be the same",
        ));
    }
    check_list("categories");
}

/// Schema, subresources and columns, of a version or shared.
fn check_shared(
    shared: &Shared<'_>,
    at: &str,
    validation: &str,
    status: bool,
    tolerate: bool,
    patterns: &mut Patterns,
    check: &Check<'_>,
) {
    if let Some(schema) = shared.schema() {
        check.append(check_schema(schema, validation, status, tolerate, patterns));
    }
    if let Some(scale) = shared.subresources.and_then(|subresources| subresources.get("scale")) {
        check_scale(scale, &format!("{at}.subresources.scale"), check);
    }
    for (index, column) in shared.columns.and_then(Value::as_array).into_iter().flatten().enumerate() {
        check_column(column, &format!("{at}.additionalPrinterColumns[{index}]"), check);
    }
}

pub(super) fn check_schema(
    schema: &Value,
    validation: &str,
    status: bool,
    tolerate: bool,
    patterns: &mut Patterns,
) -> Errors {
    let at = format!("{validation}.openAPIV3Schema");
    let mut errors = Errors::new();
    if status {
        errors.extend(check_root(schema, &at));
    }
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        errors.push(FieldError::forbidden(format!("{at}.nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural_rules::unsupported(schema);
    let mut compiled = None;
    if unsupported.is_none() {
        let wrong = structural_rules::check(schema, &at, patterns);
        if wrong.is_empty() {
            let structural = Structural::compile(schema);
            let wrong = default_rules::check(schema, &structural, &at);
            if wrong.is_empty() {
                compiled = Some(structural);
            }
            errors.extend(wrong.into_vec());
        } else {
            errors.extend(wrong.into_vec());
        }
    }
    errors.extend(schema_rules::check(schema, &at, compiled.as_ref(), tolerate).into_vec());
    if errors.is_empty() {
        errors.extend(unsupported.map(|error| FieldError::invalid(at, "", error)));
    }
    errors
}

/// With the status subresource, the root of a schema may only have keywords that do not affect the status.
fn check_root(schema: &Value, at: &str) -> Option<FieldError> {
    const ALLOWED: [&str; 22] = [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    let kind = text(Some(schema), "type");
    if !kind.is_empty() && kind != "object" {
        return Some(FieldError::invalid(
            format!("{at}.type"),
            kind,
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
        ));
    }
    let other = schema.as_object().into_iter().flatten().any(|(key, _)| !ALLOWED.contains(&key.as_str()));
    other.then(|| {
        FieldError::new(
            ErrorKind::Invalid,
            at,
            go::json(&dump::schema(schema)),
            "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled",
        )
    })
}

/// Whether a path begins with a dot; reports an error if not.
fn is_simple_path(path: &str, at: &str, check: &Check<'_>) -> bool {
    let simple = path.starts_with('.');
    if !simple {
        check.push(FieldError::invalid(at, path, "must be a simple json path starting with ."));
    }
    simple
}

fn check_scale(scale: &Value, at: &str, check: &Check<'_>) {
    for (key, prefixes, detail, needed) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec", true),
        ("statusReplicasPath", &[".status."], "should be a json path under .status", true),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
            false,
        ),
    ] {
        let path = text(Some(scale), key);
        let at = format!("{at}.{key}");
        if path.is_empty() {
            if needed {
                check.push(FieldError::required(at, ""));
            }
        } else if is_simple_path(path, &at, check) && !prefixes.iter().any(|prefix| path.starts_with(prefix))
        {
            check.push(FieldError::invalid(at, path, detail));
        }
    }
}

fn check_column(column: &Value, at: &str, check: &Check<'_>) {
    let column = Some(column);
    if text(column, "name").is_empty() {
        check.push(FieldError::required(format!("{at}.name"), ""));
    }
    let kind = text(column, "type");
    let kinds = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        check.push(FieldError::required(format!("{at}.type"), kinds));
    } else if !COLUMN_TYPES.contains(&kind) {
        check.push(FieldError::invalid(format!("{at}.type"), kind, kinds));
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
        check.push(FieldError::invalid(format!("{at}.format"), format, formats));
    }
    let path = text(column, "jsonPath");
    let at = format!("{at}.JSONPath");
    if path.is_empty() {
        check.push(FieldError::required(at, ""));
    } else {
        is_simple_path(path, &at, check);
    }
}

/// Whether an update leaves a list of selectable fields unchanged that was too long before.
fn was_too_long(selectable: &Value, version: &str, old: Option<&Value>) -> bool {
    let Some(old) = old.map(View::new) else { return false };
    let before = if version.is_empty() {
        old.shared.selectable
    } else {
        old.versions.iter().find(|other| other.name == version).and_then(|other| other.shared.selectable)
    };
    before == Some(selectable)
}

fn check_selectable(
    shared: &Shared<'_>,
    validation: Option<&Value>,
    at: &str,
    version: &str,
    old: Option<&Value>,
    check: &Check<'_>,
) {
    let Some(selectable) = shared.selectable else { return };
    let fields = selectable.as_array().map_or(&[][..], Vec::as_slice);
    if fields.is_empty() {
        return;
    }
    let Some(validation) = validation else {
        check.push(FieldError::invalid(at, "", "may only be set when validations.schema is included"));
        return;
    };
    let empty = Value::Object(serde_json::Map::new());
    let schema = validation.get("openAPIV3Schema").unwrap_or(&empty);
    let mut seen: HashSet<Vec<String>> = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{at}[{index}].jsonPath");
        let path = text(Some(field), "jsonPath");
        if path.is_empty() {
            check.push(FieldError::required(at, ""));
            continue;
        }
        let reached = match field_path::follow(path, schema, false) {
            Ok(reached) => reached,
            Err(error) => {
                check.push(FieldError::invalid(at, path, format!("is an invalid path: {error}")));
                continue;
            }
        };
        if reached.names.first().is_some_and(|first| first == "metadata") {
            check.push(FieldError::invalid(at.as_str(), path, "must not point to fields in metadata"));
        }
        if !matches!(text(Some(reached.schema), "type"), "string" | "boolean" | "integer") {
            check.push(FieldError::invalid(
                at.as_str(),
                path,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            ));
        }
        if !seen.insert(reached.names) {
            check.push(FieldError::duplicate(at, path));
        }
    }
    if seen.len() > MOST_SELECTABLE && !was_too_long(selectable, version, old) {
        check.push(FieldError::too_many(at, seen.len(), MOST_SELECTABLE));
    }
}

fn check_status(crd: &Value, check: &Check<'_>) {
    let accepted = crd.get("status").and_then(|status| status.get("acceptedNames"));
    check_names(accepted, "status.acceptedNames", false, check);
}

fn check_stored_versions(crd: &Value, view: &View<'_>, check: &Check<'_>) {
    const AT: &str = "status.storedVersions";
    let status = crd.get("status");
    let stored = texts(status, "storedVersions");
    let shown = status.and_then(|status| status.get("storedVersions")).cloned().unwrap_or_default();
    if stored.is_empty() {
        check.push(FieldError::invalid(AT, shown, "must have at least one stored version"));
        return;
    }
    for version in view.versions.iter().filter(|version| version.storage) {
        if !stored.contains(&version.name) {
            let detail = format!("must have the storage version {}", version.name);
            check.push(FieldError::invalid(AT, shown.clone(), detail));
        }
    }
    let known: HashSet<&str> = view.versions.iter().map(|version| version.name).collect();
    for (index, version) in stored.into_iter().enumerate() {
        if !known.contains(version) {
            check.push(FieldError::invalid(
                format!("{AT}[{index}]"),
                version,
                format!(
                    "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
                ),
            ));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Given,
    Bypassed,
    Invalid,
}

fn approval(crd: &Value) -> (Approval, &str) {
    let annotations = crd.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let annotation = text(annotations, APPROVAL);
    let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.split('/').next().unwrap_or_default().is_empty()
    });
    let state = match annotation {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Given,
        _ => Approval::Invalid,
    };
    (state, annotation)
}

/// Groups of the Kubernetes community need an approval annotation.
fn check_approval(crd: &Value, old: Option<&Value>, view: &View<'_>, check: &Check<'_>) {
    let group = view.text("group");
    let is_protected = ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    if !is_protected {
        return;
    }
    let (state, annotation) = approval(crd);
    if old.is_some_and(|old| approval(old).0 == state) {
        return;
    }
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let at = format!("metadata.annotations[{APPROVAL}]");
    match state {
        Approval::Missing => check.push(FieldError::required(
            at,
            format!("protected groups must have approval annotation \"{APPROVAL}\", {SEE}"),
        )),
        Approval::Invalid => check.push(FieldError::invalid(
            at,
            annotation,
            format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \"unapproved\", {SEE}"
            ),
        )),
        Approval::Given | Approval::Bypassed => {}
    }
}

fn check_preserve(view: &View<'_>, old: Option<&View<'_>>, check: &Check<'_>) {
    if preserves(view) && !old.is_some_and(preserves) {
        check.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
}
