//! Field selectors.

use std::fmt;

/// A requirement: a field and the value it must or must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// `metadata.name`
    pub field: String,
    /// The value, unescaped.
    pub value: String,
    /// Whether the field must differ from the value.
    pub negated: bool,
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.negated { "!=" } else { "=" };
        write!(f, "{}{operator}", self.field)?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

/// Requirements that must all be met. An empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Parses a selector; the error is the message for the client.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::with_capacity(terms.len());
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, negated, value)) = split_term(term) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            // An empty requirement matches everything.
            let value = unescape(value)?;
            if !field.is_empty() || !value.is_empty() {
                requirements.push(FieldRequirement { field: field.to_owned(), value, negated });
            }
        }
        Ok(FieldSelector { requirements })
    }

    /// The requirements in canonical order.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The value that a field must have, if there is such a requirement: detects a list with `metadata.name=x`.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let term = self.requirements.iter().find(|term| !term.negated && term.field == field);
        term.map(|term| term.value.as_str())
    }

    /// Whether an object with these fields matches. A missing field is empty.
    pub fn matches<'v>(&self, field: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements
            .iter()
            .all(|term| (field(&term.field).unwrap_or_default() == term.value) != term.negated)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
    .collect()
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (i, c) in term.char_indices() {
        let (field, rest) = term.split_at_checked(i)?;
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((field, true, value));
        }
        if c == '=' {
            let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
            return Some((field, false, value));
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains(['\\', ',', '=']) {
        return Ok(text.to_owned());
    }
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".into()),
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}
