//! The endpoints of a manager over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k1s_env::{Env, Task};
use k1s_runtime::{
    Metrics,
    endpoint::{AccessReview, AccessReviewOptions, Certificates, Checks, Endpoint, Routes},
};
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

struct Served {
    env: Env,
    address: SocketAddr,
    cancel: CancellationToken,
    task: Task<()>,
}

/// A response: status, headers in lower case, body.
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Served {
    async fn start(routes: Routes) -> Served {
        let env = Env::system();
        let endpoint = Endpoint::bind("127.0.0.1:0", "test").await.unwrap().unwrap();
        let (address, cancel) = (endpoint.address(), CancellationToken::new());
        let task = env.spawn("endpoint", endpoint.serve(env.clone(), routes, cancel.clone()));
        Served { env, address, cancel, task }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "").await
    }

    async fn send(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers: head.to_lowercase(), body: body.to_owned() }
    }
}

fn ok() -> std::future::Ready<Result<(), String>> {
    std::future::ready(Ok(()))
}

#[tokio::test]
async fn without_checks_the_endpoint_is_healthy() {
    let served = Served::start(Routes::new().checks("/healthz", &Checks::new())).await;
    let answer = served.get("/healthz").await;
    assert_eq!((answer.status, &*answer.body), (200, "ok"));
    assert!(answer.headers.contains("content-type: text/plain; charset=utf-8"), "{}", answer.headers);
    assert!(answer.headers.contains("x-content-type-options: nosniff"), "{}", answer.headers);
    let answer = served.get("/healthz/?verbose").await;
    assert_eq!((answer.status, &*answer.body), (200, "[+]ping ok\nhealthz check passed\n"));
    assert_eq!(served.get("/healthz/ping").await.body, "ok");
    assert_eq!(served.get("/healthz/other").await.status, 404);
    assert_eq!(served.get("/").await.status, 404);
    assert_eq!(served.get("/readyz").await.status, 404);
}

#[tokio::test]
async fn checks_are_reported_as_in_kubernetes() {
    let (healthz, readyz) = (Checks::new(), Checks::new());
    let served = Served::start(Routes::new().checks("/healthz", &healthz).checks("/readyz", &readyz)).await;
    // Added while it is served.
    readyz.add("webhook", ok);
    readyz.add("cache", || async { Err("widgets are not synced".to_owned()) });
    assert_eq!(served.get("/healthz").await.status, 200);

    let answer = served.get("/readyz").await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.body, "[-]cache failed: widgets are not synced\n[+]webhook ok\nhealthz check failed\n");
    let answer = served.get("/readyz/cache").await;
    assert_eq!((answer.status, &*answer.body), (500, "internal server error: widgets are not synced\n"));
    assert_eq!(served.get("/readyz/webhook").await.body, "ok");
    assert_eq!(served.get("/readyz/ping").await.status, 404, "only without other checks");

    assert_eq!(served.get("/readyz?exclude=cache").await.body, "ok");
    let answer = served.get("/readyz?verbose&exclude=cache&exclude=nothing&exclude=no%22body").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        "[+]cache excluded: ok\n[+]webhook ok\n\
         warn: some health checks cannot be excluded: no matches for \"no\\\"body\",\"nothing\"\n\
         healthz check passed\n"
    );
    assert_eq!(readyz.failures().await, [("cache".into(), "widgets are not synced".to_owned())]);

    assert!(readyz.remove("cache"));
    assert_eq!(served.get("/readyz").await.body, "ok");
}

#[tokio::test]
async fn a_panicking_check_fails() {
    let checks = Checks::new();
    checks.add("bad", || async { panic!("on purpose") });
    checks.add("worse", || -> std::future::Ready<Result<(), String>> { panic!("on purpose") });
    let served = Served::start(Routes::new().checks("/healthz", &checks)).await;
    let answer = served.get("/healthz").await;
    assert_eq!(answer.status, 500);
    assert!(
        answer.body.contains("[-]bad failed: the check panicked\n")
            && answer.body.contains("[-]worse failed: the check panicked\n"),
        "{}",
        answer.body
    );
    assert!(served.get("/healthz/bad").await.body.contains("panicked"));
}

#[tokio::test]
async fn metrics_are_encoded_in_the_requested_format() {
    let metrics = Metrics::new();
    let (reconciles, depth) = (Counter::<u64>::default(), Gauge::<i64>::default());
    metrics.register(|registry| {
        registry.register("reconciles", "All of them", reconciles.clone());
        registry.register("depth", "How deep", depth.clone());
    });
    reconciles.inc_by(7);
    depth.set(3);
    let served = Served::start(Routes::new().metrics("/metrics", &metrics)).await;
    let answer =
        served.send("GET", "/metrics", "accept: application/openmetrics-text;version=1.0.0\r\n").await;
    assert_eq!((answer.status, &answer.body), (200, &metrics.encode()));
    assert!(answer.headers.contains("content-type: application/openmetrics-text; version=1.0.0"));
    let answer = served.get("/metrics").await;
    assert!(answer.headers.contains("content-type: text/plain; version=0.0.4"));
    assert_eq!(
        answer.body,
        "# HELP reconciles_total All of them.\n# TYPE reconciles_total counter\nreconciles_total 7\n\
         # HELP depth How deep.\n# TYPE depth gauge\ndepth 3\n"
    );
}

#[tokio::test]
async fn endpoints_are_read_only() {
    let served = Served::start(Routes::new().checks("/healthz", &Checks::new())).await;
    let answer = served.send("HEAD", "/healthz", "").await;
    assert_eq!((answer.status, &*answer.body), (200, ""));
    let answer = served.send("POST", "/healthz", "content-length: 0\r\n").await;
    assert_eq!(answer.status, 405);
    assert!(answer.headers.contains("allow: get, head"));
}

#[tokio::test]
async fn a_stop_finishes_requests_in_flight_and_accepts_no_more() {
    let checks = Checks::new();
    let (requested, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    checks.add("slow", {
        let (requested, go_on) = (requested.clone(), go_on.clone());
        move || {
            let (requested, go_on) = (requested.clone(), go_on.clone());
            async move {
                requested.notify_one();
                go_on.notified().await;
                Ok(())
            }
        }
    });
    let served = Served::start(Routes::new().checks("/healthz", &checks)).await;
    // An idle keep-alive connection does not delay the stop.
    let idle = TcpStream::connect(served.address).await.unwrap();
    let under_way = served.get("/healthz");
    let stopping = async {
        requested.notified().await;
        served.cancel.cancel();
        // The request continues after the endpoint stops accepting.
        while TcpStream::connect(served.address).await.is_ok() {
            served.env.yield_now().await;
        }
        go_on.notify_one();
    };
    let (answer, ()) = tokio::join!(under_way, stopping);
    assert_eq!((answer.status, &*answer.body), (200, "ok"));
    served.env.timeout(Duration::from_secs(60), served.task).await.unwrap().unwrap();
    served.env.tasks_ended().await;
    drop(idle);
}

#[tokio::test]
async fn a_disabled_address_creates_no_endpoint() {
    assert!(Endpoint::bind("0", "metrics").await.unwrap().is_none());
    assert!(Endpoint::bind("", "metrics").await.unwrap().is_none());
}

#[tokio::test]
async fn an_endpoint_on_any_port_reports_its_address() {
    for address in [":0", "127.0.0.1:0", "localhost:0"] {
        let endpoint = Endpoint::bind(address, "metrics").await.unwrap().unwrap();
        assert_ne!(endpoint.address().port(), 0);
        let port = endpoint.address().port();
        let env = Env::system();
        let cancel = CancellationToken::new();
        let task = env.spawn("endpoint", endpoint.serve(env.clone(), Routes::new(), cancel.clone()));
        TcpStream::connect(("localhost", port)).await.unwrap();
        cancel.cancel();
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_port_in_use_and_an_invalid_address_have_clear_errors() {
    let first = Endpoint::bind("127.0.0.1:0", "metrics").await.unwrap().unwrap();
    let address = first.address().to_string();
    let error = Endpoint::bind(&address, "health probes").await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "health probes: the port of {address:?} is in use by another program; choose another one, \":0\" for any, or \"0\" for none"
        )
    );
    let error = Endpoint::bind("8080", "metrics").await.unwrap_err().to_string();
    assert!(error.starts_with("metrics: \"8080\" is not a listen address: it has no port"), "{error}");
    let error = Endpoint::bind("192.0.2.1:0", "metrics").await.unwrap_err().to_string();
    assert!(error.starts_with("metrics: cannot listen at \"192.0.2.1:0\": "), "{error}");
}

/// An API server with some valid tokens, which records the reviews.
fn reviews(requested: &Arc<parking_lot::Mutex<Vec<serde_json::Value>>>) -> kube::Client {
    use http_body_util::BodyExt as _;
    let requested = requested.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let requested = requested.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: serde_json::Value = serde_json::from_slice(&body).unwrap();
            requested.lock().push(review["spec"].clone());
            let spec = review["spec"].clone();
            review["status"] = match &*path {
                "/apis/authentication.k8s.io/v1/tokenreviews" => match spec["token"].as_str().unwrap() {
                    "broken" => {
                        return Ok(http::Response::builder().status(500).body("no".to_owned()).unwrap());
                    }
                    name @ ("prometheus" | "nobody") => serde_json::json!({
                        "authenticated": true, "user": {"username": name, "groups": ["system:authenticated"]},
                    }),
                    _ => serde_json::json!({"authenticated": false, "error": "invalid bearer token"}),
                },
                "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                    serde_json::json!({"allowed": spec["user"] == "prometheus"})
                }
                other => panic!("{other}"),
            };
            let answer = http::Response::builder().status(201).body(review.to_string()).unwrap();
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test]
async fn metrics_can_be_limited_to_users_authorized_by_the_api_server() {
    let (env, clock) = Env::simulated(1);
    let requested = Arc::default();
    let review = AccessReview::new(&env, reviews(&requested), AccessReviewOptions::default());
    let served = Served::start(Routes::new().metrics("/metrics", &Metrics::new()).protected(review)).await;
    let get = async |token: &str| {
        let answer = served.send("GET", "/metrics", &format!("authorization: Bearer {token}\r\n")).await;
        (answer.status, answer.body)
    };
    let response = |status: u16, text: &str| (status, text.to_owned());
    let answer = served.get("/metrics").await;
    assert_eq!((answer.status, answer.body), response(401, "Unauthorized\n"));
    assert!(requested.lock().is_empty(), "a request without a token needs no review");
    assert_eq!(get("wrong").await, response(401, "Unauthorized\n"));
    assert_eq!(get("nobody").await, response(403, "Authorization denied for user nobody\n"));
    assert_eq!(get("broken").await, response(500, "Authentication failed\n"));
    assert_eq!(get("prometheus").await.0, 200);
    let spec = requested.lock().last().cloned().unwrap();
    assert_eq!(
        spec,
        serde_json::json!({
            "user": "prometheus", "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        })
    );
    // Results of reviews are cached for a while.
    let before = requested.lock().len();
    for token in ["wrong", "nobody", "prometheus"] {
        get(token).await;
    }
    assert_eq!(requested.lock().len(), before);
    clock.advance(Duration::from_secs(61));
    assert_eq!((get("nobody").await.0, get("prometheus").await.0), (403, 200));
    assert_eq!(requested.lock().len(), before + 3, "two token reviews, and one access review for nobody");
}

#[tokio::test]
async fn an_endpoint_can_serve_tls() {
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, pki_types};
    let dir = tempfile::tempdir().unwrap();
    let env = Env::system();
    let options = k1s_runtime::webhook::certs::DevCertificateOptions::new(dir.path(), ["localhost"]);
    let authority = k1s_runtime::webhook::certs::DevCertificate::open(&env, options).unwrap();
    let files = k1s_runtime::tls::CertFiles {
        certificate: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
        client_ca: None,
    };
    let mut roots = RootCertStore::empty();
    let certificate = <pki_types::CertificateDer<'_> as pki_types::pem::PemObject>::from_pem_slice(
        authority.ca_bundle().as_bytes(),
    );
    roots.add(certificate.unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    for (certificates, trusted) in [
        (Certificates::files(files).unwrap(), true),
        (Certificates::self_signed(["localhost"]).unwrap(), false),
    ] {
        let endpoint = Endpoint::bind("127.0.0.1:0", "test").await.unwrap().unwrap().with_tls(certificates);
        let (address, cancel) = (endpoint.address(), CancellationToken::new());
        let routes = Routes::new().checks("/healthz", &Checks::new());
        let task = env.spawn("endpoint", endpoint.serve(env.clone(), routes, cancel.clone()));
        let stream = TcpStream::connect(address).await.unwrap();
        let name = pki_types::ServerName::try_from("localhost").unwrap();
        match connector.connect(name, stream).await {
            Ok(mut stream) => {
                assert!(trusted);
                let request = b"GET /healthz HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
                stream.write_all(request).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            Err(error) => assert!(!trusted, "{error}"),
        }
        cancel.cancel();
        task.await.unwrap();
    }
}
