//! Cases that are a list of requests, and what runs them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k1s_env::{Env, VirtualClock};
use k1s_server::ServerOptions;
use k1s_store::{MemoryOptions, MemoryStore};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Outcome,
    common::{self, Client},
    limited::Limited,
};

pub(crate) const FILES: &[(&str, &str)] = &[
    ("apply_crd_beta_test.go", include_str!("cases/apply_crd_beta_test.json")),
    ("apply_crd_test.go", include_str!("cases/apply_crd_test.json")),
    ("apply_test.go", include_str!("cases/apply_test.json")),
    ("scale_test.go", include_str!("cases/scale_test.json")),
];

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    steps: Vec<Step>,
}

/// A request, or a wait.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// `apply`, `merge`, `strategic`, `json`, `put`, `post`, `get`; `install`: POST of a definition; `wait`.
    #[serde(rename = "do")]
    action: String,
    #[serde(default)]
    path: String,
    manager: Option<String>,
    /// The user whom the administrator impersonates.
    #[serde(rename = "as")]
    user: Option<String>,
    #[serde(default)]
    force: bool,
    /// Text is sent as it is: YAML, or JSON with errors that YAML allows.
    #[serde(default)]
    body: Value,
    /// The saved answer that is sent as the body, with these fields changed.
    of: Option<String>,
    #[serde(default)]
    edit: Vec<(String, Value)>,
    /// The code of the failure that upstream's test expects.
    fails: Option<u16>,
    /// How many causes the failure has.
    causes: Option<usize>,
    /// What the failure's message contains.
    says: Option<String>,
    /// The name under which the answer is kept.
    save: Option<String>,
    /// Pointers into the answer and what has to be there: see `holds`.
    #[serde(default)]
    check: Map<String, Value>,
    #[serde(default)]
    millis: u64,
}

pub(crate) fn read(text: &str) -> Vec<Case> {
    serde_json::from_str(text).unwrap()
}

/// Runs a case on a server of its own.
pub(crate) async fn run(case: &Case) -> Outcome {
    let (env, clock) = Env::simulated(7);
    let store = Limited(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = common::server_with(&env, Arc::new(store), ServerOptions::default()).await;
    let client = Client { server, env };
    let mut saved = BTreeMap::new();
    for (number, step) in case.steps.iter().enumerate() {
        let done = play(&client, &clock, step, &mut saved).await;
        done.map_err(|why| format!("step {}, {} {}: {why}", number + 1, step.action, step.path))?;
    }
    Ok(())
}

async fn play(
    client: &Client,
    clock: &VirtualClock,
    step: &Step,
    saved: &mut BTreeMap<String, Value>,
) -> Outcome {
    let method = match step.action.as_str() {
        "wait" => {
            clock.advance_and_settle(Duration::from_millis(step.millis)).await;
            return Ok(());
        }
        "install" => return install(client, &step.body).await,
        "get" => "GET",
        "put" => "PUT",
        "post" => "POST",
        _ => "PATCH",
    };
    let mut query = Vec::new();
    if let Some(manager) = &step.manager {
        query.push(format!("fieldManager={manager}"));
    }
    if step.force {
        query.push("force=true".to_owned());
    }
    let path = format!("{}?{}", step.path, query.join("&"));
    let body = match &step.of {
        None => expand(step.body.clone()),
        Some(name) => edited(&saved[name], &step.edit),
    };
    let text = body.is_string();
    let body = match body {
        Value::Null => String::new(),
        Value::String(text) => text,
        value => value.to_string(),
    };
    let content_type = match step.action.as_str() {
        "apply" => "application/apply-patch+yaml",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "json" => "application/json-patch+json",
        _ if text => "application/yaml",
        _ => "application/json",
    };
    let mut headers = vec![("content-type", content_type)];
    headers.extend(step.user.as_deref().map(|user| ("impersonate-user", user)));
    let answer = client.send(method, &path, &headers, body).await;
    let (code, answer) = (answer.status, answer.json());
    match step.fails {
        None if code >= 300 => return Err(format!("{code}: {answer}")),
        Some(expected) if code != expected => return Err(format!("{code} instead of {expected}: {answer}")),
        _ => {}
    }
    if let Some(causes) = step.causes {
        let listed = answer["details"]["causes"].as_array().map_or(0, Vec::len);
        same(&listed.into(), &causes.into(), "the number of causes")?;
    }
    if let Some(says) = &step.says
        && !answer["message"].as_str().unwrap_or_default().contains(says.as_str())
    {
        return Err(format!("the message does not name {says}: {answer}"));
    }
    for (pointer, expected) in &step.check {
        holds(&answer, pointer, expected, saved)?;
    }
    if let Some(name) = &step.save {
        saved.insert(name.clone(), answer);
    }
    Ok(())
}

/// Creates a definition and waits until its kind is served.
pub(crate) async fn install(client: &Client, definition: &Value) -> Outcome {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = client.call("POST", DEFINITIONS, definition.clone()).await;
    if code != 201 {
        return Err(format!("{code}: {answer}"));
    }
    let path = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    common::eventually("the definition is established", async || {
        let conditions = client.get(&path).await["status"]["conditions"].clone();
        let established = json!({"type": "Established", "status": "True"});
        conditions.as_array().is_some_and(|all| {
            all.iter().any(|one| one["type"] == established["type"] && one["status"] == established["status"])
        })
    })
    .await;
    Ok(())
}

/// `{"$keys": n}` stands for n long keys.
fn expand(mut body: Value) -> Value {
    match &mut body {
        Value::Object(fields) => {
            if let Some(count) = fields.get("$keys").and_then(Value::as_u64) {
                let name = "this-key-is-very-long-so-as-to-create-a-very-large-serialized-fieldset";
                return (0..count)
                    .map(|number| (format!("{name}-{number}"), json!("A")))
                    .collect::<Map<_, _>>()
                    .into();
            }
            for value in fields.values_mut() {
                *value = expand(value.take());
            }
            body
        }
        _ => body,
    }
}

/// A copy with other values; `*` stands for all items of a list, null removes a field.
fn edited(object: &Value, edits: &[(String, Value)]) -> Value {
    fn set(at: &mut Value, path: &[&str], value: &Value) {
        match (path, at) {
            (["*", rest @ ..], Value::Array(items)) => {
                items.iter_mut().for_each(|item| set(item, rest, value))
            }
            ([last], Value::Object(fields)) if value.is_null() => drop(fields.remove(*last)),
            ([last], Value::Object(fields)) => drop(fields.insert((*last).to_owned(), value.clone())),
            ([first, rest @ ..], Value::Object(fields)) => {
                set(fields.entry(*first).or_insert_with(|| json!({})), rest, value);
            }
            ([first, rest @ ..], Value::Array(items)) => {
                set(&mut items[first.parse::<usize>().unwrap()], rest, value)
            }
            (path, at) => panic!("nothing at {path:?} in {at}"),
        }
    }
    let mut object = object.clone();
    for (pointer, value) in edits {
        set(&mut object, &pointer.split('/').skip(1).collect::<Vec<_>>(), &expand(value.clone()));
    }
    object
}

/// Whether an answer has at a pointer what is expected: a value, or
///
/// - `$len`: so many items or fields; `$none`: nothing
/// - `$same`, `$other`: what the saved answer has there, or not; `$differs`: not what it has at that pointer
/// - `$entries`: these managers, but for their times; `$same_entries`: those of a saved answer, with their times
///
/// `POINTER of MANAGER` are the entries of a manager; `$owners of FIELD` names the managers of a field of the spec.
fn holds(answer: &Value, pointer: &str, expected: &Value, saved: &BTreeMap<String, Value>) -> Outcome {
    if let Some(field) = pointer.strip_prefix("$owners of ") {
        let mut owners: Vec<&str> = entries(answer)
            .iter()
            .filter(|entry| entry["fieldsV1"]["f:spec"].get(field).is_some())
            .map(|entry| entry["manager"].as_str().unwrap())
            .collect();
        owners.sort_unstable();
        return same(&json!(owners), expected, pointer);
    }
    let (path, manager) =
        pointer.split_once(" of ").map_or((pointer, None), |(path, name)| (path, Some(name)));
    let found = |answer: &Value| match manager {
        Some(name) => {
            Some(entries(answer).iter().filter(|entry| entry["manager"] == name).cloned().collect())
        }
        None => answer.pointer(path).cloned(),
    };
    let value = found(answer).unwrap_or_default();
    let special = expected
        .as_object()
        .and_then(|fields| fields.iter().next())
        .filter(|(name, _)| name.starts_with('$'));
    match special.map(|(name, argument)| (name.as_str(), argument)) {
        None => same(&value, expected, pointer),
        Some(("$len", count)) => {
            let length = value.as_array().map_or(value.as_object().map_or(0, Map::len), Vec::len);
            same(&length.into(), count, pointer).map_err(|why| format!("{why}\n{value}"))
        }
        Some(("$none", _)) => same(&value, &Value::Null, pointer),
        Some(("$same" | "$same_entries", name)) => {
            same(&value, &found(&saved[name.as_str().unwrap()]).unwrap_or_default(), pointer)
        }
        Some(("$other", name)) => match found(&saved[name.as_str().unwrap()]) {
            Some(before) if before == value => Err(format!("{pointer} is still {value}")),
            _ => Ok(()),
        },
        Some(("$differs", other)) => match answer.pointer(other.as_str().unwrap()) {
            Some(other) if *other == value => Err(format!("{pointer} is {value}, too")),
            _ => Ok(()),
        },
        Some(("$entries", expected)) => {
            let mut value = value;
            for entry in value.as_array_mut().into_iter().flatten() {
                entry.as_object_mut().unwrap().remove("time");
            }
            same(&value, expected, pointer)
        }
        Some((other, _)) => panic!("no check is named {other}"),
    }
}

/// An answer's managers.
pub(crate) fn entries(answer: &Value) -> &[Value] {
    answer["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

fn same(found: &Value, expected: &Value, what: &str) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, not {expected}")) }
}
