//! Requests for group versions that other servers serve.

use std::sync::Arc;

use http::{Response, request::Parts};

use super::around;
use crate::{
    aggregator::{self, Incoming, Kind},
    body::Body,
    catalog::Catalog,
    errors::Error,
    fairness::Flow,
    flow::{self, RequestBody, Slot},
    identity::User,
    metrics::Labels,
    openapi,
    request::{Path, RequestInfo, ResourcePath, Verb},
    tenant::{Shared, Tenant, apis::Api},
};

/// A group version that another server may serve, and what a request for it is.
pub(super) struct Candidate<'a> {
    group: String,
    version: String,
    kind: Kind,
    is_watch: bool,
    /// The path within the tenant, decoded.
    path: &'a str,
}

/// A request that has been authorized.
pub(super) struct Entered<'a> {
    pub(super) user: &'a User,
    pub(super) flow: &'a Flow,
    pub(super) parts: &'a Parts,
    pub(super) body: RequestBody,
}

impl<'a> Candidate<'a> {
    /// The candidate of a request; `None` if only this server can serve it.
    pub(super) fn of(info: &RequestInfo<'a>, catalog: &Catalog) -> Option<Candidate<'a>> {
        let (group, version) = match &info.endpoint {
            Path::Resource(path) if catalog.find(path.gvr()).is_some() => return None,
            Path::Resource(ResourcePath { group, version, .. }) | Path::GroupVersion(group, version) => {
                (&**group, &**version)
            }
            Path::Other(path) => openapi::group_version(path)?,
            _ => return None,
        };
        // The server's own group versions are always its own.
        if group.is_empty() || catalog.of(group, version).next().is_some() {
            return None;
        }
        let kind = match &info.endpoint {
            Path::GroupVersion(..) => Kind::Discovery,
            _ if info.is_long_running() => Kind::LongRunning,
            _ => Kind::Plain,
        };
        let (group, version) = (group.to_owned(), version.to_owned());
        Some(Candidate { group, version, kind, is_watch: info.verb == Verb::Watch, path: info.path })
    }

    /// Its server, if another one serves it.
    pub(super) async fn server(&self, tenant: &Arc<Tenant>) -> Result<Option<Arc<Api>>, Error> {
        Ok(aggregator::find(tenant, &self.group, &self.version).await?)
    }

    /// The same after this server has looked for it in vain, up to the revision that it has reached then: another server of
    /// this kind may just have registered it.
    pub(super) async fn late_server(&self, tenant: &Arc<Tenant>) -> Result<Option<Arc<Api>>, Error> {
        Ok(aggregator::find_at(tenant, &self.group, &self.version).await?)
    }

    /// Waits for a seat. A request keeps it to the end of its response, unless its client decides how long that takes: a watch
    /// gives it back when it is forwarded, and streams need none.
    async fn seat(&self, shared: &Arc<Shared>, flow: &Flow) -> Result<Option<Slot>, Error> {
        match self.kind {
            Kind::LongRunning if !self.is_watch => Ok(None),
            Kind::LongRunning => Ok(flow::slot(shared, flow).await.map(|_| None)?),
            Kind::Discovery | Kind::Plain => Ok(Some(flow::slot(shared, flow).await?)),
        }
    }

    /// Forwards a request.
    pub(super) async fn forward(
        &self,
        tenant: &Arc<Tenant>,
        api: &Api,
        entered: Entered<'_>,
        labels: &mut Labels,
    ) -> Result<Response<Body>, Error> {
        around::label_aggregated(labels, api);
        let Entered { user, flow, parts, body } = entered;
        let incoming = Incoming {
            method: parts.method.clone(),
            headers: parts.headers.clone(),
            path: self.path,
            query: parts.uri.query(),
            body: body.into_stream(),
            kind: self.kind,
            seat: self.seat(&tenant.shared, flow).await?,
        };
        Ok(aggregator::forward(tenant, api, user, incoming).await)
    }
}

/// Whether this server has nothing at a path.
pub(super) fn is_missing(answered: &Result<Response<Body>, Error>) -> bool {
    match answered {
        Ok(response) => response.status() == http::StatusCode::NOT_FOUND,
        Err(Error::PageNotFound) => true,
        Err(Error::Status(status)) => status.code == 404,
        Err(_) => false,
    }
}
