//! `explain`: the fields of a kind, from the server's OpenAPI.

use clap::Args;
use serde_json::Value;

use crate::{
    Commands,
    api::{Error, JSON, Path},
    say,
    session::{Access, Session, Target},
};

/// Options of `explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// `TYPE` or `TYPE.field.field`.
    #[arg(value_name = "TYPE[.FIELD…]")]
    what: String,
    /// Shows the fields of fields as well.
    #[arg(long)]
    recursive: bool,
    /// In this version: `apps/v1`.
    #[arg(long, value_name = "GROUP/VERSION")]
    api_version: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(program: &Commands, args: &ExplainArgs) -> Result<(), Error> {
    let session = Session::open(program, &args.target, Access::Read).await?;
    let done = explain(&session, args).await;
    session.close().await?;
    say::print(&done?);
    Ok(())
}

async fn explain(session: &Session, args: &ExplainArgs) -> Result<String, Error> {
    let resources = session.resources().await?;
    let (word, path) = args.what.split_once('.').unwrap_or((&args.what, ""));
    // A name with its group, if there is such a resource, else a name and fields.
    let (resource, path) = match resources.named(&args.what) {
        Ok(resource) => (resource, ""),
        Err(_) => (resources.named(word)?, path),
    };
    let resource = match &args.api_version {
        None => resource,
        Some(version) => resources.of_kind(version, &resource.kind).ok_or_else(|| {
            Error::failed(format!("the server doesn't have {} in version {version}", resource.plural))
        })?,
    };
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    let document =
        session.api.get(Path::new(format!("/openapi/v3/{root}/{}", resource.api_version())), JSON).await?;
    let document = Document(&document);
    let kind = document
        .of_kind(&resource.group, &resource.version, &resource.kind)
        .ok_or_else(|| Error::failed(format!("couldn't find the schema of {}", resource.group_resource())))?;
    let fields: Vec<&str> = path.split('.').filter(|field| !field.is_empty()).collect();
    let Some(schema) = document.at(kind, &fields, &[]) else {
        say::print(&heading(resource));
        return Err(Error::failed(format!("field {:?} does not exist", fields.last().unwrap_or(&""))));
    };
    Ok(document.text(resource, schema, fields.last().copied(), args.recursive))
}

/// An OpenAPI document, with the schemas it refers to.
struct Document<'a>(&'a Value);

impl<'a> Document<'a> {
    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&'a Value> {
        let is =
            |known: &Value| known["group"] == group && known["version"] == version && known["kind"] == kind;
        let schemas = self.0["components"]["schemas"].as_object()?;
        schemas
            .values()
            .find(|schema| schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten().any(is))
    }

    /// What a schema refers to, or itself; and the reference.
    fn resolve(&self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        let reference = schema["$ref"].as_str();
        let name = reference.and_then(|reference| reference.rsplit('/').next());
        let target = name.and_then(|name| self.0["components"]["schemas"].get(name));
        (target.unwrap_or(schema), reference)
    }

    /// The schema of a field. `above` are the references that were followed since the last field: some contain themselves.
    fn at(&self, schema: &'a Value, path: &[&str], above: &[&str]) -> Option<&'a Value> {
        let Some((first, rest)) = path.split_first() else { return Some(schema) };
        let (target, reference) = self.resolve(schema);
        if reference.is_some_and(|reference| above.contains(&reference)) {
            return None;
        }
        if let Some(field) = target["properties"].get(first) {
            return self.at(field, rest, &[]);
        }
        let above: Vec<&str> = above.iter().copied().chain(reference).collect();
        if let Some(inner) = items(target).or_else(|| values(target)) {
            return self.at(inner, path, &above);
        }
        all_of(target).iter().find_map(|part| self.at(part, path, &above))
    }

    /// `string`, `[]Container`, `map[string]string`
    fn type_of(&self, schema: &'a Value) -> String {
        if let Some(items) = items(schema) {
            return format!("[]{}", self.type_of(items));
        }
        if let Some(values) = values(schema) {
            return format!("map[string]{}", self.type_of(values));
        }
        if let ([only], None) = (all_of(schema), schema.get("properties")) {
            return self.type_of(only);
        }
        let (target, reference) = self.resolve(schema);
        let type_ = target["type"].as_str();
        match (reference, type_) {
            (Some(reference), None | Some("object")) => {
                reference.rsplit(['/', '.']).next().unwrap_or("Object").to_owned()
            }
            (_, Some("object") | None) => "Object".to_owned(),
            (_, Some(type_)) => type_.to_owned(),
        }
    }

    fn text(
        &self,
        resource: &crate::api::Resource,
        schema: &'a Value,
        field: Option<&str>,
        recursive: bool,
    ) -> String {
        let mut out = heading(resource);
        if let Some(field) = field {
            out.push_str(&format!("FIELD: {field} <{}>\n", self.type_of(schema)));
            if let Some(values) = enumeration(schema) {
                out.push_str(&format!("ENUM:\n    {}", values.join("\n    ")));
            }
            out.push_str("\n\n");
        }
        let mut description = String::new();
        self.describe(&mut description, schema);
        out.push_str("DESCRIPTION:\n");
        indented(&mut out, if description.is_empty() { "<empty>" } else { &description }, 4, 76);
        let mut fields = String::new();
        self.fields(&mut fields, schema, 1, recursive, &[]);
        if !fields.is_empty() {
            out.push_str("FIELDS:\n");
            out.push_str(&fields);
        }
        out.push('\n');
        out
    }

    /// The description of a schema, and those of its parts: of its type, of its items.
    fn describe(&self, out: &mut String, schema: &'a Value) {
        let (target, _) = self.resolve(schema);
        if let Some(text) = target["description"].as_str() {
            out.push_str(text);
            out.push('\n');
        }
        for part in all_of(target).iter().chain(items(target)).chain(values(target)) {
            self.describe(out, part);
        }
    }

    fn fields(&self, out: &mut String, schema: &'a Value, depth: usize, recursive: bool, above: &[&'a str]) {
        let (schema, reference) = self.resolve(schema);
        // Some schemas contain themselves.
        if reference.is_some_and(|reference| above.contains(&reference)) {
            return;
        }
        let above: Vec<&str> = above.iter().copied().chain(reference).collect();
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let mut properties: Vec<(&String, &'a Value)> =
            schema["properties"].as_object().into_iter().flatten().collect();
        properties.sort_by_key(|(name, _)| *name);
        let indent = "  ".repeat(depth);
        for (name, property) in properties {
            let needed = if required(name) { " -required-" } else { "" };
            out.push_str(&format!("{indent}{name}\t<{}>{needed}", self.type_of(property)));
            if let Some(values) = enumeration(property) {
                let (shown, more) =
                    if values.len() > 4 { (&values[..4], ", ....") } else { (&values[..], "") };
                out.push_str(&format!("\n{indent}enum: {}{more}", shown.join(", ")));
            }
            out.push('\n');
            if recursive {
                self.fields(out, property, depth + 1, recursive, &above);
            } else {
                let description = property["description"].as_str().unwrap_or("<no description>");
                indented(out, description, depth * 2 + 2, 78 - depth * 2);
                out.push('\n');
            }
        }
        for part in all_of(schema).iter().chain(items(schema)).chain(values(schema)) {
            self.fields(out, part, depth, recursive, &above);
        }
    }
}

fn all_of(schema: &Value) -> &[Value] {
    schema["allOf"].as_array().map_or(&[], Vec::as_slice)
}

/// The schema of the items of a list.
fn items(schema: &Value) -> Option<&Value> {
    schema.get("items")
}

/// The schema of the values of a map.
fn values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

/// The values of an enumeration, as they are shown.
fn enumeration(schema: &Value) -> Option<Vec<String>> {
    let show = |value: &Value| match value.as_str() {
        Some("") => "\"\"".to_owned(),
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let values: Vec<String> = schema["enum"].as_array()?.iter().map(show).collect();
    (!values.is_empty()).then_some(values)
}

fn heading(resource: &crate::api::Resource) -> String {
    let group =
        if resource.group.is_empty() { String::new() } else { format!("GROUP:      {}\n", resource.group) };
    format!("{group}KIND:       {}\nVERSION:    {}\n\n", resource.kind, resource.version)
}

/// A text in lines of at most `width` characters, with spaces in front of each. Longer words stay whole, and a line keeps the
/// spaces that it begins with.
fn indented(out: &mut String, text: &str, indent: usize, width: usize) {
    let pad = " ".repeat(indent);
    for line in text.split('\n') {
        out.push_str(&pad);
        let (mut used, mut rest) = (0, line);
        while !rest.is_empty() {
            let spaces = rest.len() - rest.trim_start().len();
            let (gap, after) = rest.split_at(spaces);
            let word = after.split(char::is_whitespace).next().unwrap_or_default();
            let (gap_length, length) = (gap.chars().count(), word.chars().count());
            let fits_a_line = length < width || used + gap_length > 1;
            if !word.is_empty() && used + gap_length + length > width && fits_a_line {
                out.push('\n');
                out.push_str(&pad);
                out.push_str(word);
                used = length;
            } else if !word.is_empty() || used + gap_length <= width {
                out.push_str(gap);
                out.push_str(word);
                used += gap_length + length;
            }
            rest = &after[word.len()..];
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_and_keep_their_own_indentation() {
        let mut out = String::new();
        indented(&mut out, "one two three\n\n - four  five\na seventeen-letters-long six", 2, 10);
        assert_eq!(out, "  one two\n  three\n  \n   - four\n  five\n  a\n  seventeen-letters-long\n  six\n");
    }
}
