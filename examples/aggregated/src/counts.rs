//! Counts the objects of namespaces.

use k1s::BoxError;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::ListParams};
use serde_json::{Map, Value};

/// What is counted: the name in the result, and the path of the lists.
const COUNTED: [(&str, &str, &str); 5] = [
    ("configmaps", "/api/v1", "configmaps"),
    ("secrets", "/api/v1", "secrets"),
    ("services", "/api/v1", "services"),
    ("pods", "/api/v1", "pods"),
    ("deployments", "/apis/apps/v1", "deployments"),
];

/// The names of all namespaces.
pub(crate) async fn namespaces(client: &Client) -> Result<Vec<String>, BoxError> {
    let list = Api::<Namespace>::all(client.clone()).list_metadata(&ListParams::default()).await?;
    Ok(list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect())
}

/// Whether there is such a namespace.
pub(crate) async fn exists(client: &Client, namespace: &str) -> Result<bool, BoxError> {
    Ok(Api::<Namespace>::all(client.clone()).get_metadata_opt(namespace).await?.is_some())
}

/// The number of objects of a namespace by resource, and their sum.
pub(crate) async fn objects(client: &Client, namespace: &str) -> Result<(Map<String, Value>, u64), BoxError> {
    let (mut counts, mut sum) = (Map::new(), 0);
    for (name, root, plural) in COUNTED {
        // A page of one object says how many there are besides it, so none is read.
        let path = format!("{root}/namespaces/{namespace}/{plural}?limit=1");
        let page: Value = client.request(http::Request::get(path).body(Vec::new())?).await?;
        let first = page["items"].as_array().map_or(0, Vec::len) as u64;
        let count = first + page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        counts.insert(name.to_owned(), count.into());
        sum += count;
    }
    Ok((counts, sum))
}
