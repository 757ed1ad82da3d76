//! Output formats, as kubectl's.

pub(crate) mod columns;
pub(crate) mod json;
pub(crate) mod sort;
pub(crate) mod table;

use clap::Args;
use k1s_object::jsonpath::JsonPath;
use serde_json::Value;

use self::columns::CustomColumns;
use crate::{
    api::{Error, Resource},
    session::read,
};

/// The formats, for error messages.
const FORMATS: &str =
    "custom-columns,custom-columns-file,json,jsonpath,jsonpath-as-json,jsonpath-file,name,wide,yaml";

/// How objects are printed.
#[derive(Debug, Clone)]
pub(crate) enum Output {
    Table { wide: bool },
    Json,
    Yaml,
    Name,
    JsonPath(JsonPath),
    JsonPathAsJson(JsonPath),
    Columns(CustomColumns),
}

impl Output {
    /// The format of `-o`; a table by default.
    pub(crate) fn parse(text: Option<&str>, headers: bool) -> Result<Output, Error> {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(Output::Table { wide: false });
        };
        let (format, argument) = match text.split_once('=') {
            Some((format, argument)) => (format, Some(argument)),
            None => (text, None),
        };
        let needed = |what: &str| {
            argument
                .map(str::to_owned)
                .filter(|argument| !argument.is_empty())
                .ok_or_else(|| Error::failed(format!("template format specified but no {what} given")))
        };
        let path = |template: &str| {
            JsonPath::parse(template)
                .map(JsonPath::allow_missing_keys)
                .map_err(|error| Error::failed(format!("error parsing jsonpath {template}, {error}")))
        };
        Ok(match format {
            "wide" => Output::Table { wide: true },
            "json" => Output::Json,
            "yaml" => Output::Yaml,
            "name" => Output::Name,
            "jsonpath" => Output::JsonPath(path(&needed("template")?)?),
            "jsonpath-as-json" => Output::JsonPathAsJson(path(&needed("template")?)?),
            "jsonpath-file" => Output::JsonPath(path(&read(&needed("template")?)?)?),
            "custom-columns" => Output::Columns(CustomColumns::parse(
                &argument.map(str::to_owned).filter(|spec| !spec.is_empty()).ok_or_else(|| {
                    Error::failed("custom-columns format specified but no custom columns given")
                })?,
                headers,
            )?),
            "custom-columns-file" => {
                Output::Columns(CustomColumns::from_file(&read(&needed("file")?)?, headers)?)
            }
            "go-template" | "go-template-file" | "template" | "templatefile" => {
                return Err(Error::failed(format!(
                    "{format} is not supported, because it is Go's own language; use jsonpath or custom-columns"
                )));
            }
            _ => {
                return Err(Error::failed(format!(
                    "unable to match a printer suitable for the output format {text:?}, allowed formats are: {FORMATS}"
                )));
            }
        })
    }

    /// Whether the server makes the table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Output::Table { .. })
    }

    /// A whole object, or a `List`.
    pub(crate) fn object(&self, object: &Value, resource: Option<&Resource>) -> Result<String, Error> {
        let path_failed = |error: String| Error::failed(format!("error executing jsonpath: {error}"));
        Ok(match self {
            Output::Json => json::pretty(object) + "\n",
            Output::Yaml => k1s_object::to_yaml(object),
            Output::Name | Output::Table { .. } => names(object, resource),
            Output::JsonPath(path) => path.execute(object).map_err(path_failed)?,
            Output::JsonPathAsJson(path) => {
                let found = path.find(object).map_err(path_failed)?;
                let all = found.into_iter().flatten().map(std::borrow::Cow::into_owned).collect();
                json::pretty(&Value::Array(all)) + "\n"
            }
            Output::Columns(columns) => columns.print(object),
        })
    }
}

/// The objects of a list, or the object itself.
pub(crate) fn items(object: &Value) -> Vec<&Value> {
    let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match object["items"].as_array().filter(|_| is_list) {
        Some(items) => items.iter().collect(),
        None => vec![object],
    }
}

fn names(object: &Value, resource: Option<&Resource>) -> String {
    let line = |object: &Value| {
        let kind = match resource {
            Some(resource) => resource.group_kind(),
            None => group_kind(object),
        };
        format!("{kind}/{}\n", object["metadata"]["name"].as_str().unwrap_or_default())
    };
    items(object).into_iter().map(line).collect()
}

/// `deployment.apps`
pub(crate) fn group_kind(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    match object["apiVersion"].as_str().unwrap_or_default().split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind,
    }
}

/// Removes `metadata.managedFields`, which only those who ask for it want to see.
pub(crate) fn hide_managed_fields(object: &mut Value) {
    let hide = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    hide(object);
    for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        hide(item);
    }
}

/// What a command prints about an object it has changed: words, or the object.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PrintArgs {
    /// Output format: json, yaml, name, jsonpath=…, custom-columns=….
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<String>,
    /// Shows metadata.managedFields as well.
    #[arg(long)]
    pub(crate) show_managed_fields: bool,
}

/// Prints the outcome of a change.
#[derive(Debug)]
pub(crate) struct Printer {
    output: Option<Output>,
    managed: bool,
    suffix: &'static str,
}

impl PrintArgs {
    pub(crate) fn printer(&self, dry_run: DryRun) -> Result<Printer, Error> {
        let output = match &self.output {
            Some(text) => match Output::parse(Some(text), true)? {
                Output::Table { .. } => {
                    return Err(Error::failed(format!(
                        "unable to match a printer suitable for the output format {text:?}, allowed formats are: {FORMATS}"
                    )));
                }
                output => Some(output),
            },
            None => None,
        };
        Ok(Printer { output, managed: self.show_managed_fields, suffix: dry_run.suffix() })
    }
}

impl Printer {
    /// `deployment.apps/web created`, or the object as it is now.
    pub(crate) fn print(&self, object: &Value, operation: &str) -> Result<(), Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match &self.output {
            None => crate::say::line(&format!("{}/{name} {operation}{}", group_kind(object), self.suffix)),
            Some(Output::Name) => crate::say::line(&format!("{}/{name}", group_kind(object))),
            Some(output) => {
                let mut object = object.clone();
                if !self.managed {
                    hide_managed_fields(&mut object);
                }
                crate::say::print(&output.object(&object, None)?);
            }
        }
        Ok(())
    }
}

/// `--dry-run`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Really does it.
    #[default]
    None,
    /// Only prints what would be sent.
    Client,
    /// Sends it to the server, which does everything but store it.
    Server,
}

impl DryRun {
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            DryRun::None => "",
            DryRun::Client => " (dry run)",
            DryRun::Server => " (server dry run)",
        }
    }

    /// The query parameter.
    pub(crate) fn parameter(self) -> &'static str {
        if self == DryRun::Server { "All" } else { "" }
    }
}
