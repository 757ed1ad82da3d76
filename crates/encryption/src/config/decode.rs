//! From YAML or JSON to a configuration: unknown and duplicate fields are errors, as are values of another type.

use std::path::Path;

use k1s_object::{decode::type_name, field::quote, time::Duration, yaml};
use serde_json::{Map, Value};

use super::{Configuration, Key, Kms, Provider, Resources};
use crate::ConfigError;

const VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";

/// The version and kind of files from Kubernetes 1.12 and earlier.
const LEGACY: (&str, &str) = ("v1", "EncryptionConfig");

/// The other kinds of this group and version, which a file may hold by mistake.
const OTHERS: [&str; 5] = [
    "AdmissionConfiguration",
    "AuthenticationConfiguration",
    "AuthorizationConfiguration",
    "EgressSelectorConfiguration",
    "TracingConfiguration",
];

pub(super) fn decode(text: &[u8], path: &Path) -> Result<Configuration, ConfigError> {
    let wrong = |reason: String| ConfigError::Decode { path: path.to_owned(), reason };
    let decoded = yaml::decode(text).map_err(|error| wrong(error.message))?;
    let empty = Map::new();
    let top = match &decoded.value {
        Value::Object(map) => map,
        Value::Null => &empty,
        other => {
            return Err(wrong(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct \
                 {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                type_name(other)
            )));
        }
    };
    let text_of = |name: &str| top.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text_of("kind"), text_of("apiVersion"));
    // Unlike Go's, the message does not repeat the file, which holds keys.
    for (name, value) in [("Kind", kind), ("apiVersion", version)] {
        if value.is_empty() {
            return Err(wrong(format!("Object '{name}' is missing")));
        }
    }
    if (version, kind) != LEGACY {
        if version != VERSION || (kind != KIND && !OTHERS.contains(&kind)) {
            return Err(wrong(format!(
                "no kind {} is registered for version {}",
                quote(kind),
                quote(version)
            )));
        }
        if kind != KIND {
            return Err(ConfigError::Kind(format!("{version}, Kind={kind}")));
        }
    }
    let mut reader = Reader { unknown: Vec::new() };
    let configuration = reader.configuration(&decoded.value).map_err(wrong)?;
    let duplicates = decoded.duplicates_error().map(|error| error.message);
    let strict: Vec<String> = duplicates.into_iter().chain(reader.unknown).collect();
    if !strict.is_empty() {
        return Err(wrong(format!("strict decoding error: {}", strict.join(", "))));
    }
    Ok(configuration)
}

/// A value and where it is.
struct At<'v> {
    value: &'v Value,
    /// `resources[0].providers`, for unknown fields.
    path: String,
    /// The Go struct it is a field of, and the path of fields: both for errors about types.
    owner: &'static str,
    fields: String,
}

impl<'v> At<'v> {
    fn member(&self, owner: &'static str, name: &str, value: &'v Value) -> At<'v> {
        At { value, path: join(&self.path, name), owner, fields: join(&self.fields, name) }
    }

    fn mistyped(&self, go_type: &str) -> String {
        let Self { owner, fields, .. } = self;
        let found = type_name(self.value);
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {go_type}")
    }

    /// The members of an object; none of `null`.
    fn members(&self, go_type: &'static str) -> Result<Vec<(&'v str, At<'v>)>, String> {
        match self.value {
            Value::Object(map) => {
                Ok(map.iter().map(|(name, value)| (&**name, self.member(go_type, name, value))).collect())
            }
            Value::Null => Ok(Vec::new()),
            _ => Err(self.mistyped(&format!("v1.{go_type}"))),
        }
    }

    fn items(&self, go_type: &str) -> Result<Vec<At<'v>>, String> {
        let items = match self.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(self.mistyped(&format!("[]{go_type}"))),
        };
        let at = |(i, value)| At {
            value,
            path: format!("{}[{i}]", self.path),
            owner: self.owner,
            fields: self.fields.clone(),
        };
        Ok(items.iter().enumerate().map(at).collect())
    }

    fn text(&self) -> Result<String, String> {
        match self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Null => Ok(String::new()),
            _ => Err(self.mistyped("string")),
        }
    }
}

struct Reader {
    /// A message for each unknown field.
    unknown: Vec<String>,
}

impl Reader {
    fn configuration(&mut self, value: &Value) -> Result<Configuration, String> {
        let root = At { value, path: String::new(), owner: KIND, fields: String::new() };
        let mut out = Configuration { resources: Vec::new() };
        for (name, at) in root.members(KIND)? {
            match name {
                "kind" | "apiVersion" => {}
                "resources" => {
                    for item in at.items("v1.ResourceConfiguration")? {
                        out.resources.push(self.resources(&item)?);
                    }
                }
                _ => self.unknown(&at),
            }
        }
        Ok(out)
    }

    fn resources(&mut self, at: &At<'_>) -> Result<Resources, String> {
        let mut out = Resources::default();
        for (name, at) in at.members("ResourceConfiguration")? {
            match name {
                "resources" => {
                    out.resources = at.items("string")?.iter().map(At::text).collect::<Result<_, _>>()?;
                }
                "providers" => {
                    for item in at.items("v1.ProviderConfiguration")? {
                        out.providers.push(self.provider(&item)?);
                    }
                }
                _ => self.unknown(&at),
            }
        }
        Ok(out)
    }

    fn provider(&mut self, at: &At<'_>) -> Result<Provider, String> {
        let mut out = Provider::default();
        for (name, at) in at.members("ProviderConfiguration")? {
            let is_set = !at.value.is_null();
            match name {
                "aesgcm" => out.aesgcm = is_set.then(|| self.keys(&at, "AESConfiguration")).transpose()?,
                "aescbc" => out.aescbc = is_set.then(|| self.keys(&at, "AESConfiguration")).transpose()?,
                "secretbox" => {
                    out.secretbox = is_set.then(|| self.keys(&at, "SecretboxConfiguration")).transpose()?;
                }
                "identity" => {
                    at.members("IdentityConfiguration")?.iter().for_each(|(_, at)| self.unknown(at));
                    out.identity = is_set;
                }
                "kms" => out.kms = is_set.then(|| self.kms(&at)).transpose()?,
                _ => self.unknown(&at),
            }
        }
        Ok(out)
    }

    fn keys(&mut self, at: &At<'_>, go_type: &'static str) -> Result<Vec<Key>, String> {
        let mut keys = Vec::new();
        for (name, at) in at.members(go_type)? {
            match name {
                "keys" => {
                    for item in at.items("v1.Key")? {
                        keys.push(self.key(&item)?);
                    }
                }
                _ => self.unknown(&at),
            }
        }
        Ok(keys)
    }

    fn key(&mut self, at: &At<'_>) -> Result<Key, String> {
        let mut out = Key::default();
        for (name, at) in at.members("Key")? {
            match name {
                "name" => out.name = at.text()?,
                "secret" => out.secret = at.text()?,
                _ => self.unknown(&at),
            }
        }
        Ok(out)
    }

    fn kms(&mut self, at: &At<'_>) -> Result<Kms, String> {
        let mut out = Kms::default();
        for (name, at) in at.members("KMSConfiguration")? {
            match name {
                "apiVersion" => out.api_version = at.text()?,
                "name" => out.name = at.text()?,
                "endpoint" => out.endpoint = at.text()?,
                "cachesize" => {
                    out.cache_size = at.value.as_i64().filter(|number| i32::try_from(*number).is_ok());
                    if out.cache_size.is_none() && !at.value.is_null() {
                        return Err(at.mistyped("int32"));
                    }
                }
                "timeout" => {
                    let text = at.text()?;
                    out.timeout = (!at.value.is_null()).then(|| Duration::parse(&text)).transpose()?;
                }
                _ => self.unknown(&at),
            }
        }
        Ok(out)
    }

    fn unknown(&mut self, at: &At<'_>) {
        self.unknown.push(format!("unknown field {}", quote(&at.path)));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
