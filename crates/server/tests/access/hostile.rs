//! Every endpoint as nobody, as a user without rights, and as a service account of another tenant.

use k1s_server::{ApiServer, ServerOptions, User};
use serde_json::{Value, json};

use super::{admin, common, start};

/// What everybody may read.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Endpoints that are no resources, of the server and of a tenant.
const PATHS: [&str; 16] = [
    "/",
    "/api",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/metrics",
    "/debug/pprof/",
    "/logs/",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
    "/k1s/v1/metadata",
    "/k1s/v1/tenants",
    "/k1s/v1/tenants/default",
];

/// What users without rights may read besides.
const DISCOVERY: [&str; 3] = ["/api", "/apis", "/openapi"];

struct Request {
    method: &'static str,
    path: String,
}

/// All requests for the resources in the discovery of a server.
async fn requests(server: &ApiServer) -> Vec<Request> {
    let admin = admin(server);
    let mut versions = vec!["/api/v1".to_owned()];
    for group in admin.get("/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            versions.push(format!("/apis/{}", version["groupVersion"].as_str().unwrap()));
        }
    }
    let mut found = Vec::new();
    for root in versions {
        for resource in admin.get(&root).await["resources"].as_array().unwrap() {
            let (name, sub) = {
                let name = resource["name"].as_str().unwrap();
                name.split_once('/').map_or((name, String::new()), |(name, sub)| (name, format!("/{sub}")))
            };
            let place = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            let (all, one) = (format!("{root}{place}/{name}"), format!("{root}{place}/{name}/x{sub}"));
            for verb in resource["verbs"].as_array().unwrap() {
                let (method, path) = match verb.as_str().unwrap() {
                    "create" if sub.is_empty() => ("POST", all.clone()),
                    "create" => ("POST", one.clone()),
                    "list" => ("GET", all.clone()),
                    "watch" => ("GET", format!("{all}?watch=true")),
                    "deletecollection" => ("DELETE", all.clone()),
                    "get" => ("GET", one.clone()),
                    "update" => ("PUT", one.clone()),
                    "patch" => ("PATCH", one.clone()),
                    _ => ("DELETE", one.clone()),
                };
                found.push(Request { method, path });
            }
        }
    }
    found
}

/// A server with another tenant, and the token of a service account there.
async fn stage() -> (ApiServer, String) {
    let server = start(ServerOptions::default()).await;
    server.create_tenant("other").await.unwrap();
    let admin = admin(&server);
    let root = "/clusters/other/api/v1/namespaces/default/serviceaccounts";
    admin.post(root, json!({"metadata": {"name": "robot"}})).await;
    let binding = json!({"metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    admin.post("/clusters/other/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    let token = admin.post(&format!("{root}/robot/token"), json!({})).await;
    (server, token["status"]["token"].as_str().unwrap().to_owned())
}

async fn code(server: &ApiServer, user: Option<&User>, token: Option<&str>, request: &Request) -> u16 {
    let handle = match user {
        Some(user) => server.as_user(user.clone()),
        None => server.clone(),
    };
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let body = if request.method == "GET" { "" } else { "{}" };
    common::client(&handle).send(request.method, &request.path, &headers, body).await.status
}

#[tokio::test]
async fn nobody_gets_anything_from_any_endpoint_without_rights() {
    let (server, token) = stage().await;
    let requests = requests(&server).await;
    assert!(requests.len() > 500, "only {} requests", requests.len());
    let alice = User::new("alice", &[]);
    let own = ["selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    let mut wrong = Vec::new();
    for request in &requests {
        let is_own = request.method == "POST" && own.iter().any(|name| request.path.ends_with(name));
        let nobody = code(&server, None, None, request).await;
        let without_rights = code(&server, Some(&alice), None, request).await;
        let stranger = code(&server, None, Some(&token), request).await;
        // An empty review is not valid, but that is said to whoever may create it.
        let may = if is_own { without_rights != 403 } else { without_rights == 403 };
        if nobody != 403 || !may || stranger != 401 {
            let Request { method, path } = request;
            wrong.push(format!(
                "{method} {path}: nobody {nobody}, alice {without_rights}, stranger {stranger}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), requests.len(), wrong.join("\n"));
    // The token is good where it was issued, for everything but the tenants themselves.
    for (path, expected) in [
        ("/clusters/other/api/v1/secrets", 200),
        ("/clusters/other/api/v1/namespaces/kube-system", 200),
        ("/clusters/default/api/v1/secrets", 401),
        ("/clusters/nowhere/api/v1/secrets", 401),
        ("/k1s/v1/tenants", 401),
        ("/clusters/other/k1s/v1/tenants", 404),
    ] {
        let request = Request { method: "GET", path: path.into() };
        assert_eq!(code(&server, None, Some(&token), &request).await, expected, "{path}");
    }
}

#[tokio::test]
async fn other_endpoints_are_closed_but_for_health_and_discovery() {
    let (server, token) = stage().await;
    let alice = User::new("alice", &[]);
    for path in PUBLIC.iter().chain(&PATHS) {
        let is_public = PUBLIC.contains(path);
        let is_discovery = DISCOVERY.iter().any(|root| path.starts_with(root));
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let request = Request { method, path: (*path).to_owned() };
            let nobody = code(&server, None, None, &request).await;
            let without_rights = code(&server, Some(&alice), None, &request).await;
            let reads = method == "GET";
            assert_eq!(nobody == 403, !(is_public && reads), "{method} {path} as nobody: {nobody}");
            let may = reads && (is_public || is_discovery);
            assert_eq!(without_rights == 403, !may, "{method} {path} as alice: {without_rights}");
            assert_eq!(code(&server, None, Some(&token), &request).await, 401, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn headers_make_nobody_somebody() {
    let (server, _) = stage().await;
    let secrets = "/api/v1/secrets";
    let cases: [&[(&str, &str)]; 8] = [
        &[("x-remote-user", "admin"), ("x-remote-group", "system:masters")],
        &[("impersonate-user", "admin"), ("impersonate-group", "system:masters")],
        &[("impersonate-group", "system:masters")],
        &[("impersonate-uid", "1")],
        &[("impersonate-extra-a", "b")],
        &[("authorization", "Bearer x"), ("authorization", "Bearer y")],
        &[("authorization", "Basic YWRtaW46YWRtaW4=")],
        &[("x-forwarded-client-cert", "Subject=\"CN=admin,O=system:masters\"")],
    ];
    for headers in cases {
        let answer = common::client(&server).send("GET", secrets, headers, "").await;
        assert!(matches!(answer.status, 400 | 401 | 403), "{headers:?}: {}", answer.status);
        let alice = common::client(&server.as_user(User::new("alice", &[])));
        let answer = alice.send("GET", secrets, headers, "").await;
        assert!(matches!(answer.status, 400 | 401 | 403), "{headers:?}: {}", answer.status);
    }
    let value = admin(&server).call("GET", secrets, Value::Null).await.0;
    assert_eq!(value, 200);
}
