//! The webhook authorizer: asks another server, with a `SubjectAccessReview`, and remembers the answers.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use k1s_env::{Env, Instant};
use k1s_kinds::expressions::{AccessConditions, Matched};
use k1s_object::{Status, selector::Operator};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::{
    authorization::{AuthorizationWebhook, ReviewVersion},
    authz::{Attributes, Decision, Target},
    identity::User,
    webhook::{CallError, KubeconfigClient},
};

/// Maximum number of answers that are remembered; beyond it, those that are no longer valid are dropped, and then all.
const MAX_REMEMBERED: usize = 8192;
/// Maximum length of what a sender controls in a request whose answer is remembered.
const MAX_CONTROLLED: usize = 10_000;
/// Attempts of a call that fails for a while, and the first pause between them; each is half as long again.
const ATTEMPTS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The extra attribute of the user that names the tenant of a request, unless it is the default one: the same name is another
/// user there.
const TENANT: &str = "k1s.dev/tenant";

/// An authorizer that asks a webhook.
#[derive(Debug)]
pub(crate) struct Webhook {
    options: AuthorizationWebhook,
    client: KubeconfigClient,
    conditions: AccessConditions,
    remembered: Mutex<HashMap<String, (Instant, Answer)>>,
}

#[derive(Debug, Clone)]
struct Answer {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl Webhook {
    /// Loads the kubeconfig, and compiles the conditions.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn new(options: &AuthorizationWebhook) -> Result<Webhook, String> {
        let mut conditions = AccessConditions::default();
        for text in &options.conditions {
            conditions.add(text).map_err(|why| format!("{}: {why}", options.name))?;
        }
        let client = KubeconfigClient::load(&options.kubeconfig)?;
        Ok(Webhook { options: options.clone(), client, conditions, remembered: Mutex::default() })
    }

    /// What the webhook says. `tenant`: the name of the tenant, unless it is the default one.
    pub(crate) async fn authorize(
        &self,
        env: &Env,
        tenant: Option<&str>,
        user: &User,
        wanted: &Attributes<'_>,
    ) -> Decision {
        let spec = spec(tenant, user, wanted);
        match self.conditions.matches(&for_conditions(&spec)) {
            Matched::Yes => {}
            Matched::No => return Decision::default(),
            Matched::Failed(why) => return self.failed(&why),
        }
        let key = spec.to_string();
        if let Some((until, answer)) = self.remembered.lock().get(&key)
            && env.now() < *until
        {
            return answer.clone().into();
        }
        let answer = match self.ask(env, spec).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(webhook = self.options.name, %error, "could not ask an authorization webhook");
                return self.failed(&error.to_string());
            }
        };
        let ttl = if answer.allowed { self.options.authorized_ttl } else { self.options.unauthorized_ttl };
        if !ttl.is_zero() && controlled(wanted) < MAX_CONTROLLED {
            self.remember(env, key, ttl, answer.clone());
        }
        answer.into()
    }

    /// The decision when the webhook cannot be asked.
    fn failed(&self, why: &str) -> Decision {
        Decision {
            denied: self.options.deny_on_failure,
            failure: Some(Status::internal(why)),
            ..Decision::default()
        }
    }

    fn remember(&self, env: &Env, key: String, ttl: Duration, answer: Answer) {
        let now = env.now();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
            if remembered.len() >= MAX_REMEMBERED {
                remembered.clear();
            }
        }
        remembered.insert(key, (now + ttl, answer));
    }

    async fn ask(&self, env: &Env, spec: Value) -> Result<Answer, CallError> {
        let (version, spec) = match self.options.version {
            ReviewVersion::V1 => ("v1", spec),
            ReviewVersion::V1Beta1 => ("v1beta1", for_v1beta1(spec)),
        };
        let review = json!({"kind": "SubjectAccessReview",
            "apiVersion": format!("authorization.k8s.io/{version}"),
            "metadata": {}, "spec": spec, "status": {"allowed": false}});
        let body = Bytes::from(review.to_string());
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.client.post(env, body.clone(), self.options.timeout).await {
                Ok(answer) => return read(&answer, version),
                Err(error) if attempt < ATTEMPTS && is_passing(&error) => {
                    env.sleep(pause).await;
                    pause = pause * 3 / 2;
                }
                Err(error) => return Err(error),
            }
        }
        Err(CallError::Failed("there was no attempt".into()))
    }
}

/// Whether the same call may succeed soon.
fn is_passing(error: &CallError) -> bool {
    match error {
        CallError::Answered { code, .. } => matches!(code, 429 | 500 | 504),
        CallError::Failed(why) => why.ends_with("connection reset by peer") || why.ends_with("EOF"),
        CallError::Unresolved { .. } => false,
    }
}

fn read(answer: &[u8], version: &str) -> Result<Answer, CallError> {
    let wrong =
        |why: &str| CallError::Failed(format!("the answer of the webhook is no SubjectAccessReview: {why}"));
    let review: Value = serde_json::from_slice(answer).map_err(|why| wrong(&why.to_string()))?;
    let (kind, found) = (&review["kind"], &review["apiVersion"]);
    let named = !kind.is_null() || !found.is_null();
    if named && (kind != "SubjectAccessReview" || *found != *format!("authorization.k8s.io/{version}")) {
        return Err(wrong(&format!("it is of kind {kind} and version {found}")));
    }
    let status = &review["status"];
    Ok(Answer {
        allowed: status["allowed"] == true,
        denied: status["denied"] == true,
        reason: status["reason"].as_str().unwrap_or_default().to_owned(),
    })
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Decision {
        let Answer { allowed, denied, reason } = answer;
        let both = "webhook subject access review returned both allow and deny response";
        Decision {
            allowed: allowed && !denied,
            denied,
            reason: reason.into(),
            failure: (allowed && denied).then(|| Status::internal(both)),
            newest: None,
        }
    }
}

/// The length of what a sender controls.
fn controlled(wanted: &Attributes<'_>) -> usize {
    let target = match wanted.target {
        Target::Path(path) => path.len(),
        Target::Resource { group, resource, subresource, namespace, name } => {
            group.len() + resource.len() + subresource.len() + namespace.len() + name.len()
        }
    };
    wanted.verb.as_str().len() + target
}

/// The `spec` of a review; strings that are empty are left out, as in Go.
fn spec(tenant: Option<&str>, user: &User, wanted: &Attributes<'_>) -> Value {
    let mut spec = Map::new();
    let mut add = |field: &str, value: Value| {
        let is_empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !is_empty {
            spec.insert(field.to_owned(), value);
        }
    };
    let verb = wanted.verb.as_str();
    match wanted.target {
        Target::Path(path) => add("nonResourceAttributes", json!({"path": path, "verb": verb})),
        Target::Resource { group, resource, subresource, namespace, name } => {
            let mut attributes = Map::new();
            for (field, text) in [
                ("namespace", namespace),
                ("verb", verb),
                ("group", group),
                ("version", wanted.version),
                ("resource", resource),
                ("subresource", subresource),
                ("name", name),
            ] {
                if !text.is_empty() {
                    attributes.insert(field.to_owned(), text.into());
                }
            }
            let (fields, labels) = selectors(wanted);
            for (field, requirements) in [("fieldSelector", fields), ("labelSelector", labels)] {
                if !requirements.is_empty() {
                    attributes.insert(field.to_owned(), json!({ "requirements": requirements }));
                }
            }
            add("resourceAttributes", attributes.into());
        }
    }
    add("user", user.name.as_str().into());
    add("groups", user.groups.clone().into());
    let mut extra: Map<String, Value> =
        user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into())).collect();
    extra.remove(TENANT);
    if let Some(tenant) = tenant {
        extra.insert(TENANT.to_owned(), vec![tenant].into());
    }
    add("extra", extra.into());
    add("uid", user.uid.as_str().into());
    spec.into()
}

/// The requirements of field and label selectors.
fn selectors(wanted: &Attributes<'_>) -> (Vec<Value>, Vec<Value>) {
    let fields = wanted.selection.field_requirements().into_iter().map(|one| {
        let operator = if one.negated { "NotIn" } else { "In" };
        json!({"key": one.field, "operator": operator, "values": [one.value]})
    });
    let labels = wanted.selection.label_requirements();
    let labels = labels.iter().filter_map(|one| {
        let operator = match one.operator() {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            // It only narrows the request.
            _ => return None,
        };
        let mut requirement = json!({"key": one.key(), "operator": operator});
        if !one.values().is_empty() {
            requirement["values"] = one.values().to_vec().into();
        }
        Some(requirement)
    });
    (fields.collect(), labels.collect())
}

/// In version v1beta1, groups are called `group`.
fn for_v1beta1(spec: Value) -> Value {
    let Value::Object(spec) = spec else { return spec };
    let renamed = spec.into_iter().map(|(key, value)| match key.as_str() {
        "groups" => ("group".to_owned(), value),
        _ => (key, value),
    });
    Value::Object(renamed.collect())
}

/// The spec as conditions see it: with every attribute, also empty ones.
fn for_conditions(spec: &Value) -> Value {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let mut full = json!({
        "user": text(spec, "user"),
        "uid": text(spec, "uid"),
        "groups": spec["groups"].as_array().cloned().unwrap_or_default(),
        "extra": spec["extra"].as_object().cloned().unwrap_or_default(),
    });
    let of = &spec["resourceAttributes"];
    if of.is_object() {
        let mut attributes = Map::new();
        for field in ["namespace", "verb", "group", "version", "resource", "subresource", "name"] {
            attributes.insert(field.to_owned(), text(of, field).into());
        }
        for field in ["fieldSelector", "labelSelector"] {
            if of[field].is_object() {
                attributes.insert(field.to_owned(), of[field].clone());
            }
        }
        full["resourceAttributes"] = attributes.into();
    }
    let of = &spec["nonResourceAttributes"];
    if of.is_object() {
        full["nonResourceAttributes"] = json!({"path": text(of, "path"), "verb": text(of, "verb")});
    }
    full
}
