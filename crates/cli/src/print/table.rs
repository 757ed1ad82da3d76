//! Tables: those that the server makes, and any others, aligned as kubectl aligns them.

use serde_json::Value;

/// Minimum width of a column, with the space behind it.
const MIN_WIDTH: usize = 6;
const PADDING: usize = 3;

/// Lines of cells, aligned. The widths of earlier lines are kept, for watches.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    widths: Vec<usize>,
    lines: Vec<Vec<String>>,
}

impl Aligned {
    pub(crate) fn row<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, cells: I) {
        self.lines.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines so far, as text.
    pub(crate) fn flush(&mut self) -> String {
        for line in &self.lines {
            // The last cell ends the line.
            let cells = line.len().saturating_sub(1);
            for (column, cell) in line.iter().take(cells).enumerate() {
                let width = (cell.chars().count() + PADDING).max(MIN_WIDTH);
                match self.widths.get_mut(column) {
                    Some(known) => *known = width.max(*known),
                    None => self.widths.push(width),
                }
            }
        }
        let mut out = String::new();
        for line in self.lines.drain(..) {
            for (column, cell) in line.iter().enumerate() {
                out.push_str(cell);
                if column + 1 < line.len() {
                    let width = self.widths.get(column).copied().unwrap_or_default();
                    out.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
                }
            }
            out.push('\n');
        }
        out
    }
}

/// What is shown of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableOptions {
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    pub(crate) namespace: bool,
    /// `deployment.apps`: names are printed as `deployment.apps/web`.
    pub(crate) kind: Option<String>,
    pub(crate) show_labels: bool,
    pub(crate) label_columns: Vec<String>,
    /// The type of the event, in watches.
    pub(crate) event: Option<String>,
    pub(crate) show_event: bool,
}

/// The header of a server's Table.
pub(crate) fn header(table: &Value, options: &TableOptions) -> Vec<String> {
    let mut cells = Vec::new();
    if options.show_event {
        cells.push("EVENT".to_owned());
    }
    if options.namespace {
        cells.push("NAMESPACE".to_owned());
    }
    for definition in visible(table, options).map(|(_, definition)| definition) {
        cells.push(definition["name"].as_str().unwrap_or_default().to_uppercase());
    }
    for label in &options.label_columns {
        cells.push(label.rsplit('/').next().unwrap_or_default().to_uppercase());
    }
    if options.show_labels {
        cells.push("LABELS".to_owned());
    }
    cells
}

/// The cells of a row.
pub(crate) fn row(table: &Value, row: &Value, options: &TableOptions) -> Vec<String> {
    let metadata = &row["object"]["metadata"];
    let mut cells = Vec::new();
    if options.show_event {
        cells.push(options.event.clone().unwrap_or_default());
    }
    if options.namespace {
        cells.push(metadata["namespace"].as_str().unwrap_or_default().to_owned());
    }
    for (place, (index, _)) in visible(table, options).enumerate() {
        let text = cell(&row["cells"][index]);
        match &options.kind {
            Some(kind) if place == 0 => cells.push(format!("{kind}/{text}")),
            _ => cells.push(text),
        }
    }
    for label in &options.label_columns {
        cells.push(metadata["labels"][label].as_str().unwrap_or_default().to_owned());
    }
    if options.show_labels {
        cells.push(labels(&metadata["labels"]));
    }
    cells
}

fn visible<'t>(
    table: &'t Value,
    options: &TableOptions,
) -> impl Iterator<Item = (usize, &'t Value)> + use<'t> {
    let wide = options.wide;
    let definitions = table["columnDefinitions"].as_array().into_iter().flatten().enumerate();
    definitions
        .filter(move |(_, definition)| wide || definition["priority"].as_i64().unwrap_or_default() == 0)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text.find(['\n', '\r', '\u{c}']) {
            Some(at) => escaped(&text[..at]) + "...",
            None => escaped(text),
        },
        other => k1s_object::patch::printed(other),
    }
}

/// Without the control characters that would move the cursor of a terminal.
fn escaped(text: &str) -> String {
    if text.contains('\u{1b}') { text.replace('\u{1b}', "^[") } else { text.to_owned() }
}

/// `a=1,b=2`, or `<none>`.
pub(crate) fn labels(labels: &Value) -> String {
    let Some(map) = labels.as_object().filter(|map| !map.is_empty()) else { return "<none>".to_owned() };
    let mut pairs: Vec<String> =
        map.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    pairs.sort();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_three_apart_and_at_least_six_wide() {
        let mut lines = Aligned::default();
        lines.row(["NAME", "A", "AGE"]);
        lines.row(["kube-root-ca.crt", "1", "5s"]);
        assert_eq!(lines.flush(), "NAME               A     AGE\nkube-root-ca.crt   1     5s\n");
        lines.row(["x", "2", "1s"]);
        assert_eq!(lines.flush(), "x                  2     1s\n", "widths are remembered");
    }

    #[test]
    fn a_row_has_the_columns_that_were_asked_for() {
        let table = json!({
            "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Node", "priority": 1}],
            "rows": [{"cells": ["a", 3], "object": {"metadata": {"namespace": "n", "labels": {"x/y": "1"}}}}],
        });
        let options = TableOptions {
            wide: true,
            namespace: true,
            kind: Some("pod".into()),
            show_labels: true,
            label_columns: vec!["x/y".into(), "z".into()],
            ..TableOptions::default()
        };
        assert_eq!(header(&table, &options), ["NAMESPACE", "NAME", "NODE", "Y", "Z", "LABELS"]);
        assert_eq!(row(&table, &table["rows"][0], &options), ["n", "pod/a", "3", "1", "", "x/y=1"]);
        assert_eq!(row(&table, &table["rows"][0], &TableOptions::default()), ["a"]);
    }
}
