//! Conversion webhooks: the `ConversionReview` that is sent, and what a converter may answer.
//!
//! A converter may change everything but the metadata, of which only labels and annotations are its own. The rules and the
//! messages are those of kube-apiserver.

use k1s_object::{
    Check, decode, depth,
    field::quote,
    meta::{validate_annotations, validate_labels},
};
use serde_json::{Map, Value, json};

use crate::go::go_type;

/// The version of the `ConversionReview` that a webhook understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `apiextensions.k8s.io/v1`
    V1,
    /// `apiextensions.k8s.io/v1beta1`: its answers are checked less.
    V1Beta1,
}

impl ReviewVersion {
    /// The first supported one of `conversionReviewVersions`.
    pub fn choose<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<ReviewVersion> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "apiextensions.k8s.io/v1",
            ReviewVersion::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

/// The objects of one call, and the version they are wanted in.
#[derive(Debug)]
pub struct Review<'a> {
    /// The version of the review.
    pub version: ReviewVersion,
    /// Identifies the call.
    pub uid: &'a str,
    /// The wanted version: `example.com/v1`.
    pub desired: &'a str,
    /// The objects, each with its kind and apiVersion.
    pub objects: &'a [Value],
}

impl Review<'_> {
    /// The body of the request.
    pub fn body(&self) -> Vec<u8> {
        // Written by hand up to the objects, which are not copied for it.
        let mut out = Vec::with_capacity(1024);
        let head = json!({"kind": "ConversionReview", "apiVersion": self.version.api_version()}).to_string();
        out.extend_from_slice(head.trim_end_matches('}').as_bytes());
        out.extend_from_slice(b",\"request\":{\"uid\":");
        out.extend_from_slice(quote(self.uid).as_bytes());
        out.extend_from_slice(b",\"desiredAPIVersion\":");
        out.extend_from_slice(quote(self.desired).as_bytes());
        out.extend_from_slice(b",\"objects\":");
        // Writing to a Vec cannot fail, nor can encoding values.
        let _ = serde_json::to_writer(&mut out, self.objects);
        out.extend_from_slice(b"}}");
        out
    }

    /// The converted objects of a response, in the order of those sent, with the metadata that a converter may not change.
    ///
    /// # Errors
    /// What follows `conversion webhook for example.com/v1, Kind=Example`, with a leading space.
    pub fn answer(&self, body: &[u8]) -> Result<Vec<Value>, String> {
        let converted = self.response(body).map_err(|why| format!(" failed: {why}"))?;
        if converted.len() != self.objects.len() {
            return Err(format!(" returned {} objects, expected {}", converted.len(), self.objects.len()));
        }
        let single = converted.len() == 1;
        let each = self.objects.iter().zip(converted).enumerate();
        each.map(|(index, (original, converted))| {
            self.check(original, converted)
                .map_err(|wrong| wrong.message(single.then_some(()).is_none(), index))
        })
        .collect()
    }

    fn response(&self, body: &[u8]) -> Result<Vec<Value>, String> {
        let decoded = decode::json(body)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
        let mut review = decoded.value;
        if self.version == ReviewVersion::V1 {
            let found = gvk(&review);
            let expected = format!("{}, Kind=ConversionReview", self.version.api_version());
            if found != expected {
                return Err(format!("expected webhook response of {expected}, got {found}"));
            }
        }
        let response = review.get_mut("response").map(Value::take).filter(Value::is_object);
        let mut response = response.ok_or("no response provided")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let uid = text(&response["uid"]);
        if self.version == ReviewVersion::V1 && uid != self.uid {
            return Err(format!("expected response.uid={}, got {}", quote(self.uid), quote(&uid)));
        }
        let result = &response["result"];
        let status = text(&result["status"]);
        if status != "Success" {
            let message = text(&result["message"]);
            return Err(match message.is_empty() {
                true => format!("response.result.status was '{status}', not 'Success'"),
                false => message,
            });
        }
        match response["convertedObjects"].take() {
            Value::Array(objects) => Ok(objects),
            Value::Null => Ok(Vec::new()),
            other => Err(format!(
                "json: cannot unmarshal {} into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
                decode::type_name(&other)
            )),
        }
    }

    /// The converted object with the metadata of the original.
    fn check(&self, original: &Value, mut converted: Value) -> Result<Value, Wrong> {
        if text(&converted, "kind").is_empty() {
            return Err(Wrong::Unreadable(format!("Object 'Kind' is missing in '{converted}'")));
        }
        if depth::is_too_deep(&converted) {
            return Err(Wrong::Unreadable(format!("exceeded max depth of {}", depth::MAX_DEPTH)));
        }
        let (found, kind) = (text(&converted, "apiVersion"), text(&converted, "kind"));
        if found != self.desired {
            let why = format!("invalid groupVersion (expected {}, received {found})", self.desired);
            return Err(Wrong::Type(why));
        }
        let expected = text(original, "kind");
        if kind != expected {
            return Err(Wrong::Type(format!("invalid kind (expected {expected}, received {kind})")));
        }
        for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
            let (before, after) = (meta(original, field), meta(&converted, field));
            if before != after {
                return Err(Wrong::Identity(format!("must have the same {name}: {before} != {after}")));
            }
        }
        restore(original, &mut converted).map_err(Wrong::Metadata)?;
        crate::settle_numbers(&mut converted);
        Ok(converted)
    }
}

/// What is wrong with a converted object.
enum Wrong {
    Unreadable(String),
    Type(String),
    Identity(String),
    Metadata(String),
}

impl Wrong {
    /// kube-apiserver words it differently for one object and for a list.
    fn message(self, of_list: bool, index: usize) -> String {
        match (self, of_list) {
            (Wrong::Metadata(why), true) => {
                format!(" returned invalid metadata in object at index {index}: {why}")
            }
            (Wrong::Unreadable(why) | Wrong::Type(why) | Wrong::Identity(why), true) => {
                format!(" returned invalid converted object at index {index}: {why}")
            }
            (Wrong::Type(why), false) => format!(" returned invalid object at index 0: {why}"),
            (Wrong::Identity(why), false) => format!(" returned invalid object: {why}"),
            (Wrong::Metadata(why), false) => format!(" returned invalid metadata: {why}"),
            (Wrong::Unreadable(why), false) => format!(" returned invalid object at index 0: {why}"),
        }
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn meta<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get("metadata").map(|metadata| text(metadata, field)).unwrap_or_default()
}

/// `example.com/v1, Kind=Example`, as Go prints it.
pub fn gvk(object: &Value) -> String {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    match version.contains('/') {
        true => format!("{version}, Kind={kind}"),
        false => format!("/{version}, Kind={kind}"),
    }
}

/// Gives a converted object the original's metadata, with the labels and annotations of the conversion.
fn restore(original: &Value, converted: &mut Value) -> Result<(), String> {
    let Some(map) = converted.as_object_mut() else {
        return Err("missing metadata in converted object".into());
    };
    let mut metadata = match original.get("metadata") {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", go_type(other))),
    };
    let answered = match map.get_mut("metadata") {
        None => return Err("missing metadata in converted object".into()),
        Some(Value::Object(answered)) => std::mem::take(answered),
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut answered = answered;
    for field in ["labels", "annotations"] {
        let found = answered.get_mut(field).map(Value::take).filter(|found| !found.is_null());
        let Some(found) = found else {
            metadata.shift_remove(field);
            continue;
        };
        let Value::Object(entries) = &found else {
            return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(&found)));
        };
        if let Some((key, value)) = entries.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {} in converted object",
                go_type(value)
            ));
        }
        match metadata.get(field) {
            None | Some(Value::Null | Value::Object(_)) => {}
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in original object",
                    go_type(other)
                ));
            }
        }
        if metadata.get(field) != Some(&found) {
            let check = Check::new();
            match field {
                "labels" => validate_labels(check.at("metadata.labels", Some(&found))),
                _ => validate_annotations(check.at("metadata.annotation", Some(&found))),
            }
            let mut errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
            errors.dedup();
            match &*errors {
                [] => {}
                [one] => return Err(one.clone()),
                many => return Err(format!("[{}]", many.join(", "))),
            }
        }
        metadata.insert(field.into(), found);
    }
    map.insert("metadata".into(), Value::Object(metadata));
    Ok(())
}
