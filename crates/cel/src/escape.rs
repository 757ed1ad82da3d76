//! Names of fields that are no identifiers of CEL, in Kubernetes' escaped form.

/// Words that are no field names: CEL's, and those it keeps for host languages.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is no identifier of CEL, or kept for host languages.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// What the escape sequences stand for.
const SEQUENCES: &[(&str, &str)] = &[("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// The CEL identifier for a property name, or `None` if rules cannot name this property.
///
/// `__`, `.`, `-` and `/` become `__underscores__`, `__dot__`, `__dash__` and `__slash__`, and a reserved word `x`
/// becomes `__x__`. A name that begins with a digit, or has other characters, has no escaped form.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if let Some((plain, word)) = SEQUENCES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            escaped.push_str("__");
            escaped.push_str(word);
            escaped.push_str("__");
            rest = rest.get(plain.len()..)?;
        } else if next.is_ascii_alphanumeric() || next == '_' {
            escaped.push(next);
            rest = rest.get(1..)?;
        } else {
            return None;
        }
    }
    Some(escaped)
}

/// The property name behind an escaped identifier, or `None` if it has an unknown escape sequence.
pub fn unescape(escaped: &str) -> Option<String> {
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(start) = rest.find("__") {
        // A sequence is `__word__`, where the word has no underscores.
        let word_start = start + 2;
        let after = rest.get(word_start..)?;
        let length = after.find('_').unwrap_or(after.len());
        if length == 0 || !after.get(length..)?.starts_with("__") {
            // No sequence begins here; one may begin at the next underscore.
            name.push_str(rest.get(..=start)?);
            rest = rest.get(start + 1..)?;
            continue;
        }
        let word = after.get(..length)?;
        name.push_str(rest.get(..start)?);
        if let Some((plain, _)) = SEQUENCES.iter().find(|(_, known)| *known == word) {
            name.push_str(plain);
        } else if RESERVED.contains(&word) && escaped.len() == word.len() + 4 {
            name.push_str(word);
        } else {
            return None;
        }
        rest = after.get(length + 2..)?;
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_upstream_does() {
        for (name, escaped) in [
            ("a", Some("a")),
            ("a.b", Some("a__dot__b")),
            ("a-b/c", Some("a__dash__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("____", Some("__underscores____underscores__")),
            ("namespace", Some("__namespace__")),
            ("_true", Some("_true")),
            ("1a", None),
            ("", None),
            ("a$", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
            }
        }
        assert_eq!(unescape("a__b__c"), None);
        assert_eq!(unescape("x__true__"), None);
        assert_eq!(unescape("a__b"), Some("a__b".to_owned()));
    }
}
