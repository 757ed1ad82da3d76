//! Applies objects and custom resource definitions to a server, embedded or not.

use std::{collections::BTreeSet, fmt, time::Duration};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use k1s_object::yaml;
use k1s_runtime::{
    Client, ObjectKey,
    client::{
        ApplyConfiguration, ApplyOptions, CreateOptions, Error, KindClient, ListOptions, WatchEvent,
        WatchOptions,
    },
    util::{Backoff, OperationResult, retry_on_error},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, api::DynamicObject};
use serde_json::Value;

/// The field manager of [`apply`] and [`install`], unless the client has a field owner.
pub const FIELD_MANAGER: &str = "k1s";

/// Timeout for a definition to be established.
const ESTABLISHED: Duration = Duration::from_secs(60);

/// Other servers take some time between "established" and listing the kind in discovery.
const DISCOVERY: Backoff = Backoff {
    initial: Duration::from_millis(50),
    factor: 2.0,
    jitter: 0.1,
    steps: 8,
    cap: Duration::from_secs(2),
};

/// The result for one object. Displayed as `configmap default/hello created`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Whether it was created, updated or unchanged.
    pub result: OperationResult,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind.to_lowercase(), self.key, self.result)
    }
}

/// Why a text could not be applied. The documents before the failing one have been applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// A document is not valid YAML or JSON, or not an object.
    #[error("document {number} (line {line}): {reason}")]
    Unreadable {
        /// The document's number, from 1.
        number: usize,
        /// The line it starts at.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The server rejected the request, or could not be reached.
    #[error("{object}: {error}")]
    Refused {
        /// Which object.
        object: String,
        /// Why.
        error: Box<Error>,
    },
    /// The names of a definition are taken by another one.
    #[error("customresourcedefinition {name}: {reason}")]
    NotAccepted {
        /// The definition.
        name: String,
        /// The server's message.
        reason: String,
    },
    /// A definition was accepted, but is not served.
    #[error("customresourcedefinition {name} was not established within {after:?}")]
    NotEstablished {
        /// The definition.
        name: String,
        /// How long it was waited for.
        after: Duration,
    },
}

/// Applies every object of a YAML or JSON text (server-side apply): creates it, or updates the fields that the text has.
///
/// The text is a stream of documents; a `List` stands for its items. Objects of namespaced kinds without a
/// namespace go to the client's default one. It waits for custom resource definitions to be served, so objects of
/// their kinds can follow.
///
/// A second application removes the fields that the text had before and does not have any more. Fields that
/// others have set are kept, and fields that the text has, too, are taken over from others: a text is what its author
/// wants, as with `kubectl apply --server-side --force-conflicts`. [`apply_with`] has the choice. The field manager is the
/// client's field owner or, without one, [`FIELD_MANAGER`].
///
/// # Errors
/// Of the first document that cannot be parsed (then nothing is applied) or applied (then the rest is not).
pub async fn apply(client: &Client, text: &str) -> Result<Vec<Applied>, ApplyError> {
    apply_with(client, text, ApplyOptions::forced()).await
}

/// [`apply`] with options: as another field manager, as a dry run, or not forced. Then a field that another manager owns
/// and that has another value in the text is an error, with its
/// [`apply_conflicts`](k1s_runtime::client::Error::apply_conflicts).
///
/// # Errors
/// As [`apply`].
pub async fn apply_with(
    client: &Client,
    text: &str,
    options: impl Into<ApplyOptions>,
) -> Result<Vec<Applied>, ApplyError> {
    let objects = documents(text)?;
    let (client, options) = (with_owner(client), options.into());
    let mut defined = BTreeSet::new();
    let mut done = Vec::with_capacity(objects.len());
    for object in objects {
        done.push(apply_one(&client, object, &options, &mut defined).await?);
    }
    Ok(done)
}

/// Applies a custom resource definition, as [`apply`] does, and waits until it is served.
///
/// # Errors
/// If the definition is rejected, its names are taken, or it is not served within a minute.
pub async fn install<K: CustomResourceExt>(client: &Client) -> Result<(), ApplyError> {
    let refused = |error: serde_json::Error| ApplyError::Refused {
        object: format!("customresourcedefinition {}", K::crd_name()),
        error: Box::new(Error::Other(error.into())),
    };
    // Without optional fields that have no value: as nulls, they would be owned.
    let crd = ApplyConfiguration::of(&K::crd()).into_value();
    let crd: DynamicObject = serde_json::from_value(crd).map_err(refused)?;
    let (client, options) = (with_owner(client), ApplyOptions::forced());
    apply_one(&client, crd, &options, &mut BTreeSet::new()).await.map(drop)
}

/// A client that has a field owner.
fn with_owner(client: &Client) -> Client {
    match client.field_owner() {
        Some(_) => client.clone(),
        None => client.with_field_owner(FIELD_MANAGER),
    }
}

/// The objects of a YAML or JSON text.
///
/// # Errors
/// Of the first document that is not an object.
pub fn documents(text: &str) -> Result<Vec<DynamicObject>, ApplyError> {
    let typed = |(at, value)| {
        let Place { number, line } = at;
        serde_json::from_value(value).map_err(|error| ApplyError::Unreadable {
            number,
            line,
            reason: format!("not a Kubernetes object: {error}"),
        })
    };
    located(text)?.into_iter().map(typed).collect()
}

/// The objects of a YAML or JSON text as JSON, with all of their fields as they are in the text.
///
/// # Errors
/// As [`documents`].
pub fn values(text: &str) -> Result<Vec<Value>, ApplyError> {
    Ok(located(text)?.into_iter().map(|(_, value)| value).collect())
}

/// Where a document is in a text.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: usize,
    line: usize,
}

fn located(text: &str) -> Result<Vec<(Place, Value)>, ApplyError> {
    let mut objects = Vec::new();
    for (index, (line, document)) in split(text).into_iter().enumerate() {
        let at = Place { number: index + 1, line };
        let unreadable = |reason: String| ApplyError::Unreadable { number: at.number, line, reason };
        let decoded = yaml::decode(document.as_bytes()).map_err(|error| unreadable(error.to_string()))?;
        if let Some(error) = decoded.duplicates_error() {
            return Err(unreadable(error.to_string()));
        }
        let values = match decoded.value {
            Value::Null => continue,
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                match list.remove("items") {
                    Some(Value::Array(items)) => items,
                    _ => return Err(unreadable("a List without items".to_owned())),
                }
            }
            value => vec![value],
        };
        for value in values {
            if !value.is_object() {
                return Err(unreadable("not a Kubernetes object".to_owned()));
            }
            let has =
                |path: &str| value.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            if !has("/apiVersion") || !has("/kind") {
                return Err(unreadable("an object needs apiVersion and kind".to_owned()));
            }
            if !has("/metadata/name") && !has("/metadata/generateName") {
                return Err(unreadable("an object needs metadata.name".to_owned()));
            }
            objects.push((at, value));
        }
    }
    Ok(objects)
}

/// The documents of a stream, with the lines they start at. A marker at the start of a line always separates
/// documents: YAML allows it nowhere else.
fn split(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(1, String::new())];
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let rest = line
            .strip_prefix("---")
            .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        let begins = rest.is_some() || line.trim_end() == "...";
        if begins {
            documents.push((index + 1, String::new()));
        }
        if let (Some((_, document)), text) =
            (documents.last_mut(), if begins { rest.unwrap_or_default() } else { line })
        {
            document.push_str(text);
        }
    }
    documents.retain(|(_, document)| !document.trim().is_empty());
    documents
}

type GroupKind = (String, String);

/// Boxed: the body of an async function is compiled again in every crate that awaits it.
#[inline(never)]
fn apply_one<'a>(
    client: &'a Client,
    object: DynamicObject,
    options: &'a ApplyOptions,
    defined: &'a mut BTreeSet<GroupKind>,
) -> BoxFuture<'a, Result<Applied, ApplyError>> {
    Box::pin(apply_object(client, object, options, defined))
}

async fn apply_object(
    client: &Client,
    mut object: DynamicObject,
    options: &ApplyOptions,
    defined: &mut BTreeSet<GroupKind>,
) -> Result<Applied, ApplyError> {
    let types = object.types.clone().unwrap_or_default();
    let named = format!("{} {}", types.kind.to_lowercase(), ObjectKey::of(&object));
    let refused = |error: Error| ApplyError::Refused { object: named.clone(), error: Box::new(error) };

    let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
    let is_new = |error: &Error| {
        matches!(error, Error::NoKindMatch { .. })
            && defined.contains(&(group.to_owned(), types.kind.clone()))
    };
    let kind = retry_on_error(client.env(), DISCOVERY, is_new, async || client.dynamic(&object).await)
        .await
        .map_err(refused)?;
    // What is to be compared is on the server; a cache would have to watch the kind first.
    let kind = client.read_past_cache([kind.kind().group_kind()]).kind(kind.kind().clone());
    if object.metadata.namespace.is_none() && kind.is_namespaced().await.map_err(refused)? {
        object.metadata.namespace = Some(client.kube().default_namespace().to_owned());
    }
    let (stored, result) = create_or_apply(&kind, &object, options).await.map_err(refused)?;
    let dry_run = options.dry_run || client.is_dry_run();
    if group == "apiextensions.k8s.io" && types.kind == "CustomResourceDefinition" && !dry_run {
        let text =
            |path: &str| object.data.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        defined.insert((text("/spec/group"), text("/spec/names/kind")));
        established(client, stored.metadata.name.as_deref().unwrap_or_default()).await?;
    }
    Ok(Applied { api_version: types.api_version, kind: types.kind, key: ObjectKey::of(&stored), result })
}

/// Applies the object. One without a name is created, since only an object with a name can be applied.
async fn create_or_apply(
    kind: &KindClient<DynamicObject>,
    object: &DynamicObject,
    options: &ApplyOptions,
) -> Result<(DynamicObject, OperationResult), Error> {
    if object.metadata.name.is_none() {
        let ApplyOptions { field_manager, dry_run, field_validation, .. } = options.clone();
        let options = CreateOptions { dry_run, field_manager, field_validation };
        return Ok((kind.create_with(object, options).await?, OperationResult::Created));
    }
    let whole = serde_json::to_value(object).map_err(|error| Error::Other(error.into()))?;
    // As it is in the text: a kind without the subresource has an ordinary field of the name `status`.
    let mut configuration = ApplyConfiguration::from(whole);
    // A text that was exported from a server has them, and no server accepts them.
    configuration.remove("/metadata/managedFields");
    kind.create_or_apply(&configuration, options.clone()).await
}

/// Waits until a definition is served.
async fn established(client: &Client, name: &str) -> Result<(), ApplyError> {
    let refused = |error: Error| ApplyError::Refused {
        object: format!("customresourcedefinition {name}"),
        error: Box::new(error),
    };
    match client.env().timeout(ESTABLISHED, wait_established(client, name)).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(reason))) => Err(ApplyError::NotAccepted { name: name.to_owned(), reason }),
        Ok(Err(error)) => Err(refused(error)),
        Err(elapsed) => Err(ApplyError::NotEstablished { name: name.to_owned(), after: elapsed.after }),
    }
}

/// `None` when it is served; the reason if its names are taken.
async fn wait_established(client: &Client, name: &str) -> Result<Option<String>, Error> {
    let live = client.live();
    let this = ListOptions::default().matching_fields([("metadata.name", name)])?;
    loop {
        let list = live.list::<CustomResourceDefinition>(this.clone()).await?;
        for crd in &list.items {
            if let Some(outcome) = verdict(crd) {
                return Ok(outcome);
            }
        }
        let mut events =
            live.watch::<CustomResourceDefinition>(WatchOptions::after(&this, list.resource_version)).await?;
        while let Some(event) = events.next().await {
            if let Ok(WatchEvent::Added(crd) | WatchEvent::Modified(crd)) = event
                && let Some(outcome) = verdict(&crd)
            {
                return Ok(outcome);
            }
        }
        // The watch has ended: check again.
    }
}

fn verdict(crd: &CustomResourceDefinition) -> Option<Option<String>> {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is = |type_: &str, status: &str| {
        conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status)
    };
    if let Some(refused) = is("NamesAccepted", "False") {
        return Some(Some(refused.message.clone().unwrap_or_default()));
    }
    is("Established", "True").map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        documents(text).unwrap().iter().map(|object| ObjectKey::of(object).to_string()).collect()
    }

    #[test]
    fn a_text_is_a_stream_of_documents_and_lists() {
        let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        assert_eq!(names(one), ["a"]);
        assert_eq!(names(&format!("---\n{one}---\n\n--- # nothing\n{}...\n", one)), ["a", "a"]);
        assert_eq!(
            names(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"j","namespace":"n"}}"#),
            ["n/j"]
        );
        let list = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n- {apiVersion: v1, kind: Pod, metadata: {name: z}}\n";
        assert_eq!(names(list), ["x", "z"]);
        assert_eq!(names("# only a comment\n"), Vec::<String>::new());
    }

    #[test]
    fn a_marker_inside_a_block_scalar_does_not_separate_documents() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: |\n    ---\n    c\n";
        let objects = documents(text).unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].data["data"]["b"], "---\nc\n");
    }

    #[test]
    fn an_invalid_object_is_rejected_with_its_line() {
        let error = |text: &str| documents(text).unwrap_err().to_string();
        let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        assert_eq!(
            error(&format!("{good}---\n{{name: b}}\n")),
            "document 2 (line 4): an object needs apiVersion and kind"
        );
        assert_eq!(
            error("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"),
            "document 1 (line 1): an object needs metadata.name"
        );
        assert!(error("a: [").starts_with("document 1 (line 1): "), "{}", error("a: ["));
        assert!(
            error("apiVersion: v1\nkind: A\nkind: B\n").contains("already set"),
            "duplicate keys are rejected"
        );
    }
}
