//! The priority of API versions: stable before beta before alpha, newer before older, other names last.

use std::cmp::Ordering;

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at_checked(digits)?;
    let major = number(major)?;
    if rest.is_empty() {
        return Some((Stability::Stable, major, 0));
    }
    if let Some(minor) = rest.strip_prefix("alpha") {
        return Some((Stability::Alpha, major, number(minor)?));
    }
    let minor = rest.strip_prefix("beta")?;
    Some((Stability::Beta, major, number(minor)?))
}

fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Compares the priority of two versions: `Greater` means that `a` comes first.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (None, None) => b.cmp(a),
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_stability_then_number_then_name() {
        let mut versions =
            ["foo", "v1alpha1", "v11beta2", "v1", "v10", "bar", "v2", "v10beta3", "v1alpha10", "vx1"];
        versions.sort_by(|a, b| compare(b, a));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v1alpha10", "v1alpha1", "bar", "foo", "vx1"]
        );
    }
}
