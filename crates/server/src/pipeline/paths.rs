//! Non-resource paths: discovery, OpenAPI, health, the token issuer, the metadata watch.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, header};
use k1s_object::Status;

use crate::{
    aggregator, auth,
    body::Body,
    discovery,
    errors::Error,
    health, metadata, openapi, pretty,
    request::{Path, Query},
    respond,
    tenant::Tenant,
    tenants,
};

/// Answers a request for such a path.
pub(super) async fn handle(
    tenant: &Arc<Tenant>,
    method: &Method,
    path: &Path,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response<Body>, Error> {
    match path {
        Path::CoreVersions | Path::Groups | Path::Group(_) | Path::GroupVersion(..) => {
            if *method != Method::GET && discovery::is_only_read(tenant, path) {
                return Err(Status::method_not_allowed().into());
            }
            Ok(discovery::handle(tenant, path, headers).await?)
        }
        Path::Other(path) => match path.as_str() {
            "/.well-known/openid-configuration" | "/openid/v1/jwks" | "/version" | metadata::PATH
                if *method != Method::GET =>
            {
                Err(Status::method_not_allowed().into())
            }
            "/.well-known/openid-configuration" => match auth::configuration(tenant).await? {
                Some(configuration) => Ok(public(&configuration, "application/json")),
                None => Ok(respond::page_not_found()),
            },
            "/openid/v1/jwks" => {
                let keys = tenant.shared.signer.key_set(&**tenant.store()).await?;
                Ok(public(&keys, "application/jwk-set+json"))
            }
            "/version" => Ok(respond::raw_json(200, &health::version(tenant.options()))),
            "/metrics" => Ok(health::metrics(tenant, &aggregator::metrics(tenant)).await?),
            "/openapi/v2" => Ok(openapi::v2(tenant, headers).await.map(pretty::as_is)?),
            path if path.starts_with("/openapi/v3") => {
                Ok(openapi::handle(tenant, path, query, headers).await.map(pretty::as_is)?)
            }
            metadata::PATH => Ok(metadata::handle(tenant, query).await.map(pretty::as_is)?),
            "/" if !matches!(*method, Method::GET | Method::HEAD) => {
                Err(tenants::not_here(&tenant.name).into())
            }
            "/" => Ok(discovery::paths(tenant).await?),
            path => Ok(health::handle(tenant, path, query).await?),
        },
        Path::Resource(_) => Err(Status::no_such_resource().into()),
    }
}

/// A response with `Cache-Control: public`, for one hour.
fn public(value: &serde_json::Value, content_type: &'static str) -> Response<Body> {
    let mut response = respond::bytes(200, content_type, value.to_string().into_bytes());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    pretty::as_is(response)
}
