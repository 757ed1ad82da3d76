//! Evaluates nodes on a document.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::Node;

/// Maximum number of values that an expression may visit.
const MAX_RESULTS: usize = 100_000;
/// Maximum nesting of `range`.
const MAX_RANGES: usize = 16;

type Found<'v> = Vec<Cow<'v, Value>>;

pub(super) fn find<'v>(
    nodes: &[Node],
    allow_missing_keys: bool,
    value: &'v Value,
) -> Result<Vec<Found<'v>>, String> {
    let mut eval =
        Eval { nodes, allow_missing_keys, begins: 0, inside: 0, ends: 0, last_end: 0, budget: MAX_RESULTS };
    eval.find(0, Cow::Borrowed(value))
}

struct Eval<'n> {
    nodes: &'n [Node],
    allow_missing_keys: bool,
    begins: usize,
    inside: usize,
    ends: usize,
    last_end: usize,
    budget: usize,
}

/// The Go type of a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The children of a value: items, field values, or the bytes of a string.
fn children<'v>(value: &Cow<'v, Value>) -> Found<'v> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        other => match other.as_ref() {
            Value::Array(items) => items.iter().cloned().map(Cow::Owned).collect(),
            Value::Object(map) => map.values().cloned().map(Cow::Owned).collect(),
            Value::String(text) => text.bytes().map(|byte| Cow::Owned(Value::from(byte))).collect(),
            _ => Vec::new(),
        },
    }
}

fn field<'v>(value: &Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

impl Eval<'_> {
    fn find<'v>(&mut self, start: usize, value: Cow<'v, Value>) -> Result<Vec<Found<'v>>, String> {
        let nodes = self.nodes;
        let current = vec![value];
        let mut all = Vec::new();
        let mut i = start;
        while let Some(node) = nodes.get(i) {
            let results = self.walk(current.clone(), node)?;
            if self.ends > 0 && self.ends <= self.inside {
                self.ends -= 1;
                self.last_end = i;
                break;
            }
            if self.begins > 0 {
                self.begins -= 1;
                self.inside += 1;
                if self.inside > MAX_RANGES {
                    return Err("ranges nested too deeply".into());
                }
                self.last_end = i;
                if results.is_empty() {
                    self.find(i + 1, Cow::Owned(Value::Null))?;
                }
                for result in results {
                    all.extend(self.find(i + 1, result)?);
                }
                self.inside -= 1;
                i = self.last_end.max(i) + 1;
                continue;
            }
            all.push(results);
            i += 1;
        }
        Ok(all)
    }

    fn list<'v>(&mut self, mut values: Found<'v>, nodes: &[Node]) -> Result<Found<'v>, String> {
        for node in nodes {
            values = self.walk(values, node)?;
        }
        Ok(values)
    }

    fn walk<'v>(&mut self, input: Found<'v>, node: &Node) -> Result<Found<'v>, String> {
        let same = |value: Value| Ok(input.iter().map(|_| Cow::Owned(value.clone())).collect());
        let results: Result<Found<'v>, String> = match node {
            Node::List(nodes) => self.list(input, nodes),
            Node::Text(text) => Ok(vec![Cow::Owned(Value::from(text.as_str()))]),
            Node::Int(number) => same(Value::from(*number)),
            Node::Float(number) => same(Value::from(*number)),
            Node::Bool(value) => same(Value::from(*value)),
            Node::Field(name) => self.field(&input, name),
            Node::Identifier(name) => self.identifier(input, name),
            Node::Wildcard => Ok(input.iter().flat_map(children).collect()),
            Node::Recursive => {
                let mut out = Vec::new();
                self.recursive(&input, &mut out)?;
                Ok(out)
            }
            Node::Array(params) => slices(&input, params),
            Node::Union(lists) => {
                let mut out = Vec::new();
                for list in lists {
                    out.extend(self.list(input.clone(), list)?);
                }
                Ok(out)
            }
            Node::Filter { left, right, operator } => self.filter(&input, left, right, operator),
        };
        let results = results?;
        self.spend(results.len())?;
        Ok(results)
    }

    fn spend(&mut self, count: usize) -> Result<(), String> {
        self.budget = self.budget.checked_sub(count).ok_or("too many results")?;
        Ok(())
    }

    fn field<'v>(&self, input: &Found<'v>, name: &str) -> Result<Found<'v>, String> {
        let results: Found<'v> = input.iter().filter_map(|value| field(value, name)).collect();
        if results.is_empty() && !input.is_empty() && !self.allow_missing_keys {
            return Err(format!("{name} is not found"));
        }
        Ok(results)
    }

    fn identifier<'v>(&mut self, input: Found<'v>, name: &str) -> Result<Found<'v>, String> {
        match name {
            "range" => {
                self.begins += 1;
                Ok(input)
            }
            "end" if self.inside > 0 => {
                self.ends += 1;
                Ok(Vec::new())
            }
            "end" => Err("not in range, nothing to end".into()),
            name => Err(format!("unrecognized identifier {name}")),
        }
    }

    fn recursive<'v>(&mut self, input: &Found<'v>, out: &mut Found<'v>) -> Result<(), String> {
        for value in input {
            if value.is_string() {
                // The bytes of a string have no children.
                if value.as_str().is_some_and(|text| !text.is_empty()) {
                    out.push(value.clone());
                }
                continue;
            }
            let inside = children(value);
            if !inside.is_empty() {
                self.spend(inside.len())?;
                out.push(value.clone());
                self.recursive(&inside, out)?;
            }
        }
        Ok(())
    }

    fn filter<'v>(
        &mut self,
        input: &Found<'v>,
        left: &[Node],
        right: &[Node],
        operator: &str,
    ) -> Result<Found<'v>, String> {
        let mut results = Vec::new();
        for value in input {
            if !value.is_array() {
                return Err(format!("{} is not array or slice and cannot be filtered", super::print(value)));
            }
            for item in children(value) {
                let lefts = self.list(vec![item.clone()], left);
                if operator == "exists" {
                    // An existence filter: Go treats an operand that fails to evaluate as existing, unless it is
                    // missing.
                    let exists = match lefts {
                        Ok(lefts) => !lefts.is_empty(),
                        Err(error) => !error.ends_with(" is not found") && !error.starts_with("not in range"),
                    };
                    if exists {
                        results.push(item);
                    }
                    continue;
                }
                let Some(one) = single(lefts?)? else { continue };
                let Some(other) = single(self.list(vec![item.clone()], right)?)? else { continue };
                if compare(&one, &other, operator)? {
                    results.push(item);
                }
            }
        }
        Ok(results)
    }
}

fn single(mut values: Found<'_>) -> Result<Option<Cow<'_, Value>>, String> {
    if values.len() > 1 {
        return Err("can only compare one element at a time".into());
    }
    Ok(values.pop())
}

fn slices<'v>(input: &Found<'v>, params: &[super::Param; 3]) -> Result<Found<'v>, String> {
    let mut results = Vec::new();
    for value in input {
        if value.is_null() {
            continue;
        }
        if !value.is_array() {
            return Err(format!("{} is not array or slice", type_name(value)));
        }
        let items = children(value);
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let [from, to, step] = *params;
        let mut start = if from.known { from.value } else { 0 };
        if start < 0 {
            start = start.saturating_add(length);
        }
        let mut end = if to.known { to.value } else { length };
        if end < 0 || (end == 0 && to.derived) {
            end = end.saturating_add(length);
        }
        if start == end {
            return Ok(results);
        }
        let outside = |index: i64| format!("array index out of bounds: index {index}, length {length}");
        if !(0..length).contains(&start) {
            return Err(outside(start));
        }
        if !(0..=length).contains(&end) {
            return Err(outside(end - 1));
        }
        if start > end {
            return Err(format!("starting index {start} is greater than ending index {end}"));
        }
        if step.known && step.value <= 0 {
            return Err("step must be > 0".into());
        }
        let by = usize::try_from(if step.known { step.value } else { 1 }).unwrap_or(usize::MAX);
        let (skip, take) = (usize::try_from(start).unwrap_or(0), usize::try_from(end - start).unwrap_or(0));
        results.extend(items.into_iter().skip(skip).take(take).step_by(by));
    }
    Ok(results)
}

/// Go's comparison: only values of the same type.
fn compare(left: &Value, right: &Value, operator: &str) -> Result<bool, String> {
    let incompatible = || Err("incompatible types for comparison".to_owned());
    let basic = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    if !matches!(operator, "<" | ">" | "==" | "!=" | "<=" | ">=") {
        return Err(format!("unrecognized filter operator {operator}"));
    }
    if !basic(left) || !basic(right) {
        return Err("invalid type for comparison".into());
    }
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => {
            return match operator {
                "==" => Ok(left == right),
                "!=" => Ok(left != right),
                _ => Err("invalid type for comparison".into()),
            };
        }
        (Value::Number(left), Value::Number(right)) => match (left.is_f64(), right.is_f64()) {
            (false, false) => left.as_i64().cmp(&right.as_i64()),
            (true, true) => left
                .as_f64()
                .unwrap_or_default()
                .partial_cmp(&right.as_f64().unwrap_or_default())
                .unwrap_or(Ordering::Less),
            _ => return incompatible(),
        },
        _ => return incompatible(),
    };
    Ok(match operator {
        "<" => ordering.is_lt(),
        ">" => ordering.is_gt(),
        "==" => ordering.is_eq(),
        "!=" => ordering.is_ne(),
        "<=" => ordering.is_le(),
        _ => ordering.is_ge(),
    })
}
