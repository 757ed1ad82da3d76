//! Which resources the server has, and which of them a word means: `deploy`, `deployments.apps`, `Deployment`.

use serde_json::Value;

use super::{Api, Error, JSON, Path};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A resource in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether this is the version that the server prefers.
    pub(crate) preferred: bool,
}

impl Resource {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`
    pub(crate) fn group_resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// `deployment.apps`, as in `deployment.apps/web created`.
    pub(crate) fn group_kind(&self) -> String {
        qualified(&self.kind.to_lowercase(), &self.group)
    }

    /// The path of the collection, or of all namespaces.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{}/namespaces/{namespace}/{}", self.version, self.plural),
            None => format!("{root}/{}/{}", self.version, self.plural),
        }
    }

    pub(crate) fn path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(Some(namespace)))
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// Whether the first part of a word is a name of this resource.
    fn is_called(&self, word: &str) -> bool {
        self.plural == word
            || self.singular == word
            || self.kind.to_lowercase() == word
            || self.short_names.iter().any(|short| short == word)
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// All resources of a server, in its order: groups by priority, the preferred version of each first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    pub(crate) all: Vec<Resource>,
}

impl Resources {
    pub(crate) async fn discover(api: &Api) -> Result<Resources, Error> {
        let mut all = Vec::new();
        for root in ["/api", "/apis"] {
            let answer = api.get(Path::new(root), AGGREGATED).await?;
            if answer["kind"] == "APIGroupDiscoveryList" {
                aggregated(&answer, &mut all);
            } else {
                separate(api, root, &answer, &mut all).await?;
            }
        }
        Ok(Resources { all })
    }

    /// The resource that a word means: a name, a short name or a kind, with `.group` or `.version.group` behind it.
    pub(crate) fn named(&self, word: &str) -> Result<&Resource, Error> {
        let lower = word.to_lowercase();
        self.find(&lower).ok_or_else(|| {
            let unknown = match word.split_once('.') {
                Some((name, group)) => format!("{name:?} in group {group:?}"),
                None => format!("{word:?}"),
            };
            Error::failed(format!("the server doesn't have a resource type {unknown}"))
        })
    }

    fn find(&self, word: &str) -> Option<&Resource> {
        let preferred = || self.all.iter().filter(|resource| resource.preferred);
        let Some((name, rest)) = word.split_once('.') else {
            // A plural or a kind of any group goes before the short name of another.
            let exact = |resource: &&Resource| {
                resource.plural == word || resource.singular == word || resource.kind.to_lowercase() == word
            };
            return preferred().find(exact).or_else(|| preferred().find(|one| one.is_called(word)));
        };
        if let Some((version, group)) = rest.split_once('.') {
            let exact = self.all.iter().find(|resource| {
                resource.is_called(name) && resource.version == version && resource.group == group
            });
            if exact.is_some() {
                return exact;
            }
        }
        let core =
            self.all.iter().find(|one| one.is_called(name) && one.group.is_empty() && one.version == rest);
        core.or_else(|| preferred().find(|resource| resource.is_called(name) && resource.group == rest))
            // The first label of a group is enough: `certificates.cert-manager`.
            .or_else(|| {
                let starts = |one: &&Resource| {
                    one.is_called(name) && one.group.split('.').next().is_some_and(|first| first == rest)
                };
                preferred().find(starts)
            })
    }

    /// The resources of a category: `all`.
    pub(crate) fn in_category(&self, word: &str) -> Vec<&Resource> {
        let is = |one: &&Resource| one.preferred && one.categories.iter().any(|category| category == word);
        self.all.iter().filter(is).collect()
    }

    /// The resource of an object's `apiVersion` and `kind`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.all.iter().find(|one| one.group == group && one.version == version && one.kind == kind)
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn aggregated(answer: &Value, all: &mut Vec<Resource>) {
    for group in list(&answer["items"]) {
        let mut seen: Vec<String> = Vec::new();
        for version in list(&group["versions"]) {
            for resource in list(&version["resources"]) {
                let plural = text(&resource["resource"]);
                let preferred = !seen.contains(&plural);
                if preferred {
                    seen.push(plural.clone());
                }
                let kind = text(&resource["responseKind"]["kind"]);
                let subresources = list(&resource["subresources"]);
                all.push(Resource {
                    group: text(&group["metadata"]["name"]),
                    version: text(&version["version"]),
                    singular: text(&resource["singularResource"]),
                    short_names: texts(&resource["shortNames"]),
                    categories: texts(&resource["categories"]),
                    verbs: texts(&resource["verbs"]),
                    subresources: subresources.iter().map(|one| text(&one["subresource"])).collect(),
                    namespaced: resource["scope"] == "Namespaced",
                    preferred,
                    plural,
                    kind,
                });
            }
        }
    }
}

/// The discovery of servers before 1.26: a document for each version of each group.
async fn separate(api: &Api, root: &str, answer: &Value, all: &mut Vec<Resource>) -> Result<(), Error> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    if root == "/api" {
        groups.push((String::new(), texts(&answer["versions"])));
    }
    for group in list(&answer["groups"]) {
        let mut versions: Vec<String> =
            list(&group["versions"]).iter().map(|version| text(&version["version"])).collect();
        let preferred = text(&group["preferredVersion"]["version"]);
        versions.sort_by_key(|version| *version != preferred);
        groups.push((text(&group["name"]), versions));
    }
    for (group, versions) in groups {
        let mut seen: Vec<String> = Vec::new();
        for version in versions {
            let path =
                if root == "/api" { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            let document = api.get(Path::new(path), JSON).await?;
            for resource in list(&document["resources"]) {
                let name = text(&resource["name"]);
                if let Some((of, subresource)) = name.split_once('/') {
                    let owner = |one: &&mut Resource| {
                        one.group == group && one.version == version && one.plural == of
                    };
                    if let Some(one) = all.iter_mut().find(owner) {
                        one.subresources.push(subresource.to_owned());
                    }
                    continue;
                }
                let preferred = !seen.contains(&name);
                seen.push(name.clone());
                all.push(Resource {
                    group: group.clone(),
                    version: version.clone(),
                    singular: text(&resource["singularName"]),
                    kind: text(&resource["kind"]),
                    short_names: texts(&resource["shortNames"]),
                    categories: texts(&resource["categories"]),
                    verbs: texts(&resource["verbs"]),
                    subresources: Vec::new(),
                    namespaced: resource["namespaced"] == true,
                    preferred,
                    plural: name,
                });
            }
        }
    }
    Ok(())
}
