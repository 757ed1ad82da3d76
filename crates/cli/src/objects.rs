//! Which objects a command is about: `TYPE NAME`, `TYPE/NAME`, `TYPE,TYPE -l a=b`, or files.

use clap::Args;
use k1s::env::Env;
use serde_json::Value;

use crate::{
    api::{Api, Error, JSON, Path, Resource, discovery::Resources},
    files::{FileArgs, Item},
    progress::Progress,
    session::Session,
};

/// Objects per request of a list.
const CHUNK: usize = 500;

/// How objects are selected.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ObjectArgs {
    /// `TYPE`, `TYPE NAME…`, `TYPE/NAME…`; several types: `TYPE,TYPE`.
    #[arg(value_name = "TYPE|TYPE/NAME")]
    pub(crate) what: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Only objects with these labels: `app=web,tier!=db,env in (a,b)`.
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Only objects with these fields: `metadata.name=web,status.phase!=Running`.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
}

/// Objects of one resource.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) resource: Resource,
    /// `None`: all that match.
    pub(crate) name: Option<String>,
    pub(crate) namespace: String,
    /// The file that has the object.
    pub(crate) file: Option<Item>,
}

impl Wanted {
    pub(crate) fn path(&self) -> String {
        self.resource.path(&self.namespace, self.name.as_deref().unwrap_or_default())
    }
}

impl ObjectArgs {
    /// The objects, resolved. Nothing is read from the server but its resources.
    pub(crate) fn resolve(&self, session: &Session, resources: &Resources) -> Result<Vec<Wanted>, Error> {
        if !self.files.is_empty() {
            if !self.what.is_empty() {
                return Err(Error::failed("when files are given, no other resources can be"));
            }
            return self.files.load()?.into_iter().map(|item| of_file(session, resources, item)).collect();
        }
        let Some(first) = self.what.first() else {
            return Err(Error::failed(
                "You must specify the type of resource, a name as TYPE/NAME, or a file with -f; `api-resources` lists all types",
            ));
        };
        let pairs: Vec<(&Resource, Option<&str>)> = if first.contains('/') {
            self.what.iter().map(|one| pair(resources, one)).collect::<Result<_, _>>()?
        } else {
            let types = types(resources, first)?;
            let names = &self.what[1..];
            if let Some(name) = names.iter().find(|name| name.contains('/')) {
                return Err(Error::failed(format!(
                    "there is no need to specify a resource type as a separate argument when passing arguments in \
                     resource/name form (e.g. 'get {name}' instead of 'get {first} {name}')"
                )));
            }
            if names.is_empty() {
                types.into_iter().map(|resource| (resource, None)).collect()
            } else {
                let named = |resource| names.iter().map(move |name| (resource, Some(name.as_str())));
                types.into_iter().flat_map(named).collect()
            }
        };
        if pairs.iter().any(|(_, name)| name.is_some()) {
            if self.all_namespaces {
                return Err(Error::failed("a resource cannot be retrieved by name across all namespaces"));
            }
            if self.selector.is_some() || self.field_selector.is_some() {
                return Err(Error::failed("name cannot be provided when a selector is specified"));
            }
        }
        let wanted = |(resource, name): (&Resource, Option<&str>)| Wanted {
            resource: resource.clone(),
            name: name.map(str::to_owned),
            namespace: session.namespace.clone(),
            file: None,
        };
        Ok(pairs.into_iter().map(wanted).collect())
    }

    /// Whether one object is named.
    pub(crate) fn is_of_one(&self) -> bool {
        match &*self.what {
            [one] => one.contains('/'),
            [types, _] => !types.contains(['/', ',']),
            _ => false,
        }
    }

    /// The path of a list.
    pub(crate) fn list_path(&self, wanted: &Wanted) -> Path {
        let namespace = (!self.all_namespaces).then_some(wanted.namespace.as_str());
        Path::new(wanted.resource.collection(namespace))
            .with("labelSelector", self.selector.as_deref().unwrap_or_default())
            .with("fieldSelector", self.field_selector.as_deref().unwrap_or_default())
    }

    /// The objects themselves, with their types, in order. Those that could not be read are errors at the end.
    pub(crate) async fn fetch(&self, api: &Api, wanted: &[Wanted]) -> (Vec<(Wanted, Value)>, Vec<Error>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for one in wanted {
            match &one.name {
                Some(_) => match api.get(Path::new(one.path()), JSON).await {
                    Ok(object) => found.push((one.clone(), object)),
                    Err(error) => errors.push(error),
                },
                None => match list(api, &self.list_path(one), JSON, "items").await {
                    Ok(list) => found.extend(typed(list).into_iter().map(|object| {
                        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
                        let one = Wanted {
                            name: text("name"),
                            namespace: text("namespace").unwrap_or_else(|| one.namespace.clone()),
                            ..one.clone()
                        };
                        (one, object)
                    })),
                    Err(error) => errors.push(error),
                },
            }
        }
        (found, errors)
    }
}

/// The types of `deploy,svc`, or of a category.
fn types<'r>(resources: &'r Resources, word: &str) -> Result<Vec<&'r Resource>, Error> {
    let mut types: Vec<&Resource> = Vec::new();
    for part in word.split(',').filter(|part| !part.is_empty()) {
        let category = resources.in_category(part);
        if category.is_empty() {
            types.push(resources.named(part)?);
        } else {
            types.extend(category);
        }
    }
    let mut once: Vec<&Resource> = Vec::new();
    for resource in types {
        if !once.contains(&resource) {
            once.push(resource);
        }
    }
    Ok(once)
}

fn pair<'r, 'a>(resources: &'r Resources, word: &'a str) -> Result<(&'r Resource, Option<&'a str>), Error> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((resources.named(kind)?, Some(name)))
        }
        Some((_, name)) if name.contains('/') => {
            Err(Error::failed("arguments in resource/name form may not have more than one slash"))
        }
        Some(_) => Err(Error::failed("arguments in resource/name form must have a single resource and name")),
        None => Err(Error::failed(
            "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form",
        )),
    }
}

/// An object of a file, with the namespace where it belongs.
pub(crate) fn of_file(session: &Session, resources: &Resources, mut item: Item) -> Result<Wanted, Error> {
    let object = item.object.clone();
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let Some(resource) = resources.of_kind(api_version, kind) else {
        return Err(Error::failed(format!(
            "resource mapping not found for name: {name:?} namespace: {:?} from {:?}: no matches for kind {kind:?} in \
             version {api_version:?}\nensure CRDs are installed first",
            text("/metadata/namespace"),
            item.source
        )));
    };
    let own = text("/metadata/namespace");
    if resource.namespaced && session.explicit_namespace && !own.is_empty() && own != session.namespace {
        return Err(Error::failed(format!(
            "the namespace from the provided object {own:?} does not match the namespace {:?}. You must pass \
             '--namespace={own}' to perform this operation.",
            session.namespace
        )));
    }
    let namespace = if own.is_empty() { session.namespace.clone() } else { own.to_owned() };
    if resource.namespaced {
        item.object["metadata"]["namespace"] = namespace.clone().into();
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Wanted { resource: resource.clone(), name, namespace, file: Some(item) })
}

/// A whole list, or table, in several requests. `rows` is the field of its entries.
pub(crate) async fn list(api: &Api, path: &Path, accept: &str, rows: &str) -> Result<Value, Error> {
    let mut whole: Option<Value> = None;
    let mut next = String::new();
    let mut progress = Progress::counting(&Env::system());
    loop {
        let path = path.clone().with("limit", &CHUNK.to_string()).with("continue", &next);
        let mut part = api.get(path.clone(), accept).await.map_err(|error| unlisted(error, &path))?;
        progress.steps(part[rows].as_array().map(Vec::len).unwrap_or_default(), "objects read");
        next = part["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        whole = Some(match whole {
            None => part,
            Some(mut whole) => {
                if let (Some(all), Value::Array(more)) = (whole[rows].as_array_mut(), part[rows].take()) {
                    all.extend(more);
                }
                whole
            }
        });
        if next.is_empty() {
            return Ok(whole.unwrap_or_default());
        }
    }
}

/// With what was to be listed, as client-go says it.
fn unlisted(error: Error, path: &Path) -> Error {
    let Error::Refused { mut status } = error else { return error };
    if status["reason"] == "BadRequest" {
        let message = status["message"].as_str().unwrap_or_default();
        let parts: Vec<&str> = path.path.trim_start_matches('/').split('/').collect();
        let (version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => (format!("/{version}"), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return Error::Refused { status },
        };
        let resource = rest.last().copied().unwrap_or_default();
        let subject = format!("{version}, Resource={resource}");
        let asked = |name: &str| {
            let found = path.query.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let (labels, fields) = (asked("labelSelector"), asked("fieldSelector"));
        let text = if labels.is_empty() && fields.is_empty() {
            format!("Unable to list {subject:?}: {message}")
        } else {
            format!(
                "Unable to find {subject:?} that match label selector {labels:?}, field selector {fields:?}: {message}"
            )
        };
        status["message"] = text.into();
    }
    Error::Refused { status }
}

/// The items of a list with their types, which the items of built-in kinds come without.
pub(crate) fn typed(mut list: Value) -> Vec<Value> {
    let kind = list["kind"].as_str().unwrap_or_default().strip_suffix("List").unwrap_or_default().to_owned();
    let api_version = list["apiVersion"].clone();
    let Value::Array(items) = list["items"].take() else { return Vec::new() };
    let typed = |mut item: Value| {
        if item["kind"].is_null() {
            item["apiVersion"] = api_version.clone();
            item["kind"] = kind.clone().into();
        }
        item
    };
    items.into_iter().map(typed).collect()
}
