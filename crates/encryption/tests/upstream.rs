//! Cases recorded from kube-apiserver's own code (k8s.io/apiserver 0.36): which configurations it accepts, in which words it refuses
//! others, which key writes which resource, and values that its providers have written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k1s_encryption::{Configuration, Encryption};
use k1s_env::Env;
use k1s_store::{MemoryStore, Store};
use serde_json::Value;

fn recorded(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Where the messages differ on purpose: nothing of a key, or of the file, is repeated.
fn comparable(error: &str) -> String {
    let mut text = error.to_owned();
    for word in ["Object 'Kind' is missing", "Object 'apiVersion' is missing"] {
        if let Some(at) = text.find(word) {
            text.truncate(at + word.len());
        }
    }
    // Kubernetes names its source file, and how to turn its feature on.
    for end in [" in scheme \"", "  Set --feature-gates=KMSv1"] {
        if let Some(at) = text.find(end) {
            text.truncate(at);
        }
    }
    let mut rest = text.as_str();
    let mut out = String::new();
    while let Some(at) = rest.find("\"Secret\":\"") {
        let start = at + "\"Secret\":\"".len();
        out.push_str(&rest[..start]);
        out.push_str("REDACTED");
        rest = &rest[start..];
        rest = &rest[rest.find('"').unwrap()..];
    }
    out + rest
}

#[test]
fn configurations_are_validated_in_upstreams_words() {
    let cases = recorded(include_str!("recorded/validation.json"));
    assert_eq!(cases.len(), 60);
    for case in cases {
        let text = case["config"].to_string();
        let reload = case["reload"] == true;
        let found = Configuration::parse(text.as_bytes(), Path::new("config.yaml"), reload);
        let errors: Vec<&str> =
            case["errors"].as_array().unwrap().iter().map(|e| e.as_str().unwrap()).collect();
        let expected = match errors.as_slice() {
            [] => None,
            [one] => Some(format!("error while parsing file: {one}")),
            several => Some(format!("error while parsing file: [{}]", several.join(", "))),
        };
        let found = found.err().map(|error| error.to_string());
        assert_eq!(found, expected.map(|text| comparable(&text)), "{}", case["name"]);
    }
}

#[tokio::test]
async fn files_are_loaded_and_refused_as_upstream_does() {
    let cases = recorded(include_str!("recorded/loads.json"));
    assert_eq!(cases.len(), 42);
    for case in cases {
        let (name, text) = (&case["name"], case["text"].as_str().unwrap());
        let env = Env::system();
        let loaded = match Configuration::parse(text.as_bytes(), Path::new("config.yaml"), false) {
            Ok(configuration) => Encryption::new(&env, &configuration).await,
            Err(error) => Err(error),
        };
        let found = loaded.as_ref().err().map(ToString::to_string);
        assert_eq!(found, case["error"].as_str().map(comparable), "{name}");
        let Ok(encryption) = loaded else { continue };
        for (resource, prefix) in case["writes"].as_object().into_iter().flatten() {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, "core"));
            let key = format!("/default/{group}/{plural}/n/x");
            let inside: Arc<dyn Store> = Arc::new(MemoryStore::default());
            encryption.store(inside.clone()).create(key.clone().into(), "plain".into()).await.unwrap();
            let stored = inside.get(key.as_bytes(), None).await.unwrap().entry.unwrap().value;
            assert!(stored.starts_with(prefix.as_str().unwrap().as_bytes()), "{name}: {resource}");
            assert_eq!(prefix == "plain", stored == "plain", "{name}: {resource}");
        }
    }
}

/// A store with these values, as they are, and its encrypted view.
async fn with_stored(
    text: &str,
    key: &str,
    stored: &[u8],
) -> (Arc<dyn Store>, k1s_encryption::EncryptedStore) {
    let inside: Arc<dyn Store> = Arc::new(MemoryStore::default());
    inside.create(key.to_owned().into(), stored.to_vec().into()).await.unwrap();
    let configuration = Configuration::parse(text.as_bytes(), Path::new("c"), false).unwrap();
    let encryption = Encryption::new(&Env::system(), &configuration).await.unwrap();
    (inside.clone(), encryption.store(inside))
}

#[tokio::test]
async fn values_that_kubernetes_has_written_are_read_and_only_at_their_place() {
    let cases = recorded(include_str!("recorded/vectors.json"));
    assert_eq!(cases.len(), 28);
    for case in cases {
        let field = |name: &str| case[name].as_str().unwrap();
        let bytes = |name: &str| STANDARD.decode(field(name)).unwrap();
        let provider = field("provider");
        let text = format!(
            r#"{{"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1", "resources": [{{"resources":
            ["secrets"], "providers": [{{"{provider}": {{"keys": [{{"name": "key1", "secret": "{}"}}]}}}}]}}]}}"#,
            field("secret")
        );
        let (_, store) = with_stored(&text, field("key"), &bytes("stored")).await;
        let found = store.get(field("key").as_bytes(), None).await.unwrap().entry.unwrap();
        assert_eq!(found.value, bytes("plain"), "{provider}");
        assert!(!store.is_stale(field("key").as_bytes()).await.unwrap());

        // Copied to the place of another object.
        let other = "/default/core/secrets/ns/other";
        let (_, store) = with_stored(&text, other, &bytes("stored")).await;
        let found = store.get(other.as_bytes(), None).await.unwrap().entry.unwrap();
        let is_refused = k1s_store::why_unreadable(&found.value).is_some();
        assert_eq!(is_refused, provider == "aesgcm", "{provider}: as upstream, only AES-GCM knows the place");
    }
}
