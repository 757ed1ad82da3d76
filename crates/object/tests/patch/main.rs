//! Patches of all kinds: tables of what they do, and properties that hold for any of them.

mod json;
mod merge;
mod properties;
mod schema;
mod strategic;
