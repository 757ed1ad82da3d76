//! Encryption at rest, from the API to what is on disk.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use k1s::{
    Runtime,
    encryption::EncryptionOptions,
    env::Env,
    k8s_openapi::{
        ByteString,
        api::core::v1::{ConfigMap, Secret},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
    kube::{
        self, Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    },
    store::{
        MemoryStore, Store,
        etcd::{EtcdStore, testing::EtcdServer},
    },
};

/// As it is written to the store, in base64.
const PLAIN: &str = "correct horse battery staple";
const STORED: &[u8] = b"Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==";

fn secret(name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("password".into(), ByteString(PLAIN.into()))])),
        ..Secret::default()
    }
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::default_namespaced(client.clone())
}

async fn create(client: &Client, name: &str) -> Secret {
    secrets(client).create(&PostParams::default(), &secret(name)).await.unwrap()
}

async fn password(client: &Client, name: &str) -> Vec<u8> {
    secrets(client).get(name).await.unwrap().data.unwrap().remove("password").unwrap().0
}

/// Whether any file of a folder contains these bytes.
fn contains(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains(&path, bytes);
        }
        fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes)
    })
}

#[tokio::test]
async fn a_folder_with_its_own_key_holds_no_secret_in_plain_text() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Runtime::builder().disk(folder.path());
    let runtime = start().encrypt_secrets().start().await.unwrap();
    let client = runtime.client();
    let mut events = secrets(&client).watch(&WatchParams::default(), "0").await.unwrap().boxed();
    create(&client, "a").await;
    let other = runtime.tenant_client("other").await.unwrap();
    create(&other, "a").await;
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("map".into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("visible".into(), "as plain as a map".into())])),
        ..ConfigMap::default()
    };
    Api::<ConfigMap>::default_namespaced(client.clone()).create(&PostParams::default(), &map).await.unwrap();
    let Some(Ok(WatchEvent::Added(seen))) = events.next().await else { panic!("no event") };
    assert_eq!(seen.data.unwrap()["password"].0, PLAIN.as_bytes());
    drop(events);
    let listed = secrets(&client).list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].data.as_ref().unwrap()["password"].0, PLAIN.as_bytes());
    runtime.stop().await.unwrap();

    let file = folder.path().join("pki/encryption.yaml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "it is a key");
    assert!(contains(folder.path(), b"as plain as a map"), "the search finds what is there");
    assert!(!contains(folder.path(), STORED) && contains(folder.path(), b"k8s:enc:aesgcm:v1:key1:"));

    // The folder remembers.
    let runtime = start().start().await.unwrap();
    assert_eq!(password(&runtime.client(), "a").await, PLAIN.as_bytes());
    assert_eq!(password(&runtime.tenant_client("other").await.unwrap(), "a").await, PLAIN.as_bytes());
    create(&runtime.client(), "b").await;
    runtime.stop().await.unwrap();
    assert!(!contains(folder.path(), STORED));

    // Without the key, nothing of them is readable, everything else is, and the server says what is wrong. Its own key, which
    // signs tokens, was not needed here.
    let key = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let runtime = start().start().await.unwrap();
    let client = runtime.client();
    let error = secrets(&client).get("a").await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!((status.code, &*status.reason), (500, "StorageReadError"));
    assert_eq!(
        status.message,
        "failed to read secrets \"a\" from the storage: it is encrypted, and this server has no configuration of encryption; \
         the object can be deleted"
    );
    assert!(secrets(&client).list(&ListParams::default()).await.unwrap().items.is_empty());
    Api::<ConfigMap>::default_namespaced(client.clone()).get("map").await.unwrap();
    secrets(&client).delete("b", &DeleteParams::default()).await.unwrap();
    runtime.stop().await.unwrap();
    fs::write(&file, key).unwrap();
    let runtime = start().start().await.unwrap();
    assert_eq!(password(&runtime.client(), "a").await, PLAIN.as_bytes());
    assert!(secrets(&runtime.client()).get_opt("b").await.unwrap().is_none());
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_folder_that_gets_a_key_encrypts_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().disk(folder.path()).start().await.unwrap();
    for i in 0..20 {
        create(&runtime.client(), &format!("s{i}")).await;
    }
    runtime.stop().await.unwrap();
    assert!(contains(folder.path(), STORED));
    let runtime = Runtime::builder().disk(folder.path()).encrypt_secrets().start().await.unwrap();
    let listed = secrets(&runtime.client()).list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 20);
    runtime.stop().await.unwrap();
    // The current values, without the history.
    let open = |folder: &Path| {
        let options = k1s::store::disk::DiskOptions::default();
        k1s::store::disk::DiskStore::open(Env::system(), folder, options).unwrap()
    };
    let store = open(folder.path());
    let all = store.range(k1s::store::Range::prefix("/default/core/secrets/")).await.unwrap().entries;
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|entry| entry.value.starts_with(b"k8s:enc:aesgcm:v1:key1:")));
    store.close().await.unwrap();
    // Only a folder keeps a key.
    let refused = Runtime::builder().memory().encrypt_secrets().start().await.unwrap_err().to_string();
    assert_eq!(refused, "encryption at rest: only a data folder keeps a key of its own; use a configuration");
}

/// A configuration of Secrets with these keys, of which the first writes.
fn config(folder: &Path, keys: &[(&str, &str)]) -> EncryptionOptions {
    let keys: Vec<String> =
        keys.iter().map(|(name, secret)| format!("{{name: {name}, secret: {secret}}}")).collect();
    let path = folder.join(format!("{}.yaml", keys.len()));
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  \
         providers: [{{aesgcm: {{keys: [{}]}}}}, {{identity: {{}}}}]\n",
        keys.join(", ")
    );
    fs::write(&path, text).unwrap();
    EncryptionOptions::new(path)
}

const OLD: (&str, &str) = ("old", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
const NEW: (&str, &str) = ("new", "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=");

#[tokio::test]
async fn a_write_that_changes_nothing_moves_an_object_to_the_new_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::default());
    let start = |keys: &[(&str, &str)]| {
        let builder = Runtime::builder().shared_store(store.clone());
        builder.encryption(config(folder.path(), keys)).start()
    };
    let stored = async |name: &str| {
        let key = format!("/default/core/secrets/default/{name}");
        let value = store.get(key.as_bytes(), None).await.unwrap().entry.unwrap().value;
        String::from_utf8_lossy(value.get(..24).unwrap()).into_owned()
    };
    let runtime = start(&[OLD]).await.unwrap();
    for name in ["replaced", "patched", "applied", "left"] {
        create(&runtime.client(), name).await;
        assert!(stored(name).await.starts_with("k8s:enc:aesgcm:v1:old:"));
    }
    let apply = PatchParams::apply("test");
    let applied = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied"},
        "stringData": {"more": "x"}});
    secrets(&runtime.client()).patch("applied", &apply, &Patch::Apply(&applied)).await.unwrap();
    runtime.stop().await.unwrap();

    let runtime = start(&[NEW, OLD]).await.unwrap();
    let api = secrets(&runtime.client());
    let nothing = Patch::Merge(serde_json::json!({}));
    for (round, is_new) in [(0, true), (1, false)] {
        for name in ["replaced", "patched", "applied"] {
            let before = api.get(name).await.unwrap();
            assert_eq!(password(&runtime.client(), name).await, PLAIN.as_bytes());
            let after = match name {
                "replaced" => api.replace(name, &PostParams::default(), &before).await.unwrap(),
                "patched" => api.patch(name, &PatchParams::default(), &nothing).await.unwrap(),
                _ => api.patch(name, &apply, &Patch::Apply(&applied)).await.unwrap(),
            };
            let is_written = before.metadata.resource_version != after.metadata.resource_version;
            assert_eq!(is_written, is_new, "{name}, round {round}");
            assert!(stored(name).await.starts_with("k8s:enc:aesgcm:v1:new:"), "{name}");
        }
    }
    assert!(stored("left").await.starts_with("k8s:enc:aesgcm:v1:old:"), "nobody wrote it");
    runtime.stop().await.unwrap();

    // The old key is gone too early: what it wrote is left out, and named.
    let runtime = start(&[NEW]).await.unwrap();
    let error = secrets(&runtime.client()).get("left").await.unwrap_err().to_string();
    assert!(
        error.contains("it cannot be decrypted: no matching key was found for the provided AES transformer"),
        "{error}"
    );
    let listed = secrets(&runtime.client()).list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 3);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn servers_over_one_etcd_share_what_is_encrypted_and_their_own_keys_are_too() {
    let env = Env::system();
    let Some(etcd) = EtcdServer::start(&env).await.unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let start = |keys: &[(&str, &str)]| {
        let builder = Runtime::builder().etcd_with(etcd.options()).listen(([127, 0, 0, 1], 0));
        builder.encryption(config(folder.path(), keys)).start()
    };
    let (a, b) = (start(&[OLD]).await.unwrap(), start(&[OLD]).await.unwrap());
    assert_eq!(a.certificate_authority(), b.certificate_authority());
    create(&a.client(), "a").await;
    assert_eq!(password(&b.client(), "a").await, PLAIN.as_bytes());
    assert_eq!(secrets(&b.client()).list(&ListParams::default()).await.unwrap().items.len(), 1);
    let below = EtcdStore::connect(env.clone(), etcd.options()).await.unwrap();
    let below_values = async |prefix: &'static [u8]| {
        let all = below.range(k1s::store::Range::prefix(prefix)).await.unwrap().entries;
        all.into_iter().map(|entry| entry.value).collect::<Vec<_>>()
    };
    let own = below_values(b"/_k1s/identity").await;
    assert!(own.len() == 1 && own[0].starts_with(b"k8s:enc:aesgcm:v1:old:"));
    let authority = a.certificate_authority().unwrap().to_owned();
    a.stop().await.unwrap();
    b.stop().await.unwrap();
    // Another key writes: the server's own keys follow at the next start.
    let a = start(&[NEW, OLD]).await.unwrap();
    assert_eq!(a.certificate_authority(), Some(&*authority));
    assert!(below_values(b"/_k1s/identity").await[0].starts_with(b"k8s:enc:aesgcm:v1:new:"));
    assert!(below_values(b"/default/core/secrets/").await[0].starts_with(b"k8s:enc:aesgcm:v1:old:"));
    a.stop().await.unwrap();
    // Without the key, no server starts with another identity.
    let refused = Runtime::builder().etcd_with(etcd.options()).listen(([127, 0, 0, 1], 0)).start().await;
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("the authority in the store (at /_k1s/identity)"), "{refused}");
    below.close().await.unwrap();
}

#[tokio::test]
async fn a_plugin_that_is_down_is_seen_in_the_health_checks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kms.yaml");
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  \
         providers:\n  - kms: {{apiVersion: v2, name: test, endpoint: \"unix://{}/none.sock\", timeout: 50ms}}\n",
        folder.path().display()
    );
    fs::write(&path, text).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let sealed = include_str!("../../encryption/tests/recorded/kms.json").lines().next().unwrap();
    let sealed: serde_json::Value = serde_json::from_str(sealed).unwrap();
    let sealed = BASE64.decode(sealed["stored"].as_str().unwrap()).unwrap();
    store.create("/default/core/secrets/default/before".into(), sealed.into()).await.unwrap();
    let builder = Runtime::builder().store(store);
    let runtime = builder.encryption(EncryptionOptions::new(&path)).start().await.unwrap();
    for endpoint in ["healthz", "livez", "readyz"] {
        let request =
            http::Request::get(format!("/{endpoint}?verbose")).body(kube::client::Body::empty()).unwrap();
        let response = runtime.client().send(request).await.unwrap();
        assert_eq!(response.status(), 500);
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(
            text.contains("[+]etcd ok") && text.contains("[-]kms-providers failed: kms-provider-0: failed"),
            "{text}"
        );
    }
    let error = secrets(&runtime.client())
        .create(&PostParams::default(), &secret("a"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the KMS plugin test has not encrypted a seed yet"), "{error}");
    // What is there cannot be read meanwhile, and the error says why, at once.
    let error = secrets(&runtime.client()).get("before").await.unwrap_err().to_string();
    assert!(error.contains("failed to decrypt DEK, error: KMS plugin test: rpc error"), "{error}");
    let error = secrets(&runtime.client()).list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("failed to decrypt DEK, error: KMS plugin test: rpc error"), "{error}");
    runtime.stop().await.unwrap();
    // A configuration that is wrong names what is wrong.
    fs::write(&path, "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n").unwrap();
    let refused = Runtime::builder().memory().encryption(EncryptionOptions::new(&path)).start().await;
    assert_eq!(
        refused.err().unwrap().to_string(),
        "encryption at rest: error while parsing file: resources: Required value: at least one resources is required"
    );
}
