//! The type checker. It finds the type of every expression, what each name refers to, and the overloads that each call
//! can mean.

mod format;
mod literals;
mod unify;

use std::{collections::HashMap, sync::Arc};

use crate::{
    declarations::Declarations,
    error::Issue,
    function::Overload,
    syntax::{
        Parsed,
        ast::{Call, Comprehension, Expr, Id, Kind, Select, Struct, op},
    },
    types::Type,
    value::Value,
};
use unify::{Unifier, most_general};

/// What an identifier or a call refers to.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    /// Nothing: a literal, a selection, a loop.
    #[default]
    None,
    /// A variable of the environment, by its number.
    Variable(usize),
    /// A variable of a loop: the number of loop variables outside of it.
    Local(usize),
    /// A type.
    Type(Type),
    /// A function, with the overloads that the call may mean; the receiver is only a part of the function's name.
    Call { overloads: Vec<Arc<Overload>>, namespaced: bool },
}

/// A checked expression.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) root: Expr,
    /// By id.
    pub(crate) types: Vec<Type>,
    /// By id.
    pub(crate) references: Vec<Reference>,
}

impl Checked {
    pub(crate) fn ty(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    pub(crate) fn reference(&self, id: Id) -> &Reference {
        self.references.get(id as usize).unwrap_or(&Reference::None)
    }

    /// Whether a variable is referred to. Not in the arguments of macros that went away.
    pub(crate) fn uses(&self, number: usize) -> bool {
        self.references
            .iter()
            .any(|reference| matches!(reference, Reference::Variable(used) if *used == number))
    }

    pub(crate) fn overloads(&self, id: Id) -> &[Arc<Overload>] {
        match self.reference(id) {
            Reference::Call { overloads, .. } => overloads,
            _ => &[],
        }
    }
}

/// Checks an expression.
pub(crate) fn check(parsed: Parsed, declarations: &Declarations) -> Result<Checked, Vec<Issue>> {
    let ids = parsed.places.ids();
    let mut checker = Checker {
        parsed: &parsed,
        declarations,
        unifier: Unifier::default(),
        types: vec![Type::Error; ids],
        references: vec![Reference::None; ids],
        locals: Vec::new(),
        issues: Vec::new(),
    };
    checker.check(&parsed.root);
    let Checker { unifier, mut types, references, mut issues, .. } = checker;
    types.iter_mut().for_each(|ty| *ty = unifier.resolve(ty, true));
    let checked = Checked { root: parsed.root, types, references };
    if issues.is_empty() {
        literals::check(&checked, &parsed.places, &mut issues);
    }
    if issues.is_empty() { Ok(checked) } else { Err(issues) }
}

/// Maximum number of parts of a type.
const MAX_TYPE: usize = 1000;

struct Checker<'c> {
    parsed: &'c Parsed,
    declarations: &'c Declarations,
    unifier: Unifier,
    types: Vec<Type>,
    references: Vec<Reference>,
    /// Variables of loops, the innermost last.
    locals: Vec<(&'c str, Type)>,
    issues: Vec<Issue>,
}

impl<'c> Checker<'c> {
    fn report(&mut self, id: Id, message: String) {
        self.issues.push(self.parsed.places.issue(id, message));
    }

    fn undeclared(&mut self, id: Id, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn ty(&self, expr: &Expr) -> Type {
        self.types.get(expr.id as usize).cloned().unwrap_or(Type::Error)
    }

    fn set_reference(&mut self, id: Id, reference: Reference) {
        if let Some(known) = self.references.get_mut(id as usize) {
            *known = reference;
        }
    }

    /// Checks an expression and notes its type.
    fn check(&mut self, expr: &'c Expr) -> Type {
        let ty = match &expr.kind {
            Kind::Literal(value) => literal_type(value),
            Kind::Ident(name) => self.ident(expr.id, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => {
                let mut joined = None;
                for item in items {
                    let mut ty = self.check(&item.value);
                    if item.optional {
                        ty = self.unwrapped(&item.value, ty);
                    }
                    joined = Some(self.join(joined, ty));
                }
                Type::list(joined.unwrap_or_else(|| self.unifier.fresh()))
            }
            Kind::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for entry in entries {
                    let key = self.check(&entry.key);
                    keys = Some(self.join(keys, key));
                    let mut value = self.check(&entry.value);
                    if entry.optional {
                        value = self.unwrapped(&entry.value, value);
                    }
                    values = Some(self.join(values, value));
                }
                let keys = keys.unwrap_or_else(|| self.unifier.fresh());
                Type::map(keys, values.unwrap_or_else(|| self.unifier.fresh()))
            }
            Kind::Struct(object) => self.object(expr.id, object),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        let ty = self.bounded(expr.id, ty);
        if let Some(known) = self.types.get_mut(expr.id as usize) {
            known.clone_from(&ty);
        }
        ty
    }

    /// The type, unless it is too large to work with: `{x: x}` doubles a type, and loops can do that again and again.
    fn bounded(&mut self, id: Id, ty: Type) -> Type {
        let mut left = MAX_TYPE;
        if self.unifier.fits(&ty, &mut left) {
            return ty;
        }
        self.report(id, format!("the type of the expression has more than {MAX_TYPE} parts"));
        Type::Error
    }

    /// What an optional item, entry or field holds.
    fn unwrapped(&mut self, expr: &Expr, ty: Type) -> Type {
        match ty.optional_of() {
            Some(of) => of.clone(),
            None => {
                if !matches!(ty, Type::Dyn) {
                    self.mismatch(expr.id, &Type::optional(ty.clone()), &ty);
                }
                ty
            }
        }
    }

    /// The type of several items. Whether they may differ is checked later, when it is known where they are.
    fn join(&mut self, previous: Option<Type>, ty: Type) -> Type {
        match previous {
            None => ty,
            Some(previous) if self.unifier.assign(&previous, &ty) => most_general(&previous, &ty),
            Some(_) => Type::Dyn,
        }
    }

    fn ident(&mut self, id: Id, name: &str) -> Type {
        if let Some((at, (_, ty))) =
            self.locals.iter().enumerate().rev().find(|(_, (local, _))| *local == name)
        {
            let ty = ty.clone();
            self.set_reference(id, Reference::Local(at));
            return ty;
        }
        match self.global(id, name.strip_prefix('.').unwrap_or(name)) {
            Some(ty) => ty,
            None => self.undeclared(id, name),
        }
    }

    /// A variable or a type of the environment.
    fn global(&mut self, id: Id, name: &str) -> Option<Type> {
        if let Some((number, variable)) = self.declarations.variable(name) {
            self.set_reference(id, Reference::Variable(number));
            return Some(variable.ty.clone());
        }
        let ty = self.declarations.type_of(name)?;
        self.set_reference(id, Reference::Type(ty.clone()));
        Some(Type::type_of(ty))
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| *local == name)
    }

    fn select(&mut self, expr: &'c Expr, select: &'c Select) -> Type {
        // `a.b.c` can be the name of a variable or of a type.
        if !select.test
            && let Some(name) = expr.qualified_name()
            && !name.split('.').next().is_some_and(|first| self.is_local(first))
            && let Some(ty) = self.global(expr.id, name.strip_prefix('.').unwrap_or(&name))
        {
            return ty;
        }
        let ty = self.field(expr.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { self.unifier.resolve(&ty, false) }
    }

    fn field(&mut self, id: Id, operand: &'c Expr, field: &str, optional: bool) -> Type {
        let operand = self.check(operand);
        let operand = self.unifier.resolve(&operand, false);
        let (target, was_optional) = match operand.optional_of() {
            Some(of) => (of.clone(), true),
            None => (operand, false),
        };
        let ty = match &target {
            Type::Map(map) => map.1.clone(),
            Type::Object(object) => match object.field_type(field) {
                Some(ty) => ty,
                None => {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Var(_) => {
                self.unifier.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            // Upstream declares these types as objects, of which nothing is known.
            Type::Opaque(opaque) if opaque.0.starts_with("kubernetes.") => {
                self.report(id, format!("unexpected failed resolution of '{}'", opaque.0));
                Type::Dyn
            }
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(ty) } else { ty }
    }

    fn call(&mut self, expr: &'c Expr, call: &'c Call) -> Type {
        if &*call.function == op::OPT_SELECT
            && let [operand, field] = call.args.as_slice()
            && let Kind::Literal(Value::String(name)) = &field.kind
        {
            let ty = self.field(expr.id, operand, name, true);
            let overloads =
                self.declarations.functions.find(op::OPT_SELECT).map_or(&[][..], |found| found.1).to_vec();
            self.set_reference(expr.id, Reference::Call { overloads, namespaced: false });
            return self.unifier.resolve(&ty, false);
        }
        let args: Vec<Type> = call.args.iter().map(|arg| self.check(arg)).collect();
        let name = call.function.strip_prefix('.').unwrap_or(&call.function);
        let Some(target) = &call.target else {
            return match self.declarations.functions.find(name) {
                Some((name, overloads)) => self.resolve(expr.id, call, name, overloads, args, None),
                None => self.undeclared(expr.id, &call.function),
            };
        };
        // `a.b.c()` can be a function with the name `a.b.c`.
        if let Some(prefix) = target.qualified_name() {
            let full = format!("{}.{name}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some((name, overloads)) = self.declarations.functions.find(&full) {
                let ty = self.resolve(expr.id, call, name, overloads, args, None);
                if let Some(Reference::Call { namespaced, .. }) = self.references.get_mut(expr.id as usize) {
                    *namespaced = true;
                }
                return ty;
            }
        }
        let target = self.check(target);
        match self.declarations.functions.find(name) {
            Some((name, overloads)) => self.resolve(expr.id, call, name, overloads, args, Some(target)),
            None => self.undeclared(expr.id, &call.function),
        }
    }

    /// Finds the overloads that a call can mean, and the type of its result.
    fn resolve(
        &mut self,
        id: Id,
        call: &Call,
        name: &str,
        overloads: &[Arc<Overload>],
        args: Vec<Type>,
        target: Option<Type>,
    ) -> Type {
        let member = target.is_some();
        let args: Vec<Type> = target.into_iter().chain(args).collect();
        if matches!(name, op::AND | op::OR) {
            let mut fits = true;
            for (arg, ty) in call.args.iter().zip(&args) {
                if !self.unifier.assign(ty, &Type::Bool) {
                    self.mismatch(arg.id, &Type::Bool, ty);
                    fits = false;
                }
            }
            self.set_reference(id, Reference::Call { overloads: overloads.to_vec(), namespaced: false });
            return if fits { Type::Bool } else { Type::Error };
        }
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let mut params = HashMap::new();
            let wanted: Vec<Type> =
                overload.params.iter().map(|param| self.unifier.instantiate(param, &mut params)).collect();
            if !self.unifier.assign_all(&args, &wanted) {
                continue;
            }
            matching.push(overload.clone());
            let ty = self.unifier.instantiate(&overload.result, &mut params);
            let ty = self.unifier.resolve(&ty, false);
            result = Some(match result {
                None => ty,
                Some(Type::Dyn) => Type::Dyn,
                Some(earlier) if ty.same(&earlier) => earlier,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            self.no_overload(id, name, &args, member);
            return Type::Error;
        };
        self.set_reference(id, Reference::Call { overloads: matching, namespaced: false });
        result
    }

    fn no_overload(&mut self, id: Id, name: &str, args: &[Type], member: bool) {
        let shown: Vec<String> = args.iter().map(|arg| self.unifier.resolve(arg, true).to_string()).collect();
        let signature = match shown.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
    }

    fn object(&mut self, id: Id, object: &'c Struct) -> Type {
        let name = object.name.strip_prefix('.').unwrap_or(&object.name);
        let ty = match self.declarations.type_of(name) {
            Some(ty) => ty,
            None => return self.undeclared(id, &object.name),
        };
        let Type::Object(declared) = &ty else {
            self.report(id, format!("'{}' is not a message type", ty.runtime_name()));
            object.fields.iter().for_each(|field| {
                self.check(&field.value);
            });
            return Type::Error;
        };
        for init in &object.fields {
            let mut value = self.check(&init.value);
            let wanted = match declared.field_type(&init.name) {
                Some(ty) => ty,
                None => {
                    self.report(init.id, format!("undefined field '{}'", init.name));
                    Type::Error
                }
            };
            if init.optional {
                value = self.unwrapped(&init.value, value);
            }
            if !self.unifier.assign(&wanted, &value) {
                let name = &init.name;
                let message =
                    format!("expected type of field '{name}' is '{wanted}' but provided type is '{value}'");
                self.report(init.id, message);
            }
        }
        ty
    }

    fn comprehension(&mut self, fold: &'c Comprehension) -> Type {
        let range = self.check(&fold.range);
        let accumulator = self.check(&fold.init);
        let range = self.unifier.resolve(&range, false);
        let two = fold.second.is_some();
        let (first, second) = match &range {
            Type::List(items) if two => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Dyn),
            Type::Map(map) => (map.0.clone(), map.1.clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.unifier.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        self.locals.push((&fold.accumulator, accumulator.clone()));
        let depth = self.locals.len();
        self.locals.push((&fold.variable, first));
        if let Some(name) = &fold.second {
            self.locals.push((name, second));
        }
        self.check(&fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.assert(&fold.step, &accumulator);
        self.locals.truncate(depth);
        self.check(&fold.result);
        self.locals.pop();
        let ty = self.ty(&fold.result);
        self.unifier.resolve(&ty, false)
    }

    fn assert(&mut self, expr: &Expr, wanted: &Type) {
        let found = self.ty(expr);
        if !self.unifier.assign(wanted, &found) {
            self.mismatch(expr.id, wanted, &found);
        }
    }
}

fn literal_type(value: &Value<'_>) -> Type {
    match value {
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        _ => Type::Null,
    }
}
