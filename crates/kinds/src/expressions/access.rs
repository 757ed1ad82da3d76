//! Match conditions of authorization webhooks: whether a `SubjectAccessReview` is one that a webhook is asked about.

use std::sync::LazyLock;

use k1s_cel::{DeclType, Env, EvalError, ListType, Program, Type, Value, Variables};
use serde_json::Value as Json;

use super::{
    compile::Fault,
    conditions::{Matched, unique},
    environment::{object, strings},
};

/// What one expression may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// The match conditions of an authorization webhook.
#[derive(Debug, Default)]
pub struct AccessConditions {
    programs: Vec<(String, Program)>,
}

impl AccessConditions {
    /// Compiles an expression and adds it.
    ///
    /// # Errors
    /// Why it is refused, in upstream's words.
    pub fn add(&mut self, text: &str) -> Result<(), Fault> {
        let ast =
            environment().compile(text).map_err(|error| Fault(format!("compilation failed: {error}")))?;
        let found = ast.output_type();
        if !matches!(found, Type::Bool) {
            return Err(Fault(format!("must evaluate to bool but got {found}")));
        }
        let program = ast.program().map_err(|why| Fault(format!("program instantiation failed: {why}")))?;
        self.programs.push((text.to_owned(), program));
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Evaluates them all with the `spec` of a review: one that does not hold excludes it, even if others fail.
    pub fn matches(&self, spec: &Json) -> Matched {
        let mut failures: Vec<String> = Vec::new();
        for (text, program) in &self.programs {
            match program.evaluate(&Request(spec), CALL_LIMIT).result {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Matched::No,
                Ok(_) => failures.push(format!(
                    "cel evaluation error: expression '{text}' eval result type should be bool"
                )),
                Err(error) => failures
                    .push(format!("cel evaluation error: expression '{text}' resulted in error: {error}")),
            }
        }
        match failures.as_slice() {
            [] => Matched::Yes,
            [one] => Matched::Failed(one.clone()),
            many => Matched::Failed(format!("[{}]", unique(many).join(", "))),
        }
    }
}

struct Request<'a>(&'a Json);

impl<'a> Variables<'a> for Request<'a> {
    fn get(&self, _: usize, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        (name == "request").then(|| Ok(Value::from_untyped(self.0)))
    }
}

fn environment() -> &'static Env {
    static ENVIRONMENT: LazyLock<Env> =
        LazyLock::new(|| Env::kubernetes().extend().variable("request", spec().cel().clone()).build());
    &ENVIRONMENT
}

/// `SubjectAccessReviewSpec`
fn spec() -> DeclType {
    let text = &DeclType::string(u64::MAX);
    let requirement = object(
        "kubernetes.SelectorRequirement",
        &[("key", text), ("operator", text), ("values", &strings())],
    );
    let requirements = &DeclType::list(requirement, u64::MAX, ListType::Atomic);
    let selector = |name: &str| object(name, &[("rawSelector", text), ("requirements", requirements)]);
    let resource = &object(
        "kubernetes.ResourceAttributes",
        &[
            ("namespace", text),
            ("verb", text),
            ("group", text),
            ("version", text),
            ("resource", text),
            ("subresource", text),
            ("name", text),
            ("fieldSelector", &selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", &selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let path = &object("kubernetes.NonResourceAttributes", &[("path", text), ("verb", text)]);
    object(
        "kubernetes.SubjectAccessReviewSpec",
        &[
            ("resourceAttributes", resource),
            ("nonResourceAttributes", path),
            ("user", text),
            ("groups", &strings()),
            ("extra", &DeclType::map(strings(), u64::MAX)),
            ("uid", text),
        ],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conditions(texts: &[&str]) -> AccessConditions {
        let mut conditions = AccessConditions::default();
        for text in texts {
            conditions.add(text).unwrap();
        }
        conditions
    }

    #[test]
    fn conditions_decide_as_in_kubernetes() {
        let spec = json!({"user": "alice", "groups": ["devs"], "uid": "", "extra": {"k": ["v"]},
            "resourceAttributes": {"namespace": "ns", "verb": "list", "group": "", "version": "v1",
                "resource": "pods", "subresource": "", "name": "",
                "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}});
        let cases: [(&[&str], Matched); 6] = [
            (&[], Matched::Yes),
            (&["request.user == 'alice'", "'devs' in request.groups"], Matched::Yes),
            (&["has(request.resourceAttributes) && request.resourceAttributes.verb == 'get'"], Matched::No),
            (&["request.resourceAttributes.fieldSelector.requirements[0].values == ['b']"], Matched::Yes),
            (&["request.extra['k'] == ['v']"], Matched::Yes),
            // One that does not hold counts more than one that fails.
            (&["request.nonResourceAttributes.path == '/x'", "request.user == 'bob'"], Matched::No),
        ];
        for (texts, expected) in cases {
            assert_eq!(conditions(texts).matches(&spec), expected, "{texts:?}");
        }
        let Matched::Failed(why) = conditions(&["request.nonResourceAttributes.path == '/x'"]).matches(&spec)
        else {
            panic!()
        };
        assert!(why.contains("no such key: nonResourceAttributes"), "{why}");
    }

    #[test]
    fn expressions_are_refused_as_in_kubernetes() {
        let fault = |text: &str| AccessConditions::default().add(text).unwrap_err().0;
        assert_eq!(fault("request.user"), "must evaluate to bool but got string");
        assert!(
            fault("request.nope == 1").contains("undefined field 'nope'"),
            "{}",
            fault("request.nope == 1")
        );
        assert!(fault("object == 1").contains("undeclared reference to 'object'"));
    }
}
