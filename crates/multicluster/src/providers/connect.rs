//! Clients for clusters behind a path of another server.

use std::{
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{Request, Response, Uri, uri::PathAndQuery};
use k1s_runtime::{BoxError, ClusterName, Connect};
use kube::client::Body;
use tower::Service;

/// A connection to a cluster: a `kube::Client`, or one to a control plane of this process.
pub type Connection = Box<dyn Connect + Send + Sync>;

/// Connects to a cluster by its name.
pub type Connector =
    Arc<dyn Fn(ClusterName) -> BoxFuture<'static, Result<Connection, BoxError>> + Send + Sync>;

/// A connector from a function.
pub fn connector<F, Fut>(connect: F) -> Connector
where
    F: Fn(ClusterName) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Connection, BoxError>> + Send + 'static,
{
    Arc::new(move |name| Box::pin(connect(name)))
}

/// A client for the API below a path of another client's server: `/clusters/team-a`. It uses the connections and credentials of
/// that client.
#[must_use]
pub fn at_path(client: &kube::Client, path: &str) -> kube::Client {
    let path = path.trim_end_matches('/').into();
    kube::Client::new(AtPath { client: client.clone(), path }, client.default_namespace())
}

struct AtPath {
    client: kube::Client,
    path: Arc<str>,
}

impl Service<Request<Body>> for AtPath {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, path) = (self.client.clone(), Arc::clone(&self.path));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            parts.uri = below(&path, parts.uri)?;
            Ok(client.send(Request::from_parts(parts, body)).await?)
        })
    }
}

/// Puts a path before that of a URI.
fn below(path: &str, uri: Uri) -> Result<Uri, http::Error> {
    let mut parts = uri.into_parts();
    let rest = parts.path_and_query.as_ref().map_or("/", PathAndQuery::as_str);
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{rest}"))?);
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_comes_first_and_the_query_stays() {
        let uri = below("/clusters/a", Uri::from_static("/api/v1/pods?watch=1")).unwrap();
        assert_eq!(uri, "/clusters/a/api/v1/pods?watch=1");
        let uri = below("/clusters/a", Uri::from_static("https://localhost:6443/version")).unwrap();
        assert_eq!(uri, "https://localhost:6443/clusters/a/version");
    }
}
