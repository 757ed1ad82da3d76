//! Which types agree, and what that says about types that are yet to be found.

use std::{collections::HashMap, sync::Arc};

use crate::types::Type;

/// What is known about type variables.
#[derive(Debug, Default)]
pub(crate) struct Unifier {
    known: Vec<Option<Type>>,
    /// Earlier values, to go back to when types do not agree.
    undo: Vec<(u32, Option<Type>)>,
}

impl Unifier {
    /// A type variable of which nothing is known.
    pub(crate) fn fresh(&mut self) -> Type {
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(None);
        Type::Var(number)
    }

    fn find(&self, number: u32) -> Option<&Type> {
        self.known.get(number as usize)?.as_ref()
    }

    fn set(&mut self, number: u32, ty: Type) {
        if let Some(known) = self.known.get_mut(number as usize) {
            self.undo.push((number, known.replace(ty)));
        }
    }

    /// Whether values of one type can be used where another is wanted. If so, what that says about variables is kept.
    pub(crate) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.assign_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    /// Whether all of the types agree, each with its counterpart.
    pub(crate) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.undo.clear();
        if self.agree_all(from, to) {
            return true;
        }
        while let Some((number, earlier)) = self.undo.pop() {
            if let Some(known) = self.known.get_mut(number as usize) {
                *known = earlier;
            }
        }
        false
    }

    fn agree_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.agree(from, to))
    }

    fn agree(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Var(number) = to {
            let (valid, known) = self.substitute_for(from, *number, to);
            if valid || known {
                return valid;
            }
        }
        if let Type::Var(number) = from {
            return self.substitute_for(to, *number, from).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(from), Type::List(to)) => self.agree(from, to),
            (Type::Map(from), Type::Map(to)) => self.agree(&from.0, &to.0) && self.agree(&from.1, &to.1),
            (Type::Opaque(from), Type::Opaque(to)) => from.0 == to.0 && self.agree_all(&from.1, &to.1),
            (Type::Type(_), Type::Type(_)) => true,
            _ => from.same(to),
        }
    }

    /// Whether a variable can stand for a type, and whether something was known about the variable.
    fn substitute_for(&mut self, ty: &Type, number: u32, variable: &Type) -> (bool, bool) {
        if ty.same(variable) {
            return (true, true);
        }
        if let Some(known) = self.find(number).cloned() {
            if ty.same(&known) {
                return (true, true);
            }
            if !self.agree(ty, &known) {
                return (false, true);
            }
            let general = most_general(ty, &known);
            if !self.occurs(number, &general) {
                self.set(number, general);
            }
            return (true, true);
        }
        if self.occurs(number, ty) {
            return (false, false);
        }
        self.set(number, ty.clone());
        (true, false)
    }

    /// Whether a variable is a part of a type.
    fn occurs(&self, number: u32, ty: &Type) -> bool {
        match ty {
            Type::Var(other) => {
                *other == number || self.find(*other).is_some_and(|known| self.occurs(number, known))
            }
            Type::Map(map) => self.occurs(number, &map.0) || self.occurs(number, &map.1),
            other => other.params().iter().any(|param| self.occurs(number, param)),
        }
    }

    /// Whether a type, with all that is known, has no more parts than are left.
    pub(crate) fn fits(&self, ty: &Type, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match ty {
            Type::Var(number) => self.find(*number).is_none_or(|known| self.fits(known, left)),
            Type::Map(map) => self.fits(&map.0, left) && self.fits(&map.1, left),
            other => other.params().iter().all(|param| self.fits(param, left)),
        }
    }

    /// A type with all that is known about its variables. Those of which nothing is known stay, or become `dyn`.
    pub(crate) fn resolve(&self, ty: &Type, to_dyn: bool) -> Type {
        match ty {
            Type::Var(number) => match self.find(*number) {
                Some(known) => self.resolve(known, to_dyn),
                None if to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(items) => Type::list(self.resolve(items, to_dyn)),
            Type::Map(map) => Type::map(self.resolve(&map.0, to_dyn), self.resolve(&map.1, to_dyn)),
            Type::Opaque(opaque) if !opaque.1.is_empty() => {
                let params = opaque.1.iter().map(|param| self.resolve(param, to_dyn)).collect();
                Type::Opaque(Arc::new((opaque.0.clone(), params)))
            }
            Type::Type(Some(of)) => Type::type_of(self.resolve(of, to_dyn)),
            other => other.clone(),
        }
    }

    /// A declared type with a variable for each of its parameters.
    pub(crate) fn instantiate(&mut self, ty: &Type, params: &mut HashMap<Arc<str>, Type>) -> Type {
        match ty {
            Type::Param(name) => params.entry(name.clone()).or_insert_with(|| self.fresh()).clone(),
            Type::List(items) => Type::list(self.instantiate(items, params)),
            Type::Map(map) => Type::map(self.instantiate(&map.0, params), self.instantiate(&map.1, params)),
            Type::Opaque(opaque) if !opaque.1.is_empty() => {
                let inner = opaque.1.iter().map(|param| self.instantiate(param, params)).collect();
                Type::Opaque(Arc::new((opaque.0.clone(), inner)))
            }
            Type::Type(Some(of)) => Type::type_of(self.instantiate(of, params)),
            other => other.clone(),
        }
    }
}

/// Whether `null` can be used as a value of a type.
fn is_nullable(ty: &Type) -> bool {
    matches!(ty, Type::Null | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp)
}

/// The more general of two types that agree.
pub(crate) fn most_general(one: &Type, two: &Type) -> Type {
    if is_at_most_as_specific(one, two) { one.clone() } else { two.clone() }
}

fn is_at_most_as_specific(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(one), Type::List(two)) => is_at_most_as_specific(one, two),
        (Type::Map(one), Type::Map(two)) => {
            is_at_most_as_specific(&one.0, &two.0) && is_at_most_as_specific(&one.1, &two.1)
        }
        (Type::Opaque(one), Type::Opaque(two)) => {
            one.0 == two.0
                && one.1.len() == two.1.len()
                && one.1.iter().zip(&two.1).all(|(one, two)| is_at_most_as_specific(one, two))
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => one.same(two),
    }
}
