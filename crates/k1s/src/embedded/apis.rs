//! Aggregated APIs that the control plane calls without a socket.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use k1s_runtime::BoxError;
use k1s_server::RequestBody;
use tower::Service;

use super::Runtime;

impl Runtime {
    /// Serves an aggregated API in this process: wherever an `APIService` of the runtime's tenant names the Service
    /// `namespace/name`, which need not exist, requests go to this tower service instead of a connection. It gets them after
    /// authentication and authorization, with the user in the headers `X-Remote-User`, `X-Remote-Group` and so on, and serves
    /// what an aggregated API server serves: discovery at `/apis/{group}/{version}`, and its resources below. An
    /// `axum::Router` is such a service, and so is another [`ApiServer`](crate::server::ApiServer).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::convert::Infallible;
    ///
    /// use http::{Request, Response};
    /// use k1s::{Runtime, server::{Body, RequestBody}};
    ///
    /// let runtime = Runtime::builder().start().await?;
    /// let service = tower::service_fn(|request: Request<RequestBody>| async move {
    ///     let document = match request.uri().path() {
    ///         "/apis/time.example.com/v1" => r#"{"kind": "APIResourceList", "apiVersion": "v1",
    ///             "groupVersion": "time.example.com/v1", "resources": [{"name": "clocks", "singularName": "clock",
    ///             "namespaced": false, "kind": "Clock", "verbs": ["get"]}]}"#,
    ///         "/apis/time.example.com/v1/clocks/wall" => r#"{"apiVersion": "time.example.com/v1", "kind": "Clock",
    ///             "metadata": {"name": "wall"}, "time": "12:00"}"#,
    ///         _ => return Ok(Response::builder().status(404).body(Body::empty()).unwrap()),
    ///     };
    ///     let response = Response::builder().header("content-type", "application/json");
    ///     Ok::<_, Infallible>(response.body(Body::from(document.as_bytes().to_vec())).unwrap())
    /// });
    /// runtime.serve_api("time", "clocks", service);
    /// runtime.apply("
    /// apiVersion: apiregistration.k8s.io/v1
    /// kind: APIService
    /// metadata: {name: v1.time.example.com}
    /// spec:
    ///   group: time.example.com
    ///   version: v1
    ///   groupPriorityMinimum: 1000
    ///   versionPriority: 15
    ///   service: {namespace: time, name: clocks}
    /// ").await?;
    ///
    /// let request = Request::get("/apis/time.example.com/v1/clocks/wall").body(Vec::new())?;
    /// let clock: k1s::serde_json::Value = runtime.client().request(request).await?;
    /// assert_eq!(clock["time"], "12:00");
    /// # runtime.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve_api<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.services.serve_streams(Some(&self.tenant), format!("{name}.{namespace}.svc"), service);
    }
}
