//! Which webhooks are called for a request.

use std::sync::Arc;

use k1s_cel::Work;
use k1s_kinds::expressions::{Evaluator, Input, Matched};
use k1s_object::{Status, selector::LabelSelector};
use serde_json::Value;

use super::Views;
use crate::{
    admission::{Admission, Attributes, namespace_of, questions::Questions, stored_namespace},
    controllers,
    errors::Error,
    hooks::{self, GROUP, Hooks, Match, Matches, Operation, Request},
    metrics::policies::Held,
};

/// The webhooks whose rules match a request; `None` if there are none.
pub(in crate::admission) async fn find(a: &Attributes<'_>) -> Result<Option<Arc<Matches>>, Error> {
    if a.cx.own || is_exempt(a) {
        return Ok(None);
    }
    let tenant = &a.cx.tenant;
    let hooks = tenant.hooks().await?;
    if hooks.is_empty() {
        return Ok(None);
    }
    let request = Request { operation: a.operation, resource: &a.cx.resource, subresource: a.subresource() };
    let matches = match hooks.known(&request) {
        Some(matches) => matches,
        None => {
            let customs = tenant.customs.current(tenant).await?;
            let served = tenant.shared.catalog.all().iter().chain(customs.resources());
            hooks.look_up(&request, &hooks::equivalents(&a.cx.resource, a.subresource(), served))
        }
    };
    let matches = in_namespace(a, &hooks, matches).await?;
    Ok(Some(matches).filter(|matches| !matches.is_empty()))
}

/// Leaves out what is for other namespaces.
async fn in_namespace(
    a: &Attributes<'_>,
    hooks: &Hooks,
    matches: Arc<Matches>,
) -> Result<Arc<Matches>, Error> {
    // The labels of a namespace that is written are those of the object.
    if !matches.are_by_namespace() || a.namespace.is_empty() || is_namespace(a) {
        return Ok(matches);
    }
    match stored_namespace(a).await? {
        Some((_, stored)) => Ok(hooks.in_namespace(matches, &a.namespace, &stored)),
        // Selectors report it.
        None => Ok(matches),
    }
}

/// Whether the request is for a Namespace.
fn is_namespace(a: &Attributes<'_>) -> bool {
    a.resource().plural == "namespaces" && a.resource().group.is_empty()
}

/// Whether no webhook sees a request: webhooks could make the control plane unrepairable otherwise.
fn is_exempt(a: &Attributes<'_>) -> bool {
    let resource = a.resource();
    match &*resource.group {
        // Configurations and policies can always be corrected. Reviews decide about access.
        GROUP | "authentication.k8s.io" | "authorization.k8s.io" => true,
        // By this Lease, the servers over one store elect whose controllers run.
        "coordination.k8s.io" => {
            resource.plural == "leases" && controllers::is_controllers_lease(&a.cx.namespace, &a.name)
        }
        _ => false,
    }
}

/// Whether a webhook, whose rules match the request, is called for this object.
pub(super) async fn is_called(
    admission: &mut Admission<'_>,
    (one, step): (&Match, &'static str),
    views: &mut Views,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, Error> {
    let hook = &one.hook;
    if !selects(admission, [&hook.namespaces, &hook.objects], object, old).await? {
        return Ok(false);
    }
    holds(admission, (one, step), views, object, old).await
}

/// A selector, or why it cannot be read.
type Selector = Result<LabelSelector, String>;

/// Whether the selectors of a webhook or a policy select this object.
pub(in crate::admission) async fn selects(
    admission: &mut Admission<'_>,
    [namespaces, objects]: [&Selector; 2],
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, Error> {
    let selects = selects_namespace(admission, namespaces, object).await;
    if matches!(selects, Ok(false)) {
        return Ok(false);
    }
    match objects {
        Ok(selector) if !selects_object(selector, object) && !selects_object(selector, old) => {
            return Ok(false);
        }
        Ok(_) => {}
        Err(why) => {
            selects?;
            return Err(Status::internal(why).into());
        }
    }
    selects
}

fn selects_object(selector: &LabelSelector, object: Option<&Value>) -> bool {
    if selector.is_empty() {
        return true;
    }
    // Bodies without metadata, such as the options of a connection, have no labels.
    let metadata = object.and_then(|object| object.get("metadata"));
    metadata.is_some_and(|metadata| selector.matches_labels(metadata.get("labels")))
}

/// Whether the namespace of the request is selected. Objects outside of namespaces always are, except namespaces.
async fn selects_namespace(
    admission: &mut Admission<'_>,
    selector: &Selector,
    object: Option<&Value>,
) -> Result<bool, Error> {
    let a = &admission.attributes;
    let is_namespace = is_namespace(a);
    if a.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = match selector {
        Ok(selector) if selector.is_empty() => return Ok(true),
        Ok(selector) => selector,
        Err(why) => return Err(Status::internal(why).into()),
    };
    // The labels that a namespace is about to have.
    let writes = matches!(a.operation, Operation::Create | Operation::Update);
    if is_namespace
        && writes
        && a.subresource().is_empty()
        && let Some(object) = object
    {
        return Ok(selector.matches_labels(object["metadata"].get("labels")));
    }
    if admission.webhooks.labels.is_none() {
        admission.webhooks.labels = Some(namespace_labels(&admission.attributes).await?);
    }
    Ok(selector.matches_labels(admission.webhooks.labels.as_ref()))
}

async fn namespace_labels(a: &Attributes<'_>) -> Result<Value, Error> {
    let (namespaces, stored) = namespace_of(a).await?;
    let mut metadata = stored.metadata().map_err(|why| namespaces.unreadable(&a.namespace, &why))?;
    Ok(metadata["labels"].take())
}

/// Whether the `matchConditions` of a webhook hold.
async fn holds(
    admission: &mut Admission<'_>,
    (one, step): (&Match, &'static str),
    views: &mut Views,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, Error> {
    if one.hook.conditions().is_none() {
        return Ok(true);
    }
    let a = &admission.attributes;
    views.show(a, &one.resource, object, old).await?;
    let (object, old) = views.in_version(&one.resource);
    let request = super::request(a, &one.resource);
    let questions = Questions::new(a);
    let input = Input {
        object: object.unwrap_or(&Value::Null),
        old_object: old.unwrap_or(&Value::Null),
        request: &request,
        params: &Value::Null,
        namespace: &Value::Null,
        authorizer: Some(questions.values()),
    };
    let hook = one.hook.clone();
    let evaluate = move |input: Input<'_>, work: &Work| match hook.conditions() {
        Some((compiler, conditions)) => conditions.matches(&Evaluator::new(compiler, input, work)),
        None => Matched::Yes,
    };
    let env = a.cx.tenant.env();
    let began = env.now();
    let allowance = &mut admission.allowance;
    let matched = questions.evaluate(a, allowance, input, evaluate).await?;
    let held = match &matched {
        Matched::Yes => Held::Yes,
        Matched::No => Held::No,
        Matched::Failed(_) => Held::Failed,
    };
    let metrics = &a.cx.tenant.shared.metrics.policies;
    metrics.conditions(&one.hook.name, ["webhook", step], a.operation, held, env.now() - began);
    match matched {
        Matched::Yes => Ok(true),
        Matched::No => Ok(false),
        Matched::Failed(_) if one.hook.ignores_failure && !allowance.is_exhausted() => Ok(false),
        Matched::Failed(why) => {
            Err(Status::forbidden(&a.resource().group, &a.resource().plural, &a.name, why).into())
        }
    }
}
