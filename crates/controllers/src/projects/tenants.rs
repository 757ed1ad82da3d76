//! The tenants of the server, over its API.

use http::{Method, Request};
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::{Value, json};

/// A tenant as the server reports it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Tenant {
    metadata: Metadata,
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Debug, Clone, Deserialize)]
struct Owner {
    uid: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Status {
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Phase {
    /// Its creation was not completed; another POST completes it.
    Creating,
    Active,
    /// Its deletion was not completed; another DELETE completes it.
    Terminating,
}

impl Tenant {
    pub(super) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    pub(super) fn phase(&self) -> Phase {
        self.status.phase
    }

    /// Whether it was created for the project with this uid.
    pub(super) fn is_of(&self, project: &str) -> bool {
        self.metadata.owner_references.iter().any(|owner| owner.uid == project)
    }
}

/// An object in a tenant.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) resource: EntryResource,
    pub(super) metadata: EntryMetadata,
}

#[derive(Debug, Deserialize)]
pub(super) struct EntryResource {
    pub(super) group: String,
    version: String,
    #[serde(rename = "resource")]
    pub(super) plural: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EntryMetadata {
    pub(super) name: String,
    pub(super) namespace: String,
    uid: String,
    deletion_timestamp: Option<String>,
    pub(super) finalizers: Vec<String>,
}

impl Entry {
    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn path(&self) -> String {
        let Entry { resource: EntryResource { group, version, plural }, metadata } = self;
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace = match metadata.namespace.is_empty() {
            true => String::new(),
            false => format!("/namespaces/{}", metadata.namespace),
        };
        format!("{root}/{version}{namespace}/{plural}/{}", escaped(&metadata.name))
    }
}

/// A name as a segment of a path: those of RBAC may have any character but `/` and `%`.
fn escaped(name: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._:~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[derive(Deserialize)]
struct Entries {
    items: Vec<Entry>,
}

/// The tenants.
#[derive(Clone)]
pub(super) struct Tenants {
    client: Client,
}

impl Tenants {
    pub(super) fn new(client: Client) -> Tenants {
        Tenants { client }
    }

    pub(super) async fn find(&self, name: &str) -> Result<Option<Tenant>, Error> {
        found(self.call(Method::GET, &format!("/k1s/v1/tenants/{name}"), "", Value::Null).await)
    }

    /// Creates a tenant for a project, or completes its creation.
    pub(super) async fn create(&self, name: &str, api_version: &str, uid: &str) -> Result<Tenant, Error> {
        let owner = json!({"apiVersion": api_version, "kind": "Project", "name": name, "uid": uid});
        let tenant = json!({"metadata": {"name": name, "ownerReferences": [owner]}});
        self.call(Method::POST, "/k1s/v1/tenants", "application/json", tenant).await
    }

    /// Deletes exactly this tenant with everything in it, or completes its deletion.
    pub(super) async fn delete(&self, name: &str, tenant: &Tenant) -> Result<(), Error> {
        let options = json!({"preconditions": {"uid": tenant.uid()}});
        let path = format!("/k1s/v1/tenants/{name}");
        found::<Value>(self.call(Method::DELETE, &path, "application/json", options).await).map(drop)
    }

    /// Server-side apply of a custom resource definition in a tenant.
    pub(super) async fn apply(&self, tenant: &str, definition: &Value) -> Result<Value, Error> {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let manager = super::FIELD_MANAGER;
        let path = format!(
            "/clusters/{tenant}/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager={manager}&force=true"
        );
        self.call(Method::PATCH, &path, "application/apply-patch+yaml", definition.clone()).await
    }

    /// All objects in a tenant, aggregated APIs aside.
    pub(super) async fn contents(&self, tenant: &str) -> Result<Vec<Entry>, Error> {
        let path = format!("/clusters/{tenant}{}", crate::feed::PATH);
        Ok(self.call::<Entries>(Method::GET, &path, "", Value::Null).await?.items)
    }

    /// Requests the deletion of exactly this object, if it is still there.
    pub(super) async fn delete_entry(&self, tenant: &str, entry: &Entry) -> Result<(), Error> {
        let path = format!("/clusters/{tenant}{}", entry.path());
        let mut options = json!({"propagationPolicy": "Background"});
        // Unknown for an object that cannot be read.
        if !entry.metadata.uid.is_empty() {
            options["preconditions"] = json!({"uid": entry.metadata.uid});
        }
        match found::<Value>(self.call(Method::DELETE, &path, "application/json", options).await) {
            // Another object of that name, or one that is being changed: it is seen the next time.
            Err(Error::Api(status)) if status.code == 409 => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Value,
    ) -> Result<T, Error> {
        let mut request = Request::builder().method(method).uri(path);
        let mut bytes = Vec::new();
        if !body.is_null() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
            bytes = body.to_string().into_bytes();
        }
        self.client.request(request.body(bytes).map_err(Error::HttpError)?).await
    }
}

/// `None` for 404.
fn found<T>(outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_path_of_its_resource() {
        let path = |group: &str, plural: &str, metadata: Value| {
            let resource = json!({"group": group, "version": "v1", "resource": plural});
            let entry: Entry =
                serde_json::from_value(json!({"resource": resource, "metadata": metadata})).unwrap();
            entry.path()
        };
        assert_eq!(path("", "namespaces", json!({"name": "a"})), "/api/v1/namespaces/a");
        let role = json!({"name": "system:a b", "namespace": "n"});
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/system:a%20b";
        assert_eq!(path("rbac.authorization.k8s.io", "roles", role), roles);
    }
}
