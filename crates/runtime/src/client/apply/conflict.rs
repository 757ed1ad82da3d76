//! Conflicts of server-side apply: which fields belong to which other managers.

use std::fmt;

use kube::core::Status;

/// Why an apply was rejected: other managers own fields that it would change. From
/// [`Error::apply_conflicts`](crate::client::Error::apply_conflicts).
///
/// There are three ways out: force the apply, which takes the fields over; leave the fields out of what is applied, which
/// leaves them to the others; or apply the values they have, which shares them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ApplyConflict {
    /// The fields, in the server's order. A field with several owners occurs once for each.
    pub conflicts: Vec<FieldConflict>,
}

/// A field that another manager owns. Displayed as `.spec.replicas of "kubectl-scale" through scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field: `.spec.replicas`, `.spec.containers[name="app"].image`.
    pub field: String,
    /// Its manager.
    pub manager: String,
    /// The subresource that the manager wrote it through, if any: `scale`.
    pub subresource: Option<String>,
    /// The version in which it was updated: `apps/v1`. `None` if the other manager applies, too.
    pub api_version: Option<String>,
    /// When it was updated, if the server says so.
    pub time: Option<String>,
}

/// The reason of a cause in the server's `Status`.
const REASON: &str = "FieldManagerConflict";

/// Whether a status is a conflict of field managers, and not that of a stale resource version.
pub(crate) fn is_field_conflict(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == REASON)
}

impl ApplyConflict {
    pub(crate) fn of(status: &Status) -> Option<ApplyConflict> {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let causes = causes.filter(|cause| cause.reason == REASON);
        let conflicts: Vec<_> = causes.map(|cause| FieldConflict::of(&cause.field, &cause.message)).collect();
        (!conflicts.is_empty()).then_some(ApplyConflict { conflicts })
    }

    /// The other managers, each once.
    #[must_use]
    pub fn managers(&self) -> Vec<&str> {
        let mut managers: Vec<&str> = Vec::new();
        for conflict in &self.conflicts {
            if !managers.contains(&conflict.manager.as_str()) {
                managers.push(&conflict.manager);
            }
        }
        managers
    }
}

impl FieldConflict {
    /// From `conflict with "a" with subresource "scale" using apps/v1 at 2024-05-06T07:08:09Z`, of which only the name
    /// is always there. Text of any other form is taken for the manager's name.
    fn of(field: &str, message: &str) -> FieldConflict {
        let mut conflict = FieldConflict {
            field: field.to_owned(),
            manager: message.to_owned(),
            subresource: None,
            api_version: None,
            time: None,
        };
        let Some((manager, mut rest)) = message.strip_prefix("conflict with ").and_then(quoted) else {
            return conflict;
        };
        conflict.manager = manager;
        if let Some((subresource, after)) = rest.strip_prefix(" with subresource ").and_then(quoted) {
            conflict.subresource = Some(subresource);
            rest = after;
        }
        if let Some(using) = rest.strip_prefix(" using ") {
            let (version, time) = match using.split_once(" at ") {
                Some((version, time)) => (version, Some(time)),
                None => (using, None),
            };
            conflict.api_version = Some(version.to_owned());
            conflict.time = time.map(str::to_owned);
        }
        conflict
    }
}

/// The string in quotes that a text begins with, and the rest of the text.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = inner.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let (content, rest) = (inner.get(..end)?, inner.get(end + 1..)?);
    let whole = text.get(..end + 2)?;
    // Go's escapes are those of JSON, except for characters that are not in names.
    let content = serde_json::from_str(whole).unwrap_or_else(|_| content.to_owned());
    Some((content, rest))
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.field, self.manager)?;
        match &self.subresource {
            Some(subresource) => write!(f, " through {subresource}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ApplyConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.conflicts.len();
        write!(f, "{count} {} of other managers: ", if count == 1 { "field" } else { "fields" })?;
        for (index, conflict) in self.conflicts.iter().enumerate() {
            write!(f, "{}{conflict}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conflict(causes: &[(&str, &str, &str)]) -> Option<ApplyConflict> {
        let causes: Vec<_> = causes
            .iter()
            .map(|(reason, message, field)| json!({"reason": reason, "message": message, "field": field}))
            .collect();
        let status = json!({
            "status": "Failure", "code": 409, "reason": "Conflict", "message": "Apply failed", "details": {"causes": causes},
        });
        ApplyConflict::of(&serde_json::from_value(status).expect("a status"))
    }

    #[test]
    fn conflicts_name_the_other_managers_and_their_fields() {
        let found = conflict(&[
            (REASON, r#"conflict with "m1""#, ".spec.count"),
            (REASON, r#"conflict with "u 1" using apps/v1"#, r#".spec.containers[name="c"].image"#),
            (REASON, r#"conflict with "ctl" with subresource "status""#, ".status.replicas"),
            (
                REASON,
                r#"conflict with "s" with subresource "scale" using autoscaling/v1 at 2024-05-06T07:08:09Z"#,
                ".spec.replicas",
            ),
            (REASON, r#"conflict with "m1""#, ".data.k"),
        ])
        .expect("conflicts");
        assert_eq!(found.managers(), ["m1", "u 1", "ctl", "s"]);
        assert_eq!(
            found.to_string(),
            r#"5 fields of other managers: .spec.count of "m1", .spec.containers[name="c"].image of "u 1", .status.replicas of "ctl" through status, .spec.replicas of "s" through scale, .data.k of "m1""#
        );
        let versions: Vec<_> = found.conflicts.iter().map(|one| one.api_version.as_deref()).collect();
        assert_eq!(versions, [None, Some("apps/v1"), None, Some("autoscaling/v1"), None]);
        assert_eq!(found.conflicts[3].time.as_deref(), Some("2024-05-06T07:08:09Z"));
    }

    #[test]
    fn names_are_unquoted() {
        let manager = |message: &str| {
            let found = conflict(&[(REASON, message, ".a")]).expect("a conflict");
            found.managers()[0].to_owned()
        };
        assert_eq!(manager(r#"conflict with "a \"b\" \\" using v1"#), r#"a "b" \"#);
        assert_eq!(manager(r#"conflict with "a\x00""#), r"a\x00");
        assert_eq!(manager("conflict with nobody"), "conflict with nobody");
        assert_eq!(manager(r#"conflict with "open"#), r#"conflict with "open"#);
    }

    #[test]
    fn another_conflict_is_not_one_of_field_managers() {
        assert_eq!(conflict(&[]), None);
        assert_eq!(conflict(&[("FieldValueInvalid", "no", ".a")]), None);
        let one =
            conflict(&[("Other", "x", ".b"), (REASON, r#"conflict with "m""#, ".a")]).expect("a conflict");
        assert_eq!(one.to_string(), r#"1 field of other managers: .a of "m""#);
    }
}
