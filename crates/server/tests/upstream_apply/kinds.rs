//! All kinds with a status: who owns what after applies to the object and to its status.

use std::sync::Arc;

use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::MemoryStore;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Outcome,
    cases::{entries, install},
    common::{self, Client},
};

/// The namespace of the objects, as in upstream's data.
const NAMESPACE: &str = "statusnamespace";

/// Kinds that nothing can conflict about, so that upstream's test skips its last step.
const NO_CONFLICTS: &[&str] =
    &["certificatesigningrequests", "storageversions", "servicecidrs", "namespaces"];

/// What upstream's tests write of a kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    group: String,
    version: String,
    resource: String,
    /// An object.
    stub: Map<String, Value>,
    /// Fields of a spec that differs; it replaces top-level fields one by one, as Go's decoder does.
    mutated: Option<Map<String, Value>>,
    status: Option<Map<String, Value>>,
    mutated_status: Option<Map<String, Value>>,
    /// Objects that have to exist before.
    #[serde(default)]
    before: Vec<Kind>,
}

/// A kind as the server serves it.
struct Served {
    kind: String,
    path: String,
    status: bool,
}

impl Kind {
    fn name(&self) -> &str {
        self.stub["metadata"]["name"].as_str().unwrap()
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn status(&self) -> Map<String, Value> {
        self.status.clone().unwrap_or_else(|| condition("True"))
    }

    fn mutated_status(&self) -> Map<String, Value> {
        self.mutated_status.clone().unwrap_or_else(|| condition("False"))
    }

    /// The kind in discovery; none if it is not served.
    async fn served(&self, client: &Client) -> Option<Served> {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let root = format!("{root}/{}", self.api_version());
        let answer = client.send("GET", &root, &[], "").await;
        let list = if answer.status == 200 { answer.json() } else { return None };
        let resources = list["resources"].as_array()?;
        let resource = resources.iter().find(|one| one["name"] == self.resource.as_str())?;
        let namespace = match resource["namespaced"].as_bool() {
            Some(true) => format!("/namespaces/{NAMESPACE}"),
            _ => String::new(),
        };
        let has = |verb: &str| resource["verbs"].as_array().unwrap().iter().any(|one| one == verb);
        let status = resources.iter().any(|one| one["name"] == format!("{}/status", self.resource));
        Some(Served {
            kind: resource["kind"].as_str().unwrap().to_owned(),
            path: format!("{root}{namespace}/{}/{}", self.resource, self.name()),
            status: status && has("patch") && has("get") && has("update"),
        })
    }

    fn object(&self, served: &Served, parts: &[&Map<String, Value>]) -> Value {
        let mut object = json!({"apiVersion": self.api_version(), "kind": served.kind});
        for part in parts {
            merge(object.as_object_mut().unwrap(), part);
        }
        object["metadata"]["name"] = self.name().into();
        object
    }
}

fn condition(status: &str) -> Map<String, Value> {
    let status = json!({"status": {"conditions": [{"type": "MyStatus", "status": status,
        "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": "MyReason", "message": "some message"}]}});
    status.as_object().unwrap().clone()
}

/// Go decodes into a map that is there by adding and replacing its top-level fields only.
fn merge(object: &mut Map<String, Value>, part: &Map<String, Value>) {
    object.extend(part.iter().map(|(name, value)| (name.clone(), value.clone())));
}

async fn apply(client: &Client, path: &str, manager: &str, force: bool, object: &Value) -> (u16, Value) {
    let path = format!("{path}?fieldManager={manager}&force={force}");
    let headers = [("content-type", "application/apply-patch+yaml")];
    let answer = client.send("PATCH", &path, &headers, object.to_string()).await;
    (answer.status, answer.json())
}

/// A server with its namespace and its definitions, and all kinds of upstream's data that there are here.
async fn all(client: Client) -> (Client, Vec<(Kind, Served)>) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    client.post("/api/v1/namespaces", namespace).await;
    install(&client, &pandas()).await.unwrap();
    let kinds: Vec<Kind> = serde_json::from_str(include_str!("cases/kinds.json")).unwrap();
    let mut all = Vec::new();
    for kind in kinds {
        let Some(served) = kind.served(&client).await else { continue };
        for before in &kind.before {
            let served = before.served(&client).await.expect("a kind that another needs");
            let object = before.object(&served, &[&before.stub]);
            expect(apply(&client, &served.path, "before", true, &object).await).unwrap();
        }
        all.push((kind, served));
    }
    (client, all)
}

/// The same, but only kinds with a status.
async fn with_status() -> (Client, Vec<(Kind, Served)>) {
    let (client, _clock) = common::simulated(ServerOptions::default()).await;
    let (client, mut kinds) = all(client).await;
    kinds.retain(|(_, served)| served.status);
    (client, kinds)
}

/// The custom kind with a status among upstream's definitions.
fn pandas() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pandas.awesome.bears.com"},
        "spec": {"group": "awesome.bears.com", "scope": "Cluster", "names": {"plural": "pandas", "kind": "Panda"},
            "versions": [version("v1", true), version("v3", false)]}})
}

fn title(test: &str, kind: &Kind) -> String {
    format!("{test}/{}/{}", kind.api_version(), kind.resource)
}

/// What was applied is applied again, and is then replaced by itself, which validates it: the answers are the same.
pub(crate) async fn again() -> Vec<(String, Outcome)> {
    // Without controllers, nobody else writes.
    let env = Env::system();
    let server = common::bare(&env, Arc::new(MemoryStore::default()), ServerOptions::default()).await;
    let (client, kinds) = all(Client { server, env }).await;
    let mut outcomes = Vec::new();
    for (kind, served) in &kinds {
        let outcome = async {
            // Some have fields that their kind does not have: they are created, and what is there is applied.
            let (collection, _) = served.path.rsplit_once('/').unwrap();
            let mut object =
                expect(client.call("POST", collection, kind.object(served, &[&kind.stub])).await)?;
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| name != "managedFields" && name != "resourceVersion");
            object.as_object_mut().unwrap().remove("status");
            expect(apply(&client, &served.path, "again", true, &object).await)?;
            let before = client.get(&served.path).await;
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            let path = format!("{}?fieldManager=again", served.path);
            let send = async |method: &str, content: &str, body: &Value| {
                let answer = client.send(method, &path, &[("content-type", content)], body.to_string()).await;
                let warnings = answer.headers.get_all("warning").iter().map(|text| text.to_str().unwrap());
                (answer.status, answer.json(), warnings.map(str::to_owned).collect::<Vec<_>>())
            };
            let applied = send("PATCH", "application/apply-patch+yaml", &object).await;
            let replaced = send("PUT", "application/json", &before).await;
            if applied != replaced || applied.0 != 200 || applied.1 != before {
                return Err(format!("applied {applied:?}\nreplaced {replaced:?}\nof {before}"));
            }
            delete(&client, &served.path).await
        };
        outcomes.push((title("again", kind), outcome.await));
    }
    outcomes
}

/// `TestApplyStatus`: both managers have an entry.
pub(crate) async fn status() -> Vec<(String, Outcome)> {
    let (client, kinds) = with_status().await;
    let mut outcomes = Vec::new();
    // Both spec and status of a request for a certificate are wiped: upstream skips it, too.
    for (kind, served) in kinds.iter().filter(|(kind, _)| kind.resource != "certificatesigningrequests") {
        let outcome = async {
            let object = kind.object(served, &[&kind.stub]);
            expect(apply(&client, &served.path, "create_test", false, &object).await)?;
            let status = kind.object(served, &[&kind.status()]);
            let path = format!("{}/status", served.path);
            let answer = expect(apply(&client, &path, "apply_status_test", true, &status).await)?;
            for manager in ["create_test", "apply_status_test"] {
                if !entries(&answer).iter().any(|entry| entry["manager"] == manager) {
                    return Err(format!("{manager} is not among the managers: {answer}"));
                }
            }
            delete(&client, &served.path).await
        };
        outcomes.push((title("TestApplyStatus", kind), outcome.await));
    }
    outcomes
}

/// `TestApplyResetFields`: an apply of the object owns nothing of its status, and one of its status nothing of its spec.
pub(crate) async fn reset_fields() -> Vec<(String, Outcome)> {
    let (client, kinds) = with_status().await;
    let mut outcomes = Vec::new();
    for (kind, served) in &kinds {
        let Some(mutated) = &kind.mutated else { continue };
        let outcome = async {
            let first = kind.object(served, &[&kind.stub, &kind.status()]);
            expect(apply(&client, &served.path, "fieldmanager1", false, &first).await)?;
            let mut second = kind.object(served, &[&kind.stub, &kind.mutated_status()]);
            merge(second.as_object_mut().unwrap(), mutated);
            second["metadata"]["name"] = kind.name().into();
            let path = format!("{}/status", served.path);
            expect(apply(&client, &path, "fieldmanager2", false, &second).await)?;
            if !NO_CONFLICTS.contains(&kind.resource.as_str()) {
                let (code, answer) = apply(&client, &served.path, "fieldmanager2", false, &second).await;
                let message = answer["message"].as_str().unwrap_or_default();
                if code < 300 || !message.contains("conflict") {
                    return Err(format!("no conflict, but {code}: {answer}"));
                }
            }
            delete(&client, &served.path).await
        };
        outcomes.push((title("TestApplyResetFields", kind), outcome.await));
    }
    outcomes
}

fn expect((code, answer): (u16, Value)) -> Result<Value, String> {
    if code < 300 { Ok(answer) } else { Err(format!("{code}: {answer}")) }
}

async fn delete(client: &Client, path: &str) -> Outcome {
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    expect(client.call("DELETE", path, now).await).map(drop)
}
