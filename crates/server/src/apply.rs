//! PATCH with `application/apply-patch+yaml`: server-side apply.

use http::Response;
use k1s_object::{FieldError, Status, decode, yaml};
use serde_json::{Map, Value};

use crate::{
    admission,
    body::Body,
    context::{Cx, FieldValidation, WriteOptions, invalid_options},
    errors::Error,
    lifecycle, managed,
    objectmeta::metadata_mut,
    parts::Part,
    resource::{Resource, Source},
    stored::Stored,
    write::{self, Update},
};

/// The options of an apply.
pub(crate) struct Options {
    pub(crate) write: WriteOptions,
    pub(crate) force: bool,
}

/// The options of an apply in the query.
pub(crate) fn options(cx: &Cx) -> Result<Options, Error> {
    if cx.query.get("fieldManager").is_empty() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(invalid_options("PatchOptions", &[error]).into());
    }
    // As Go converts a parameter to a bool: one without a value is true.
    let force = cx.query.find("force").is_some_and(|text| !text.eq_ignore_ascii_case("false") && text != "0");
    let write = cx.write_options("PatchOptions")?;
    cx.audit(|trail| trail.patch(&cx.body, true));
    Ok(Options { write, force })
}

/// An applied configuration.
pub(crate) struct Config {
    pub(crate) value: Value,
    /// Messages about duplicate keys.
    duplicates: Vec<String>,
}

impl Config {
    /// Reads the body.
    pub(crate) fn read(cx: &Cx) -> Result<Config, Status> {
        let is_json = cx.body.trim_ascii_start().first() == Some(&b'{');
        // Most clients send JSON, which is read faster as such.
        if is_json
            && let Ok(decoded) = decode::json(&cx.body)
            && decoded.duplicates.is_empty()
        {
            return Ok(Config { value: decoded.value, duplicates: Vec::new() });
        }
        let decoded = yaml::decode(&cx.body).map_err(|error| {
            Status::bad_request(match is_json {
                true => format!("error decoding patch: error converting YAML to JSON: {error}"),
                false => format!("error encoding patch: {error}"),
            })
        })?;
        let value = match decoded.value {
            Value::Null => Value::Object(Map::new()),
            value @ Value::Object(_) => value,
            other => {
                return Err(Status::bad_request(format!(
                    "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    decode::type_name(&other)
                )));
            }
        };
        Ok(Config { value, duplicates: decoded.duplicates })
    }

    /// Reports duplicate keys, as the request asks for.
    pub(crate) fn report(&self, cx: &Cx, validation: FieldValidation) -> Result<(), Error> {
        if self.duplicates.is_empty() {
            return Ok(());
        }
        match validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                self.duplicates.iter().for_each(|duplicate| cx.warn(duplicate.as_str()));
                Ok(())
            }
            FieldValidation::Strict => Err(Status::bad_request(format!(
                "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                self.duplicates.join("\n  ")
            ))
            .into()),
        }
    }
}

/// Applies a configuration to an object, or to a part of it.
pub(crate) async fn apply(cx: &Cx, part: Part) -> Result<Response<Body>, Error> {
    let options = options(cx)?;
    let config = Config::read(cx)?;
    let is_seen = admission::sees_unchanged(cx, part).await?;
    let change = |old: &Value, stored: Option<&Stored>| {
        let live = stored.map(|stored| (stored, old));
        if let Some(live) = live
            && !is_seen
            && managed::is_applied(cx, live, &config.value)?
        {
            config.report(cx, options.write.field_validation)?;
            return Ok(None);
        }
        let mut object = managed::apply(cx, live, &config.value, options.force)?.object;
        config.report(cx, options.write.field_validation)?;
        let managers = metadata_mut(&mut object).shift_remove("managedFields");
        decode_applied(cx, &mut object)?;
        if let Some(managers) = managers {
            metadata_mut(&mut object).insert("managedFields".into(), managers);
        }
        write::check_identity(cx, &mut object)?;
        Ok(Some(object))
    };
    let update = Update {
        part,
        dry_run: options.write.dry_run,
        change: &change,
        uid_is_precondition: false,
        create: part == Part::Main,
        track_owners: false,
    };
    let updated = write::update(cx, &update).await?;
    if updated.created {
        lifecycle::after_create(cx, &updated.written, options.write.dry_run).await?;
    } else {
        lifecycle::after_update(cx, &updated, options.write.dry_run).await?;
    }
    updated.written.respond(cx, if updated.created { 201 } else { 200 })
}

/// Decodes and defaults an object after a configuration was merged into it, like the body of a request.
fn decode_applied(cx: &Cx, object: &mut Value) -> Result<(), Error> {
    let resource = &*cx.resource;
    match &resource.source {
        Source::BuiltIn(built_in) => {
            k1s_kinds::codec::from_unstructured(built_in.kind.ty, object, None)
                .map_err(|error| Status::new(500, "", unconvertible(cx, &error.to_string())))?;
            (built_in.rules.defaults)(object);
            resource.set_type(object);
        }
        Source::Custom(custom) => {
            custom.prune_and_default_applied(object).map_err(Status::bad_request)?;
        }
    }
    Ok(())
}

/// The message for a merged object that is not one of its kind.
fn unconvertible(cx: &Cx, why: &str) -> String {
    let Resource { group, version, kind, .. } = &*cx.resource;
    let gvk = format!("{group}/{version}, Kind={kind}");
    format!(
        "failed to convert new object (/{}; {gvk}) to proper version: unable to convert unstructured object to {gvk}: {why}",
        cx.name
    )
}
