//! `metadata.managedFields` as JSON.

use serde_json::{Map, Value};

use crate::{
    merge::{ManagerId, Managers, Operation, Owned},
    set::FieldSet,
};

/// Why `metadata.managedFields` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// An operation other than `Apply` and `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No API version.
    #[error("apiVersion must not be empty")]
    Version,
    /// No type of fields.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// An unknown type of fields.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, String),
    /// The fields cannot be read.
    #[error("error decoding set: {0}")]
    Fields(#[from] crate::fields_v1::FieldsError),
    /// It is not a list of objects.
    #[error("managedFields must be a list of objects")]
    NoList,
}

fn text<'v>(entry: &'v Map<String, Value>, name: &str) -> &'v str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Reads `metadata.managedFields`; nothing is an empty list.
///
/// # Errors
/// Entries that cannot be read.
pub fn decode(entries: Option<&Value>) -> Result<Managers, EntryError> {
    decode_as(entries, Form::Object)
}

/// The same of entries in a form. In those of [`Form::Json`], `fieldsV1` may be an object, too.
pub(super) fn decode_as(entries: Option<&Value>, form: Form) -> Result<Managers, EntryError> {
    let entries = match entries {
        None | Some(Value::Null) => return Ok(Managers::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(EntryError::NoList),
    };
    let mut managers = Managers::new();
    for (i, entry) in entries.iter().enumerate() {
        let entry = entry.as_object().ok_or(EntryError::NoList)?;
        let operation = match text(entry, "operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(EntryError::Operation),
        };
        let version = text(entry, "apiVersion");
        if version.is_empty() {
            return Err(EntryError::Version);
        }
        match text(entry, "fieldsType") {
            "FieldsV1" => {}
            "" => return Err(EntryError::NoFieldsType(i)),
            other => return Err(EntryError::FieldsType(i, other.to_owned())),
        }
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::new(),
            Some(Value::String(json)) if form == Form::Json => FieldSet::from_fields_v1_json(json)?,
            Some(fields) => FieldSet::from_fields_v1(fields)?,
        };
        let id = ManagerId {
            name: text(entry, "manager").to_owned(),
            operation,
            api_version: if operation == Operation::Apply { String::new() } else { version.to_owned() },
            subresource: text(entry, "subresource").to_owned(),
        };
        let time = Some(text(entry, "time")).filter(|time| !time.is_empty()).map(str::to_owned);
        managers.insert(id, Owned { fields, version: version.to_owned(), time });
    }
    Ok(managers)
}

/// Whether the entries of a request ask to forget all managers: an empty list, or one empty entry.
pub(super) fn is_reset(entries: Option<&Value>) -> bool {
    match entries {
        Some(Value::Array(entries)) => match &**entries {
            [] => true,
            [Value::Object(entry)] => entry.values().all(|value| match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                _ => false,
            }),
            _ => false,
        },
        _ => false,
    }
}

/// The managers as entries, in the order of kube-apiserver: appliers first, then by time, name, version and subresource.
/// `None` if there are none.
pub fn encode(managers: &Managers) -> Option<Value> {
    into_entries(managers.clone(), Form::Object)
}

/// Whether entries of a request are those that an object has.
pub(super) fn are_same(sent: &Value, kept: &Value) -> bool {
    let (Some(sent), Some(kept)) = (sent.as_array(), kept.as_array()) else { return sent == kept };
    let same_entry = |sent: &Value, kept: &Value| {
        let (Some(sent), Some(kept)) = (sent.as_object(), kept.as_object()) else { return sent == kept };
        sent.len() == kept.len()
            && sent.iter().all(|(name, value)| match (value, kept.get(name)) {
                (Value::Object(_), Some(Value::String(json))) if name == "fieldsV1" => {
                    serde_json::to_string(value).is_ok_and(|text| text == *json)
                        || serde_json::from_str::<Value>(json).is_ok_and(|kept| kept == *value)
                }
                (value, kept) => kept == Some(value),
            })
    };
    sent.len() == kept.len() && sent.iter().zip(kept).all(|(sent, kept)| same_entry(sent, kept))
}

/// How `fieldsV1` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As an object.
    Object,
    /// As a string that holds the JSON, which takes a tenth of the memory.
    Json,
}

/// The form of entries.
pub(super) fn form_of(entries: Option<&Value>) -> Form {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let is_text = |entry: &Value| matches!(entry.get("fieldsV1"), Some(Value::String(_)));
    if entries.into_iter().any(is_text) { Form::Json } else { Form::Object }
}

/// The same without a copy of the sets.
pub(super) fn into_entries(managers: Managers, form: Form) -> Option<Value> {
    if managers.is_empty() {
        return None;
    }
    let mut list: Vec<Value> = Vec::with_capacity(managers.len());
    for (id, mut owned) in managers {
        let fields = std::mem::take(&mut owned.fields);
        let fields = match form {
            Form::Object => fields.to_fields_v1(),
            Form::Json => Value::String(fields.to_fields_v1_json()),
        };
        list.push(entry(&id, &owned, fields));
    }
    sort(&mut list);
    Some(Value::Array(list))
}

/// Sorts entries.
pub(super) fn sort(list: &mut [Value]) {
    fn key(entry: &Value) -> [&str; 5] {
        ["operation", "time", "manager", "apiVersion", "subresource"]
            .map(|field| entry.get(field).and_then(Value::as_str).unwrap_or_default())
    }
    list.sort_by(|a, b| key(a).cmp(&key(b)));
}

/// One entry.
pub(super) fn entry(id: &ManagerId, owned: &Owned, fields: Value) -> Value {
    let mut entry = Map::with_capacity(7);
    if !id.name.is_empty() {
        entry.insert("manager".into(), id.name.as_str().into());
    }
    entry.insert("operation".into(), id.operation.name().into());
    entry.insert("apiVersion".into(), owned.version.as_str().into());
    if let Some(time) = &owned.time {
        entry.insert("time".into(), time.as_str().into());
    }
    entry.insert("fieldsType".into(), "FieldsV1".into());
    entry.insert("fieldsV1".into(), fields);
    if !id.subresource.is_empty() {
        entry.insert("subresource".into(), id.subresource.as_str().into());
    }
    Value::Object(entry)
}
