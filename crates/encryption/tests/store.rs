//! The encrypted store: round trips, rotation, damage, reloads, and that nothing is readable underneath.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kms;

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_encryption::{Configuration, EncryptedStore, Encryption, EncryptionOptions};
use k1s_env::Env;
use k1s_store::{
    Error, MemoryStore, Precondition, Range, Revision, Store, Txn, WatchItem, WatchRequest, why_unreadable,
};

const KEY: &str = "/default/core/secrets/ns/a";

/// A configuration with these providers, in YAML's flow style, for secrets.
fn config(providers: &str) -> String {
    format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  \
         providers: [{providers}]\n"
    )
}

/// A provider with keys of 32 bytes, each named with the byte it is made of.
fn provider(kind: &str, keys: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let key = |byte: &u8| format!("{{name: k{byte}, secret: {}}}", STANDARD.encode([*byte; 32]));
    format!("{kind}: {{keys: [{}]}}", keys.iter().map(key).collect::<Vec<_>>().join(", "))
}

fn item(provider: &str) -> String {
    format!("{{{provider}}}")
}

async fn encrypted(inside: &Arc<dyn Store>, text: &str) -> EncryptedStore {
    let configuration = Configuration::parse(text.as_bytes(), Path::new("c"), false).unwrap();
    Encryption::new(&Env::system(), &configuration).await.unwrap().store(inside.clone())
}

async fn read(store: &dyn Store, key: &str) -> Bytes {
    store.get(key.as_bytes(), None).await.unwrap().entry.unwrap().value
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

#[tokio::test]
async fn every_provider_reads_what_it_writes_and_the_store_below_sees_none_of_it() {
    for (kind, prefix) in [
        ("aesgcm", "k8s:enc:aesgcm:v1:k1:"),
        ("aescbc", "k8s:enc:aescbc:v1:k1:"),
        ("secretbox", "k8s:enc:secretbox:v1:k1:"),
    ] {
        let inside = memory();
        let store = encrypted(&inside, &config(&item(&provider(kind, &[1])))).await;
        for length in [0, 1, 15, 16, 17, 1000, 100_000] {
            let key = format!("/default/core/secrets/ns/{length}");
            let plain = Bytes::from(vec![b'p'; length]);
            store.create(key.clone().into(), plain.clone()).await.unwrap();
            assert_eq!(read(&store, &key).await, plain, "{kind} {length}");
            let stored = read(&*inside, &key).await;
            assert!(stored.starts_with(prefix.as_bytes()), "{kind}");
            assert!(!stored.windows(8).any(|bytes| bytes == b"pppppppp"), "{kind}");
        }
        // The same value twice is two values in the store.
        store.create("/t/core/secrets/n/1".into(), "same".into()).await.unwrap();
        store.create("/t/core/secrets/n/2".into(), "same".into()).await.unwrap();
        assert_ne!(read(&*inside, "/t/core/secrets/n/1").await, read(&*inside, "/t/core/secrets/n/2").await);
        // Others are not touched, nor are the marks of a tenant.
        for key in ["/default/core/configmaps/ns/a", "/default/k1s/ready/", "/default/apps/secrets/ns/a"] {
            store.create(key.into(), "plain".into()).await.unwrap();
            assert_eq!(read(&*inside, key).await, "plain");
        }
        // The server's own keys are like Secrets.
        store.create("/_k1s/identity".into(), "plain".into()).await.unwrap();
        assert!(read(&*inside, "/_k1s/identity").await.starts_with(prefix.as_bytes()));
        assert_eq!(read(&store, "/_k1s/identity").await, "plain");
    }
}

#[tokio::test]
async fn watches_ranges_and_conflicts_show_plain_values() {
    let inside = memory();
    let config = config(&item(&provider("aesgcm", &[1])));
    let store = encrypted(&inside, &config).await;
    // Whoever writes knows what it has written; another one has to decrypt it.
    let other = encrypted(&inside, &config).await;
    let request = || WatchRequest::prefix("/default/").previous(true);
    let watches = [store.watch(request()).await.unwrap(), other.watch(request()).await.unwrap()];
    let first = store.create(KEY.into(), "one".into()).await.unwrap();
    store.update(KEY.into(), "two".into(), first).await.unwrap();
    for mut watch in watches {
        let mut seen = Vec::new();
        while seen.len() < 2 {
            if let WatchItem::Change(change) = watch.next().await.unwrap().unwrap() {
                let event = change.events()[0].clone();
                seen.push((event.value.unwrap(), event.previous.map(|old| old.value)));
            }
        }
        assert_eq!(seen, [("one".into(), None), ("two".into(), Some("one".into()))]);
    }
    // From the history.
    let mut watch = store.watch(WatchRequest::prefix("/default/").after(first)).await.unwrap();
    let Some(Ok(WatchItem::Change(change))) = watch.next().await else { panic!("no change") };
    assert_eq!(change.events()[0].value.as_deref(), Some(&b"two"[..]));
    assert_eq!(store.range(Range::prefix("/default/").at(first)).await.unwrap().entries[0].value, "one");
    // Of several steps, each has its own place.
    let both = Txn::new().create("/default/core/secrets/ns/b", "three").put(
        KEY,
        "four",
        Precondition::Revision(first),
    );
    let Err(Error::Conflict(conflict)) = store.txn(both).await else { panic!("no conflict") };
    assert_eq!(conflict.current.unwrap().value, "two");
}

#[tokio::test]
async fn the_first_key_writes_all_keys_read_and_a_rewrite_moves_everything_to_the_first() {
    let inside = memory();
    let (old, new) = (provider("aescbc", &[1]), provider("aesgcm", &[2, 1]));
    // Not encrypted, then with one key, then another provider with two keys.
    inside.create("/t/core/secrets/n/plain".into(), "plain".into()).await.unwrap();
    let store = encrypted(&inside, &config(&format!("{}, {{identity: {{}}}}", item(&old)))).await;
    store.create("/t/core/secrets/n/old".into(), "old".into()).await.unwrap();
    assert!(store.is_stale(b"/t/core/secrets/n/plain").await.unwrap());
    assert!(!store.is_stale(b"/t/core/secrets/n/old").await.unwrap());
    let store =
        encrypted(&inside, &config(&format!("{}, {}, {{identity: {{}}}}", item(&new), item(&old)))).await;
    store.create("/t/core/secrets/n/new".into(), "new".into()).await.unwrap();
    let names = ["plain", "old", "new"];
    for name in names {
        let key = format!("/t/core/secrets/n/{name}");
        assert_eq!(read(&store, &key).await, name);
        assert_eq!(store.is_stale(key.as_bytes()).await.unwrap(), name != "new", "{name}");
    }
    assert_eq!(store.rewrite(b"").await.unwrap(), 2);
    assert_eq!(store.rewrite(b"").await.unwrap(), 0, "nothing is left to do");
    // The new key alone reads everything now.
    let store = encrypted(&inside, &config(&item(&provider("aesgcm", &[2])))).await;
    for name in names {
        assert_eq!(read(&store, &format!("/t/core/secrets/n/{name}")).await, name);
    }
    // And back to no encryption.
    let store =
        encrypted(&inside, &config(&format!("{{identity: {{}}}}, {}", item(&provider("aesgcm", &[2])))))
            .await;
    assert_eq!(store.rewrite(b"").await.unwrap(), 3);
    assert_eq!(read(&*inside, "/t/core/secrets/n/old").await, "old");
}

#[tokio::test]
async fn a_rewrite_of_many_values_leaves_out_none() {
    let inside = memory();
    for i in 0..1234 {
        inside.create(format!("/t/core/secrets/n/{i}").into(), "x".into()).await.unwrap();
    }
    let both = format!("{}, {{identity: {{}}}}", item(&provider("aesgcm", &[1])));
    let store = encrypted(&inside, &config(&both)).await;
    assert_eq!(store.rewrite(b"").await.unwrap(), 1234);
    let all = inside.range(Range::prefix("/t/")).await.unwrap().entries;
    assert!(all.len() == 1234 && all.iter().all(|entry| entry.value.starts_with(b"k8s:enc:")));
}

#[tokio::test]
async fn values_that_cannot_be_decrypted_say_why_and_hide_no_others() {
    let inside = memory();
    let good = encrypted(&inside, &config(&item(&provider("aesgcm", &[1])))).await;
    good.create("/t/core/secrets/n/good".into(), "good".into()).await.unwrap();
    let sealed = read(&*inside, "/t/core/secrets/n/good").await;
    let mut flipped = sealed.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let damaged: [(&str, Vec<u8>, &str); 6] = [
        ("copied", sealed.to_vec(), "cipher: message authentication failed"),
        ("flipped", flipped, "cipher: message authentication failed"),
        ("short", b"k8s:enc:aesgcm:v1:k1:x".to_vec(), "the stored data was shorter than the required size"),
        (
            "other-key",
            b"k8s:enc:aesgcm:v1:k9:xxxx".to_vec(),
            "no matching key was found for the provided AES transformer",
        ),
        ("other-provider", b"k8s:enc:secretbox:v1:k1:xxxx".to_vec(), "no matching prefix found"),
        ("plain", b"plain".to_vec(), "no matching prefix found"),
    ];
    for (name, value, _) in &damaged {
        inside.create(format!("/t/core/secrets/n/{name}").into(), value.clone().into()).await.unwrap();
    }
    inside.create("/t/core/configmaps/n/a".into(), "k8s:enc:aesgcm:v1:k1:xxxx".into()).await.unwrap();
    for (name, _, why) in &damaged {
        let value = read(&good, &format!("/t/core/secrets/n/{name}")).await;
        assert_eq!(why_unreadable(&value), Some(&*format!("it cannot be decrypted: {why}")), "{name}");
        assert!(!good.is_stale(format!("/t/core/secrets/n/{name}").as_bytes()).await.unwrap());
    }
    let why = "it cannot be decrypted: identity transformer tried to read encrypted data";
    assert_eq!(why_unreadable(&read(&good, "/t/core/configmaps/n/a").await), Some(why));
    let all = good.range(Range::prefix("/t/core/secrets/")).await.unwrap().entries;
    let readable: Vec<&Bytes> =
        all.iter().filter(|entry| why_unreadable(&entry.value).is_none()).map(|entry| &entry.value).collect();
    assert_eq!((all.len(), readable), (7, vec![&Bytes::from("good")]));
    // A server needs its own keys.
    inside.create("/_k1s/identity".into(), "k8s:enc:aesgcm:v1:k9:xxxx".into()).await.unwrap();
    let error = good.get(b"/_k1s/identity", None).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the store is damaged: the value of key \"/_k1s/identity\" cannot be decrypted: no matching key was found for the \
         provided AES transformer"
    );
    // What cannot be read can be deleted.
    let revision = all.iter().find(|entry| entry.key.ends_with(b"/short")).unwrap().revision;
    good.delete("/t/core/secrets/n/short".into(), revision).await.unwrap();
}

#[tokio::test]
async fn a_new_file_replaces_the_configuration_and_caches_read_again_what_they_could_not() {
    let (env, clock) = Env::simulated(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write(&config(&item(&provider("aesgcm", &[1]))));
    let options = EncryptionOptions::new(&path).automatic_reload(true);
    let encryption = Encryption::open(&env, &options).await.unwrap();
    let inside = memory();
    let store = encryption.store(inside.clone());
    let first = store.create(KEY.into(), "one".into()).await.unwrap();
    let look = async |until: &[u8]| {
        for _ in 0..100_000 {
            // The key that writes.
            store.txn(Txn::new().put("/t/core/secrets/n/probe", "x", Precondition::Any)).await.unwrap();
            if read(&*inside, "/t/core/secrets/n/probe").await.starts_with(until) {
                return;
            }
            clock.advance(Duration::from_secs(1));
            env.yield_now().await;
        }
        panic!("not loaded: {}", until.escape_ascii());
    };
    // A damaged file changes nothing.
    write("kind: Nothing");
    clock.advance(Duration::from_secs(200));
    env.yield_now().await;
    look(b"k8s:enc:aesgcm:v1:k1:").await;
    // A watch that has seen nothing unreadable continues.
    let mut watch = store.watch(WatchRequest::prefix("/default/")).await.unwrap();
    write(&config(&item(&provider("aesgcm", &[2]))));
    look(b"k8s:enc:aesgcm:v1:k2:").await;
    assert!(why_unreadable(&read(&store, KEY).await).is_some());
    let before = Revision::new(first.get() - 1);
    let mut history = store.watch(WatchRequest::prefix("/default/").after(before)).await.unwrap();
    let Some(Ok(WatchItem::Change(change))) = history.next().await else { panic!("no change") };
    assert!(why_unreadable(change.events()[0].value.as_ref().unwrap()).is_some());
    store.txn(Txn::new().put(KEY, "two", Precondition::Any)).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchItem::Change(_)))));
    // Now something was unreadable, and a new configuration may help: the watch ends, so that its reader lists again.
    write(&config(&item(&provider("aesgcm", &[3, 2, 1]))));
    look(b"k8s:enc:aesgcm:v1:k3:").await;
    let ended = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(ended, Error::Unavailable { .. }), "{ended}");
    assert_eq!(read(&store, KEY).await, "two");
    store.close().await.unwrap();
}

#[test]
fn the_examples_of_the_guide_are_read() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    const GUIDE: &str = include_str!("../../../docs/encryption.md");
    let blocks: Vec<&str> =
        GUIDE.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let [whole, kms] = blocks[..] else { panic!("a configuration, and providers: {blocks:?}") };
    let whole = whole
        .replace("…32 bytes in base64…", &STANDARD.encode([1; 32]))
        .replace('…', &STANDARD.encode([2; 32]));
    Configuration::parse(whole.as_bytes(), Path::new("c"), false).unwrap();
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n";
    Configuration::parse(format!("{head}{kms}").as_bytes(), Path::new("c"), false).unwrap();
    let wrong = kms.replace("apiVersion: v2", "apiVersion: v3");
    assert!(Configuration::parse(format!("{head}{wrong}").as_bytes(), Path::new("c"), false).is_err());
}
