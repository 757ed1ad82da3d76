//! `serviceaccounts/{name}/token`: issues tokens of service accounts.

use http::Response;
use jiff::SignedDuration;
use k1s_kinds::rules::authentication;
use k1s_object::{
    Status,
    gvk::{GroupVersion, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    admission::Admission,
    auth::{self, Bound, Grant},
    body::Body,
    context::Cx,
    errors::Error,
    hooks::Operation,
    identity::ObjectRef,
    input, managed,
    objectmeta::{meta_text, metadata_mut},
    respond, write,
};

const GROUP: &str = "authentication.k8s.io";

/// The lifetime that a kubelet requests by default. Clients that never reload a token would fail after an hour, so such
/// tokens live longer and state when they should have been refreshed.
const WARN_ONLY_SECONDS: i64 = 60 * 60 + 7;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Answers a `TokenRequest`.
pub(super) async fn create(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = cx.write_options("CreateOptions")?;
    let expected = GroupVersionKind::new(GROUP, "v1", "TokenRequest");
    let mut request = input::other(cx, expected, options.field_validation)?;
    (k1s_kinds::rules::rules(GROUP, "v1", "TokenRequest").defaults)(&mut request);
    write::check_namespace(cx, &mut request)?;
    managed::on_answer(
        cx,
        input::body_type(expected)?,
        "authentication.k8s.io/v1",
        expected.kind,
        &mut request,
    );
    let mut admission = Admission::begin_own(cx, Operation::Create, expected, options.dry_run).await?;
    admission.admit_own(&mut request, None).await?;
    authentication::validate_token_request_names(&request, &cx.namespace, &cx.name)?;
    let account = auth::find(&cx.tenant, "serviceaccounts", &cx.namespace, &cx.name).await?;
    let account = account.ok_or_else(|| cx.not_found())?;
    let (sent, uid) = (meta_text(&request, "uid").to_owned(), meta_text(&account, "uid"));
    if !sent.is_empty() && sent != uid {
        let why = format!(
            "the UID in the token request ({sent}) does not match the UID of the service account ({uid})"
        );
        return Err(Status::conflict(GROUP, "TokenRequest", &cx.name, why).into());
    }
    authentication::check_token_request(&request)?;
    let own = auth::audiences(&cx.tenant.shared);
    let asked: Vec<String> = texts(&request["spec"]["audiences"]);
    let audiences = if asked.is_empty() { own.to_vec() } else { asked };
    let bound = match request["spec"].get("boundObjectRef").filter(|bound| !bound.is_null()) {
        Some(reference) => Some(bind(cx, reference).await?),
        None => None,
    };
    let options = &cx.tenant.options().authentication.service_accounts;
    let asked = request["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
    let seconds = match options.max_expiration.and_then(|max| i64::try_from(max.as_secs()).ok()) {
        Some(max) if asked > max => {
            cx.warn(format!("requested expiration of {asked} seconds shortened to {max} seconds"));
            max
        }
        _ => asked,
    };
    let ours = audiences.iter().all(|audience| own.contains(audience));
    let extended = options.extend_expiration
        && matches!(bound, Some(Bound::Pod(..)))
        && seconds == WARN_ONLY_SECONDS
        && ours;
    let now = crate::time::now(cx.tenant.env());
    let grant = Grant {
        namespace: &cx.namespace,
        account: ObjectRef::to(&account),
        audiences: audiences.clone(),
        bound,
        seconds: if extended { EXTENDED_SECONDS } else { seconds },
        warn_after: extended.then_some(seconds),
    };
    let (token, id) = auth::issue(&cx.tenant, grant).await?;
    cx.audit(|trail| trail.annotate("authentication.kubernetes.io/issued-credential-id", id));
    let expires = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    let meta = metadata_mut(&mut request);
    meta.insert("name".into(), cx.name.as_str().into());
    meta.insert("uid".into(), uid.into());
    meta.insert("creationTimestamp".into(), crate::time::format(now).into());
    let reference = request["spec"]["boundObjectRef"].take();
    let answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": request["metadata"].take(),
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
        "status": {"token": token, "expirationTimestamp": crate::time::format(expires)},
    });
    Ok(respond::other(cx, 201, &answer)?)
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The object to bind a token to, which must exist.
async fn bind(cx: &Cx, reference: &Value) -> Result<Bound, Error> {
    let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version, name) = (text("kind"), text("apiVersion"), text("name"));
    // As in Kubernetes, a malformed apiVersion counts as an empty one.
    let GroupVersion { group, version } = GroupVersion::parse(api_version).unwrap_or_default();
    let tenant = &cx.tenant;
    let get = async |plural: &str, namespace: &str| {
        let found = auth::find(tenant, plural, namespace, name).await?;
        found.ok_or_else(|| Status::not_found("", plural, name))
    };
    let (object, bound) = match (group, kind) {
        ("", "Pod") => {
            let pod = get("pods", &cx.namespace).await?;
            if pod["spec"]["serviceAccountName"] != *cx.name {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                    cx.name
                )).into());
            }
            let on = match pod["spec"]["nodeName"].as_str().unwrap_or_default() {
                "" => None,
                node => {
                    let found = auth::find(tenant, "nodes", "", node).await?;
                    Some(found.map_or_else(|| ObjectRef::named(node), |node| ObjectRef::to(&node)))
                }
            };
            let bound = Bound::Pod(ObjectRef::to(&pod), on);
            (pod, bound)
        }
        ("", "Node") => {
            let node = get("nodes", "").await?;
            let bound = Bound::Node(ObjectRef::to(&node));
            (node, bound)
        }
        ("", "Secret") => {
            let secret = get("secrets", &cx.namespace).await?;
            let bound = Bound::Secret(ObjectRef::to(&secret));
            (secret, bound)
        }
        _ => {
            let webhook = matches!(kind, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
                && api_version == "admissionregistration.k8s.io/v1";
            let note = match webhook {
                true => " (feature gate APIServerWebhookAuthenticationToken is disabled)",
                false => "",
            };
            let what = format!("cannot bind token to object of type {group}/{version}, Kind={kind}{note}");
            return Err(Status::bad_request(what).into());
        }
    };
    let (sent, uid) = (text("uid"), meta_text(&object, "uid"));
    if !sent.is_empty() && sent != uid {
        let why = format!(
            "the UID in the bound object reference ({sent}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(group, kind, name, why).into());
    }
    Ok(bound)
}
