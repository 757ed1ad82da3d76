//! A plugin of a key management service, over a real socket: it "encrypts" by writing its key's name in front.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::server::conn::http2;
use hyper_util::rt::TokioIo;
use k1s_encryption::{Configuration, Encryption};
use k1s_env::{Env, Task};
use k1s_store::{Error, Precondition, Store, Txn, why_unreadable};
use tokio::net::UnixListener;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use super::{KEY, memory, read};

#[derive(Clone, PartialEq, prost::Message)]
struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    healthz: String,
    #[prost(string, tag = "3")]
    key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Plain {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Clone)]
struct Answers {
    version: String,
    healthz: String,
    key_id: String,
    /// Every call fails with this code.
    fails: Option<Code>,
    annotation: String,
    calls: BTreeMap<&'static str, usize>,
}

/// A plugin that runs until it is dropped.
struct Plugin {
    socket: PathBuf,
    answers: Arc<Mutex<Answers>>,
    task: Task<()>,
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Plugin {
    fn start(env: &Env, folder: &Path) -> Plugin {
        let socket = folder.join("kms.sock");
        let _ = std::fs::remove_file(&socket);
        let answers = Arc::new(Mutex::new(Answers {
            version: "v2".into(),
            healthz: "ok".into(),
            key_id: "key-1".into(),
            fails: None,
            annotation: "version.example.com".into(),
            calls: BTreeMap::new(),
        }));
        let listener = UnixListener::bind(&socket).unwrap();
        let task = env.spawn("kms plugin", serve(env.clone(), listener, answers.clone()));
        Plugin { socket, answers, task }
    }

    fn set(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.answers.lock().unwrap());
    }

    fn calls(&self, method: &str) -> usize {
        self.answers.lock().unwrap().calls.get(method).copied().unwrap_or_default()
    }

    fn config(&self, timeout: &str) -> String {
        format!(
            "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  \
             providers:\n  - kms: {{apiVersion: v2, name: test, endpoint: \"unix://{}\", timeout: {timeout}}}\n",
            self.socket.display()
        )
    }
}

#[derive(Clone)]
struct Spawn(Env);

impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Spawn {
    fn execute(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.0.spawn("kms stream", work));
    }
}

/// hyper gives its own futures to the executor.
#[derive(Clone)]
struct SpawnAny(Spawn);

impl<F> hyper::rt::Executor<F> for SpawnAny
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        hyper::rt::Executor::execute(&self.0, Box::pin(work) as Pin<Box<dyn Future<Output = ()> + Send>>);
    }
}

async fn serve(env: Env, listener: UnixListener, answers: Arc<Mutex<Answers>>) {
    // Connections end with the plugin.
    let mut connections: Vec<AbortOnDrop> = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let answers = answers.clone();
        let handle = hyper::service::service_fn(move |request| {
            let answers = answers.clone();
            async move { Ok::<_, Infallible>(answer(request, answers).await) }
        });
        let connection =
            http2::Builder::new(SpawnAny(Spawn(env.clone()))).serve_connection(TokioIo::new(stream), handle);
        connections.push(AbortOnDrop(env.spawn("kms connection", async move {
            let _ = connection.await;
        })));
    }
}

struct AbortOnDrop(Task<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
    answers: Arc<Mutex<Answers>>,
) -> http::Response<tonic::body::Body> {
    let method = match request.uri().path() {
        "/v2.KeyManagementService/Status" => "Status",
        "/v2.KeyManagementService/Encrypt" => "Encrypt",
        "/v2.KeyManagementService/Decrypt" => "Decrypt",
        other => panic!("{other}"),
    };
    let now = {
        let mut answers = answers.lock().unwrap();
        *answers.calls.entry(method).or_default() += 1;
        answers.clone()
    };
    let fails = |code| Status::new(code, "as the test says");
    match method {
        "Status" => {
            let call = tower::service_fn(move |_: Request<Empty>| {
                let now = now.clone();
                std::future::ready(match now.fails {
                    Some(code) => Err(fails(code)),
                    None => Ok(Response::new(StatusResponse {
                        version: now.version,
                        healthz: now.healthz,
                        key_id: now.key_id,
                    })),
                })
            });
            tonic::server::Grpc::new(ProstCodec::<StatusResponse, Empty>::default())
                .unary(call, request)
                .await
        }
        "Encrypt" => {
            let call = tower::service_fn(move |request: Request<Plain>| {
                let now = now.clone();
                assert!(!request.get_ref().uid.is_empty());
                std::future::ready(match now.fails {
                    Some(code) => Err(fails(code)),
                    None => Ok(Response::new(EncryptResponse {
                        ciphertext: [b"wrapped:", &request.get_ref().plaintext[..]].concat(),
                        key_id: now.key_id,
                        annotations: BTreeMap::from([(now.annotation, b"1".to_vec())]),
                    })),
                })
            });
            tonic::server::Grpc::new(ProstCodec::<EncryptResponse, Plain>::default())
                .unary(call, request)
                .await
        }
        _ => {
            let call = tower::service_fn(move |request: Request<DecryptRequest>| {
                let request = request.into_inner();
                assert!(!request.uid.is_empty() && !request.key_id.is_empty());
                assert_eq!(request.annotations.values().next().map(Vec::as_slice), Some(&b"1"[..]));
                let plain = request.ciphertext.strip_prefix(b"wrapped:").map(<[u8]>::to_vec);
                std::future::ready(match (now.fails, plain) {
                    (Some(code), _) => Err(fails(code)),
                    (None, None) => Err(fails(Code::InvalidArgument)),
                    (None, Some(plaintext)) => Ok(Response::new(Plain { plaintext, uid: String::new() })),
                })
            });
            tonic::server::Grpc::new(ProstCodec::<Plain, DecryptRequest>::default())
                .unary(call, request)
                .await
        }
    }
}

async fn open(env: &Env, text: &str) -> Encryption {
    let configuration = Configuration::parse(text.as_bytes(), Path::new("c"), true).unwrap();
    Encryption::new(env, &configuration).await.unwrap()
}

#[tokio::test]
async fn a_plugin_is_asked_once_for_a_seed_and_never_for_a_value() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let plugin = Plugin::start(&env, folder.path());
    let encryption = open(&env, &plugin.config("3s")).await;
    encryption.check().await.unwrap();
    let inside = memory();
    let store = encryption.store(inside.clone());
    for i in 0..100 {
        let key = format!("/t/core/secrets/n/{i}");
        store.create(key.clone().into(), format!("secret {i}").into()).await.unwrap();
        assert_eq!(read(&store, &key).await, format!("secret {i}"));
        let stored = read(&*inside, &key).await;
        assert!(
            stored.starts_with(b"k8s:enc:kms:v2:test:") && !stored.windows(6).any(|part| part == b"secret")
        );
    }
    assert_eq!((plugin.calls("Status"), plugin.calls("Encrypt"), plugin.calls("Decrypt")), (1, 1, 0));
    // Another server: one question for all values.
    let other = open(&env, &plugin.config("3s")).await.store(inside.clone());
    let all = other.range(k1s_store::Range::prefix("/t/")).await.unwrap().entries;
    assert!(all.len() == 100 && all.iter().all(|entry| entry.value.starts_with(b"secret ")));
    assert_eq!(plugin.calls("Decrypt"), 1);
    // The place is authenticated.
    inside
        .create("/t/core/secrets/n/copy".into(), read(&*inside, "/t/core/secrets/n/1").await)
        .await
        .unwrap();
    let why = "it cannot be decrypted: cipher: message authentication failed";
    assert_eq!(why_unreadable(&read(&store, "/t/core/secrets/n/copy").await), Some(why));
    let damaged = [&b"k8s:enc:kms:v2:test:"[..], b"\x0a\x01x"].concat();
    inside.create("/t/core/secrets/n/damaged".into(), damaged.into()).await.unwrap();
    let why =
        "it cannot be decrypted: failed to validate encrypted DEK source: encrypted DEK source is empty";
    assert_eq!(why_unreadable(&read(&store, "/t/core/secrets/n/damaged").await), Some(why));
    store.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn values_of_kubernetes_are_read() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let plugin = Plugin::start(&env, folder.path());
    let encryption = open(&env, &plugin.config("3s")).await;
    let cases: Vec<serde_json::Value> = include_str!("../recorded/kms.json")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let bytes = |name: &str| STANDARD.decode(case[name].as_str().unwrap()).unwrap();
        let inside = memory();
        let place = case["key"].as_str().unwrap();
        inside.create(place.to_owned().into(), bytes("stored").into()).await.unwrap();
        let store = encryption.store(inside);
        assert_eq!(read(&store, place).await, bytes("plain"));
        // Of the same key, but not with a seed.
        assert_eq!(store.is_stale(place.as_bytes()).await.unwrap(), case["seed"] == false);
    }
}

#[tokio::test]
async fn a_plugin_that_is_down_is_a_clear_error_and_works_again_when_it_is_back() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let plugin = Plugin::start(&env, folder.path());
    let inside = memory();
    let store = open(&env, &plugin.config("3s")).await.store(inside.clone());
    store.create(KEY.into(), "hush".into()).await.unwrap();
    let config = plugin.config("200ms");
    drop(plugin);
    // The seed is known: the server continues to read and to write.
    assert_eq!(read(&store, KEY).await, "hush");
    store.create("/t/core/secrets/n/later".into(), "later".into()).await.unwrap();
    // A server that starts now can do neither, says so, and is not healthy.
    let encryption = open(&env, &config).await;
    let late = encryption.store(inside.clone());
    let error = late.get(KEY.as_bytes(), None).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(KEY) && text.contains("failed to decrypt DEK, error: KMS plugin test: rpc error"),
        "{text}"
    );
    let error = late.range(k1s_store::Range::prefix("/")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let error = late.create("/t/core/secrets/n/b".into(), "b".into()).await.unwrap_err().to_string();
    assert!(error.contains("the KMS plugin test has not encrypted a seed yet"), "{error}");
    let unhealthy = encryption.check().await.unwrap_err();
    assert!(
        unhealthy.starts_with(
            "kms-provider-0: failed to perform status section of the healthz check for KMS Provider test"
        ),
        "{unhealthy}"
    );
    // Others are not concerned.
    late.create("/t/core/configmaps/n/a".into(), "a".into()).await.unwrap();
    let plugin = Plugin::start(&env, folder.path());
    assert_eq!(read(&late, KEY).await, "hush");
    // A plugin that has lost the key: the value is unreadable, and nothing else is.
    plugin.set(|answers| answers.fails = Some(Code::NotFound));
    let lost = open(&env, &plugin.config("3s")).await.store(inside.clone());
    let why = "it cannot be decrypted: failed to decrypt DEK, error: rpc error: code = NotFound desc = as the test says";
    assert_eq!(why_unreadable(&read(&lost, KEY).await), Some(why));
    assert_eq!(read(&lost, "/t/core/configmaps/n/a").await, "a");
}

/// Advances the clock until a condition holds. The socket is real, so its time passes as well: a second of the simulation in a
/// millisecond.
async fn until(env: &Env, clock: &k1s_env::VirtualClock, holds: impl AsyncFn() -> bool) {
    let real = Env::system();
    for _ in 0..10_000 {
        let mut held = std::pin::pin!(holds());
        let held = loop {
            tokio::select! {
                biased;
                held = &mut held => break held,
                () = real.sleep(Duration::from_millis(1)) => clock.advance(Duration::from_secs(1)),
            }
        };
        if held {
            return;
        }
        clock.advance(Duration::from_secs(1));
        env.yield_now().await;
    }
    panic!("it does not come true");
}

#[tokio::test]
async fn a_new_key_of_the_service_makes_values_stale_and_an_unhealthy_one_ends_writes() {
    let (env, clock) = Env::simulated(1);
    let real = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let plugin = Plugin::start(&real, folder.path());
    // Calls must not time out on the simulated clock.
    let encryption = open(&env, &plugin.config("100h")).await;
    let inside = memory();
    let store = encryption.store(inside.clone());
    store.create(KEY.into(), "hush".into()).await.unwrap();
    assert!(!store.is_stale(KEY.as_bytes()).await.unwrap());
    plugin.set(|answers| answers.key_id = "key-2".into());
    until(&env, &clock, async || store.is_stale(KEY.as_bytes()).await.unwrap()).await;
    assert_eq!(plugin.calls("Encrypt"), 2, "a new seed for a new key");
    assert_eq!(store.rewrite(b"").await.unwrap(), 1);
    assert!(!store.is_stale(KEY.as_bytes()).await.unwrap());
    assert_eq!(read(&store, KEY).await, "hush");
    // Unhealthy: three minutes later the seed is not used any more. What is stored is still read.
    let good = plugin.answers.lock().unwrap().clone();
    for (change, why) in [
        (Answers { healthz: "not ok".into(), ..good.clone() }, "got unexpected healthz status: not ok"),
        (Answers { version: "v3".into(), ..good.clone() }, "expected KMSv2 API version v2, got v3"),
        (Answers { version: "v2beta1".into(), ..good.clone() }, "should not change after the initial"),
        (
            Answers { key_id: String::new(), ..good.clone() },
            "got invalid KMSv2 KeyID hash \"\": keyID is empty",
        ),
        (Answers { key_id: "k".repeat(1025), ..good.clone() }, "keyID is 1025 bytes"),
    ] {
        plugin.set(|answers| *answers = change);
        until(&env, &clock, async || encryption.check().await.is_err_and(|error| error.contains(why))).await;
    }
    // An annotation that is no domain is refused before it is used.
    plugin.set(|answers| {
        answers.version = "v2".into();
        answers.healthz = "ok".into();
        answers.key_id = "key-3".into();
        answers.annotation = "nodomain".into();
    });
    let refused = "should be a domain with at least two segments";
    until(&env, &clock, async || encryption.check().await.is_err_and(|error| error.contains(refused))).await;
    let put = || Txn::new().put(KEY, "more", Precondition::Any);
    until(&env, &clock, async || store.txn(put()).await.is_err()).await;
    let error = store.txn(put()).await.unwrap_err().to_string();
    assert!(
        error.contains("encryptedDEKSource with keyID hash \"sha256:") && error.contains("expired at"),
        "{error}"
    );
    assert!(!error.contains("key-2"), "{error}");
    assert_eq!(read(&store, KEY).await, "more");
    plugin.set(|answers| answers.annotation = "version.example.com".into());
    until(&env, &clock, async || store.txn(put()).await.is_ok()).await;
    store.close().await.unwrap();
}
