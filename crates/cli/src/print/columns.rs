//! `-o custom-columns`: a column for each `NAME:.path`.

use k1s_object::{jsonpath::JsonPath, patch::printed};
use serde_json::Value;

use super::{items, table::Aligned};
use crate::api::Error;

/// The columns, and whether there is a header.
#[derive(Debug, Clone)]
pub(crate) struct CustomColumns {
    columns: Vec<(String, JsonPath)>,
    headers: bool,
}

impl CustomColumns {
    /// `NAME:.metadata.name,IMAGE:.spec.containers[*].image`
    pub(crate) fn parse(spec: &str, headers: bool) -> Result<CustomColumns, Error> {
        let column = |part: &str| {
            let (name, path) = part.split_once(':').ok_or_else(|| {
                Error::failed(format!(
                    "unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
                ))
            })?;
            Ok((name.to_owned(), relaxed(path)?))
        };
        let columns = spec.split(',').map(column).collect::<Result<_, Error>>()?;
        Ok(CustomColumns { columns, headers })
    }

    /// A file with a line of names, and a line of paths.
    pub(crate) fn from_file(text: &str, headers: bool) -> Result<CustomColumns, Error> {
        let mut lines = text.lines();
        let (names, paths) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let (names, paths): (Vec<&str>, Vec<&str>) =
            (names.split_whitespace().collect(), paths.split_whitespace().collect());
        if names.len() != paths.len() || names.is_empty() {
            return Err(Error::failed(
                "invalid template, expected a line with the names of columns and a line with as many paths",
            ));
        }
        let columns = names.into_iter().zip(paths).map(|(name, path)| Ok((name.to_owned(), relaxed(path)?)));
        Ok(CustomColumns { columns: columns.collect::<Result<_, Error>>()?, headers })
    }

    /// The table of an object, or of a list.
    pub(crate) fn print(&self, object: &Value) -> String {
        let mut lines = Aligned::default();
        if self.headers {
            lines.row(self.columns.iter().map(|(name, _)| name.clone()));
        }
        for item in items(object) {
            lines.row(self.columns.iter().map(|(_, path)| cell(path, item)));
        }
        lines.flush()
    }
}

fn cell(path: &JsonPath, object: &Value) -> String {
    let found = path.find(object).unwrap_or_default();
    let texts: Vec<String> = found.iter().flatten().map(|value| printed(value)).collect();
    if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") }
}

/// A path as people write it: `{.a.b}`, `.a.b`, `a.b`.
pub(crate) fn relaxed(path: &str) -> Result<JsonPath, Error> {
    let inside = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    if inside.is_empty() || inside.contains(['{', '}']) {
        return Err(Error::failed(format!(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{{name1.name2}}' or '{{.name1.name2}}', \
             got {path:?}"
        )));
    }
    let dot = if inside.starts_with(['.', '[']) { "" } else { "." };
    let template = format!("{{{dot}{inside}}}");
    JsonPath::parse(&template)
        .map(JsonPath::allow_missing_keys)
        .map_err(|error| Error::failed(format!("error parsing jsonpath {template}, {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_value_is_none_and_several_are_joined() {
        let columns = CustomColumns::parse("NAME:.metadata.name,X:spec.x[*].y", true).unwrap();
        let list = json!({"kind": "List", "items": [
            {"metadata": {"name": "a"}, "spec": {"x": [{"y": 1}, {"y": 2}]}},
            {"metadata": {"name": "b"}},
        ]});
        assert_eq!(columns.print(&list), "NAME   X\na      1,2\nb      <none>\n");
        assert!(CustomColumns::parse("NAME", true).is_err());
        let file = CustomColumns::from_file("NAME X\nmetadata.name .spec.z\n", false).unwrap();
        assert_eq!(file.print(&list), "a     <none>\nb     <none>\n");
    }
}
