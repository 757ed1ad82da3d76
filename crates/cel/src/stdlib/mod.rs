//! The standard functions of CEL, and those of optional values.

mod convert;
mod operators;
mod optional;
mod text;
mod time;

use crate::{
    function::{Call, Function, Overload, Style},
    types::Type,
};

/// All of them.
pub(crate) fn functions() -> Vec<Function> {
    let mut all = operators::functions();
    all.extend(convert::functions());
    all.extend(text::functions());
    all.extend(time::functions());
    all.extend(optional::functions());
    all
}

fn global(id: &'static str, params: &[Type], result: Type, call: Call) -> Overload {
    Overload::global(id, params.to_vec(), result, call).with_style(Style::Standard)
}

fn member(id: &'static str, params: &[Type], result: Type, call: Call) -> Overload {
    Overload::member(id, params.to_vec(), result, call).with_style(Style::Standard)
}

fn operator(id: &'static str, params: &[Type], result: Type, call: Call) -> Overload {
    Overload::global(id, params.to_vec(), result, call).with_style(Style::Operator)
}
