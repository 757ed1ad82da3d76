//! Maps kinds to the resources that the server serves, from its discovery.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_env::{Env, Instant};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::{
    api::ApiResource,
    core::{GroupVersionKind, discovery::v2},
    discovery::Scope,
};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::{
    Call, Error, Verb, decode,
    telemetry::Telemetry,
    transport::{JSON, Outgoing, Transport},
};

/// Minimum interval between two requests for a group version that lacked a kind.
const MISS_INTERVAL: Duration = Duration::from_secs(1);

/// A kind that the server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestMapping {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects are namespaced.
    pub scope: Scope,
    /// The verbs that it supports: `get`, `deletecollection`.
    pub verbs: Vec<String>,
    /// Its subresources: `status`, `scale`.
    pub subresources: Vec<String>,
}

impl RestMapping {
    /// Whether its objects are namespaced.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether it supports a verb.
    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }
}

/// A cache of the server's discovery. Cheap to clone.
///
/// All groups are fetched at the first use. An unknown kind is looked up again, at most once per second, since its
/// definition may have been created in the meantime.
#[derive(Clone)]
pub struct RestMapper {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<Transport>,
    known: RwLock<Option<Arc<Known>>>,
    /// The group versions that lacked a kind, and when. Locked during requests, so that concurrent lookups share one.
    misses: Mutex<HashMap<String, Instant>>,
}

/// In the server's order: groups by priority, the preferred version first.
#[derive(Default)]
struct Known {
    all: Vec<Arc<RestMapping>>,
    by_kind: HashMap<GroupVersionKind, Arc<RestMapping>>,
}

impl Known {
    fn new(all: Vec<Arc<RestMapping>>) -> Known {
        let mut by_kind = HashMap::with_capacity(all.len());
        for mapping in &all {
            let ApiResource { group, version, kind, .. } = &mapping.resource;
            by_kind.entry(GroupVersionKind::gvk(group, version, kind)).or_insert_with(|| Arc::clone(mapping));
        }
        Known { all, by_kind }
    }
}

impl RestMapper {
    /// A mapper that sends its requests with a client of `kube`.
    pub(crate) fn for_client(client: kube::Client, env: Env, telemetry: Arc<Telemetry>) -> RestMapper {
        RestMapper::new(Arc::new(Transport { client, env, telemetry, tracked: None, retries: 0 }))
    }

    pub(super) fn new(transport: Arc<Transport>) -> RestMapper {
        RestMapper {
            inner: Arc::new(Inner { transport, known: RwLock::default(), misses: Mutex::default() }),
        }
    }

    /// The mapping of a group, version and kind.
    ///
    /// # Errors
    /// If the server does not serve it (see [`Error::is_no_match`]), or discovery fails.
    pub async fn mapping(&self, gvk: &GroupVersionKind) -> Result<Arc<RestMapping>, Error> {
        let find = |known: &Known| known.by_kind.get(gvk).cloned();
        if let Some(found) = self.known().as_deref().and_then(find) {
            return Ok(found);
        }
        self.look_for(&gvk.api_version(), find).await?.ok_or_else(|| Error::NoKindMatch {
            api_version: gvk.api_version().into(),
            kind: gvk.kind.as_str().into(),
        })
    }

    /// The mapping of a kind's preferred version.
    ///
    /// # Errors
    /// If the server does not serve the kind (see [`Error::is_no_match`]), or discovery fails.
    pub async fn preferred(&self, group: &str, kind: &str) -> Result<Arc<RestMapping>, Error> {
        let matches = |resource: &ApiResource| resource.group == group && resource.kind == kind;
        let find = |known: &Known| known.all.iter().find(|mapping| matches(&mapping.resource)).cloned();
        if let Some(found) = self.known().as_deref().and_then(find) {
            return Ok(found);
        }
        self.refresh().await?;
        let found = self.known().as_deref().and_then(find);
        found.ok_or_else(|| Error::NoKindMatch { api_version: group.into(), kind: kind.into() })
    }

    /// Whether objects of this kind are namespaced.
    ///
    /// # Errors
    /// As [`mapping`](RestMapper::mapping).
    pub async fn is_namespaced(&self, gvk: &GroupVersionKind) -> Result<bool, Error> {
        Ok(self.mapping(gvk).await?.is_namespaced())
    }

    /// All mappings in all versions, as of the last discovery.
    ///
    /// # Errors
    /// If there was no discovery yet, and it fails.
    pub async fn mappings(&self) -> Result<Vec<Arc<RestMapping>>, Error> {
        if self.known().is_none() {
            self.refresh().await?;
        }
        Ok(self.known().map(|known| known.all.clone()).unwrap_or_default())
    }

    /// Fetches all groups again.
    ///
    /// # Errors
    /// If discovery fails.
    pub async fn refresh(&self) -> Result<(), Error> {
        let mut misses = self.inner.misses.lock().await;
        self.fetch_all(&mut misses).await
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.inner.known.read().clone()
    }

    async fn look_for(
        &self,
        api_version: &str,
        find: impl Fn(&Known) -> Option<Arc<RestMapping>>,
    ) -> Result<Option<Arc<RestMapping>>, Error> {
        let mut misses = self.inner.misses.lock().await;
        // A concurrent lookup may have found it while this one waited for the lock.
        let Some(known) = self.known() else {
            self.fetch_all(&mut misses).await?;
            let found = self.known().as_deref().and_then(find);
            if found.is_none() {
                misses.insert(api_version.to_owned(), self.inner.transport.env.now());
            }
            return Ok(found);
        };
        if let Some(found) = find(&known) {
            return Ok(Some(found));
        }
        let now = self.inner.transport.env.now();
        if misses.get(api_version).is_some_and(|missed| now - *missed < MISS_INTERVAL) {
            return Ok(None);
        }
        let fresh = self.fetch_version(api_version).await?;
        let is_other = |mapping: &&Arc<RestMapping>| mapping.resource.api_version != api_version;
        let mut all: Vec<_> = known.all.iter().filter(is_other).cloned().collect();
        all.extend(fresh);
        let known = Known::new(all);
        let found = find(&known);
        *self.inner.known.write() = Some(Arc::new(known));
        match found {
            Some(_) => misses.remove(api_version),
            None => misses.insert(api_version.to_owned(), now),
        };
        Ok(found)
    }

    async fn fetch_all(&self, misses: &mut HashMap<String, Instant>) -> Result<(), Error> {
        let mut all = Vec::new();
        for path in ["/api", "/apis"] {
            let answer = self.fetch(path, v2::ACCEPT_AGGREGATED_DISCOVERY_V2).await?;
            let kind: serde_json::Value = self.decode(path, &answer)?;
            if kind["kind"] == "APIGroupDiscoveryList" {
                let groups: v2::APIGroupDiscoveryList = self.decode(path, &answer)?;
                all.extend(groups.items.into_iter().flat_map(aggregated));
            } else if path == "/api" {
                let versions: APIVersions = self.decode(path, &answer)?;
                for version in versions.versions {
                    all.extend(self.fetch_version(&version).await?);
                }
            } else {
                let groups: APIGroupList = self.decode(path, &answer)?;
                for group in groups.groups {
                    let preferred = group.preferred_version.map(|version| version.group_version);
                    let mut versions: Vec<_> =
                        group.versions.into_iter().map(|version| version.group_version).collect();
                    versions.sort_by_key(|version| Some(version) != preferred.as_ref());
                    for version in versions {
                        // An unavailable extension server must not fail the discovery of other groups.
                        match self.fetch_version(&version).await {
                            Ok(kinds) => all.extend(kinds),
                            Err(error) => tracing::warn!(%version, %error, "group discovery failed"),
                        }
                    }
                }
            }
        }
        misses.clear();
        *self.inner.known.write() = Some(Arc::new(Known::new(all)));
        Ok(())
    }

    /// The kinds of one group version; empty if it does not exist.
    async fn fetch_version(&self, api_version: &str) -> Result<Vec<Arc<RestMapping>>, Error> {
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let path = format!("{root}/{api_version}");
        match self.fetch(&path, JSON).await {
            Ok(answer) => Ok(listed(api_version, &self.decode(&path, &answer)?)),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn fetch(&self, path: &str, accept: &'static str) -> Result<Bytes, Error> {
        let resource = discovery();
        let outgoing = Outgoing::get(path.to_owned(), accept);
        self.inner.transport.exchange(&discovery_call(&resource, path), &outgoing).await
    }

    fn decode<T: DeserializeOwned>(&self, path: &str, answer: &[u8]) -> Result<T, Error> {
        decode::any(&discovery_call(&discovery(), path), answer)
    }
}

/// Names discovery in errors.
fn discovery() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: String::new(),
        api_version: String::new(),
        kind: String::new(),
        plural: "discovery".into(),
    }
}

fn discovery_call<'a>(resource: &'a ApiResource, path: &'a str) -> Call<'a> {
    let mut call = Call::new(Verb::Get, resource, None);
    call.name = Some(path);
    call
}

fn aggregated(group: v2::APIGroupDiscovery) -> Vec<Arc<RestMapping>> {
    let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
    let mut all = Vec::new();
    for version in group.versions {
        let version_name = version.version.unwrap_or_default();
        for found in version.resources {
            let Some(kind) = found.response_kind.and_then(|kind| kind.kind) else { continue };
            let gvk = GroupVersionKind::gvk(&name, &version_name, &kind);
            let namespaced = found.scope.as_deref() == Some("Namespaced");
            let subresources = found.subresources.into_iter().filter_map(|part| part.subresource).collect();
            all.push(Arc::new(RestMapping {
                resource: ApiResource::from_gvk_with_plural(&gvk, &found.resource.unwrap_or_default()),
                scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
                verbs: found.verbs,
                subresources,
            }));
        }
    }
    all
}

fn listed(api_version: &str, list: &APIResourceList) -> Vec<Arc<RestMapping>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut all: Vec<RestMapping> = Vec::new();
    for found in list.resources.iter().filter(|found| !found.name.contains('/')) {
        let gvk = GroupVersionKind::gvk(group, version, &found.kind);
        all.push(RestMapping {
            resource: ApiResource::from_gvk_with_plural(&gvk, &found.name),
            scope: if found.namespaced { Scope::Namespaced } else { Scope::Cluster },
            verbs: found.verbs.clone(),
            subresources: Vec::new(),
        });
    }
    for (owner, part) in list.resources.iter().filter_map(|found| found.name.split_once('/')) {
        if let Some(mapping) = all.iter_mut().find(|mapping| mapping.resource.plural == owner) {
            mapping.subresources.push(part.to_owned());
        }
    }
    all.into_iter().map(Arc::new).collect()
}

impl fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known().map(|known| known.all.len());
        f.debug_struct("RestMapper").field("known", &known).finish_non_exhaustive()
    }
}
