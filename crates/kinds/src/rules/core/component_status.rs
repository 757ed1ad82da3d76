//! `ComponentStatus`: deprecated and never stored, so there is nothing to validate.

use crate::rules::Rules;

pub(super) static RULES: Rules =
    Rules { deprecated: "v1 ComponentStatus is deprecated in v1.19+", ..Rules::PLAIN };
