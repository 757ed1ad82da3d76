//! A client against servers with scripted responses: the requests it sends, and how it handles unusual responses.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use k1s_env::{Env, VirtualClock};
use k1s_runtime::{
    client::{
        ApplyConfiguration, ApplyOptions, Client, ClientOptions, Error, ListOptions, Patch, PatchOptions,
        WatchEvent,
    },
    metadata,
    util::{Backoff, retry_on_conflict},
};
use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale, core::v1::ConfigMap};
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{config_map, from, key};

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The requests: method, path and query, content type, accept, body.
type Sent = Arc<Mutex<Vec<(String, String, String, String, Value)>>>;

fn chunks(chunks: Vec<Result<&'static str, std::io::ErrorKind>>) -> Body {
    let frames = chunks.into_iter().map(|chunk| match chunk {
        Ok(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
        Err(kind) => Err(std::io::Error::from(kind)),
    });
    StreamBody::new(stream::iter(frames.collect::<Vec<_>>())).boxed_unsync()
}

fn answer(code: u16, text: &'static str) -> Response<Body> {
    Response::builder().status(code).body(chunks(vec![Ok(text)])).unwrap()
}

fn script(answers: Vec<Response<Body>>) -> (Client, Sent, VirtualClock) {
    let sent = Sent::default();
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let service = {
        let sent = Arc::clone(&sent);
        tower::service_fn(move |request: Request<kube::client::Body>| {
            let (sent, answers) = (Arc::clone(&sent), Arc::clone(&answers));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let header = |name: &str| {
                    parts.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
                };
                sent.lock().push((
                    parts.method.to_string(),
                    parts.uri.to_string(),
                    header("content-type"),
                    header("accept"),
                    serde_json::from_slice(&body).unwrap_or_default(),
                ));
                Ok::<_, Infallible>(answers.lock().pop_front().expect("an answer"))
            }
        })
    };
    let (env, clock) = Env::simulated(5);
    let options = ClientOptions { env, ..ClientOptions::default() };
    (Client::new(kube::Client::new(service, "default"), options), sent, clock)
}

const CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","resourceVersion":"3"}}"#;

#[tokio::test]
async fn apply_sends_the_object_without_managed_fields_for_a_field_manager() {
    let (client, sent, _) = script((0..5).map(|_| answer(200, CONFIG_MAP)).collect());
    let mut object = config_map("a");
    object.metadata.managed_fields = Some(vec![Default::default()]);
    client.apply_with(&object, "me").await.unwrap();
    client.with_field_owner("wrapper").apply(&object).await.unwrap();
    client.with_field_owner("wrapper").apply_with(&object, ApplyOptions::owner("me").force()).await.unwrap();
    client.dry_run().status().apply_with(&object, "me").await.unwrap();
    let written = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}});
    let options = PatchOptions { force: true, field_manager: Some("me".into()), ..PatchOptions::default() };
    client.patch_with::<ConfigMap>(&key("a"), Patch::apply(&written), options).await.unwrap();
    let sent = sent.lock();
    let paths: Vec<&str> = sent.iter().map(|sent| sent.1.as_str()).collect();
    let path = "/api/v1/namespaces/default/configmaps/a";
    assert_eq!(
        paths,
        [
            format!("{path}?fieldManager=me"),
            format!("{path}?fieldManager=wrapper"),
            format!("{path}?fieldManager=me&force=true"),
            format!("{path}/status?dryRun=All&fieldManager=me"),
            format!("{path}?fieldManager=me&force=true"),
        ]
    );
    assert_eq!((&*sent[4].2, &sent[4].4), ("application/apply-patch+yaml", &written));
    let (method, _, content_type, _, body) = &sent[0];
    assert_eq!((method.as_str(), content_type.as_str()), ("PATCH", "application/apply-patch+yaml"));
    assert_eq!(
        *body,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
            "metadata": {"name": "a", "namespace": "default", "labels": {"app": "a"}},
        })
    );
}

#[tokio::test]
async fn a_status_is_applied_through_its_subresource_only() {
    let deployment = r#"{"metadata":{"name":"a"},"spec":{"selector":{},"template":{}}}"#;
    let (client, sent, _) = script((0..2).map(|_| answer(200, deployment)).collect());
    let client = client.with_field_owner("me");
    let mut object = crate::deployment("a");
    object.metadata.resource_version = Some("7".into());
    object.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    object.metadata.creation_timestamp = from(json!("2024-01-01T00:00:00Z"));
    object.status = from(json!({"replicas": 3}));
    client.apply(&object).await.unwrap();
    client.status().apply_with(&object, ApplyOptions::forced()).await.unwrap();
    let sent = sent.lock();
    assert_eq!(sent[0].4.get("status"), None);
    assert_eq!(
        sent[0].4["metadata"],
        json!({"name": "a", "namespace": "default", "labels": {"a": "b"}, "resourceVersion": "7"}),
        "a resource version that is set is a precondition"
    );
    assert!(sent[1].1.ends_with("/deployments/a/status?fieldManager=me&force=true"), "{}", sent[1].1);
    assert_eq!(
        sent[1].4,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"}, "status": {"replicas": 3},
        })
    );
}

#[tokio::test]
async fn a_configuration_is_sent_as_it_is() {
    let scale =
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":2}}"#;
    let (client, sent, _) = script(vec![
        answer(200, CONFIG_MAP),
        answer(200, CONFIG_MAP),
        answer(200, CONFIG_MAP),
        answer(200, scale),
    ]);
    let client = client.with_field_owner("me");
    let object = ApplyConfiguration::<ConfigMap>::new(&key("a")).with(json!({"data": {"b": "2"}}));
    client.apply(&object).await.unwrap();
    let given = json!({"metadata": {"name": "a"}, "data": {"b": null}});
    client.namespaced("default").apply(&ApplyConfiguration::<ConfigMap>::from(given)).await.unwrap();
    client
        .kind(metadata::<ConfigMap>())
        .apply(&from::<PartialObjectMeta<ConfigMap>>(json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "a", "namespace": "default", "labels": {"c": "d"}, "managedFields": []},
        })))
        .await
        .unwrap();
    let replicas = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2},
    });
    let scaled: Scale =
        client.sub_resource::<Deployment>("scale").apply_as(&key("a"), &replicas, "other").await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(2));
    let sent = sent.lock();
    let path = "/api/v1/namespaces/default/configmaps/a?fieldManager=me";
    assert_eq!((&*sent[0].1, &*sent[1].1, &*sent[2].1), (path, path, path));
    assert_eq!(
        sent[0].4,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"},
            "data": {"b": "2"},
        })
    );
    assert_eq!(
        sent[1].4,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": null}})
    );
    assert_eq!(
        sent[2].4,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default", "labels": {"c": "d"}},
        })
    );
    let (_, uri, content_type, _, body) = &sent[3];
    assert_eq!(uri, "/apis/apps/v1/namespaces/default/deployments/a/scale?fieldManager=other");
    assert_eq!((&**content_type, body), ("application/apply-patch+yaml", &replicas));
}

#[tokio::test]
async fn a_conflict_names_the_other_managers_and_is_not_retried() {
    let conflict = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,
        "message":"Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.a\n- .data.b","details":{"causes":[
        {"reason":"FieldManagerConflict","message":"conflict with \"m1\"","field":".data.a"},
        {"reason":"FieldManagerConflict","message":"conflict with \"editor\" using v1","field":".data.b"}]}}"#;
    let (client, sent, _) = script(vec![answer(409, conflict)]);
    let attempts = retry_on_conflict(client.env(), Backoff::DEFAULT_RETRY, async || {
        client.apply_with(&config_map("a"), "me").await
    });
    let error = attempts.await.unwrap_err();
    assert_eq!(sent.lock().len(), 1);
    assert!(error.is_conflict() && error.is_apply_conflict());
    let conflicts = error.apply_conflicts().unwrap();
    assert_eq!(conflicts.managers(), ["m1", "editor"]);
    assert_eq!(conflicts.to_string(), r#"2 fields of other managers: .data.a of "m1", .data.b of "editor""#);
    let stale = r#"{"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"modified"}"#;
    let (client, _, _) = script(vec![answer(409, stale)]);
    let error = client.apply_with(&config_map("a"), "me").await.unwrap_err();
    assert!(error.is_conflict() && !error.is_apply_conflict() && error.apply_conflicts().is_none());
}

#[tokio::test]
async fn what_cannot_be_applied_is_not_sent() {
    let (client, sent, _) = script(Vec::new());
    let client = client.with_field_owner("me");
    let error = client.apply(&ApplyConfiguration::<ConfigMap>::from(json!(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "apply configmaps: an apply configuration is a JSON object, not a number");
    let other =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}});
    let error = client.apply(&ApplyConfiguration::<ConfigMap>::from(other)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "apply configmaps default/a: the configuration is of v1 Secret, not of v1 ConfigMap"
    );
    let nameless = ApplyConfiguration::<ConfigMap>::from(json!({"metadata": {"namespace": "default"}}));
    let error = client.apply(&nameless).await.unwrap_err();
    assert_eq!(error.to_string(), "apply configmaps in default: the object has no name");
    let homeless = ApplyConfiguration::<ConfigMap>::from(json!({"metadata": {"name": "a"}}));
    let error = client.apply(&homeless).await.unwrap_err();
    assert_eq!(error.to_string(), "apply configmaps a: the kind is namespaced: a namespace is needed");
    assert!(sent.lock().is_empty());
}

#[tokio::test]
async fn the_field_owner_is_sent_with_every_write() {
    let (client, sent, _) = script((0..3).map(|_| answer(200, CONFIG_MAP)).collect());
    let client = client.with_field_owner("me");
    let object = config_map("a");
    client.create(&object).await.unwrap();
    client.update(&object).await.unwrap();
    client.patch(&object, Patch::merge_from(&object)).await.unwrap();
    assert!(sent.lock().iter().all(|sent| sent.1.ends_with("?fieldManager=me")), "{sent:?}");
}

#[tokio::test]
async fn metadata_is_requested_as_partial_objects() {
    let list =
        r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}"#;
    let (client, sent, _) = script(vec![answer(200, CONFIG_MAP), answer(200, list)]);
    let configs = client.kind(metadata::<ConfigMap>());
    configs.get(&key("a")).await.unwrap();
    configs.list(ListOptions::default()).await.unwrap();
    let accepts: Vec<_> = sent.lock().iter().map(|sent| sent.3.clone()).collect();
    assert_eq!(
        accepts,
        [
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ]
    );
}

fn busy(seconds: &str) -> Response<Body> {
    let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too many requests",
        "reason":"TooManyRequests","code":429}"#;
    let mut response = answer(429, text);
    response.headers_mut().insert("retry-after", seconds.parse().unwrap());
    response
}

#[tokio::test]
async fn a_busy_server_is_retried_after_its_retry_after() {
    let (client, sent, clock) = script(vec![busy("3"), busy("2"), answer(200, CONFIG_MAP)]);
    let env = client.env().clone();
    let got = env.spawn("get", async move { client.get::<ConfigMap>(&key("a")).await.map(|_| ()) });
    clock.settle().await;
    assert_eq!(sent.lock().len(), 1);
    clock.advance_and_settle(Duration::from_millis(2900)).await;
    assert_eq!(sent.lock().len(), 1);
    clock.advance_and_settle(Duration::from_millis(100)).await;
    assert_eq!(sent.lock().len(), 2);
    clock.advance_and_settle(Duration::from_secs(2)).await;
    got.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_stays_busy_is_an_error_with_its_retry_after() {
    let (client, sent, _) = script((0..11).map(|_| busy("0")).collect());
    let error = client.create(&config_map("a")).await.unwrap_err();
    assert_eq!(sent.lock().len(), 11);
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::ZERO));
    let (client, sent, _) = script(vec![busy("31")]);
    let error = client.create(&config_map("a")).await.unwrap_err();
    assert_eq!(
        (sent.lock().len(), error.retry_after()),
        (1, Some(Duration::from_secs(31))),
        "too long to wait here"
    );
    let details = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServerTimeout","code":500,
        "message":"slow","details":{"retryAfterSeconds":4}}"#;
    let (client, _, _) = script(vec![answer(500, details)]);
    let error = client.create(&config_map("a")).await.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(4)));
}

#[tokio::test]
async fn responses_of_proxies_are_classified_by_status_code() {
    let (client, _, _) = script(vec![answer(404, "<html>no such page</html>\n"), answer(502, "bad gateway")]);
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(error.is_not_found() && error.is_no_match());
    assert_eq!(error.to_string(), "get configmaps default/a: <html>no such page</html> (404)");
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "get configmaps default/a: bad gateway (502)");
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_named() {
    let list = r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"good","namespace":"n"}},
        {"metadata":{"name":"bad","namespace":"n"},"data":{"a":1}}]}"#;
    let (client, _, _) = script(vec![answer(200, list), answer(200, "nonsense")]);
    let error = client.list::<ConfigMap>(ListOptions::default()).await.unwrap_err();
    assert!(error.to_string().starts_with("list configmaps: cannot decode n/bad: "), "{error}");
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(error.to_string().starts_with("get configmaps default/a: cannot decode the answer: "), "{error}");
}

#[tokio::test]
async fn a_lost_connection_is_distinguished_from_a_refusal() {
    let broken = Response::new(chunks(vec![Ok("{\"kind\":"), Err(std::io::ErrorKind::ConnectionReset)]));
    let slow = Response::new(chunks(vec![Err(std::io::ErrorKind::TimedOut)]));
    let (client, _, _) = script(vec![broken, slow]);
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }) && !error.is_timeout(), "{error:?}");
    assert!(error.to_string().starts_with("get configmaps default/a: "), "{error}");
    assert!(client.get::<ConfigMap>(&key("a")).await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_watch_survives_split_chunks_and_bad_objects() {
    let body = chunks(vec![
        Ok(r#"{"type":"ADDED","object":{"metadata":{"name":"a"#),
        Ok(
            "\"}}}\n{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"bad\",\"namespace\":\"n\"},\"data\":7}}",
        ),
        Ok("\n\n"),
        Ok(r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#),
        Ok("\n"),
        Ok(r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"12"}}}"#),
    ]);
    let (client, sent, _) = script(vec![Response::new(body)]);
    let mut watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    assert_eq!(sent.lock()[0].1, "/api/v1/configmaps?watch=true&allowWatchBookmarks=true");
    let Some(Ok(WatchEvent::Added(added))) = watch.next().await else { panic!("not added") };
    assert_eq!(added.metadata.name.as_deref(), Some("a"));
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("watch configmaps: cannot decode n/bad: "), "{error}");
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    let bookmark = WatchEvent::Bookmark { resource_version: "12".into(), initial_events_end: false };
    assert_eq!(watch.next().await.unwrap().unwrap(), bookmark, "the last line has no newline");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn an_error_event_ends_a_watch() {
    let gone = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\
        \"message\":\"too old resource version: 1 (2)\",\"reason\":\"Expired\",\"code\":410}}\n";
    let rest = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n";
    let (client, _, _) = script(vec![Response::new(chunks(vec![Ok(gone), Ok(rest)]))]);
    let mut watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(error.is_gone());
    assert_eq!(error.to_string(), "watch configmaps: too old resource version: 1 (2) (410 Expired)");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_cut_watch_ends_with_an_error_and_no_partial_event() {
    let half = r#"{"type":"ADDED","object":{"metadata":{"na"#;
    let cut = chunks(vec![Ok(half), Err(std::io::ErrorKind::ConnectionReset)]);
    let (client, _, _) = script(vec![Response::new(cut), Response::new(chunks(vec![Ok(half)]))]);
    let mut watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    assert!(matches!(watch.next().await, Some(Err(Error::Transport { .. }))));
    assert!(watch.next().await.is_none());
    let mut watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    assert!(watch.next().await.is_none(), "a server that goes away leaves half a line");
}

#[tokio::test]
async fn an_old_servers_discovery_is_read_group_by_group() {
    let (client, sent, clock) = script(vec![
        answer(200, r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}"#),
        answer(
            200,
            r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
                {"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
                {"name":"pods/status","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
                {"name":"nodes","singularName":"","namespaced":false,"kind":"Node","verbs":["get"]}]}"#,
        ),
        answer(
            200,
            r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[
                {"name":"a.dev","versions":[{"groupVersion":"a.dev/v1","version":"v1"},
                 {"groupVersion":"a.dev/v2","version":"v2"}],"preferredVersion":{"groupVersion":"a.dev/v2","version":"v2"}}]}"#,
        ),
        answer(503, "away"),
        answer(
            200,
            r#"{"kind":"APIResourceList","groupVersion":"a.dev/v1","resources":[
                {"name":"gizmos","singularName":"","namespaced":true,"kind":"Gizmo","verbs":["get"]}]}"#,
        ),
        answer(
            200,
            r#"{"kind":"APIResourceList","groupVersion":"a.dev/v2","resources":[
                {"name":"gizmos","singularName":"","namespaced":true,"kind":"Gizmo","verbs":["get"]}]}"#,
        ),
    ]);
    let mapper = client.rest_mapper();
    let gvk = kube::api::GroupVersionKind::gvk;
    let pod = mapper.mapping(&gvk("", "v1", "Pod")).await.unwrap();
    assert_eq!((pod.resource.plural.as_str(), &pod.subresources[..]), ("pods", &["status".to_owned()][..]));
    assert!(!mapper.is_namespaced(&gvk("", "v1", "Node")).await.unwrap());
    assert_eq!(
        mapper.preferred("a.dev", "Gizmo").await.unwrap().resource.version,
        "v1",
        "v2 was unavailable"
    );
    assert_eq!(sent.lock().len(), 5);
    // An unavailable group version is looked up again when it is needed.
    clock.advance(Duration::from_secs(2));
    mapper.mapping(&gvk("a.dev", "v2", "Gizmo")).await.unwrap();
    assert_eq!(sent.lock().len(), 6);
}

#[tokio::test]
async fn a_warning_is_logged_once() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let warns = |texts: &[&str]| {
        let mut answer = answer(200, CONFIG_MAP);
        for text in texts {
            answer.headers_mut().append("warning", text.parse().unwrap());
        }
        answer
    };
    let (client, _, _) = script(vec![
        warns(&[r#"299 - "v1 is \"old\"""#, r#"299 - "second""#, r#"110 - "not for us""#]),
        warns(&[r#"299 - "second""#]),
    ]);
    for _ in 0..2 {
        client.live().get::<ConfigMap>(&key("a")).await.unwrap();
    }
    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    assert_eq!(log.matches(r#"v1 is "old""#).count(), 1, "{log}");
    assert_eq!(log.matches("second").count(), 1, "{log}");
    assert!(log.contains("WARN") && !log.contains("not for us"), "{log}");
}

#[tokio::test]
async fn requests_are_counted_by_host() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let counted = || {
        let metrics = k1s_runtime::Metrics::new();
        let rest = k1s_runtime::client::RestMetrics::new(&metrics);
        (metrics, ClientOptions { metrics: Some(rest), ..ClientOptions::default() })
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{CONFIG_MAP}", CONFIG_MAP.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
    };
    let (metrics, options) = counted();
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let client = Client::new(kube::Client::try_from(config).unwrap(), options);
    let name = key("a");
    let (read, _stream) = tokio::join!(client.get::<ConfigMap>(&name), serve);
    read.unwrap();
    let line = format!(r#"rest_client_requests_total{{code="200",method="GET",host="{address}"}} 1"#);
    assert!(metrics.encode().contains(&line), "{}", metrics.encode());

    // A server in the same process has no address; a name can be configured.
    for (given, shown) in [("", "in-process"), ("api.example.org", "api.example.org")] {
        let (metrics, mut options) = counted();
        options.host = given.into();
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            Ok::<_, Infallible>(answer(200, CONFIG_MAP))
        });
        let client = Client::new(kube::Client::new(service, "default"), options);
        client.get::<ConfigMap>(&key("a")).await.unwrap();
        assert!(metrics.encode().contains(&format!(r#"host="{shown}"}} 1"#)), "{}", metrics.encode());
    }
}
