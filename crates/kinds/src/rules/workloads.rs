//! Rules: to be filled in.

use super::Rules;

/// The rules of a kind of these groups.
pub(super) fn rules(_group: &str, _version: &str, _kind: &str) -> Option<&'static Rules> {
    None
}
