//! Paths such as `.spec.replicas` or `.metadata['x']`, which must name a field of a schema.

use serde_json::Value;

/// The target of a path.
pub(crate) struct Reached<'s> {
    /// The field names of the path.
    pub(crate) names: Vec<String>,
    /// The path as errors show it: `a.b[key]`.
    pub(crate) normal: String,
    pub(crate) schema: &'s Value,
}

fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut previous = '\'';
                let mut end = rest.len();
                for (at, c) in rest.char_indices().skip(1) {
                    if c == '\'' && previous != '\\' {
                        end = at + 1;
                        break;
                    }
                    previous = c;
                }
                end
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// The text of a quoted name.
fn unescape(quoted: &str) -> Result<String, String> {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            // A backslash at the end escapes nothing.
            None => '\\',
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
        });
    }
    Ok(text)
}

/// Resolves `path` in `schema`; the error is the reason why it cannot be.
pub(crate) fn follow<'s>(path: &str, schema: &'s Value, brackets: bool) -> Result<Reached<'s>, String> {
    const NOWHERE: &str = "does not refer to a valid field";
    const ENDS: &str = "unexpected end of JSON path";
    let mut reached = Reached { names: Vec::new(), normal: String::new(), schema };
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" => {
                if !brackets {
                    return Err("array notation is not allowed".to_owned());
                }
                let quoted = tokens.next().ok_or(ENDS)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                let name = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                unescape(name)?
            }
            "." => tokens.next().ok_or(ENDS)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let named = reached.schema.get("properties").and_then(Value::as_object);
        reached.schema = match (named, reached.schema.get("additionalProperties")) {
            (Some(properties), _) => {
                if !reached.normal.is_empty() {
                    reached.normal.push('.');
                }
                reached.normal.push_str(&name);
                properties.get(&name).ok_or(NOWHERE)?
            }
            (None, Some(additional)) => {
                reached.normal.push_str(&format!("[{name}]"));
                additional
            }
            (None, None) => return Err(NOWHERE.to_owned()),
        };
        reached.names.push(name);
        if token == "[" {
            match tokens.next().ok_or(ENDS)? {
                "]" => {}
                other => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok(reached)
}
