//! Discovery of the server's kinds: requested group by group when first needed, and invalidated when
//! definitions change.
//!
//! This intentionally does not use the runtime's mapper: that one caches all of discovery, some 80 KB, and
//! there may be thousands of control planes in one process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use k1s_runtime::Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::{
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    core::GroupVersionKind,
};
use parking_lot::Mutex;

use crate::meta::Resource;

/// How long a kind that was not found is cached, unless definitions change.
const MISS: Duration = Duration::from_secs(5);

/// A kind that the server serves.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
}

impl Served {
    /// The metadata of its objects.
    pub(crate) fn metadata(&self) -> Kind<PartialObjectMeta<DynamicObject>> {
        Kind::<DynamicObject>::dynamic(self.api.clone()).metadata()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    Kind(Box<str>, Box<str>),
    Resource(Resource),
}

/// The kinds of a server that have been requested so far.
pub(crate) struct Kinds {
    client: kube::Client,
    env: Env,
    known: Mutex<Known>,
}

struct Known {
    answers: HashMap<Question, (Option<Arc<Served>>, Instant)>,
    /// Incremented when definitions change: an answer to an older request is not cached.
    generation: u64,
    changed: Option<Instant>,
}

impl Kinds {
    pub(crate) fn new(client: kube::Client, env: Env) -> Kinds {
        let known = Known { answers: HashMap::new(), generation: 0, changed: None };
        Kinds { client, env, known: Mutex::new(known) }
    }

    /// Invalidates the cache, because definitions have changed.
    pub(crate) fn changed(&self) {
        let mut known = self.known.lock();
        known.answers.clear();
        known.generation += 1;
        known.changed = Some(self.env.now());
    }

    /// When to look again for a kind that is not found: the server may briefly lag behind its definitions.
    pub(crate) fn retry_after(&self) -> Duration {
        let recent =
            self.known.lock().changed.is_some_and(|at| self.env.now() - at < Duration::from_secs(10));
        if recent { Duration::from_secs(1) } else { Duration::from_secs(30) }
    }

    /// The kind named by an owner reference.
    pub(crate) async fn of_kind(&self, api_version: &str, kind: &str) -> kube::Result<Option<Arc<Served>>> {
        let question = Question::Kind(api_version.into(), kind.into());
        let (known, generation) = self.recall(&question);
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.ask(api_version, |one| one.kind == kind).await?;
        Ok(self.keep(question, found, generation))
    }

    /// The kind of a resource.
    pub(crate) async fn of_resource(&self, resource: &Resource) -> kube::Result<Option<Arc<Served>>> {
        let question = Question::Resource(resource.clone());
        let (known, generation) = self.recall(&question);
        if let Some(known) = known {
            return Ok(known);
        }
        let is = |one: &APIResource| one.name == *resource.plural;
        let mut found = None;
        for version in self.versions(&resource.group).await? {
            found = self.ask(&version, is).await?;
            if found.is_some() {
                break;
            }
        }
        Ok(self.keep(question, found, generation))
    }

    fn recall(&self, question: &Question) -> (Option<Option<Arc<Served>>>, u64) {
        let known = self.known.lock();
        let good =
            |(found, at): &&(Option<Arc<Served>>, Instant)| found.is_some() || self.env.now() - *at < MISS;
        (known.answers.get(question).filter(good).map(|(found, _)| found.clone()), known.generation)
    }

    fn keep(&self, question: Question, found: Option<Served>, generation: u64) -> Option<Arc<Served>> {
        let found = found.map(Arc::new);
        let mut known = self.known.lock();
        if known.generation == generation {
            known.answers.insert(question, (found.clone(), self.env.now()));
        }
        found
    }

    /// The versions of a group, the preferred one first.
    async fn versions(&self, group: &str) -> kube::Result<Vec<String>> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let Some(found) = self.get::<APIGroup>(&format!("/apis/{group}")).await? else {
            return Ok(Vec::new());
        };
        let preferred = found.preferred_version.map(|version| version.group_version);
        let mut versions: Vec<String> =
            found.versions.into_iter().map(|version| version.group_version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        Ok(versions)
    }

    async fn ask(
        &self,
        api_version: &str,
        is: impl Fn(&APIResource) -> bool,
    ) -> kube::Result<Option<Served>> {
        // The text is user input, and becomes part of a path.
        let sane = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '/');
        if api_version.is_empty() || !api_version.chars().all(sane) || api_version.contains("..") {
            return Ok(None);
        }
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let list = self.get::<APIResourceList>(&format!("{root}/{api_version}")).await?;
        let resources = list.map(|list| list.resources).unwrap_or_default();
        let of = |one: &APIResource| !one.name.contains('/') && one.verbs.iter().any(|verb| verb == "get");
        Ok(resources.into_iter().find(|one| of(one) && is(one)).map(|one| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let gvk = GroupVersionKind::gvk(group, version, &one.kind);
            Served { api: ApiResource::from_gvk_with_plural(&gvk, &one.name), namespaced: one.namespaced }
        }))
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> kube::Result<Option<T>> {
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        match self.client.request(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }
}
