//! Devices.

use crate::rules::Rules;

pub(super) fn rules(_kind: &str) -> Option<&'static Rules> {
    None
}
