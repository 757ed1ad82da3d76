//! The table of a custom resource: its `additionalPrinterColumns`, and the cells of an object.

use serde_json::{Value, json};

use crate::jsonpath::{JsonPath, print};
use crate::time::{Time, age};

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although \
     some resources may allow a client to request the generation of an appropriate name automatically. Name is \
     primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
     created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set \
     this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for \
     lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

#[derive(Debug, Clone)]
struct Column {
    kind: String,
    path: JsonPath,
}

/// The columns of a custom resource's table.
#[derive(Debug, Clone)]
pub struct Columns {
    definitions: Vec<Value>,
    columns: Vec<Column>,
}

impl Columns {
    /// The columns of a version's `additionalPrinterColumns`; name and age if there are none. A column whose
    /// path cannot be parsed ends the table, as in Kubernetes.
    pub fn new(additional: Option<&Value>) -> Columns {
        let mut columns = Columns {
            definitions: vec![definition("Name", "string", "name", NAME_DESCRIPTION, 0)],
            columns: Vec::new(),
        };
        let additional = additional.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if additional.is_empty() {
            columns.add("Age", "date", "", AGE_DESCRIPTION, 0, ".metadata.creationTimestamp");
        }
        for column in additional {
            let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default();
            let path = text("jsonPath");
            let description = match text("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                description => description.to_owned(),
            };
            let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
            if !columns.add(text("name"), text("type"), text("format"), &description, priority, path) {
                break;
            }
        }
        columns
    }

    fn add(
        &mut self,
        name: &str,
        kind: &str,
        format: &str,
        description: &str,
        priority: i64,
        path: &str,
    ) -> bool {
        let Ok(path) = JsonPath::parse(&format!("{{{path}}}")) else { return false };
        self.columns.push(Column { kind: kind.to_owned(), path: path.allow_missing_keys() });
        self.definitions.push(definition(name, kind, format, description, priority));
        true
    }

    /// The `columnDefinitions` of the table.
    pub fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// The cells of an object's row.
    pub fn cells(&self, object: &Value, now: Time) -> Vec<Value> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut cells = vec![Value::from(name)];
        cells.extend(self.columns.iter().map(|column| column.cell(object, now)));
        cells
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

impl Column {
    fn cell(&self, object: &Value, now: Time) -> Value {
        // The first of the values that a path finds is shown.
        let found = self.path.find(object).unwrap_or_default();
        let Some(value) = found.into_iter().next().and_then(|values| values.into_iter().next()) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value.as_ref()) {
            ("string", Value::Null) => "<no value>".into(),
            ("string", value) => print(value).into(),
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(number) => number.into(),
                None => (number.as_f64().unwrap_or_default() as i64).into(),
            },
            ("number", Value::Number(number)) => match number.as_f64() {
                // Go prints an integral float without a fraction.
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                    (float as i64).into()
                }
                _ => Value::Number(number.clone()),
            },
            ("boolean", Value::Bool(value)) => (*value).into(),
            ("date", Value::String(text)) => match text.as_str() {
                "" | "null" => "<unknown>".into(),
                text if Time::parse(text).is_err() => "<invalid>".into(),
                text => age(Some(text), now).into(),
            },
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        Time::parse("2026-01-01T00:01:00Z").expect("valid")
    }

    #[test]
    fn without_columns_there_are_name_and_age() {
        let columns = Columns::new(None);
        let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(columns.cells(&object, now()), [json!("a"), json!("60s")]);
        assert_eq!(columns.definitions().len(), 2);
        assert_eq!(columns.definitions()[1]["type"], "date");
    }

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let definitions = json!([
            {"name": "X", "type": "string", "jsonPath": ".spec.x", "description": "the x"},
            {"name": "N", "type": "integer", "format": "int32", "jsonPath": ".spec.n"},
            {"name": "F", "type": "number", "jsonPath": ".spec.f"},
            {"name": "B", "type": "boolean", "jsonPath": ".spec.b"},
            {"name": "Due", "type": "date", "jsonPath": ".spec.due"},
            {"name": "First", "type": "string", "jsonPath": ".spec.list[*]", "priority": 1},
        ]);
        let columns = Columns::new(Some(&definitions));
        assert_eq!(
            columns.definitions()[2],
            json!({"name": "N", "type": "integer", "format": "int32", "description": "Custom resource definition column (in JSONPath format): .spec.n", "priority": 0})
        );
        let cells = |spec: Value| {
            let cells = columns.cells(&json!({"metadata": {"name": "a"}, "spec": spec}), now());
            Value::Array(cells).to_string()
        };
        assert_eq!(
            cells(
                json!({"x": "1", "n": 5, "f": 1.25, "b": true, "due": "2999-01-01T00:00:00Z", "list": ["p", "q"]})
            ),
            r#"["a","1",5,1.25,true,"<invalid>","p"]"#
        );
        assert_eq!(cells(json!({})), r#"["a",null,null,null,null,null,null]"#);
        assert_eq!(
            cells(
                json!({"x": {"b": 1, "a": 2}, "n": "text", "f": 5, "b": "true", "due": "soon", "list": []})
            ),
            r#"["a","{\"a\":2,\"b\":1}",null,5,null,"<invalid>",null]"#
        );
        assert_eq!(
            cells(json!({"x": null, "n": 2.9, "f": 3.0, "due": "2025-12-31T00:01:00Z", "list": [[1, 2]]})),
            r#"["a","<no value>",2,3,null,"24h","[1,2]"]"#
        );
    }

    #[test]
    fn a_path_that_cannot_be_read_ends_the_table() {
        let definitions = json!([
            {"name": "A", "type": "string", "jsonPath": ".a"},
            {"name": "B", "type": "string", "jsonPath": ".b[?("},
            {"name": "C", "type": "string", "jsonPath": ".c"},
        ]);
        let columns = Columns::new(Some(&definitions));
        assert_eq!(columns.definitions().len(), 2);
        assert_eq!(
            columns.cells(&json!({"a": "x", "metadata": {"name": "n"}}), now()),
            [json!("n"), json!("x")]
        );
    }
}
