//! Expressions over the claims of a token, and over the user that they make.

use std::sync::LazyLock;

use k1s_cel::{Ast, DeclType, Env, Field, ListType, ObjectType, Program, Type, Value};
use serde_json::Value as Json;

/// What an expression may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// What an expression is about: the name of its only variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Claims,
    User,
}

/// The type that an expression has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yields {
    Anything,
    Bool,
}

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    /// Whether it reads the claims `email` and `email_verified`.
    pub(super) email: bool,
    pub(super) email_verified: bool,
    program: Program,
}

fn environment(about: About) -> &'static Env {
    static CLAIMS: LazyLock<Env> = LazyLock::new(|| {
        Env::kubernetes().extend().variable("claims", Type::map(Type::String, Type::Dyn)).build()
    });
    static USER: LazyLock<Env> = LazyLock::new(|| {
        let field = |name: &str, decl: DeclType| Field { name: name.into(), json: name.into(), decl };
        let text = DeclType::string(u64::MAX);
        let texts = DeclType::list(text.clone(), u64::MAX, ListType::Atomic);
        let user = ObjectType::new(
            "kubernetes.UserInfo",
            vec![
                field("username", text.clone()),
                field("uid", text),
                field("groups", texts.clone()),
                field("extra", DeclType::map(texts, u64::MAX)),
            ],
        );
        Env::kubernetes().extend().variable("user", Type::Object(user)).build()
    });
    match about {
        About::Claims => &CLAIMS,
        About::User => &USER,
    }
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Why it cannot be used, in upstream's words.
    pub(super) fn compile(text: &str, about: About, yields: Yields) -> Result<Expression, String> {
        let ast: Ast =
            environment(about).compile(text).map_err(|error| format!("compilation failed: {error}"))?;
        if yields == Yields::Bool && !matches!(ast.output_type(), Type::Bool) {
            return Err("must evaluate to bool".into());
        }
        let reads = |claim: &str| about == About::Claims && ast.selects("claims", claim);
        let (email, email_verified) = (reads("email"), reads("email_verified"));
        let program = ast.program().map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(Expression { text: text.to_owned(), email, email_verified, program })
    }

    /// The value of the expression.
    pub(super) fn evaluate<'a>(&'a self, input: &'a Input) -> Result<Value<'a>, String> {
        let variable = Value::from_json(&input.value, &input.decl).map_err(|error| error.to_string())?;
        let done = self.program.evaluate(&[variable], CALL_LIMIT);
        done.result.map_err(|error| format!("expression '{}' resulted in error: {error}", self.text))
    }
}

/// The claims or the user, as JSON.
pub(super) struct Input {
    value: Json,
    decl: DeclType,
}

impl Input {
    pub(super) fn new(value: Json) -> Input {
        Input { value, decl: DeclType::decoded() }
    }

    /// The claims.
    pub(super) fn claims(&self) -> &serde_json::Map<String, Json> {
        static NONE: LazyLock<serde_json::Map<String, Json>> = LazyLock::new(serde_json::Map::new);
        self.value.as_object().unwrap_or(&NONE)
    }
}

/// The strings that a value stands for: one or several, without empty ones.
pub(super) fn strings(value: &Value<'_>) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "expression must return a string or a list of strings";
    let mut found = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.to_string()],
        Value::List(list) => {
            let text = |item: Result<Value<'_>, _>| match item {
                Ok(Value::String(text)) => Ok(text.to_string()),
                _ => Err(WRONG),
            };
            list.iter().map(text).collect::<Result<Vec<_>, _>>()?
        }
        _ => return Err(WRONG),
    };
    found.retain(|text| !text.is_empty());
    Ok(found)
}
