//! Cases that do not hold; `crates/apply/tests/README.md` says why.

pub(crate) const DIFFERENCES: &[&str] = &[];
