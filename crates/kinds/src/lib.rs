//! The built-in kinds of Kubernetes: a generated table of types, fields and served kinds, and the rules that
//! go beyond it. No I/O, no tasks, no clock.

pub mod admission;
pub mod allocation;
pub mod apply;
pub mod bootstrap;
mod catalog;
pub mod codec;
#[rustfmt::skip]
mod generated;
pub mod expressions;
pub mod openapi;
pub mod patch;
pub mod printers;
pub mod protobuf;
pub mod rules;
pub mod table;

pub use catalog::{body, find, find_kind, groups, kinds, type_by_name, types};
