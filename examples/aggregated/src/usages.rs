//! The API: discovery, its description, and `get` and `list` of usages, as objects and as tables.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use k1s::object::Status;
use kube::Client;
use serde_json::{Value, json};

use crate::counts;

/// A tower service that serves `usages` of a group in version `v1`.
#[derive(Clone)]
pub(crate) struct Usages {
    group: String,
    client: Client,
}

impl Usages {
    pub(crate) fn new(group: &str, client: Client) -> Usages {
        Usages { group: group.to_owned(), client }
    }

    async fn answer(&self, method: &Method, path: &str, accept: &str, query: &str) -> Result<Value, Status> {
        let version = format!("{}/v1", self.group);
        let described = format!("/openapi/v3/apis/{version}");
        if path == "/openapi/v3" {
            let document = json!({"serverRelativeURL": format!("{described}?hash=1")});
            return Ok(json!({"paths": {format!("apis/{version}"): document}}));
        }
        if path == described {
            return Ok(self.openapi());
        }
        let rest = path.strip_prefix("/apis/").and_then(|rest| rest.strip_prefix(&version));
        let words: Vec<&str> = rest.ok_or_else(Status::no_such_resource)?.split('/').skip(1).collect();
        let is_read = *method == Method::GET && !query.contains("watch=");
        let usages = match words.as_slice() {
            [] | [""] => {
                return Ok(
                    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [
                    {"name": "usages", "singularName": "usage", "namespaced": false, "kind": "Usage", "verbs": ["get", "list"]}]}),
                );
            }
            // Not even a watch: kubectl says so.
            ["usages"] | ["usages", _] if !is_read => return Err(Status::method_not_allowed()),
            ["usages"] => {
                let mut usages = Vec::new();
                for namespace in counts::namespaces(&self.client).await.map_err(Status::internal)? {
                    usages.push(self.usage(&namespace).await?);
                }
                usages
            }
            ["usages", name] => {
                if !counts::exists(&self.client, name).await.map_err(Status::internal)? {
                    return Err(Status::not_found(&self.group, "usages", name));
                }
                vec![self.usage(name).await?]
            }
            _ => return Err(Status::no_such_resource()),
        };
        Ok(match (accept.contains("as=Table"), words.len()) {
            (true, _) => table(&usages),
            (false, 1) => {
                json!({"kind": "UsageList", "apiVersion": version, "metadata": {}, "items": usages})
            }
            (false, _) => usages.into_iter().next().unwrap_or_default(),
        })
    }

    /// What `kubectl explain` reads.
    fn openapi(&self) -> Value {
        let name = "dev.k1s.example.Usage";
        let content =
            json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}});
        let kind = json!({"group": self.group, "version": "v1", "kind": "Usage"});
        let get = json!({"operationId": "readUsage", "x-kubernetes-group-version-kind": kind,
            "responses": {"200": {"description": "OK", "content": content}}});
        let text = |description: &str| json!({"type": "string", "description": description});
        let number = json!({"type": "integer", "format": "int64"});
        let schema = json!({
            "description": "Usage says how many objects a namespace has.", "type": "object",
            "properties": {
                "apiVersion": text("The version of this representation."),
                "kind": text("The kind of this representation."),
                "metadata": {"type": "object", "description": "The name is that of the namespace."},
                "objects": {"type": "object", "description": "The number of objects by resource.", "additionalProperties": number},
                "total": {"type": "integer", "format": "int64", "description": "The number of all of them."},
            },
            "x-kubernetes-group-version-kind": [kind],
        });
        json!({"openapi": "3.0.0", "info": {"title": "usages", "version": "v1"}, "components": {"schemas": {name: schema}},
            "paths": {format!("/apis/{}/v1/usages/{{name}}", self.group): {"get": get}}})
    }

    /// The usage of a namespace has its name.
    async fn usage(&self, namespace: &str) -> Result<Value, Status> {
        let (objects, total) = counts::objects(&self.client, namespace).await.map_err(Status::internal)?;
        Ok(
            json!({"kind": "Usage", "apiVersion": format!("{}/v1", self.group), "metadata": {"name": namespace},
            "objects": objects, "total": total}),
        )
    }
}

/// What `kubectl get` prints.
fn table(usages: &[Value]) -> Value {
    let column = |name: &str, kind: &str, format: &str| json!({"name": name, "type": kind, "format": format, "description": "", "priority": 0});
    let rows: Vec<Value> = usages
        .iter()
        .map(|usage| {
            let cells = [&usage["metadata"]["name"], &usage["total"], &usage["objects"]["pods"]];
            let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": usage["metadata"]});
            json!({"cells": cells, "object": object})
        })
        .collect();
    let columns =
        [column("Name", "string", "name"), column("Objects", "integer", ""), column("Pods", "integer", "")];
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

impl<B: Send + 'static> tower::Service<Request<B>> for Usages {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let usages = self.clone();
        let (parts, _) = request.into_parts();
        Box::pin(async move {
            let accept = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
            let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
            let answered = usages.answer(&parts.method, path, accept.unwrap_or_default(), query).await;
            let (code, body) = match answered {
                Ok(body) => (200, body),
                Err(status) => (status.code, status.to_json()),
            };
            let mut response = Response::new(Full::from(body.to_string()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            Ok(response)
        })
    }
}
