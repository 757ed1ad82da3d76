//! Expressions become programs.

use std::borrow::Cow;

use k1s_cel::{DeclType, Env, Field, ObjectType, Program, Type};

use super::environment::{Scope, environment};

/// The use of an expression, which decides the type it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A match condition: yields a bool.
    MatchCondition,
    /// A variable: yields anything.
    Variable,
    /// A validation: yields a bool.
    Validation,
    /// The message of a validation: yields a string.
    Message,
    /// The value of an audit annotation: yields a string or null.
    AuditAnnotation,
    /// A mutation: yields an object to apply.
    ApplyConfiguration,
    /// A mutation: yields a list of JSON patch operations.
    JsonPatch,
}

impl Purpose {
    /// What is wrong with a result of this type, in upstream's words.
    fn mismatch(self, found: &Type) -> Option<String> {
        let one = |wanted: &str| format!("must evaluate to {wanted} but got {found}");
        let wanted = match self {
            Purpose::Variable => return None,
            Purpose::MatchCondition | Purpose::Validation => "bool",
            Purpose::Message => "string",
            Purpose::ApplyConfiguration => "Object",
            Purpose::JsonPatch => "list(JSONPatch)",
            Purpose::AuditAnnotation => {
                let fits = matches!(found, Type::String | Type::Null);
                return (!fits)
                    .then(|| format!("must evaluate to one of [string null_type] but got {found}"));
            }
        };
        (found.to_string() != wanted).then(|| one(wanted))
    }
}

/// Why an expression is refused: the words after `Invalid value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// A program, with the text it was compiled from.
#[derive(Debug)]
pub struct Compiled {
    pub(super) text: String,
    pub(super) program: Result<Program, Fault>,
}

impl Compiled {
    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it does not compile.
    pub fn fault(&self) -> Option<&Fault> {
        self.program.as_ref().err()
    }
}

/// A variable of a policy.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) compiled: Compiled,
}

/// An environment with the variables of a policy.
pub(super) fn with_variables(base: &Env, types: &[(String, Type)]) -> Env {
    // The object tells which variables there are; each is a variable of its own, so that it is evaluated when it is used.
    let field = |(name, _): &(String, Type)| Field {
        name: name.as_str().into(),
        json: name.as_str().into(),
        decl: DeclType::dynamic(),
    };
    let object = ObjectType::new("kubernetes.variables", types.iter().map(field).collect());
    let mut builder = base.extend().variable("variables", Type::Object(object));
    for (name, ty) in types {
        builder = builder.variable(&format!("variables.{name}"), ty.clone());
    }
    builder.build()
}

/// The type that a variable has in other expressions: scalars, lists and maps keep theirs, as upstream.
pub(super) fn declared(found: Option<&Type>) -> Type {
    match found {
        Some(Type::List(items)) => Type::list(declared(Some(items))),
        Some(Type::Map(map)) => Type::map(declared(Some(&map.0)), declared(Some(&map.1))),
        None | Some(Type::Object(_) | Type::Opaque(_) | Type::Type(_) | Type::Param(_) | Type::Error) => {
            Type::Dyn
        }
        Some(scalar) => scalar.clone(),
    }
}

/// Compiles the expressions of one webhook or policy.
#[derive(Debug, Default)]
pub struct Compiler {
    scope: Scope,
    /// In order: each may use those before it.
    pub(super) variables: Vec<Variable>,
    /// The types of the variables, by name.
    types: Vec<(String, Type)>,
    /// Whether `variables` exists, even without any: in policies.
    composed: bool,
}

impl Compiler {
    /// For expressions without `variables`.
    pub fn new(scope: Scope) -> Compiler {
        Compiler { scope, ..Compiler::default() }
    }

    /// For the expressions of a policy, whose variables are still to be added.
    pub fn of_policy(scope: Scope) -> Compiler {
        Compiler { scope, composed: true, ..Compiler::default() }
    }

    /// Adds a variable, which may use those before it. Returns why its expression does not compile.
    pub fn add_variable(&mut self, name: &str, text: &str) -> Option<&Fault> {
        let (compiled, found) = self.compile_typed(text, Purpose::Variable, self.scope);
        self.types.push((name.to_owned(), declared(found.as_ref())));
        self.variables.push(Variable { name: name.to_owned(), compiled });
        self.variables.last().and_then(|variable| variable.compiled.fault())
    }

    /// Compiles an expression of this purpose. Messages and audit annotations have no `authorizer`.
    pub fn compile(&self, text: &str, purpose: Purpose) -> Compiled {
        let scope = match purpose {
            Purpose::Message => Scope { authorizer: false, ..self.scope },
            _ => self.scope,
        };
        self.compile_typed(text, purpose, scope).0
    }

    fn env(&self, scope: Scope) -> Cow<'static, Env> {
        let base = environment(scope);
        if !self.composed {
            return Cow::Borrowed(base);
        }
        Cow::Owned(with_variables(base, &self.types))
    }

    fn compile_typed(&self, text: &str, purpose: Purpose, scope: Scope) -> (Compiled, Option<Type>) {
        let patches = matches!(purpose, Purpose::ApplyConfiguration | Purpose::JsonPatch);
        let env = self.env(Scope { patches: scope.patches || patches, ..scope });
        let mut found = None;
        let program = env
            .compile(text)
            .map_err(|error| Fault(format!("compilation failed: {error}")))
            .and_then(|ast| {
                found = Some(ast.output_type().clone());
                match purpose.mismatch(ast.output_type()) {
                    Some(why) => Err(Fault(why)),
                    None => {
                        ast.program().map_err(|why| Fault(format!("program instantiation failed: {why}")))
                    }
                }
            });
        (Compiled { text: text.to_owned(), program }, found)
    }
}
