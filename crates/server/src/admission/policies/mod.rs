//! Admission policies: which ones a request matches, their parameters, and what follows from their expressions.

mod mutate;
mod params;
mod patch;
mod validate;

use std::sync::Arc;

use k1s_cel::Work;
use k1s_kinds::expressions::Input;
use k1s_object::Status;
use serde_json::Value;

pub(super) use mutate::{State, mutate};
pub(super) use validate::validate;

use super::{Admission, Allowance, Attributes, namespace_of, questions::Questions, webhooks};
use crate::{
    errors::Error,
    hooks::{Binding, Criteria, Matches, Request},
    resource::Resource,
};

/// The version of the requested resource in which a policy or a binding matches this object.
async fn matched(
    admission: &mut Admission<'_>,
    matches: &Matches,
    criteria: &Criteria,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Arc<Resource>>, String> {
    let selects = webhooks::selects(admission, [&criteria.namespaces, &criteria.objects], object, old).await;
    if matches!(selects, Ok(false)) {
        return Ok(None);
    }
    let a = &admission.attributes;
    let request = Request { operation: a.operation, resource: &a.cx.resource, subresource: a.subresource() };
    let found = criteria.matches(&request, &a.name, &matches.equivalents);
    match (found, selects) {
        (Some(_), Err(why)) => Err(message(why)),
        (found, _) => Ok(found),
    }
}

/// Whether a binding, whose policy matches, matches as well.
async fn is_bound(
    admission: &mut Admission<'_>,
    matches: &Matches,
    binding: &Binding,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, String> {
    match &binding.criteria {
        None => Ok(true),
        Some(criteria) => Ok(matched(admission, matches, criteria, object, old).await?.is_some()),
    }
}

/// The words of an error.
fn message(error: Error) -> String {
    error.into_status().message
}

/// `namespaceObject`: null for what is not in a namespace.
async fn namespace_object(a: &Attributes<'_>) -> Result<Value, Error> {
    if a.namespace.is_empty() || a.is("", "Namespace") {
        return Ok(Value::Null);
    }
    let (namespaces, stored) = namespace_of(a).await?;
    let mut object = namespaces.read(&stored).map_err(|why| namespaces.unreadable(&a.namespace, &why))?;
    // Policies see what is declared, which is less than the object.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata
            .retain(|field, _| !matches!(field.as_str(), "managedFields" | "ownerReferences" | "selfLink"));
    }
    Ok(object)
}

/// What is the same for all policies that match a request in one version.
struct Seen {
    request: Value,
    namespace: Value,
    questions: Questions,
}

impl Seen {
    async fn new(a: &Attributes<'_>, resource: &Resource) -> Result<Seen, Error> {
        let questions = Questions::new(a);
        Ok(Seen { request: webhooks::request(a, resource), namespace: namespace_object(a).await?, questions })
    }

    /// Evaluates expressions with an object and parameters.
    async fn evaluate<T: Send + 'static>(
        &self,
        a: &Attributes<'_>,
        allowance: &mut Allowance,
        [object, old]: [Option<&Value>; 2],
        params: &Value,
        evaluate: impl Fn(Input<'_>, &Work) -> T + Clone + Send + 'static,
    ) -> Result<T, Error> {
        let input = Input {
            object: object.unwrap_or(&Value::Null),
            old_object: old.unwrap_or(&Value::Null),
            request: &self.request,
            params,
            namespace: &self.namespace,
            authorizer: Some(self.questions.values()),
        };
        self.questions.evaluate(a, allowance, input, evaluate).await
    }
}

/// The same by version.
#[derive(Default)]
struct SeenVersions(Vec<(Arc<Resource>, Seen)>);

impl SeenVersions {
    async fn of(&mut self, a: &Attributes<'_>, resource: &Arc<Resource>) -> Result<&Seen, Error> {
        let known =
            |seen: &[(Arc<Resource>, Seen)]| seen.iter().position(|(known, _)| Arc::ptr_eq(known, resource));
        let at = match known(&self.0) {
            Some(at) => at,
            None => {
                self.0.push((resource.clone(), Seen::new(a, resource).await?));
                self.0.len() - 1
            }
        };
        let seen = self.0.get(at).map(|(_, seen)| seen);
        seen.ok_or_else(|| Status::internal("the request of a policy is unknown").into())
    }
}

/// 403 for the object of the request, as admission plugins word it.
fn forbidden(a: &Attributes<'_>, object: Option<&Value>, why: &str) -> Status {
    let meta = |field: &str| {
        object.and_then(|object| object["metadata"][field].as_str()).filter(|text| !text.is_empty())
    };
    let name = match a.name.as_str() {
        "" => meta("name").or_else(|| meta("generateName")).unwrap_or("Unknown"),
        name => name,
    };
    Status::forbidden(&a.resource().group, &a.resource().plural, name, why)
}
