//! Request attributes for authorization, metrics and dispatch.

use http::Method;
use k1s_object::{Status, names, selector::FieldSelector};

use super::{
    Path, Query, ResourcePath, Verb,
    path::{parse_path, split_project, split_tenant},
};

/// The attributes of a request, derived from its method, its decoded path and its query alone.
#[derive(Debug)]
pub(crate) struct RequestInfo<'a> {
    /// The tenant of a path `/clusters/{tenant}/…`, or the project of a path `…/projects/{project}/control-plane/…` or of the
    /// request's host.
    pub(crate) tenant: Option<&'a str>,
    /// Whether the path, or the host, is a project's.
    pub(crate) is_project: bool,
    /// The path within the tenant, decoded.
    pub(crate) path: &'a str,
    /// The endpoint of that path.
    pub(crate) endpoint: Path,
    pub(crate) query: Query,
    /// The verb of a resource request, or the lower-case method of any other.
    pub(crate) verb: Verb<'static>,
    /// The one object that a list or watch selects by `metadata.name`; otherwise empty.
    pub(crate) selected_name: String,
}

impl<'a> RequestInfo<'a> {
    /// `max_selector_bytes`: a longer field selector is not parsed here, because the sender is not authenticated yet. It
    /// is rejected later.
    ///
    /// `projects_of`: the tenant whose projects have control planes, if any. `of_host`: the project that the name
    /// of the server means.
    pub(crate) fn resolve(
        method: &Method,
        path: &'a str,
        query: Option<&str>,
        max_selector_bytes: usize,
        projects_of: Option<&str>,
        of_host: Option<&'a str>,
    ) -> RequestInfo<'a> {
        let of_host = of_host.filter(|_| projects_of.is_some()).map(|name| (name, path));
        let (mut tenant, mut path) = split_tenant(path);
        let project = of_host.or_else(|| {
            projects_of.filter(|host| tenant.is_none_or(|tenant| tenant == *host))?;
            split_project(path)
        });
        if let Some((name, rest)) = project {
            (tenant, path) = (Some(name), rest);
        }
        let query = Query::parse(query);
        let endpoint = parse_path(path);
        let verb = match &endpoint {
            Path::Resource(path) => resource_verb(method, path, &query),
            _ => Verb::of_path(method),
        };
        let selected_name = selected_name(verb, &query, max_selector_bytes);
        RequestInfo { tenant, is_project: project.is_some(), path, endpoint, query, verb, selected_name }
    }

    /// Whether the client decides how long the request takes. Such requests have no deadline.
    pub(crate) fn is_long_running(&self) -> bool {
        let streams = |path: &ResourcePath| {
            matches!(&*path.subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
        };
        self.verb == Verb::Watch || matches!(&self.endpoint, Path::Resource(path) if streams(path))
    }

    /// Rejects a `timeout` parameter that is not a duration.
    pub(crate) fn check_timeout(&self) -> Result<(), Status> {
        if self.is_long_running() {
            return Ok(());
        }
        let Some(text) = self.query.find("timeout").filter(|text| !text.is_empty()) else { return Ok(()) };
        k1s_object::time::Duration::parse(text).map(|_| ()).map_err(|why| {
            Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })
    }
}

fn selected_name(verb: Verb<'_>, query: &Query, longest: usize) -> String {
    let selector = query.get("fieldSelector");
    if !matches!(verb, Verb::List | Verb::Watch) || selector.len() > longest {
        return String::new();
    }
    let selector = FieldSelector::parse(selector).unwrap_or_default();
    let name = selector.exact("metadata.name").unwrap_or_default();
    if names::is_path_segment_name(name).is_empty() { name.to_owned() } else { String::new() }
}

/// The verb of a resource request. The deprecated `/watch/` paths are watches of one object, too.
fn resource_verb(method: &Method, path: &ResourcePath, query: &Query) -> Verb<'static> {
    match Verb::of_resource(method, path.name.is_empty()) {
        Verb::Get | Verb::List if path.watch => Verb::Watch,
        Verb::List if query.flag("watch") => Verb::Watch,
        verb => verb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs() {
        let verb = |method: Method, path: &str, query: &str| {
            RequestInfo::resolve(&method, path, Some(query), 1 << 10, None, None).verb
        };
        assert_eq!(verb(Method::GET, "/api/v1/pods", ""), Verb::List);
        assert_eq!(verb(Method::GET, "/api/v1/pods", "watch=maybe"), Verb::Watch);
        assert_eq!(verb(Method::GET, "/api/v1/pods", "watch=false"), Verb::List);
        assert_eq!(verb(Method::GET, "/api/v1/namespaces/a", "watch=true"), Verb::Get);
        assert_eq!(verb(Method::DELETE, "/api/v1/namespaces/a/pods", ""), Verb::DeleteCollection);
    }

    #[test]
    fn projects_have_control_planes_in_their_host_alone() {
        let project = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/p/control-plane/api/v1/pods";
        let resolve = |path: &str, host| {
            let info = RequestInfo::resolve(&Method::GET, path, None, 1 << 10, host, None);
            (info.tenant.map(str::to_owned), info.is_project, info.path.to_owned())
        };
        let pods = || "/api/v1/pods".to_owned();
        assert_eq!(resolve(project, Some("host")), (Some("p".into()), true, pods()));
        assert_eq!(
            resolve(&format!("/clusters/host{project}"), Some("host")),
            (Some("p".into()), true, pods())
        );
        assert_eq!(resolve("/clusters/p/api/v1/pods", Some("host")), (Some("p".into()), false, pods()));
        assert!(!resolve(&format!("/clusters/q{project}"), Some("host")).1);
        assert_eq!(resolve(project, None), (None, false, project.to_owned()));
    }

    #[test]
    fn everything_below_a_projects_host_is_within_the_project() {
        let resolve = |path: &'static str, projects_of| {
            let info = RequestInfo::resolve(&Method::GET, path, None, 1 << 10, projects_of, Some("p"));
            (info.tenant, info.is_project, info.path)
        };
        let other = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/q/control-plane/api/v1/pods";
        for path in ["/api/v1/pods", "/clusters/q/api/v1/pods", other] {
            assert_eq!(resolve(path, Some("host")), (Some("p"), true, path));
        }
        assert_eq!(resolve("/api/v1/pods", None), (None, false, "/api/v1/pods"));
    }
}
