//! Checks of `'…'.format([…])`, where both are literals: clauses and the types of their arguments.

use super::Checked;
use crate::{
    library::{
        format_type_error,
        strings::{Clause, Piece, next_piece},
    },
    syntax::ast::{Expr, Id, Kind},
    types::Type,
};

/// Checks a call; an error is at an expression.
pub(super) fn check(checked: &Checked, call: Id, format: &str, args: &[&Expr]) -> Result<(), (Id, String)> {
    let mut rest = format;
    let mut used = 0;
    loop {
        let at_end = rest == "%";
        if rest.starts_with('%') && !rest.starts_with("%%") && !at_end && used >= args.len() {
            return Err((call, format!("index {used} out of range")));
        }
        let Some((piece, after)) = next_piece(rest).map_err(|error| (call, error))? else { break };
        if let Piece::Clause(clause) = piece
            && let Some(arg) = args.get(used)
        {
            used += 1;
            if let Some(wrong) = wrong(checked, clause, arg) {
                let given = checked.ty(wrong).runtime_name();
                let error = format_type_error(clause, given);
                return Err((wrong, format!("error during formatting: {error}")));
            }
        }
        rest = after;
    }
    if args.len() > used {
        let given = args.len();
        return Err((
            call,
            format!("too many arguments supplied to string.format (expected {used}, got {given})"),
        ));
    }
    Ok(())
}

/// The argument, or the part of it, that a clause cannot write.
fn wrong(checked: &Checked, clause: Clause, arg: &Expr) -> Option<Id> {
    if !takes(clause, checked.ty(arg.id)) {
        return Some(arg.id);
    }
    if clause != Clause::Text {
        return None;
    }
    match &arg.kind {
        Kind::List(items) => items.iter().find_map(|item| wrong(checked, clause, &item.value)),
        Kind::Map(entries) => entries.iter().find_map(|entry| {
            wrong(checked, clause, &entry.key).or_else(|| wrong(checked, clause, &entry.value))
        }),
        _ => None,
    }
}

fn takes(clause: Clause, ty: &Type) -> bool {
    use Type as T;
    match (clause, ty) {
        (_, T::Dyn | T::Error) => true,
        (
            Clause::Text,
            T::List(_) | T::Map(_) | T::Double | T::Timestamp | T::Duration | T::Type(_) | T::Null,
        ) => true,
        (Clause::Text | Clause::Hex(_), T::String | T::Bytes) => true,
        (Clause::Text | Clause::Binary, T::Bool) => true,
        (Clause::Fixed(_) | Clause::Scientific(_), T::Double | T::String) => true,
        (clause, T::Int | T::Uint) => !matches!(clause, Clause::Fixed(_) | Clause::Scientific(_)),
        _ => false,
    }
}
