//! The policy in docs/audit.md.

use serde_json::{Value, json};

use crate::{CONFIGMAPS, Stage, configmap};

const DOCS: &str = include_str!("../../../../docs/audit.md");

/// The first example of this language.
fn example(language: &str) -> &'static str {
    let from = DOCS.split_once(&format!("```{language}\n")).expect("an example").1;
    from.split_once("```").expect("its end").0
}

#[tokio::test]
async fn the_example_records_what_it_says() {
    let stage = Stage::new(k1s_server::AuditPolicy::parse(example("yaml")).unwrap()).await;
    for path in ["/healthz", "/livez/ping", "/version", "/api/v1", "/apis", "/openapi/v3"] {
        stage.client.send("GET", path, &[], "").await;
    }
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}});
    stage.client.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease).await;
    assert_eq!(stage.events(), Vec::<Value>::new());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "hunter2"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
        "rules": []});
    let core = "/api/v1/namespaces/default";
    for (path, body, level, request, response) in [
        (format!("{core}/secrets"), secret, "Metadata", false, false),
        (CONFIGMAPS.to_owned(), configmap("c"), "Metadata", false, false),
        (format!("{core}/serviceaccounts"), account, "Request", true, false),
        (format!("{core}/serviceaccounts/robot/token"), request, "Metadata", false, false),
        ("/apis/authentication.k8s.io/v1/tokenreviews".into(), review, "Metadata", false, false),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles".into(), role, "RequestResponse", true, true),
    ] {
        let created = stage.client.post(&path, body).await;
        let (stages, event) = stage.one();
        assert_eq!((stages, &event["level"]), (vec!["ResponseComplete".into()], &json!(level)), "{path}");
        assert_eq!(
            (event["requestObject"].is_object(), event["responseObject"].is_object()),
            (request, response),
            "{path}"
        );
        assert!(!event.to_string().contains("managedFields"), "{path}: {created}");
    }
    stage.client.get("/api/v1/namespaces/default").await;
    assert_eq!(stage.one().1["level"], "Metadata");
}
