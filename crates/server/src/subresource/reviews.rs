//! Reviews: kinds whose create returns an answer, and which are never stored.

use http::Response;
use k1s_kinds::rules::{authentication, authorization};
use k1s_object::{
    Status,
    field::Check,
    selector::{FieldRequirement, FieldSelector, LabelRequirement, LabelSelector, Operator},
};
use serde_json::{Map, Value, json};

use crate::{
    auth::{self, Refusal},
    authz::{Attributes, Selection, Target},
    body::Body,
    bootstrap,
    context::Cx,
    errors::{Error, aggregate},
    identity::User,
    input, managed,
    objectmeta::metadata_mut,
    request::Verb,
    respond, write,
};

/// Answers a review.
pub(super) async fn create(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = cx.write_options("CreateOptions")?;
    let mut review = input::object(cx, options.field_validation)?;
    if !cx.resource.namespaced {
        metadata_mut(&mut review).shift_remove("namespace");
    }
    write::check_namespace(cx, &mut review)?;
    managed::on_create(cx, &mut review);
    managed::expand(&mut review);
    cx.resource.finish(&mut review);
    let status = match &*cx.resource.kind {
        "TokenReview" => {
            authentication::validate_token_review(&review)?;
            token(cx, &review["spec"]).await?
        }
        "SelfSubjectReview" => {
            let stamp = crate::time::stamp(cx.tenant.env());
            review = json!({"metadata": {"creationTimestamp": stamp}});
            let User { name, uid, groups, extra } = &cx.user;
            authentication::self_subject_review(name, uid, groups, extra)
        }
        "SelfSubjectRulesReview" => {
            authorization::validate_self_subject_rules_review(&review)?;
            let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
            bootstrap::ensure_policy(&cx.tenant).await?;
            let allowed = cx.tenant.shared.authorizer.rules(&cx.tenant, &cx.user, namespace).await;
            review = json!({"metadata": {}, "spec": {}});
            let mut status = json!({"resourceRules": allowed.resources, "nonResourceRules": allowed.paths,
                "incomplete": allowed.incomplete});
            if !allowed.error.is_empty() {
                status["evaluationError"] = allowed.error.into();
            }
            status
        }
        "SelfSubjectAccessReview" => {
            validate(&review, authorization::validate_self_subject_access_review)?;
            access(cx, &cx.user, &review["spec"]).await?
        }
        "SubjectAccessReview" => {
            validate(&review, authorization::validate_subject_access_review)?;
            access(cx, &subject(&review["spec"]), &review["spec"]).await?
        }
        "LocalSubjectAccessReview" => {
            validate(&review, authorization::validate_local_subject_access_review)?;
            access(cx, &subject(&review["spec"]), &review["spec"]).await?
        }
        _ => return Err(Status::method_not_allowed().into()),
    };
    let mut answer = Map::new();
    answer.insert("kind".into(), cx.resource.kind.as_str().into());
    answer.insert("apiVersion".into(), cx.resource.api_version.as_str().into());
    if let Value::Object(review) = review {
        answer.extend(review.into_iter().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion")));
    }
    answer.insert("status".into(), status);
    Ok(respond::object(cx, 201, &Value::Object(answer))?)
}

fn validate(review: &Value, rule: fn(k1s_object::field::At<'_, '_>)) -> Result<(), Error> {
    let check = Check::new();
    rule(check.root(review));
    match check.take() {
        errors if errors.is_empty() => Ok(()),
        errors => Err(authorization::invalid_access_review(&errors).into()),
    }
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a token is valid, and its user.
async fn token(cx: &Cx, spec: &Value) -> Result<Value, Error> {
    let wanted = texts(&spec["audiences"]);
    let header = format!("Bearer {}", text(spec, "token"));
    let Some(token) = auth::bearer_token(&header) else { return Ok(json!({"user": {}})) };
    let shared = &cx.tenant.shared;
    let wanted = (!wanted.is_empty()).then_some(&*wanted);
    match auth::authenticate(shared, Some(&cx.tenant), token, wanted).await {
        Ok((user, audiences)) => {
            let info = authentication::self_subject_review(&user.name, &user.uid, &user.groups, &user.extra);
            Ok(json!({"authenticated": true, "user": info["userInfo"], "audiences": audiences}))
        }
        Err(Refusal::Rejected(why)) => {
            let errors = [vec!["invalid bearer token".to_owned()], why].concat();
            Ok(json!({"user": {}, "error": aggregate(&errors)}))
        }
        Err(Refusal::Failed(status)) => Err(status.into()),
    }
}

/// The subject of an access review.
fn subject(spec: &Value) -> User {
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

/// Whether a user may perform an action.
async fn access(cx: &Cx, user: &User, spec: &Value) -> Result<Value, Error> {
    bootstrap::ensure_policy(&cx.tenant).await?;
    let resource = &spec["resourceAttributes"];
    let (asked, target) = if resource.is_null() {
        let path = &spec["nonResourceAttributes"];
        (path, Target::Path(text(path, "path")))
    } else {
        let [group, name, subresource, namespace, object] =
            ["group", "resource", "subresource", "namespace", "name"].map(|field| text(resource, field));
        (resource, Target::Resource { group, resource: name, subresource, namespace, name: object })
    };
    let (fields, labels) = (field_requirements(resource), label_requirements(resource));
    let wanted = Attributes {
        version: text(resource, "version"),
        selection: Selection::Required { fields: &fields, labels: &labels },
        ..Attributes::new(Verb::named(text(asked, "verb")), target)
    };
    let decision = cx.tenant.shared.authorizer.authorize(Some(&cx.tenant), user, &wanted).await;
    let mut status = json!({"allowed": decision.allowed});
    if decision.denied {
        status["denied"] = true.into();
    }
    let problems = [decision.problem(), selector_errors(resource)];
    let problems: Vec<String> = problems.into_iter().filter(|problem| !problem.is_empty()).collect();
    for (field, text) in [("reason", &*decision.reason), ("evaluationError", &problems.join("; "))] {
        if !text.is_empty() {
            status[field] = text.into();
        }
    }
    Ok(status)
}

/// What the fields of the objects in question are; what cannot be parsed is ignored.
fn field_requirements(resource: &Value) -> Vec<FieldRequirement> {
    let selector = &resource["fieldSelector"];
    let sent = FieldSelector::parse(text(selector, "rawSelector")).unwrap_or_default();
    let list = selector["requirements"].as_array().into_iter().flatten().filter_map(|one| {
        let negated = match text(one, "operator") {
            "In" => false,
            "NotIn" => true,
            _ => return None,
        };
        let [value] = one["values"].as_array()?.as_slice() else { return None };
        let value = value.as_str()?.to_owned();
        Some(FieldRequirement { field: text(one, "key").to_owned(), value, negated })
    });
    sent.requirements().iter().cloned().chain(list).collect()
}

/// The same for labels.
fn label_requirements(resource: &Value) -> Vec<LabelRequirement> {
    let selector = &resource["labelSelector"];
    let sent = LabelSelector::parse(text(selector, "rawSelector")).unwrap_or_default();
    let list = selector["requirements"].as_array().into_iter().flatten().filter_map(|one| {
        let operator = match text(one, "operator") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        LabelRequirement::new(text(one, "key"), operator, texts(&one["values"])).ok()
    });
    sent.requirements().iter().cloned().chain(list).collect()
}

/// The message about selectors that cannot be parsed and are ignored.
fn selector_errors(resource: &Value) -> String {
    let requirements = |selector: &Value| selector["requirements"].as_array().cloned().unwrap_or_default();
    let fields = &resource["fieldSelector"];
    let field = |one: &Value| {
        matches!(text(one, "operator"), "In" | "NotIn")
            && one["values"].as_array().is_some_and(|all| all.len() == 1)
    };
    let labels = &resource["labelSelector"];
    let label = |one: &Value| {
        let none = one["values"].as_array().is_none_or(Vec::is_empty);
        match text(one, "operator") {
            "In" | "NotIn" => !none,
            "Exists" | "DoesNotExist" => none,
            _ => false,
        }
    };
    let said = [
        (
            "fieldSelector",
            FieldSelector::parse(text(fields, "rawSelector")).is_ok(),
            requirements(fields),
            &field as &dyn Fn(&Value) -> bool,
        ),
        (
            "labelSelector",
            LabelSelector::parse(text(labels, "rawSelector")).is_ok(),
            requirements(labels),
            &label,
        ),
    ]
    .into_iter()
    .filter_map(|(name, parses, requirements, understood)| {
        let good = requirements.iter().filter(|one| understood(one)).count();
        let how = match good {
            _ if parses && good == requirements.len() => return None,
            0 => "ignored",
            _ => "partially ignored",
        };
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    said.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_that_cannot_be_parsed_are_reported() {
        let requirement =
            |operator: &str, values: &[&str]| json!({"key": "a", "operator": operator, "values": values});
        let cases = [
            (
                json!({"fieldSelector": {"rawSelector": "metadata.name=a"}, "labelSelector": {"rawSelector": "a in (b)"}}),
                "",
            ),
            (
                json!({"fieldSelector": {"rawSelector": "a"}}),
                "spec.resourceAttributes.fieldSelector ignored due to parse error",
            ),
            (
                json!({"fieldSelector": {"requirements": [requirement("In", &["b"]), requirement("Exists", &[])]},
                    "labelSelector": {"requirements": [requirement("Nope", &["b"])]}}),
                "spec.resourceAttributes.fieldSelector partially ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error",
            ),
        ];
        for (resource, expected) in cases {
            assert_eq!(selector_errors(&resource), expected, "{resource}");
        }
    }
}
