//! Environments: what expressions may use, and compiling them.

use std::sync::{Arc, LazyLock};

use crate::{
    check::{self, Checked},
    cost::{CostEstimate, SizeEstimator},
    declarations::{Declarations, Functions, Resolver, Variable},
    error::CompileError,
    estimate,
    eval::{self, Program},
    function::Function,
    library, stdlib,
    syntax::{self, Macros},
    types::{DeclType, Field, ObjectType, Type},
};

/// What expressions may use: functions, variables and types.
#[derive(Clone, Debug)]
pub struct Env {
    declarations: Declarations,
    macros: Macros,
}

impl Env {
    /// The environment of the language alone, with optional values and loops with two variables.
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Env> =
            LazyLock::new(|| EnvBuilder::empty().functions(stdlib::functions()).build());
        &STANDARD
    }

    /// The environment of Kubernetes 1.37, without variables: the language with Kubernetes' libraries.
    pub fn kubernetes() -> &'static Self {
        static KUBERNETES: LazyLock<Env> = LazyLock::new(|| {
            Env::standard().extend().functions(library::functions()).sort_by_macro().build()
        });
        &KUBERNETES
    }

    /// The environment with which others are built that have the same functions, and more.
    pub fn extend(&self) -> EnvBuilder {
        EnvBuilder { env: self.clone() }
    }

    /// Compiles an expression: parses and checks it.
    pub fn compile(&self, source: &str) -> Result<Ast, CompileError> {
        let compiled =
            syntax::parse(source, self.macros).and_then(|parsed| check::check(parsed, &self.declarations));
        match compiled {
            Ok(checked) => Ok(Ast { checked }),
            Err(issues) => Err(CompileError::new(source, issues)),
        }
    }
}

/// Builds environments.
#[derive(Clone, Debug)]
pub struct EnvBuilder {
    env: Env,
}

impl EnvBuilder {
    fn empty() -> Self {
        Self { env: Env { declarations: Declarations::default(), macros: Macros::default() } }
    }

    /// With functions. One of a known name adds its overloads.
    #[must_use]
    pub fn functions(mut self, functions: impl IntoIterator<Item = Function>) -> Self {
        let known: &mut Functions = Arc::make_mut(&mut self.env.declarations.functions);
        functions.into_iter().for_each(|function| known.add(function));
        self
    }

    /// With a variable. Its number is the count of those before it. One of a known name takes its place.
    #[must_use]
    pub fn variable(mut self, name: &str, ty: Type) -> Self {
        let variables = &mut self.env.declarations.variables;
        match variables.iter_mut().find(|variable| &*variable.name == name) {
            Some(known) => known.ty = ty,
            None => variables.push(Variable { name: name.into(), ty }),
        }
        self
    }

    /// With object types that expressions may construct, by name: `Object.spec{…}`.
    #[must_use]
    pub fn types(mut self, find: impl Fn(&str) -> Option<ObjectType> + Send + Sync + 'static) -> Self {
        let resolver: Resolver = Arc::new(find);
        self.env.declarations.resolvers.push(resolver);
        self
    }

    /// With the types of mutating admission policies: `Object{…}`, `Object.spec{…}` and so on, with any fields, and
    /// `JSONPatch{op: …, path: …, from: …, value: …}`. That nested types are named for their fields is for the caller
    /// to check.
    #[must_use]
    pub fn mutation_types(self) -> Self {
        let text = DeclType::string(0);
        let field =
            |name: &str, decl: &DeclType| Field { name: name.into(), json: name.into(), decl: decl.clone() };
        let fields = vec![
            field("op", &text),
            field("path", &text),
            field("from", &text),
            field("value", &DeclType::dynamic()),
        ];
        let patch = ObjectType::new("JSONPatch", fields);
        self.types(move |name| match name {
            "JSONPatch" => Some(patch.clone()),
            _ => (name == "Object" || name.starts_with("Object.")).then(|| ObjectType::open(name)),
        })
    }

    /// With the macro `cel.bind(name, value, expression)`.
    #[must_use]
    pub fn bind_macro(mut self) -> Self {
        self.env.macros.bind = true;
        self
    }

    /// With the macro `list.sortBy(item, key)`, which calls the function `@sortByAssociatedKeys`.
    #[must_use]
    pub fn sort_by_macro(mut self) -> Self {
        self.env.macros.sort_by = true;
        self
    }

    /// The environment.
    pub fn build(self) -> Env {
        self.env
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Ast {
    checked: Checked,
}

impl Ast {
    /// The type of the expression's value.
    pub fn output_type(&self) -> &Type {
        self.checked.ty(self.checked.root.id)
    }

    /// What the expression can cost, given how large variables can be.
    pub fn cost(&self, sizes: &dyn SizeEstimator) -> CostEstimate {
        estimate::estimate(&self.checked, sizes)
    }

    /// The expression as a program. A constant that cannot be computed, such as a number in a string that is none, is an
    /// error.
    pub fn program(&self) -> Result<Program, String> {
        eval::plan(&self.checked)
    }

    /// Whether the expression selects a field of a variable by its name: `variable.field`, `has(variable.field)` or
    /// `variable.?field`.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        self.checked.root.selects(variable, field)
    }

    /// Whether the expression uses a variable of its environment, by its number.
    pub fn uses(&self, variable: usize) -> bool {
        self.checked.uses(variable)
    }
}
