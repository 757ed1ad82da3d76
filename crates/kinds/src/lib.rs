//! The built-in kinds of Kubernetes: a generated table of types, fields and served kinds, and the rules that
//! go beyond it. No I/O, no tasks, no clock.

pub mod patch;
pub mod rules;
pub mod table;
