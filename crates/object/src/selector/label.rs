//! Label selectors, from a query parameter or a `LabelSelector` in an object.

use std::fmt;

use serde_json::Value;

use crate::field::{At, FieldError, quote};
use crate::names::{is_qualified_name, is_valid_label_value};

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`; also matches a missing label
    NotEquals,
    /// `in`
    In,
    /// `notin`; also matches a missing label
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// `>`, as integers
    GreaterThan,
    /// `<`, as integers
    LessThan,
}

/// A requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl LabelRequirement {
    /// A valid requirement, or all its errors.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<LabelRequirement, String> {
        let mut errors = Vec::new();
        let list = || Value::from(values.clone());
        let key_errors = is_qualified_name(key);
        if !key_errors.is_empty() {
            errors.push(FieldError::invalid("key", key, key_errors.join("; ")));
        }
        let wrong_count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(detail) = wrong_count {
            errors.push(FieldError::invalid("values", list(), detail));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    errors.push(FieldError::invalid(
                        format!("values[{i}]"),
                        value.as_str(),
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    ));
                }
            }
        }
        for (i, value) in values.iter().enumerate() {
            let value_errors = is_valid_label_value(value);
            if !value_errors.is_empty() {
                let path = format!("values[{i}][{key}]");
                errors.push(FieldError::invalid(path, value.as_str(), value_errors.join("; ")));
            }
        }
        if !errors.is_empty() {
            let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            texts.dedup();
            let together = texts.join(", ");
            return Err(if texts.len() == 1 { together } else { format!("[{together}]") });
        }
        Ok(LabelRequirement { key: key.to_owned(), operator, values })
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn matches(&self, label: Option<&str>) -> bool {
        let has = |value: &str| self.values.iter().any(|one| one == value);
        let number = |text: &str| text.parse::<i64>().ok();
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(has),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let bound = self.values.first().and_then(|value| number(value));
                match (label.and_then(number), bound) {
                    (Some(label), Some(bound)) if self.operator == Operator::GreaterThan => label > bound,
                    (Some(label), Some(bound)) => label < bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Requirements that must all be met. An empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<LabelRequirement>,
    nothing: bool,
}

impl LabelSelector {
    /// Matches nothing.
    pub fn nothing() -> LabelSelector {
        LabelSelector { requirements: Vec::new(), nothing: true }
    }

    /// Parses a selector; the error is the message for the client.
    pub fn parse(text: &str) -> Result<LabelSelector, String> {
        Parser { tokens: scan(text), at: 0 }.selector().map(LabelSelector::of)
    }

    /// The selector of a `LabelSelector` in an object. A missing one matches nothing, an empty one everything.
    pub fn from_json(selector: Option<&Value>) -> Result<LabelSelector, String> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
            return Ok(LabelSelector::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(LabelRequirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{} is not a valid label selector operator", quote(other))),
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
            requirements.push(LabelRequirement::new(text("key"), operator, values)?);
        }
        Ok(LabelSelector::of(requirements))
    }

    /// A selector of these requirements.
    pub fn of(mut requirements: Vec<LabelRequirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements, nothing: false }
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether an object with these labels matches.
    pub fn matches<'v>(&self, label: impl Fn(&str) -> Option<&'v str>) -> bool {
        !self.nothing && self.requirements.iter().all(|term| term.matches(label(&term.key)))
    }

    /// Whether an object with this `metadata.labels` matches.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }
}

impl fmt::Display for LabelSelector {
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

/// Validates a `LabelSelector` in an object. `allow_invalid_value`: accept invalid label values, because the
/// stored object has some.
pub fn validate_label_selector(at: At<'_, '_>, allow_invalid_value: bool) {
    crate::meta::validate_labels(at.get("matchLabels"));
    for expression in at.get("matchExpressions").items() {
        let values = expression.get("values");
        match expression.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                values.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => expression.get("operator").invalid_text("not a valid selector operator"),
        }
        crate::meta::validate_label_name(expression.get("key"));
        if !allow_invalid_value {
            for value in values.items() {
                for error in is_valid_label_value(value.text()) {
                    value.invalid_text(error);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Error,
    End,
    ClosePar,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    OpenPar,
}

fn keyword(text: &str) -> Option<Kind> {
    Some(match text {
        ")" => Kind::ClosePar,
        "," => Kind::Comma,
        "!" => Kind::Not,
        "==" => Kind::DoubleEquals,
        "=" => Kind::Equals,
        ">" => Kind::Greater,
        "in" => Kind::In,
        "<" => Kind::Less,
        "!=" => Kind::NotEquals,
        "notin" => Kind::NotIn,
        "(" => Kind::OpenPar,
        _ => return None,
    })
}

fn scan(text: &str) -> Vec<(Kind, &str)> {
    let special = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let white = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    // Go treats a zero byte as the end.
    let mut rest = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches(white);
        let Some(first) = rest.chars().next() else { return tokens };
        let length = if special(first) {
            // The longest operator here: one or two ASCII characters.
            let two = rest.get(..2).and_then(keyword);
            if two.is_some() { 2 } else { 1 }
        } else {
            rest.find(|c| special(c) || white(c)).unwrap_or(rest.len())
        };
        let Some((word, after)) = rest.split_at_checked(length) else { return tokens };
        let unknown = if special(first) { Kind::Error } else { Kind::Identifier };
        tokens.push((keyword(word).unwrap_or(unknown), word));
        rest = after;
    }
}

struct Parser<'t> {
    tokens: Vec<(Kind, &'t str)>,
    at: usize,
}

impl<'t> Parser<'t> {
    /// The next token where a value may be: `in` is an identifier there.
    fn peek(&self) -> (Kind, &'t str) {
        match self.tokens.get(self.at) {
            Some((Kind::In | Kind::NotIn, word)) => (Kind::Identifier, word),
            Some(token) => *token,
            None => (Kind::End, ""),
        }
    }

    fn next(&mut self) -> (Kind, &'t str) {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Kind::Identifier | Kind::Not, _) => {
                    let requirement = self
                        .requirement()
                        .map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        (Kind::End, _) => return Ok(requirements),
                        (Kind::Comma, _) => {
                            let (kind, word) = self.peek();
                            if !matches!(kind, Kind::Identifier | Kind::Not) {
                                return Err(format!("found '{word}', expected: identifier after ','"));
                            }
                        }
                        (_, word) => {
                            return Err(format!("found '{word}', expected: ',' or 'end of string'"));
                        }
                    }
                }
                (Kind::End, _) => return Ok(requirements),
                (_, word) => {
                    return Err(format!("found '{word}', expected: !, identifier, or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.next();
        let negated = token.0 == Kind::Not;
        if negated {
            token = self.next();
        }
        let (kind, key) = token;
        if kind != Kind::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let errors = is_qualified_name(key);
        if !errors.is_empty() {
            return Err(FieldError::invalid("<nil>", key, errors.join("; ")).to_string());
        }
        if negated {
            return LabelRequirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Kind::End | Kind::Comma) {
            return LabelRequirement::new(key, Operator::Exists, Vec::new());
        }
        let (kind, word) = self.tokens.get(self.at).copied().unwrap_or((Kind::End, ""));
        self.at += 1;
        let operator = match kind {
            Kind::In => Operator::In,
            Kind::NotIn => Operator::NotIn,
            Kind::Equals => Operator::Equals,
            Kind::DoubleEquals => Operator::DoubleEquals,
            Kind::NotEquals => Operator::NotEquals,
            Kind::Greater => Operator::GreaterThan,
            Kind::Less => Operator::LessThan,
            _ => return Err(format!("found '{word}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        values.sort_unstable();
        values.dedup();
        LabelRequirement::new(key, operator, values)
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let (kind, word) = self.next();
        if kind != Kind::OpenPar {
            return Err(format!("found '{word}' expected: '('"));
        }
        match self.peek() {
            (Kind::Identifier | Kind::Comma, _) => {
                let values = self.identifiers()?;
                self.at += 1;
                Ok(values)
            }
            (Kind::ClosePar, _) => {
                self.at += 1;
                Ok(vec![String::new()])
            }
            (_, word) => Err(format!("found '{word}', expected: ',', ')' or identifier")),
        }
    }

    /// The list up to the closing parenthesis; missing entries are empty values.
    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values: Vec<String> = Vec::new();
        loop {
            match self.next() {
                (Kind::Identifier, word) => {
                    values.push(word.to_owned());
                    match self.peek() {
                        (Kind::Comma, _) => {}
                        (Kind::ClosePar, _) => return Ok(values),
                        (_, word) => return Err(format!("found '{word}', expected: ',' or ')'")),
                    }
                }
                (Kind::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek().0 {
                        Kind::ClosePar => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Kind::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, word) => return Err(format!("found '{word}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek().0, Kind::End | Kind::Comma) {
            return Ok(String::new());
        }
        match self.next() {
            (Kind::Identifier, word) => Ok(word.to_owned()),
            (_, word) => Err(format!("found '{word}', expected: identifier")),
        }
    }
}
