//! `describe`: an object for people, with its Events. All kinds are described the same way, by their fields.

use clap::Args;
use k1s_object::time::Time;
use serde_json::Value;

use crate::{
    Commands,
    api::Error,
    objects::ObjectArgs,
    print::{group_kind, table::labels},
    say,
    session::{Access, Session, Target},
    verbs::events::{now, of_object, seen},
};

/// Options of `describe`.
#[derive(Debug, Clone, Args)]
pub struct DescribeArgs {
    #[command(flatten)]
    objects: ObjectArgs,
    /// Shows the object's Events.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    show_events: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(program: &Commands, args: &DescribeArgs) -> Result<(), Error> {
    let session = Session::open(program, &args.target, Access::Read).await?;
    let done = describe(&session, args).await;
    session.close().await?;
    done
}

async fn describe(session: &Session, args: &DescribeArgs) -> Result<(), Error> {
    let resources = session.resources().await?;
    let wanted = args.objects.resolve(session, &resources)?;
    let (found, errors) = args.objects.fetch(&session.api, &wanted).await;
    if found.is_empty() && errors.is_empty() {
        say::note(&if args.objects.all_namespaces {
            "No resources found".to_owned()
        } else {
            format!("No resources found in {} namespace.", session.namespace)
        });
    }
    let now = now(session);
    for (index, (_, object)) in found.iter().enumerate() {
        let events = if args.show_events { Some(of_object(session, object).await?) } else { None };
        let between = if index > 0 { "\n\n" } else { "" };
        say::print(&format!("{between}{}", text(object, events.as_deref(), now)));
    }
    Error::all(errors)
}

/// Lines with a name and a value; those next to each other are aligned.
#[derive(Default)]
struct Lines(Vec<(String, Option<String>)>);

impl Lines {
    fn pair(&mut self, depth: usize, name: &str, value: impl Into<String>) {
        self.0.push((format!("{}{name}:", "  ".repeat(depth)), Some(value.into())));
    }

    fn alone(&mut self, depth: usize, text: &str) {
        self.0.push((format!("{}{text}", "  ".repeat(depth)), None));
    }

    fn finish(self) -> String {
        let mut out = String::new();
        let mut rest = self.0.as_slice();
        while let Some((_, first)) = rest.first() {
            let count = rest.iter().take_while(|(_, value)| value.is_some() == first.is_some()).count();
            let (block, more) = rest.split_at(count);
            rest = more;
            let width = block.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or_default();
            for (name, value) in block {
                out.push_str(name);
                if let Some(value) = value {
                    out.extend(std::iter::repeat_n(' ', width - name.chars().count()));
                    out.push_str(value);
                }
                out.push('\n');
            }
        }
        out
    }
}

fn text(object: &Value, events: Option<&[Value]>, now: Time) -> String {
    let metadata = &object["metadata"];
    let get = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = Lines::default();
    lines.pair(0, "Name", get(&metadata["name"]));
    lines.pair(0, "Namespace", get(&metadata["namespace"]));
    several(&mut lines, "Labels", &metadata["labels"], "=");
    several(&mut lines, "Annotations", &metadata["annotations"], ": ");
    lines.pair(0, "API Version", get(&object["apiVersion"]));
    lines.pair(0, "Kind", get(&object["kind"]));
    let secret = group_kind(object) == "secret";
    for (name, value) in sorted(object) {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let mut rest = value.clone();
                if let Some(map) = rest.as_object_mut() {
                    for known in ["name", "namespace", "labels", "annotations", "managedFields"] {
                        map.remove(known);
                    }
                }
                field(&mut lines, 0, name, &rest);
            }
            "data" | "stringData" if secret => {
                lines.alone(0, "Data:");
                for (key, value) in sorted(value) {
                    // The length of the value, not the value.
                    let encoded = value.as_str().unwrap_or_default();
                    let padding = encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
                    lines.pair(1, key, format!("{} bytes", (encoded.len() / 4 * 3).saturating_sub(padding)));
                }
            }
            _ => field(&mut lines, 0, name, value),
        }
    }
    match events {
        None => {}
        Some([]) => lines.pair(0, "Events", "<none>"),
        Some(_) => lines.alone(0, "Events:"),
    }
    let mut out = lines.finish();
    if let Some(events) = events.filter(|events| !events.is_empty()) {
        out.push_str(&event_table(events, now));
    }
    out
}

fn several(lines: &mut Lines, name: &str, map: &Value, between: &str) {
    let mut entries = sorted(map).into_iter();
    let show =
        |(key, value): (&String, &Value)| format!("{key}{between}{}", value.as_str().unwrap_or_default());
    match entries.next() {
        None => lines.pair(0, name, labels(&Value::Null)),
        Some(first) => lines.pair(0, name, show(first)),
    }
    for more in entries {
        lines.0.push((String::new(), Some(show(more))));
    }
}

fn sorted(map: &Value) -> Vec<(&String, &Value)> {
    let mut entries: Vec<(&String, &Value)> = map.as_object().into_iter().flatten().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

fn field(lines: &mut Lines, depth: usize, name: &str, value: &Value) {
    let label = label(name);
    match value {
        Value::Object(map) if map.is_empty() => {
            lines.alone(depth, &format!("{label}:"));
        }
        Value::Object(_) => {
            lines.alone(depth, &format!("{label}:"));
            for (name, value) in sorted(value) {
                field(lines, depth + 1, name, value);
            }
        }
        Value::Array(items) => {
            lines.alone(depth, &format!("{label}:"));
            for item in items {
                if item.is_object() {
                    for (name, value) in sorted(item) {
                        field(lines, depth + 1, name, value);
                    }
                } else {
                    lines.alone(depth + 1, &k1s_object::patch::printed(item));
                }
            }
        }
        Value::Null => lines.pair(depth, &label, "<nil>"),
        scalar => lines.pair(depth, &label, k1s_object::patch::printed(scalar)),
    }
}

/// `creationTimestamp` as `Creation Timestamp`. Names that are no identifiers are left alone.
fn label(name: &str) -> String {
    if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, c) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| characters[at]);
        let after = characters.get(index + 1);
        let begins = before.is_none_or(|before| {
            c.is_ascii_uppercase()
                && (!before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase))
        });
        match words.last_mut() {
            Some(word) if !begins => word.push(*c),
            _ => words.push(c.to_string()),
        }
    }
    let shown = |word: &String| match word.to_lowercase().as_str() {
        "api" | "uid" | "url" | "osb" | "guid" => word.to_uppercase(),
        _ => {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
        }
    };
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// The Events, as kubectl shows them below an object.
fn event_table(events: &[Value], now: Time) -> String {
    let mut rows = vec![
        ["Type", "Reason", "Age", "From", "Message"].map(str::to_owned),
        ["----", "------", "----", "----", "-------"].map(str::to_owned),
    ];
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let from = match text(&event["source"]["component"]) {
            none if none.is_empty() => text(&event["reportingComponent"]),
            from => from,
        };
        rows.push([
            text(&event["type"]),
            text(&event["reason"]),
            seen(event, now),
            from,
            text(&event["message"]),
        ]);
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count() + 2).max().unwrap_or_default();
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        out.push_str("  ");
        for (column, cell) in row.iter().enumerate() {
            out.push_str(cell);
            if let Some(width) = widths.get(column) {
                out.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_named_for_people_and_aligned() {
        assert_eq!(label("creationTimestamp"), "Creation Timestamp");
        assert_eq!(label("uid"), "UID");
        assert_eq!(label("apiVersion"), "API Version");
        assert_eq!(label("app.kubernetes.io/name"), "app.kubernetes.io/name");
        let object = json!({"apiVersion": "e/v1", "kind": "Foo", "metadata": {"name": "x", "namespace": "n",
            "labels": {"a": "1", "b": "2"}, "uid": "u"}, "spec": {"size": 3, "list": ["a", {"x": true}]}});
        let expected = "Name:         x\nNamespace:    n\nLabels:       a=1\n              b=2\nAnnotations:  <none>\nAPI Version:  e/v1\nKind:         Foo\nMetadata:\n  UID:  u\nSpec:\n  List:\n    a\n    X:   true\n  Size:  3\nEvents:  <none>\n";
        assert_eq!(text(&object, Some(&[]), Time::from_unix(0, 0)), expected);
    }
}
