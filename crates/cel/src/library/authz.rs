//! The authorizer of admission: whether the user of the request, or a service account, may do something else.
//!
//! The answer comes from the caller, through [`Authorize`], at once: an evaluation does not wait.

use std::sync::Arc;

use super::{opaque, text, wrap};
use crate::{
    cost::{CallEstimate, CallNodes, CostEstimate, LIST, OBJECT, STRING_FACTOR, scaled},
    error::EvalError,
    function::{Call, Cost, Estimate, Function, Overload},
    types::Type,
    value::{Opaque, Value},
};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The user of the request.
    Requester,
    /// A service account: namespace and name.
    ServiceAccount(String, String),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A request for a path that is no resource.
    Path {
        /// The path.
        path: String,
        /// The verb of HTTP, in lower case.
        verb: String,
    },
    /// A request for a resource, in any version.
    Resource(ResourceAction),
}

/// A request for a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAction {
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name, or nothing.
    pub name: String,
    /// The text of a field selector, or nothing.
    pub field_selector: String,
    /// The text of a label selector, or nothing.
    pub label_selector: String,
    /// The verb.
    pub verb: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// Who answers.
pub trait Authorize: std::fmt::Debug + Send + Sync {
    /// Whether a subject may do something. This is called during an evaluation, which waits for the answer.
    fn authorize(&self, subject: &Subject, action: &Action) -> Decision;
}

/// The value of the variable `authorizer`.
pub fn authorizer(authorize: Arc<dyn Authorize>) -> Value<'static> {
    wrap(Authorizer { authorize, subject: Subject::Requester })
}

/// The value of the variable `authorizer.requestResource`: a check of the resource of the request.
pub fn request_resource(authorize: Arc<dyn Authorize>, action: ResourceAction) -> Value<'static> {
    wrap(ResourceCheck { by: Authorizer { authorize, subject: Subject::Requester }, action })
}

/// The types of the two variables: of `authorizer`, and of `authorizer.requestResource`.
pub fn types() -> [Type; 2] {
    [Type::opaque(AUTHORIZER), Type::opaque(RESOURCE_CHECK)]
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

#[derive(Clone, Debug)]
struct Authorizer {
    authorize: Arc<dyn Authorize>,
    subject: Subject,
}

impl PartialEq for Authorizer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.authorize, &other.authorize) && self.subject == other.subject
    }
}

#[derive(Clone, Debug, PartialEq)]
struct PathCheck {
    by: Authorizer,
    path: String,
}

#[derive(Clone, Debug, PartialEq)]
struct GroupCheck {
    by: Authorizer,
    group: String,
}

#[derive(Clone, Debug, PartialEq)]
struct ResourceCheck {
    by: Authorizer,
    action: ResourceAction,
}

macro_rules! opaque_type {
    ($ty:ty, $name:expr) => {
        impl Opaque for $ty {
            fn type_name(&self) -> &str {
                $name
            }

            fn equals(&self, other: &dyn Opaque) -> bool {
                other.downcast::<Self>() == Some(self)
            }

            fn equality_cost(&self) -> Option<u64> {
                Some(1)
            }
        }
    };
}

opaque_type!(Authorizer, AUTHORIZER);
opaque_type!(PathCheck, PATH_CHECK);
opaque_type!(GroupCheck, GROUP_CHECK);
opaque_type!(ResourceCheck, RESOURCE_CHECK);
opaque_type!(Decision, DECISION);

type Outcome<'a> = Result<Value<'a>, EvalError>;

fn path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (by, path) = (opaque::<Authorizer>(args, 0)?.clone(), text(args, 1)?);
    if path.trim().is_empty() {
        return Err(EvalError::new("path must not be empty"));
    }
    Ok(wrap(PathCheck { by, path: path.to_owned() }))
}

fn group<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(wrap(GroupCheck { by: opaque::<Authorizer>(args, 0)?.clone(), group: text(args, 1)?.to_owned() }))
}

fn service_account<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let by = opaque::<Authorizer>(args, 0)?.clone();
    let (namespace, name) = (text(args, 1)?, text(args, 2)?);
    if !is_subdomain(name) {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !is_label(namespace) {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    let subject = Subject::ServiceAccount(namespace.to_owned(), name.to_owned());
    Ok(wrap(Authorizer { subject, ..by }))
}

/// Whether a text has only lower-case letters, digits and dashes, the last not at its ends.
fn is_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (GroupCheck { by, group }, resource) = (opaque::<GroupCheck>(args, 0)?.clone(), text(args, 1)?);
    if resource.trim().is_empty() {
        return Err(EvalError::new("resource must not be empty"));
    }
    let action = ResourceAction { group, resource: resource.to_owned(), ..ResourceAction::default() };
    Ok(wrap(ResourceCheck { by, action }))
}

/// The check with another part.
fn with<'a>(args: &[Value<'a>], part: fn(&mut ResourceAction) -> &mut String) -> Outcome<'a> {
    let mut check = opaque::<ResourceCheck>(args, 0)?.clone();
    text(args, 1)?.clone_into(part(&mut check.action));
    Ok(wrap(check))
}

fn check_path<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (PathCheck { by, path }, verb) = (opaque::<PathCheck>(args, 0)?.clone(), text(args, 1)?.to_owned());
    Ok(wrap(by.authorize.authorize(&by.subject, &Action::Path { path, verb })))
}

fn check_resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let ResourceCheck { by, mut action } = opaque::<ResourceCheck>(args, 0)?.clone();
    text(args, 1)?.clone_into(&mut action.verb);
    Ok(wrap(by.authorize.authorize(&by.subject, &Action::Resource(action))))
}

/// A fixed cost.
const ONE: (Estimate, Cost) = (|_| Some(CallEstimate::new(CostEstimate::fixed(1))), |_, _| Some(1));
/// At most two checks fit an expression.
const CHECK: (Estimate, Cost) =
    (|_| Some(CallEstimate::new(CostEstimate::fixed(350_000))), |_, _| Some(350_000));
/// Reading a selector, and its requirements: each has at least two characters.
const SELECTOR: (Estimate, Cost) = (estimate_selector, |args, _| Some(selector_cost(args.get(1)?.size())));

fn selector_cost(length: u64) -> u64 {
    let requirements = scaled(length, 0.5);
    LIST.saturating_add(scaled(length, STRING_FACTOR))
        .saturating_add(scaled(requirements, (LIST + OBJECT) as f64))
}

fn estimate_selector(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let length = nodes.size(nodes.args().first()?);
    Some(CallEstimate::new(CostEstimate::range(selector_cost(length.min), selector_cost(length.max))))
}

pub(super) fn functions() -> Vec<Function> {
    let [authorizer, resource_check] = types();
    let (path_check, group_check) = (Type::opaque(PATH_CHECK), Type::opaque(GROUP_CHECK));
    let decision = || Type::opaque(DECISION);
    let texts = |of: &Type, count: usize| {
        std::iter::once(of.clone()).chain(std::iter::repeat_n(Type::String, count)).collect::<Vec<_>>()
    };
    let one = |name, id, of: &Type, count, result: Type, call: Call, cost: (Estimate, Cost)| {
        Function::new(
            name,
            vec![Overload::member(id, texts(of, count), result, call).with_cost(cost.0, cost.1)],
        )
    };
    let part = |name, id, call: Call| one(name, id, &resource_check, 1, resource_check.clone(), call, ONE);
    let selector =
        |name, id, call: Call| one(name, id, &resource_check, 1, resource_check.clone(), call, SELECTOR);
    let of_decision = |name, id, result, call: Call| one(name, id, &decision(), 0, result, call, ONE);
    vec![
        one("path", "authorizer_path", &authorizer, 1, path_check.clone(), path, ONE),
        one("group", "authorizer_group", &authorizer, 1, group_check.clone(), group, ONE),
        one(
            "serviceAccount",
            "authorizer_serviceaccount",
            &authorizer,
            2,
            authorizer.clone(),
            service_account,
            ONE,
        ),
        one("resource", "groupcheck_resource", &group_check, 1, resource_check.clone(), resource, ONE),
        part("subresource", "resourcecheck_subresource", |args| with(args, |action| &mut action.subresource)),
        part("namespace", "resourcecheck_namespace", |args| with(args, |action| &mut action.namespace)),
        part("name", "resourcecheck_name", |args| with(args, |action| &mut action.name)),
        selector("fieldSelector", "authorizer_fieldselector", |args| {
            with(args, |action| &mut action.field_selector)
        }),
        selector("labelSelector", "authorizer_labelselector", |args| {
            with(args, |action| &mut action.label_selector)
        }),
        one("check", "pathcheck_check", &path_check, 1, decision(), check_path, CHECK),
        one("check", "resourcecheck_check", &resource_check, 1, decision(), check_resource, CHECK),
        of_decision("errored", "decision_errored", Type::Bool, |args| {
            Ok(Value::Bool(opaque::<Decision>(args, 0)?.error.is_some()))
        }),
        of_decision("error", "decision_error", Type::String, |args| {
            Ok(opaque::<Decision>(args, 0)?.error.clone().unwrap_or_default().into())
        }),
        of_decision("allowed", "decision_allowed", Type::Bool, |args| {
            Ok(Value::Bool(opaque::<Decision>(args, 0)?.allowed))
        }),
        of_decision("reason", "decision_reason", Type::String, |args| {
            Ok(opaque::<Decision>(args, 0)?.reason.clone().into())
        }),
    ]
}
