//! Fuzzing of the HTTP API: malformed requests of all kinds get a well-formed response.
//!
//! cargo-fuzz needs a nightly compiler, which this project does not use. So proptest mutates the requests in `corpus/` (one
//! per file: the request line, headers, an empty line, the body), from a fixed seed.
//! `K1S_FUZZ_CASES=100000 K1S_FUZZ_SEED=7 cargo test -p k1s-server --test door` runs longer and with another seed. A request
//! that found a bug is added to the corpus.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use common::{Client, HANG};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::MemoryStore;
use proptest::{
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use serde_json::{Value, json};
use tower::Service as _;

/// A request that may be malformed.
#[derive(Debug, Clone)]
struct Sent {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn corpus() -> Vec<Sent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| parse(&fs::read_to_string(file).unwrap())).collect()
}

fn parse(text: &str) -> Sent {
    let (head, body) = text.split_once("\n\n").expect("an empty line ends the head");
    let mut lines = head.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).expect("a method and a path");
    let header =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    Sent { method: method.into(), path: path.into(), headers: lines.map(header).collect(), body: body.into() }
}

/// A server with the objects that the corpus refers to, and the corpus.
struct Harness {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Harness {
    fn new() -> Harness {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let mut options = ServerOptions::default();
            options.future_revision_patience = Duration::from_millis(5);
            let env = Env::system();
            let client =
                common::client(&common::server_with(&env, Arc::new(MemoryStore::default()), options).await);
            client.server.create_tenant("other").await.unwrap();
            for sent in corpus().into_iter().filter(|sent| sent.method == "POST") {
                let headers: Vec<(&str, &str)> =
                    sent.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
                let path = sent.path.replace("dryRun", "ignored");
                client.send(&sent.method, &path, &headers, sent.body).await;
            }
            client
        });
        Harness { runtime, client }
    }

    /// Sends a request and checks the response; `None` for a request that the client library cannot build.
    fn send(&self, sent: &Sent) -> Result<Option<(u16, Bytes)>, TestCaseError> {
        let Some(request) = build(sent) else { return Ok(None) };
        let env = Env::system();
        let answer = async {
            let mut server = self.client.server.clone();
            let response = server.call(request).await.unwrap();
            let (parts, mut body) = response.into_parts();
            let mut bytes = Vec::new();
            let mut ended = false;
            // A watch may be silent for a long time.
            let patience = Duration::from_millis(if http_body::Body::size_hint(&body).exact().is_some() {
                60_000
            } else {
                4
            });
            let read = async {
                while let Some(frame) = body.frame().await {
                    bytes.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
                }
                ended = true;
            };
            let _ = env.timeout(patience, read).await;
            (parts, Bytes::from(bytes), ended)
        };
        let answer = self.runtime.block_on(env.timeout(HANG, answer));
        let (parts, body, ended) = answer.map_err(|_| TestCaseError::fail("the server does not respond"))?;
        check(sent, &parts, &body, ended)?;
        Ok(Some((parts.status.as_u16(), body)))
    }

    /// Checks that the server still works: each kind can be listed, and one can be written.
    fn still_works(&self) {
        self.runtime.block_on(async {
            for path in [
                "/api/v1/namespaces",
                "/api/v1/configmaps",
                "/api/v1/pods",
                "/api/v1/services",
                "/apis/apps/v1/deployments",
                "/apis",
                "/openapi/v3",
            ] {
                let answer = self.client.send("GET", path, &[], "").await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            }
            let (status, body) = self
                .client
                .call("POST", "/api/v1/namespaces", json!({"metadata": {"generateName": "after-"}}))
                .await;
            assert_eq!(status, 201, "{body}");
        });
    }
}

fn build(sent: &Sent) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(Bytes::from(sent.body.clone())));
    *request.method_mut() = Method::from_bytes(sent.method.as_bytes()).ok()?;
    *request.uri_mut() = sent.path.parse::<Uri>().ok()?;
    for (name, value) in &sent.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    Some(request)
}

/// Checks that a Kubernetes client can read a response.
fn check(sent: &Sent, parts: &http::response::Parts, body: &Bytes, ended: bool) -> Result<(), TestCaseError> {
    let status = parts.status.as_u16();
    let content_type = parts.headers.get("content-type").map_or("", |value| value.to_str().unwrap_or("?"));
    let fail = |why: &str| {
        let shown = body.get(..400).unwrap_or(body).escape_ascii().to_string();
        Err(TestCaseError::fail(format!("{why}: {status} {content_type}\n{shown}")))
    };
    if memchr::memmem::find(body, b"panicked").is_some() && status == 500 {
        return fail("the server panicked");
    }
    if sent.method == "HEAD" || matches!(status, 204 | 301 | 304) {
        return if body.is_empty() { Ok(()) } else { fail("a body where there is none") };
    }
    match content_type.split(';').next().unwrap_or_default() {
        "application/json" => {
            // A stream consists of lines; the last one may be incomplete if reading was cut off.
            let mut documents = Vec::new();
            let one = serde_json::from_slice::<Value>(body);
            match one {
                Ok(value) => documents.push(value),
                Err(_) if !ended || status == 200 => {
                    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                        match serde_json::from_slice::<Value>(line) {
                            Ok(value) if value["type"].is_string() && value["object"].is_object() => {}
                            Ok(_) => return fail("an event without a type or object"),
                            Err(_) => return fail("no JSON"),
                        }
                    }
                }
                Err(_) => return fail("no JSON"),
            }
            if status >= 400 {
                let Some(value) = documents.first() else { return fail("an error without a body") };
                let whole =
                    value["kind"] == "Status" && value["apiVersion"] == "v1" && value["status"] == "Failure";
                if !whole || value["code"] != status || !value["message"].is_string() {
                    return fail("an error that is not a Status");
                }
            }
            Ok(())
        }
        "application/vnd.kubernetes.protobuf" => {
            let framed = content_type.contains("stream=watch");
            if framed || body.starts_with(b"k8s\0") { Ok(()) } else { fail("not protobuf") }
        }
        "application/yaml" => {
            if body.is_empty() {
                fail("no YAML")
            } else {
                Ok(())
            }
        }
        // Health, metrics, the index of OpenAPI and unknown paths.
        "text/plain" => match status {
            200 | 500 => Ok(()),
            404 if *body == "404 page not found\n" => Ok(()),
            _ => fail("an error in plain text"),
        },
        // OpenAPI documents that do not exist, or are not available in that format.
        "" if matches!(status, 404 | 406) && body.is_empty() => Ok(()),
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Ok(()),
        _ => fail("a response of an undocumented content type"),
    }
}

fn run<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(&Harness, S::Value) -> Result<(), TestCaseError>,
) {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = variable("K1S_FUZZ_CASES").map_or(cases, |cases| u32::try_from(cases).unwrap());
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&variable("K1S_FUZZ_SEED").unwrap_or(1).to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let harness = Harness::new();
    if let Err(error) = runner.run(strategy, |value| test(&harness, value)) {
        panic!("{error}");
    }
    harness.still_works();
}

/// Path segments that are meaningful to some endpoint.
static WORDS: [&str; 46] = [
    "default",
    "kube-system",
    "configmaps",
    "pods",
    "namespaces",
    "services",
    "deployments",
    "widgets",
    "status",
    "scale",
    "log",
    "exec",
    "proxy",
    "watch",
    "finalize",
    "token",
    "eviction",
    "binding",
    "v1",
    "v2",
    "apps",
    "fuzz.k1s.dev",
    "api",
    "apis",
    "a",
    "w",
    "..",
    ".",
    "",
    "%2e%2e",
    "%2F",
    "%00",
    "%ff",
    "%",
    "%zz",
    "~1",
    "🙂",
    "metadata.name",
    "true",
    "-1",
    "9223372036854775807",
    "18446744073709551616",
    "1e309",
    "NaN",
    "null",
    "*",
];

static PARAMETERS: [&str; 20] = [
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
    "pretty",
    "includeObject",
    "hash",
    "timeoutSeconds",
];

static VALUES: [&str; 24] = [
    "All",
    "Strict",
    "Warn",
    "Ignore",
    "Exact",
    "NotOlderThan",
    "true",
    "false",
    "0",
    "1",
    "5",
    "99999",
    "-5",
    "a%3Db",
    "a+in+(b,c)",
    "!a",
    "a%3E5",
    "metadata.name%3Da",
    "status.phase!%3DRunning",
    "spec.x%3D1",
    "Orphan",
    "Foreground",
    "Metadata",
    "%22",
];

static HEADERS: [(&str, &str); 22] = [
    ("accept", "application/json"),
    ("accept", "application/yaml"),
    ("accept", "application/vnd.kubernetes.protobuf"),
    ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
    ("accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ("accept", "*/*;q=nan,;,/,a/b/c"),
    ("accept", "application/json;q=-1,application/yaml;q=2"),
    ("accept", "text/html"),
    ("content-type", "application/json"),
    ("content-type", "application/yaml"),
    ("content-type", "application/vnd.kubernetes.protobuf"),
    ("content-type", "application/merge-patch+json"),
    ("content-type", "application/json-patch+json"),
    ("content-type", "application/strategic-merge-patch+json"),
    ("content-type", "application/apply-patch+yaml"),
    ("content-type", "text/plain; charset=latin-1"),
    ("authorization", "Bearer x"),
    ("authorization", "Bearer"),
    ("authorization", "\u{e9}"),
    ("impersonate-user", "alice"),
    ("if-none-match", "*"),
];

static METHODS: [&str; 10] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"];

/// Fragments of documents.
static PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "null",
    "\"\"",
    "-1",
    "1e999",
    "99999999999999999999",
    "true",
    "{\"a\":1}",
    "[1,2]",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\u{0}",
    "\"metadata\":null,",
    "\"metadata\":[],",
    "\"spec\":{},",
    "\"$patch\":\"replace\",",
    "\"name\":\"..\"",
    "\"a\":1,\"a\":2",
    "&a *a",
    "*a",
    "!!binary x",
    "? x",
    "- ",
    "\t",
    "---\n",
    "<<: *a",
    "k8s\0\u{a}",
];

/// A mutation of a request.
#[derive(Debug, Clone)]
enum Change {
    Method(usize),
    Segment(Index, usize, u8),
    Parameter(usize, usize),
    Text(usize, String),
    Header(usize),
    DropHeader(Index),
    Flip(Index, u8),
    Cut(Index, Index),
    Piece(Index, usize),
    Repeat(Index, Index),
    Replace(Index, Index, Value),
    Body(Vec<u8>),
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(&WORDS[..]).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = select(vec![
            "metadata",
            "name",
            "spec",
            "a",
            "labels",
            "$patch",
            "items",
            "k",
            "kind",
            "apiVersion",
            "",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => (0..METHODS.len()).prop_map(Change::Method),
        3 => (any::<Index>(), 0..WORDS.len(), 0..3_u8).prop_map(|(at, word, how)| Change::Segment(at, word, how)),
        3 => (0..PARAMETERS.len(), 0..VALUES.len()).prop_map(|(name, value)| Change::Parameter(name, value)),
        1 => (0..PARAMETERS.len(), "[!-~]{0,20}").prop_map(|(name, value)| Change::Text(name, value)),
        2 => (0..HEADERS.len()).prop_map(Change::Header),
        1 => any::<Index>().prop_map(Change::DropHeader),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Cut(from, to)),
        2 => (any::<Index>(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Piece(at, piece)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Repeat(from, to)),
        6 => (any::<Index>(), any::<Index>(), any_json()).prop_map(|(a, b, value)| Change::Replace(a, b, value)),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Change::Body),
    ]
}

impl Change {
    fn apply(&self, sent: &mut Sent) {
        let range = |from: &Index, to: &Index, length: usize| {
            let (from, to) = (from.index(length + 1), to.index(length + 1));
            from.min(to)..from.max(to)
        };
        match self {
            Change::Method(method) => sent.method = METHODS[*method].into(),
            Change::Segment(at, word, how) => {
                let (path, query) = sent
                    .path
                    .split_once('?')
                    .map_or((&*sent.path, None), |(path, query)| (path, Some(query)));
                let mut segments: Vec<&str> = path.split('/').collect();
                let at = at.index(segments.len());
                match how {
                    0 => segments[at] = WORDS[*word],
                    1 => segments.insert(at, WORDS[*word]),
                    _ => drop(segments.remove(at)),
                }
                let query = query.map(|query| format!("?{query}")).unwrap_or_default();
                sent.path = format!("/{}{query}", segments.join("/").trim_start_matches('/'));
            }
            Change::Parameter(name, value) => parameter(sent, PARAMETERS[*name], VALUES[*value]),
            Change::Text(name, value) => parameter(sent, PARAMETERS[*name], value),
            Change::Header(header) => {
                let (name, value) = HEADERS[*header];
                sent.headers.retain(|(other, _)| other != name);
                sent.headers.push((name.into(), value.into()));
            }
            Change::DropHeader(at) if !sent.headers.is_empty() => {
                drop(sent.headers.remove(at.index(sent.headers.len())))
            }
            Change::Flip(at, byte) if !sent.body.is_empty() => {
                let at = at.index(sent.body.len());
                sent.body[at] = *byte;
            }
            Change::Cut(from, to) => drop(sent.body.drain(range(from, to, sent.body.len()))),
            Change::Piece(at, piece) => {
                let at = at.index(sent.body.len() + 1);
                sent.body.splice(at..at, PIECES[*piece].bytes());
            }
            Change::Repeat(from, to) => {
                let again = sent.body[range(from, to, sent.body.len())].to_vec();
                sent.body.extend(again);
            }
            Change::Replace(first, second, value) => {
                if let Ok(mut document) = serde_json::from_slice::<Value>(&sent.body) {
                    replace(&mut document, first, second, value);
                    sent.body = document.to_string().into_bytes();
                }
            }
            Change::Body(body) => sent.body.clone_from(body),
            Change::DropHeader(_) | Change::Flip(..) => {}
        }
    }
}

fn parameter(sent: &mut Sent, name: &str, value: &str) {
    // The first parameter of a name wins, so it is put first.
    let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
    let query = if query.is_empty() { String::new() } else { format!("&{query}") };
    sent.path = format!("{path}?{name}={value}{query}");
}

/// Replaces some value in a document.
fn replace(document: &mut Value, first: &Index, second: &Index, value: &Value) {
    fn places(value: &Value, at: String, out: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    places(field, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), out);
                }
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(number, item)| places(item, format!("{at}/{number}"), out)),
            _ => {}
        }
        out.push(at);
    }
    let mut all = Vec::new();
    places(document, String::new(), &mut all);
    let at = all[first.index(all.len())].clone();
    let Some(place) = document.pointer_mut(&at) else { return };
    match (place, second.index(4)) {
        (Value::Object(fields), 0) => drop(fields.insert("extra".into(), value.clone())),
        (Value::Array(items), 0) => items.push(value.clone()),
        (place, _) => *place = value.clone(),
    }
}

#[test]
fn the_corpus_is_answered() {
    let harness = Harness::new();
    let sent = corpus();
    assert!(sent.len() > 20);
    for sent in sent {
        let (status, body) = harness.send(&sent).unwrap().expect("a request");
        // The unmodified requests are well-formed.
        assert!(
            status != 400 && status < 500,
            "{} {}: {status} {}",
            sent.method,
            sent.path,
            body.escape_ascii()
        );
    }
    harness.still_works();
}

#[test]
fn mutated_requests_are_answered() {
    let corpus = corpus();
    let strategy = (any::<Index>(), prop::collection::vec(change(), 1..6));
    run(2500, &strategy, |harness, (which, changes)| {
        let mut sent = corpus[which.index(corpus.len())].clone();
        for change in &changes {
            change.apply(&mut sent);
        }
        harness.send(&sent).map(|_| ()).map_err(|error| TestCaseError::fail(format!("{sent:?}\n{error}")))
    });
}

#[test]
fn random_requests_are_answered() {
    let part = prop_oneof![select(&WORDS[..]).prop_map(str::to_owned), "[!-~]{0,8}"];
    let query = prop::collection::vec((select(&PARAMETERS[..]), "[!-~]{0,12}"), 0..4);
    let strategy = (
        prop_oneof![select(&METHODS[..]).prop_map(str::to_owned), "[A-Z]{1,6}"],
        prop::collection::vec(part, 0..8),
        query,
        prop::collection::vec(
            (select(vec!["accept", "content-type", "authorization", "x-remote-user"]), "[ -~]{0,30}"),
            0..3,
        ),
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            any_json().prop_map(|value| value.to_string().into_bytes())
        ],
    );
    run(1500, &strategy, |harness, (method, path, query, headers, body)| {
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let path = format!("/{}?{}", path.join("/"), query.join("&"));
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let sent = Sent { method, path, headers, body };
        harness.send(&sent).map(|_| ()).map_err(|error| TestCaseError::fail(format!("{sent:?}\n{error}")))
    });
}

fn get(path: String) -> Sent {
    Sent { method: "GET".into(), path, headers: Vec::new(), body: Vec::new() }
}

fn escaped(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[test]
fn continue_tokens_are_never_trusted() {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-2..20_i64).prop_map(Value::from),
        any_json(),
    ];
    let start =
        prop_oneof![".{0,10}".prop_map(Value::from), "[a./\\x00]{0,20}".prop_map(Value::from), any_json()];
    let document =
        (select(vec!["meta.k8s.io/v1", "v1", ""]), number, start).prop_map(|(version, revision, start)| {
            json!({"v": version, "rv": revision, "start": start}).to_string().into_bytes()
        });
    let token = prop_oneof![
        4 => document.prop_map(|text| base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text)),
        1 => "[A-Za-z0-9_=+/-]{0,40}",
        1 => ".{0,20}",
    ];
    let strategy = (
        token,
        select(vec![
            "/api/v1/configmaps",
            "/api/v1/namespaces/default/configmaps",
            "/apis/fuzz.k1s.dev/v1/widgets",
        ]),
        0..3,
    );
    run(800, &strategy, |harness, (token, path, limit)| {
        let sent = get(format!("{path}?limit={limit}&continue={}", escaped(&token)));
        let Some((status, body)) = harness.send(&sent)? else { return Ok(()) };
        prop_assert!(
            matches!(status, 200 | 400 | 410 | 504),
            "{status} {} for {sent:?}",
            body.escape_ascii()
        );
        if status == 200 {
            // With any token, the objects are of the requested kind and namespace.
            let list: Value = serde_json::from_slice(&body).unwrap();
            let kind = if path.ends_with("widgets") { "WidgetList" } else { "ConfigMapList" };
            prop_assert_eq!(&list["kind"], kind);
            let inside =
                |item: &Value| !path.contains("default") || item["metadata"]["namespace"] == "default";
            prop_assert!(list["items"].as_array().is_some_and(|items| items.iter().all(inside)));
        }
        Ok(())
    });
}

#[test]
fn random_selectors_are_parsed_or_rejected() {
    let word = select(vec![
        "a",
        "app",
        "k1s.dev/x",
        "in",
        "notin",
        "x",
        "(",
        ")",
        ",",
        "=",
        "==",
        "!=",
        "!",
        ">",
        "<",
        " ",
        "1",
        "metadata.name",
        "spec.x",
        "\\",
        "🙂",
        "-",
    ]);
    let selector =
        prop_oneof![3 => prop::collection::vec(word, 0..10).prop_map(|words| words.concat()), 1 => ".{0,20}"];
    let name = select(vec!["labelSelector", "fieldSelector"]);
    let strategy = (selector, name, any::<bool>());
    run(800, &strategy, |harness, (selector, name, watch)| {
        let watch = if watch { "&watch=true&timeoutSeconds=1" } else { "" };
        let sent = get(format!("/api/v1/configmaps?{name}={}{watch}", escaped(&selector)));
        let Some((status, body)) = harness.send(&sent)? else { return Ok(()) };
        prop_assert!(matches!(status, 200 | 400), "{status} {} for {selector:?}", body.escape_ascii());
        Ok(())
    });
}

#[test]
fn random_patches_are_applied_or_rejected() {
    let pointer = prop_oneof![
        select(vec![
            "",
            "/",
            "/data",
            "/data/k",
            "/metadata",
            "/metadata/name",
            "/metadata/labels/a",
            "/spec",
            "/spec/list/0",
            "/spec/list/-",
            "/spec/list/99999999999",
            "/kind",
            "/~",
            "/~2",
            "a",
            "/metadata/managedFields",
            "/metadata/resourceVersion",
            "/status"
        ])
        .prop_map(str::to_owned),
        "(/[a-z~01-]{0,4}){0,4}",
    ];
    let operation = (
        select(vec!["add", "remove", "replace", "move", "copy", "test", "", "x"]),
        pointer.clone(),
        pointer,
        any_json(),
    )
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    let operations =
        prop::collection::vec(prop_oneof![9 => operation, 1 => any_json()], 0..5).prop_map(Value::from);
    let directive = select(vec![
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$unknown",
    ]);
    let strategic = (directive, any_json(), any_json()).prop_map(|(name, value, more)| {
        json!({name: value, "metadata": {name: value, "labels": more}, "spec": {"template": {"spec": {name: value, "containers": [{"name": "c", name: value}, more]}}}})
    });
    let merge = || {
        (any_json(), any_json())
            .prop_map(|(metadata, spec)| json!({"metadata": metadata, "spec": spec, "data": spec}))
    };
    let patch = prop_oneof![
        operations.prop_map(|patch| ("application/json-patch+json", patch)),
        strategic.prop_map(|patch| ("application/strategic-merge-patch+json", patch)),
        merge().prop_map(|patch| ("application/merge-patch+json", patch)),
        merge().prop_map(|mut patch| {
            patch["apiVersion"] = "v1".into();
            patch["kind"] = "ConfigMap".into();
            ("application/apply-patch+yaml", patch)
        }),
        any_json().prop_map(|patch| ("application/merge-patch+json", patch)),
    ];
    let path = select(vec![
        "/api/v1/namespaces/default/configmaps/a?fieldManager=m",
        "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=m&force=true",
        "/apis/fuzz.k1s.dev/v1/namespaces/default/widgets/w?fieldManager=m",
        "/apis/fuzz.k1s.dev/v1/namespaces/default/widgets/w/status?fieldManager=m",
        "/apis/apps/v1/namespaces/default/deployments/d/scale?fieldManager=m",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.fuzz.k1s.dev?dryRun=All&fieldManager=m",
    ]);
    run(1500, &(path, patch), |harness, (path, (content_type, patch))| {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        let sent =
            Sent { method: "PATCH".into(), path: path.into(), headers, body: patch.to_string().into_bytes() };
        // Kubernetes also returns 500 for directives of the wrong type, and for configurations that do not match the schema.
        let strategic = content_type.contains("strategic");
        let Some((status, body)) = harness.send(&sent)? else { return Ok(()) };
        prop_assert!(
            matches!(status, 200 | 201 | 400 | 404 | 409 | 413 | 415 | 422)
                || (status == 500 && (strategic || content_type.contains("apply"))),
            "{status} {} for {sent:?}",
            body.escape_ascii()
        );
        Ok(())
    });
}
