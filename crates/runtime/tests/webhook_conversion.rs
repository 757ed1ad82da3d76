//! Conversion between the versions of a kind, called in process.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the derive makes public kinds of public specs")]

mod webhook_common;

use k1s_env::Env;
use k1s_runtime::{
    BoxError,
    webhook::{
        RegisterError, WebhookOptions, WebhookServer,
        conversion::{Converter, ConverterError},
        paths,
    },
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webhook_common::{post, post_bytes};

/// The hub version.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "jobs.example.com", version = "v2", kind = "Task", namespaced)]
pub struct TaskSpec {
    schedule: String,
    zone: Option<String>,
}

mod v1 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
    #[kube(group = "jobs.example.com", version = "v1", kind = "Task", namespaced)]
    pub struct TaskSpec {
        pub cron: String,
    }
}

mod v1alpha1 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
    #[kube(group = "jobs.example.com", version = "v1alpha1", kind = "Task", namespaced)]
    pub struct TaskSpec {
        pub minutes: u32,
    }
}

mod other {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
    #[kube(group = "jobs.example.com", version = "v1", kind = "Other", namespaced)]
    pub struct OtherSpec {}
}

const ZONE: &str = "jobs.example.com/zone";

// Fields that v1 lacks go into an annotation, so that a round trip loses nothing.
impl From<Task> for v1::Task {
    fn from(mut task: Task) -> v1::Task {
        if let Some(zone) = task.spec.zone.take() {
            task.annotations_mut().insert(ZONE.into(), zone);
        }
        v1::Task { metadata: task.metadata, spec: v1::TaskSpec { cron: task.spec.schedule } }
    }
}

impl From<v1::Task> for Task {
    fn from(mut task: v1::Task) -> Task {
        let zone = task.annotations_mut().remove(ZONE);
        Task { metadata: task.metadata, spec: TaskSpec { schedule: task.spec.cron, zone } }
    }
}

// Builds a new object without copying the metadata.
impl From<v1alpha1::Task> for Task {
    fn from(task: v1alpha1::Task) -> Task {
        let schedule = format!("*/{} * * * *", task.spec.minutes);
        Task { metadata: Default::default(), spec: TaskSpec { schedule, zone: None } }
    }
}

impl TryFrom<Task> for v1alpha1::Task {
    type Error = BoxError;

    fn try_from(task: Task) -> Result<v1alpha1::Task, BoxError> {
        assert_ne!(task.spec.schedule, "panic", "an unexpected schedule");
        let minutes = task.spec.schedule.strip_prefix("*/").and_then(|rest| rest.split(' ').next());
        let minutes =
            minutes.ok_or_else(|| format!("{:?} is not an interval in minutes", task.spec.schedule))?;
        Ok(v1alpha1::Task {
            metadata: Default::default(),
            spec: v1alpha1::TaskSpec { minutes: minutes.parse()? },
        })
    }
}

fn server() -> WebhookServer {
    let server = WebhookServer::new(&Env::system(), WebhookOptions::default());
    server
        .register_converter(Converter::<Task>::new().spoke::<v1::Task>().spoke::<v1alpha1::Task>())
        .unwrap();
    server
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7", "generation": 3,
        "creationTimestamp": "2024-05-06T07:08:09Z", "labels": {"app": name},
        "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "jobs.example.com/v1",
            "time": "2024-05-06T07:08:09Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:cron": {}}}}],
    })
}

fn task(version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("jobs.example.com/{version}"), "kind": "Task", "metadata": metadata(name), "spec": spec})
}

fn review(desired: &str, objects: &[Value]) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "request": {
            "uid": "f263987e-4d58-465a-9195-bf72a1c83623",
            "desiredAPIVersion": format!("jobs.example.com/{desired}"), "objects": objects,
        }
    })
}

async fn convert(server: &WebhookServer, desired: &str, objects: &[Value]) -> Value {
    let (code, answer) = post(server, paths::CONVERT, &review(desired, objects)).await;
    assert_eq!(code, 200);
    assert_eq!(answer["kind"], "ConversionReview");
    assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(answer["response"]["uid"], "f263987e-4d58-465a-9195-bf72a1c83623");
    answer["response"].clone()
}

async fn failure(server: &WebhookServer, desired: &str, objects: &[Value]) -> String {
    let response = convert(server, desired, objects).await;
    assert_eq!(response["result"]["status"], "Failure", "{response}");
    assert_eq!(response["convertedObjects"], json!([]));
    response["result"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_object_survives_a_round_trip_through_a_spoke() {
    let server = server();
    let hub = task("v2", "a", &json!({"schedule": "@daily", "zone": "UTC"}));
    let response = convert(&server, "v1", std::slice::from_ref(&hub)).await;
    assert_eq!(response["result"], json!({"status": "Success"}));
    let spoke = &response["convertedObjects"][0];
    assert_eq!(spoke["apiVersion"], "jobs.example.com/v1");
    assert_eq!(spoke["kind"], "Task");
    assert_eq!(spoke["spec"], json!({"cron": "@daily"}));
    assert_eq!(spoke["metadata"]["annotations"], json!({ZONE: "UTC"}));
    assert_eq!(spoke["metadata"]["managedFields"], hub["metadata"]["managedFields"]);

    let back = convert(&server, "v2", std::slice::from_ref(spoke)).await["convertedObjects"][0].clone();
    assert_eq!(back["spec"], hub["spec"]);
    assert_eq!(back["metadata"]["labels"], hub["metadata"]["labels"]);
    assert_eq!(back["metadata"]["uid"], "uid-a");
    assert!(back["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty));
}

#[tokio::test]
async fn spokes_are_converted_through_the_hub() {
    let server = server();
    let response = convert(&server, "v1", &[task("v1alpha1", "a", &json!({"minutes": 5}))]).await;
    assert_eq!(response["convertedObjects"][0]["spec"], json!({"cron": "*/5 * * * *"}));
    let response = convert(&server, "v1alpha1", &[task("v1", "a", &json!({"cron": "*/5 * * * *"}))]).await;
    assert_eq!(response["convertedObjects"][0]["spec"], json!({"minutes": 5}));
}

#[tokio::test]
async fn metadata_dropped_by_a_conversion_is_restored() {
    let response = convert(&server(), "v2", &[task("v1alpha1", "a", &json!({"minutes": 5}))]).await;
    assert_eq!(response["convertedObjects"][0]["metadata"], metadata("a"));
}

#[tokio::test]
async fn objects_in_the_desired_version_are_returned_unchanged() {
    let mut already = task("v1", "a", &json!({"cron": "@daily", "unknown": true}));
    already["metadata"]["strange"] = json!(1);
    let objects = [already.clone(), task("v2", "b", &json!({"schedule": "@hourly"}))];
    let response = convert(&server(), "v1", &objects).await;
    assert_eq!(response["convertedObjects"][0], already);
    assert_eq!(response["convertedObjects"][1]["spec"], json!({"cron": "@hourly"}));
    assert_eq!(convert(&server(), "v1", &[]).await["convertedObjects"], json!([]));
}

#[tokio::test]
async fn one_failing_object_fails_the_review_and_is_named() {
    let objects =
        [task("v1", "good", &json!({"cron": "*/5 * * * *"})), task("v1", "bad", &json!({"cron": "@daily"}))];
    assert_eq!(
        failure(&server(), "v1alpha1", &objects).await,
        "Task.jobs.example.com default/bad cannot be converted from jobs.example.com/v1 to jobs.example.com/v1alpha1: \
         \"@daily\" is not an interval in minutes"
    );
}

#[tokio::test]
async fn unknown_versions_and_kinds_fail() {
    let server = server();
    let good = task("v1", "a", &json!({"cron": "@daily"}));
    let message = failure(&server, "v9", std::slice::from_ref(&good)).await;
    assert!(message.contains("jobs.example.com/v9 is not known, only"), "{message}");
    assert!(
        message.contains("jobs.example.com/v1, jobs.example.com/v1alpha1, jobs.example.com/v2"),
        "{message}"
    );

    let message = failure(&server, "v1", &[task("v9", "a", &json!({}))]).await;
    assert!(message.contains("jobs.example.com/v9 is not known"), "{message}");

    let mut other = good.clone();
    other["kind"] = json!("Other");
    assert!(failure(&server, "v2", &[other]).await.contains("Other.jobs.example.com default/a"));

    let mut elsewhere = good;
    elsewhere["apiVersion"] = json!("elsewhere.example.com/v1");
    assert!(failure(&server, "v2", &[elsewhere]).await.contains("the groups differ"));

    let message = failure(&server, "v2", &[task("v1", "a", &json!({"cron": 5}))]).await;
    assert!(message.contains("invalid type: integer `5`"), "{message}");
}

#[tokio::test]
async fn names_may_not_change() {
    let server = WebhookServer::new(&Env::system(), WebhookOptions::default());
    let converter = Converter::<Task>::new().spoke_with::<v1::Task>(
        |task| Ok(task.into()),
        |mut task: Task| {
            task.metadata.name = Some("renamed".into());
            Ok(task.into())
        },
    );
    server.register_converter(converter).unwrap();
    let message = failure(&server, "v1", &[task("v2", "a", &json!({"schedule": "@daily"}))]).await;
    assert!(message.ends_with(r#"metadata.name must not change: "a" became "renamed""#), "{message}");
}

#[tokio::test]
async fn a_panic_is_reported_as_a_failure_and_counted() {
    let server = server();
    let message = failure(&server, "v1alpha1", &[task("v2", "a", &json!({"schedule": "panic"}))]).await;
    assert!(message.contains("panic: ") && message.ends_with("[recovered]"), "{message}");
    let metrics = server.options().metrics.encode();
    assert!(metrics.contains("controller_runtime_conversion_webhook_panics_total 1\n"));
    assert!(metrics.contains("controller_runtime_webhook_panics_total 0\n"));
}

#[tokio::test]
async fn a_body_that_is_not_a_review_is_a_bad_request() {
    let server = server();
    let no_request = json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}).to_string();
    let other =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {}}).to_string();
    for body in [String::new(), "{".into(), no_request, other] {
        assert_eq!(post_bytes(&server, paths::CONVERT, body).await.status(), 400);
    }
    let mut beta = review("v1", &[]);
    beta["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    let (_, answer) = post(&server, paths::CONVERT, &beta).await;
    assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1beta1");
}

#[tokio::test]
async fn an_invalid_converter_is_refused() {
    let server = server();
    let again = server.register_converter(Converter::<Task>::new());
    assert_eq!(again, Err(RegisterError::DuplicateConverter("Task.jobs.example.com".into())));
    server.register_converter(Converter::<other::Other>::new()).unwrap();

    let twice = Converter::<Task>::new().spoke::<v1::Task>().spoke::<v1::Task>();
    let error = ConverterError::Duplicate("jobs.example.com/v1".into());
    assert_eq!(server.register_converter(twice), Err(RegisterError::Converter(error)));

    let other =
        Converter::<Task>::new().spoke_with::<other::Other>(|_| Err("no".into()), |_| Err("no".into()));
    assert_eq!(
        server.register_converter(other).unwrap_err().to_string(),
        "invalid converter: Other.jobs.example.com is not a version of the hub's kind Task.jobs.example.com"
    );
}
