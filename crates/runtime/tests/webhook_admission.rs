//! Admission, called in process: the responses to reviews sent by kube-apiserver.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod webhook_common;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use k1s_env::{Env, WorkTracker};
use k1s_object::FieldError;
use k1s_runtime::{
    Metrics,
    webhook::{
        Hook, RegisterError, Webhook, WebhookOptions, WebhookServer,
        admission::{
            AdmissionHook, AdmissionRequest, AdmissionResponse, Defaulter, Operation, Rejection, Validator,
            Warnings,
        },
    },
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::DeleteOptions};
use kube::core::{DynamicObject, Status};
use serde_json::{Value, json};
use webhook_common::*;

const MUTATE: &str = "/mutate-shop-example-com-v1-widget";
const VALIDATE: &str = "/validate-shop-example-com-v1-widget";

fn server() -> WebhookServer {
    WebhookServer::new(&Env::system(), WebhookOptions::default())
}

fn defaulting(default: impl Fn(&mut Widget) + Send + Sync + 'static) -> WebhookServer {
    let server = server();
    let webhook = Webhook::for_::<Widget>().default_with(move |widget, _| {
        default(widget);
        Ok(())
    });
    webhook.complete(&server).unwrap();
    server
}

fn validating(
    validate: impl Fn(&AdmissionRequest) -> Result<Warnings, Rejection> + Send + Sync + 'static,
) -> WebhookServer {
    let server = server();
    Webhook::for_::<Widget>().validate_with(move |_, request| validate(request)).complete(&server).unwrap();
    server
}

#[tokio::test]
async fn a_defaulter_responds_with_its_changes_and_nothing_else() {
    let server = defaulting(|widget| widget.spec.replicas = Some(3));
    let body = create(&json!({"parts": [], "unknown": {"deep": null}}));
    let (code, answer) = post(&server, MUTATE, &body).await;
    assert_eq!(code, 200);
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["status"]["code"], 200);
    assert_eq!(patch(&answer), Some(json!([{"op": "add", "path": "/spec/replicas", "value": 3}])));
}

#[tokio::test]
async fn unknown_fields_of_items_survive_when_items_move() {
    let server = defaulting(|widget| {
        widget.spec.parts.insert(0, Part { name: "sidecar".into(), weight: None });
        widget.spec.parts[2].weight = Some(7);
    });
    let body = create(
        &json!({"parts": [{"name": "a", "x": 1}, {"name": "b", "weight": 2, "x": 2}], "colour": "red"}),
    );
    let (_, answer) = post(&server, MUTATE, &body).await;
    assert_eq!(
        patched(&body, &answer)["spec"]["parts"],
        json!([{"name": "sidecar"}, {"name": "a", "x": 1}, {"name": "b", "weight": 7, "x": 2}])
    );
    assert_eq!(patched(&body, &answer)["metadata"], body["request"]["object"]["metadata"]);
}

#[tokio::test]
async fn a_field_that_the_defaulter_clears_is_removed() {
    let server = defaulting(|widget| widget.spec.colour = None);
    let (_, answer) = post(&server, MUTATE, &create(&json!({"colour": "red", "x": 1}))).await;
    assert_eq!(patch(&answer), Some(json!([{"op": "remove", "path": "/spec/colour"}])));
}

#[tokio::test]
async fn a_defaulter_that_changes_nothing_sends_no_patch() {
    let server = defaulting(|_| {});
    let (_, answer) = post(&server, MUTATE, &create(&json!({"x": 1}))).await;
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(patch(&answer), None);
    assert!(answer["response"].get("patchType").is_none());
}

#[tokio::test]
async fn a_defaulter_can_be_configured_to_remove_unknown_fields() {
    let server = server();
    Webhook::for_::<Widget>()
        .default_with(|_, _| Ok(()))
        .remove_unknown_fields(true)
        .complete(&server)
        .unwrap();
    let body = create(&json!({"replicas": 1, "parts": [], "colour": "red", "x": 1}));
    let (_, answer) = post(&server, MUTATE, &body).await;
    assert_eq!(patched(&body, &answer)["spec"], json!({"replicas": 1, "parts": [], "colour": "red"}));
}

#[tokio::test]
async fn a_defaulter_is_not_called_for_deletions() {
    let server = defaulting(|_| panic!("called"));
    let (_, answer) = post(&server, MUTATE, &delete(&json!({}))).await;
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["status"]["code"], 200);
}

struct Careful;

impl Defaulter<Widget> for Careful {
    async fn default(&self, widget: &mut Widget, request: &AdmissionRequest) -> Result<(), Rejection> {
        if request.user() != "alice" {
            return Err("only alice".into());
        }
        widget.spec.colour = Some(format!("{}-{}", request.raw_operation(), request.dry_run));
        Ok(())
    }
}

impl Validator<Widget> for Careful {
    async fn validate_create(&self, widget: &Widget, _: &AdmissionRequest) -> Result<Warnings, Rejection> {
        Ok(vec![format!("creating {:?}", widget.spec.replicas)])
    }

    async fn validate_update(
        &self,
        old: &Widget,
        new: &Widget,
        _: &AdmissionRequest,
    ) -> Result<Warnings, Rejection> {
        if new.spec.replicas < old.spec.replicas {
            let error = FieldError::invalid("spec.replicas", new.spec.replicas, "must not shrink");
            return Err(Rejection::invalid([error]).with_warnings(["think again"]));
        }
        Ok(vec![])
    }

    async fn validate_delete(
        &self,
        widget: &Widget,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Rejection> {
        let options: DeleteOptions = request.options()?;
        assert_eq!(options.kind.as_deref(), Some("DeleteOptions"));
        if widget.spec.colour.as_deref() == Some("gold") {
            return Err("gold is kept".into());
        }
        Ok(vec![])
    }
}

fn careful() -> WebhookServer {
    let server = server();
    Webhook::for_::<Widget>().defaulter(Careful).validator(Careful).complete(&server).unwrap();
    server
}

#[tokio::test]
async fn a_defaulter_sees_the_request_and_can_refuse_it() {
    let server = careful();
    let mut body = create(&json!({}));
    body["request"]["dryRun"] = json!(true);
    let (_, answer) = post(&server, MUTATE, &body).await;
    assert_eq!(patched(&body, &answer)["spec"]["colour"], "CREATE-true");

    body["request"]["userInfo"]["username"] = json!("bob");
    let (code, answer) = post(&server, MUTATE, &body).await;
    assert_eq!(code, 200);
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(
        answer["response"]["status"],
        json!({"code": 403, "reason": "Forbidden", "message": "only alice"})
    );
}

#[tokio::test]
async fn a_validator_sees_creations_and_warns() {
    let (_, answer) = post(&careful(), VALIDATE, &create(&json!({"replicas": 2}))).await;
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["warnings"], json!(["creating Some(2)"]));
}

#[tokio::test]
async fn field_errors_become_an_invalid_status_that_names_object_and_field() {
    let server = careful();
    let (_, answer) =
        post(&server, VALIDATE, &update(&json!({"replicas": 2}), &json!({"replicas": 3}))).await;
    assert_eq!(answer["response"]["allowed"], true);

    let (_, answer) =
        post(&server, VALIDATE, &update(&json!({"replicas": 2}), &json!({"replicas": 1}))).await;
    let response = &answer["response"];
    assert_eq!(response["allowed"], false);
    assert_eq!(response["warnings"], json!(["think again"]));
    let status = &response["status"];
    assert_eq!(status["code"], 422);
    assert_eq!(status["reason"], "Invalid");
    assert_eq!(status["status"], "Failure");
    assert_eq!(
        status["message"],
        r#"Widget.shop.example.com "gear" is invalid: spec.replicas: Invalid value: 1: must not shrink"#
    );
    assert_eq!(status["details"]["name"], "gear");
    assert_eq!(status["details"]["group"], "shop.example.com");
    assert_eq!(status["details"]["kind"], "Widget");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.replicas");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
}

#[tokio::test]
async fn a_validator_sees_the_old_object_of_a_deletion() {
    let server = careful();
    let (_, answer) = post(&server, VALIDATE, &delete(&json!({"colour": "gold"}))).await;
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["message"], "gold is kept");
    let (_, answer) = post(&server, VALIDATE, &delete(&json!({"colour": "lead"}))).await;
    assert_eq!(answer["response"]["allowed"], true);
}

#[derive(Debug, thiserror::Error)]
#[error("looking it up failed")]
struct LookupError {
    source: k1s_object::Status,
}

#[tokio::test]
async fn an_error_that_is_a_status_keeps_code_reason_and_details() {
    for (error, code, reason) in [(0, 409, "Conflict"), (1, 429, "TooManyRequests"), (2, 404, "NotFound")] {
        let server = validating(move |_| {
            let not_found = || k1s_object::Status::not_found("", "pods", "a");
            match error {
                0 => Err(k1s_object::Status::conflict("", "pods", "a", "changed"))?,
                1 => Err(kube::Error::Api(
                    Status::failure("slow down", "TooManyRequests").with_code(429).boxed(),
                ))?,
                _ => Err(LookupError { source: not_found() })?,
            }
            Ok(vec![])
        });
        let (_, answer) = post(&server, VALIDATE, &create(&json!({}))).await;
        assert_eq!(answer["response"]["status"]["code"], code, "{answer}");
        assert_eq!(answer["response"]["status"]["reason"], reason);
    }
}

#[tokio::test]
async fn connections_are_allowed_and_unknown_operations_are_not() {
    let server = validating(|_| Err("called".into()));
    let (_, answer) = post(&server, VALIDATE, &review("CONNECT", None, None, "PodExecOptions")).await;
    assert_eq!(answer["response"]["allowed"], true);
    let (code, answer) = post(&server, VALIDATE, &review("PONDER", None, None, "")).await;
    assert_eq!(code, 200);
    assert_eq!(answer["response"]["status"], json!({"code": 400, "message": "unknown operation \"PONDER\""}));
}

#[tokio::test]
async fn an_object_that_is_not_of_the_kind_is_a_bad_request() {
    let server = careful();
    for path in [MUTATE, VALIDATE] {
        let (code, answer) = post(&server, path, &create(&json!({"replicas": "three"}))).await;
        assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(false)));
        assert_eq!(answer["response"]["status"]["code"], 400);
        let message = answer["response"]["status"]["message"].as_str().unwrap();
        assert!(message.contains("invalid type: string \"three\""), "{message}");
        let (_, answer) = post(&server, path, &review("CREATE", None, None, "CreateOptions")).await;
        assert_eq!(answer["response"]["status"]["message"], "there is no content to decode");
    }
}

#[tokio::test]
async fn a_review_is_answered_in_its_own_version() {
    let server = careful();
    let mut body = create(&json!({}));
    body["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let (_, answer) = post(&server, VALIDATE, &body).await;
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn a_body_that_is_not_a_review_gets_a_review_with_code_400() {
    let server = careful();
    let other = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2", "request": {}});
    let pod = json!({"kind": "Pod", "apiVersion": "v1"});
    let no_request = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"});
    for (body, why) in [
        (String::new(), "request body is empty"),
        ("{".into(), "the body cannot be decoded"),
        (other.to_string(), "\"admission.k8s.io/v2\" is not an AdmissionReview"),
        (pod.to_string(), "\"Pod\" of \"v1\" is not an AdmissionReview"),
        (no_request.to_string(), "has no request"),
    ] {
        let response = post_bytes(&server, VALIDATE, body).await;
        assert_eq!(response.status(), 400);
        let answer: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["status"]["code"], 400);
        let message = answer["response"]["status"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
    let request =
        Request::post(VALIDATE).header("content-type", "application/yaml").body(Bytes::from("a")).unwrap();
    let response = server.handle(request).await;
    assert_eq!(response.status(), 400);
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    let message = &answer["response"]["status"]["message"];
    assert_eq!(message, "contentType=application/yaml, expected application/json");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let server =
        WebhookServer::new(&Env::system(), WebhookOptions { max_body: 100, ..WebhookOptions::default() });
    Webhook::for_::<Widget>().validator(Careful).complete(&server).unwrap();
    let response = post_bytes(&server, VALIDATE, vec![b' '; 101]).await;
    assert_eq!(response.status(), 413);
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(answer["response"]["status"]["code"], 413);
    assert_eq!(answer["response"]["status"]["message"], "request entity is too large; limit is 100 bytes");
    assert_eq!(WebhookOptions::default().max_body, 7 << 20);
}

#[tokio::test]
async fn a_panic_is_reported_and_counted_and_the_next_request_is_served() {
    let server =
        validating(|request| if request.dry_run { panic!("out of {}", "cheese") } else { Ok(vec![]) });
    let mut body = create(&json!({}));
    body["request"]["dryRun"] = json!(true);
    let (code, answer) = post(&server, VALIDATE, &body).await;
    assert_eq!(code, 200);
    assert_eq!(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!(answer["response"]["allowed"], false);
    let status = json!({"code": 500, "message": "panic: out of cheese [recovered]"});
    assert_eq!(answer["response"]["status"], status);
    let (_, answer) = post(&server, VALIDATE, &create(&json!({}))).await;
    assert_eq!(answer["response"]["allowed"], true);
    assert!(server.options().metrics.encode().contains("controller_runtime_webhook_panics_total 1\n"));
}

#[tokio::test]
#[should_panic(expected = "let through")]
async fn panic_recovery_can_be_turned_off() {
    let server = server();
    let webhook = Webhook::for_::<Widget>().default_with(|_, _| panic!("let through")).recover_panic(false);
    webhook.complete(&server).unwrap();
    post(&server, MUTATE, &create(&json!({}))).await;
}

#[tokio::test]
async fn a_raw_handler_sees_everything_and_may_patch() {
    let server = server();
    let handler = AdmissionHook::new(|request: Arc<AdmissionRequest>| async move {
        assert_eq!(request.operation, Some(Operation::Update));
        assert_eq!(request.resource.resource, "widgets");
        assert_eq!(request.user_info.groups.as_ref().unwrap().len(), 2);
        let old: Value = request.old_object().unwrap();
        assert_eq!(old["spec"]["x"], 1);
        assert!(request.raw_object().unwrap().contains("\"x\":2"));
        let patch =
            serde_json::from_value(json!([{"op": "replace", "path": "/spec/x", "value": 9}])).unwrap();
        AdmissionResponse::patched(patch)
            .with_warnings(["careful"])
            .with_message("done")
            .with_audit_annotation("who", request.user())
    });
    server.register("/raw", handler).unwrap();
    let body = update(&json!({"x": 1}), &json!({"x": 2}));
    let (_, answer) = post(&server, "/raw", &body).await;
    assert_eq!(patched(&body, &answer)["spec"], json!({"x": 9}));
    assert_eq!(answer["response"]["auditAnnotations"], json!({"who": "alice"}));
    assert_eq!(answer["response"]["status"]["message"], "done");
    assert_eq!(answer["response"]["warnings"], json!(["careful"]));
}

#[tokio::test]
async fn handlers_for_kube_rs_types_work() {
    let server = server();
    let handler = AdmissionHook::new(|request: Arc<AdmissionRequest>| async move {
        let request: kube::core::admission::AdmissionRequest<DynamicObject> = request.to_kube().unwrap();
        let response = kube::core::admission::AdmissionResponse::from(&request);
        if request.object.is_none() {
            return response.deny("no").into();
        }
        let patch = serde_json::from_value(json!([{"op": "add", "path": "/spec/x", "value": 1}])).unwrap();
        response.with_patch(patch).unwrap().into()
    });
    server.register("/kube", handler).unwrap();
    let body = create(&json!({}));
    let (_, answer) = post(&server, "/kube", &body).await;
    assert_eq!(patched(&body, &answer)["spec"], json!({"x": 1}));
    let (_, answer) = post(&server, "/kube", &delete(&json!({}))).await;
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"], json!({"code": 403, "message": "no"}));
}

#[tokio::test]
async fn paths_are_unique_and_handlers_can_be_added_later() {
    let server = server();
    Webhook::for_::<Pod>().default_with(|_, _| Ok(())).complete(&server).unwrap();
    let again = Webhook::for_::<Pod>().default_with(|_, _| Ok(())).complete(&server);
    assert_eq!(again, Err(RegisterError::Duplicate("/mutate--v1-pod".into())));
    assert_eq!(again.unwrap_err().to_string(), "can't register duplicate path: /mutate--v1-pod");
    let elsewhere = Webhook::for_::<Pod>().default_with(|_, _| Ok(())).defaulter_path("/elsewhere");
    elsewhere.complete(&server).unwrap();
    let nowhere = Webhook::for_::<Pod>().default_with(|_, _| Ok(())).defaulter_path("not a path");
    assert_eq!(nowhere.complete(&server), Err(RegisterError::Path("not a path".into())));
    assert_eq!(server.paths(), ["/elsewhere", "/mutate--v1-pod"]);
    let both = Webhook::for_::<Pod>().default_with(|_, _| Ok(())).validate_with(|_, _| Ok(vec![]));
    let both = both.validator_path("/new").complete(&server);
    assert_eq!(both, Err(RegisterError::Duplicate("/mutate--v1-pod".into())));
    assert_eq!(server.paths().len(), 2, "all or nothing");

    assert_eq!(post_bytes(&server, "/late", "").await.status(), 404);
    let late = Hook::http(|request: Request<Bytes>| async move { Response::new(request.into_body()) });
    server.register("/late", late).unwrap();
    let response = post_bytes(&server, "/late", "echo").await;
    assert_eq!((response.status().as_u16(), &response.body()[..]), (200, &b"echo"[..]));
    let bad = Hook::http(|_: Request<Bytes>| async move { panic!("plain") });
    server.register("/bad", bad).unwrap();
    let response = post_bytes(&server, "/bad", "").await;
    assert_eq!((response.status().as_u16(), &response.body()[..]), (500, &b"panic: plain [recovered]"[..]));
}

#[tokio::test]
async fn metrics_have_the_names_of_controller_runtime() {
    let (env, clock) = Env::simulated(1);
    let metrics = Metrics::new();
    let options = WebhookOptions { metrics: metrics.clone(), ..WebhookOptions::default() };
    let server = WebhookServer::new(&env, options);
    let seen = metrics.clone();
    let handler = AdmissionHook::new(move |_: Arc<AdmissionRequest>| {
        clock.advance(std::time::Duration::from_millis(250));
        assert!(
            seen.encode().contains("controller_runtime_webhook_requests_in_flight{webhook=\"/raw\"} 1\n")
        );
        async { AdmissionResponse::denied("no") }
    });
    server.register("/raw", handler).unwrap();
    let before = metrics.encode();
    assert!(
        before.contains("controller_runtime_webhook_requests_total{webhook=\"/raw\",code=\"200\"} 0\n"),
        "{before}"
    );
    assert!(before.contains("controller_runtime_webhook_requests_total{webhook=\"/raw\",code=\"500\"} 0\n"));
    assert!(before.contains("controller_runtime_webhook_panics_total 0\n"));
    assert!(before.contains("controller_runtime_conversion_webhook_panics_total 0\n"));

    post(&server, "/raw", &create(&json!({}))).await;
    assert_eq!(post_bytes(&server, "/raw", "").await.status(), 400);
    let after = metrics.encode();
    for line in [
        "controller_runtime_webhook_requests_total{webhook=\"/raw\",code=\"200\"} 1\n",
        "controller_runtime_webhook_requests_total{webhook=\"/raw\",code=\"400\"} 1\n",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/raw\"} 0\n",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/raw\"} 2\n",
        "controller_runtime_webhook_latency_seconds_sum{webhook=\"/raw\"} 0.25\n",
    ] {
        assert!(after.contains(line), "{line} is not in\n{after}");
    }
}

#[tokio::test]
async fn a_request_is_tracked_and_refused_once_the_tracker_stops_accepting() {
    let env = Env::system();
    let tracker = WorkTracker::new(env.clone());
    let server = WebhookServer::new(
        &env,
        WebhookOptions { tracker: Some(tracker.clone()), ..WebhookOptions::default() },
    );
    let during = tracker.clone();
    let handler = AdmissionHook::new(move |_: Arc<AdmissionRequest>| {
        assert_eq!(during.running()[0].description, "/raw");
        async { AdmissionResponse::allowed() }
    });
    server.register("/raw", handler).unwrap();
    let (code, _) = post(&server, "/raw", &create(&json!({}))).await;
    assert_eq!(code, 200);
    let stats = tracker.component("webhook").stats();
    assert_eq!((stats.succeeded, stats.in_flight, stats.failed), (1, 0, 0));
    tracker.stop_accepting();
    assert_eq!(post_bytes(&server, "/raw", create(&json!({})).to_string()).await.status(), 503);
    assert_eq!(tracker.component("webhook").stats().refused, 1);
}
