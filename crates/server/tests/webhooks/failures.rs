//! Refusals, and webhooks that fail.

use super::*;

#[tokio::test]
async fn refusals_in_the_words_of_kubernetes() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |request| {
        let status = request["object"]["metadata"]["annotations"]["status"].as_str().unwrap();
        json!({"allowed": false, "status": serde_json::from_str::<Value>(status).unwrap()})
    });
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
    let by = "admission webhook \"a.k1s.dev\" denied the request";
    for (status, code, expected) in [
        (json!(null), 400, format!("{by} without explanation")),
        (json!({}), 400, format!("{by} without explanation")),
        (json!({"message": "you shall not pass"}), 400, format!("{by}: you shall not pass")),
        (json!({"reason": "Forbidden"}), 400, format!("{by}: Forbidden")),
        (json!({"message": "no", "reason": "Forbidden", "code": 403}), 403, format!("{by}: no")),
        (json!({"code": 200}), 400, format!("{by} without explanation")),
        (json!({"code": 399}), 400, format!("{by} without explanation")),
        (json!({"code": 500}), 500, format!("{by} without explanation")),
        (
            json!({"status": "Success", "code": 418, "details": {"kind": "pots"}}),
            418,
            format!("{by} without explanation"),
        ),
    ] {
        let annotations = json!({"status": status.to_string()});
        let (found, answer) =
            stage.configmap(json!({"metadata": {"name": "c", "annotations": annotations}})).await;
        assert_eq!((found, answer["message"].as_str().unwrap()), (code, &*expected), "{status}");
        assert_eq!((&answer["status"], &answer["code"]), (&json!("Failure"), &json!(code)));
        assert_eq!(answer["reason"], status["reason"]);
        assert_eq!(answer["details"], status["details"]);
    }
}

#[tokio::test]
async fn warnings_reach_the_client() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |_| json!({"allowed": true, "warnings": ["one", "two \"quoted\"", "one"]}));
    stage.serve("b.k1s.dev", |_| json!({"allowed": false, "warnings": ["three"]}));
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    stage.register("Validating", "v", &[json!({"name": "b.k1s.dev"})]).await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let answer = stage.send("POST", CONFIGMAPS, &body).await;
    let warnings: Vec<&str> =
        answer.headers.get_all("warning").iter().map(|one| one.to_str().unwrap()).collect();
    assert_eq!(
        (answer.status, warnings),
        (400, vec!["299 - \"one\"", "299 - \"two \\\"quoted\\\"\"", "299 - \"three\""])
    );
}

/// The failure policy decides about webhooks that cannot be called, whatever the reason is.
#[tokio::test]
async fn webhooks_that_fail() {
    let stage = Stage::new().await;
    let review = |change: Value| {
        move |body: Bytes| {
            let sent: Value = serde_json::from_slice(&body).unwrap();
            let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {"uid": sent["request"]["uid"], "allowed": true}});
            merge(&mut review, &change);
            (200, review.to_string())
        }
    };
    stage.raw("garbage.k1s.dev", |_| (200, "garbage".into()));
    stage.raw("empty.k1s.dev", |_| (200, String::new()));
    stage.raw("error.k1s.dev", |_| (500, "oops".into()));
    stage.raw("missing.k1s.dev", |_| (404, "404 page not found\n".into()));
    stage.raw("panics.k1s.dev", |_| panic!("on purpose"));
    stage.raw("deep.k1s.dev", |_| (200, "[".repeat(100_000)));
    stage.raw("big.k1s.dev", |_| (200, format!("\"{}\"", "x".repeat(17 << 20))));
    stage.raw("uid.k1s.dev", review(json!({"response": {"uid": "other", "allowed": true}})));
    stage.raw("absent.k1s.dev", review(json!({"response": null})));
    stage.raw("kind.k1s.dev", review(json!({"kind": "ConfigMap"})));
    stage.raw("version.k1s.dev", review(json!({"apiVersion": "admission.k8s.io/v1beta1"})));
    let called = "failed to call webhook: ";
    let invalid = "received invalid webhook response: ";
    for (name, why) in [
        ("garbage.k1s.dev", format!("{called}couldn't get version/kind; json parse error: ")),
        ("empty.k1s.dev", format!("{called}couldn't get version/kind; json parse error: ")),
        (
            "error.k1s.dev",
            format!("{called}an error on the server (\"oops\") has prevented the request from succeeding"),
        ),
        ("missing.k1s.dev", format!("{called}the server could not find the requested resource")),
        (
            "panics.k1s.dev",
            format!("{called}Post \"https://panics.k1s.dev/hook?timeout=10s\": the service panicked"),
        ),
        ("deep.k1s.dev", format!("{called}couldn't get version/kind; json parse error: ")),
        ("big.k1s.dev", format!("{called}the answer of the webhook is larger than 16777216 bytes")),
        ("uid.k1s.dev", format!("{invalid}expected response.uid=")),
        ("absent.k1s.dev", format!("{invalid}webhook response was absent")),
        (
            "kind.k1s.dev",
            format!("{called}no kind \"ConfigMap\" is registered for version \"admission.k8s.io/v1\""),
        ),
        (
            "version.k1s.dev",
            format!(
                "{invalid}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview"
            ),
        ),
    ] {
        for kind in ["Mutating", "Validating"] {
            for (policy, expected) in [("Fail", 500), ("Ignore", 201)] {
                stage.register(kind, "c", &[json!({"name": name, "failurePolicy": policy})]).await;
                let path = format!("{CONFIGMAPS}?dryRun=All");
                let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
                let (code, answer) = stage.client.call("POST", &path, body).await;
                assert_eq!(code, expected, "{name} {kind} {policy}: {answer}");
                if expected == 500 {
                    let message = answer["message"].as_str().unwrap();
                    let start = format!("Internal error occurred: failed calling webhook \"{name}\": {why}");
                    assert!(message.starts_with(&start), "{message}");
                    assert_eq!(answer["reason"], "InternalError");
                }
                stage.unregister(kind, "c").await;
            }
        }
    }
}

#[tokio::test]
async fn a_validating_webhook_may_not_patch() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |_| patch(&json!([{"op": "add", "path": "/data", "value": {}}])));
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
    let (code, answer) = stage.configmap(json!({"metadata": {"name": "c"}})).await;
    assert_eq!(code, 500);
    assert_eq!(
        answer["message"],
        "Internal error occurred: failed calling webhook \"a.k1s.dev\": received invalid webhook response: validating webhook may not return response.patch"
    );
}

#[tokio::test]
async fn a_webhook_that_hangs_is_given_up_and_others_are_served_meanwhile() {
    let stage = Stage::new().await;
    let never =
        tower::service_fn(|_: Request<Bytes>| std::future::pending::<Result<Response<Bytes>, Infallible>>());
    stage.local.serve("default", "a.k1s.dev", never);
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev", "timeoutSeconds": 1})]).await;
    let hanging = (0..50).map(|i| {
        let stage = &stage;
        async move { stage.configmap(json!({"metadata": {"name": format!("c{i}")}})).await }
    });
    let others = async {
        for i in 0..50 {
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{i}")}});
            stage.client.post("/api/v1/namespaces/default/secrets", body).await;
        }
        k1s_env::Env::system().now()
    };
    let all = async {
        let answers = futures_util::future::join_all(hanging).await;
        (answers, k1s_env::Env::system().now())
    };
    let ((answers, late), early) = tokio::join!(all, others);
    assert!(early < late);
    for (code, answer) in answers {
        assert_eq!(code, 500);
        assert_eq!(
            answer["message"],
            "Internal error occurred: failed calling webhook \"a.k1s.dev\": failed to call webhook: Post \"https://a.k1s.dev/hook?timeout=1s\": context deadline exceeded"
        );
    }
    // The sender of a request can allow it less time than the webhook.
    let path = format!("{CONFIGMAPS}?timeout=100ms");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "short"}});
    let (code, answer) = stage.client.call("POST", &path, body).await;
    assert_eq!(code, 500, "{answer}");
}

#[tokio::test]
async fn metrics_count_calls_and_their_outcomes() {
    let stage = Stage::new().await;
    stage.serve("good.k1s.dev", |_| allow());
    stage.serve("no.k1s.dev", |_| json!({"allowed": false, "status": {"code": 403}}));
    stage.raw("bad.k1s.dev", |_| (500, String::new()));
    stage
        .register(
            "Mutating",
            "m",
            &[json!({"name": "good.k1s.dev"}), json!({"name": "bad.k1s.dev", "failurePolicy": "Ignore"})],
        )
        .await;
    stage.register("Validating", "v", &[json!({"name": "no.k1s.dev"})]).await;
    assert_eq!(stage.configmap(json!({"metadata": {"name": "a"}})).await.0, 403);
    let text = stage.send("GET", "/metrics", &Value::Null).await.text();
    for line in [
        "apiserver_admission_webhook_admission_duration_seconds_count{name=\"good.k1s.dev\",type=\"admit\",operation=\"CREATE\",rejected=\"false\"} 1",
        "apiserver_admission_webhook_request_total{name=\"good.k1s.dev\",type=\"admit\",operation=\"CREATE\",code=\"200\",rejected=\"false\"} 1",
        "apiserver_admission_webhook_request_total{name=\"bad.k1s.dev\",type=\"admit\",operation=\"CREATE\",code=\"500\",rejected=\"false\"} 1",
        "apiserver_admission_webhook_fail_open_count{name=\"bad.k1s.dev\",type=\"admit\"} 1",
        "apiserver_admission_webhook_rejection_count{name=\"no.k1s.dev\",type=\"validating\",operation=\"CREATE\",error_type=\"no_error\",rejection_code=\"403\"} 1",
        "apiserver_admission_step_admission_duration_seconds_count{type=\"validate\",operation=\"CREATE\",rejected=\"true\"} 1",
        "apiserver_admission_step_admission_duration_seconds_summary_count{type=\"validate\",operation=\"CREATE\",rejected=\"true\"} 1",
        "apiserver_admission_controller_admission_duration_seconds_count{name=\"ValidatingAdmissionWebhook\",type=\"validate\",operation=\"CREATE\",rejected=\"true\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
    let median = "apiserver_admission_step_admission_duration_seconds_summary{type=\"validate\",operation=\"CREATE\",rejected=\"true\",quantile=\"0.5\"} ";
    let median = text.lines().find_map(|line| line.strip_prefix(median)).expect(median);
    assert!((0.0..60.0).contains(&median.parse::<f64>().unwrap()), "{median}");
}
