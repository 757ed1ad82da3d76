//! The own authority is rotated while servers run: clients of the old one and of the new one are served during the overlap.

use std::{fs, path::Path, sync::Arc, time::Duration};

use k1s::{
    ControllersOptions, NewUser, Pki, Runtime, StartError,
    env::Env,
    kube,
    store::{MemoryStore, Store},
};

use crate::{ANY_PORT, QUICK, client, eventually, user_of};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn on_disk(folder: &Path) -> Runtime {
    Runtime::builder().disk(folder).listen(ANY_PORT).tls_reload_interval(QUICK).start().await.unwrap()
}

/// Who a client with a kubeconfig is, at the address of a runtime.
async fn who(kubeconfig: &str, runtime: &Runtime) -> Result<String, kube::Error> {
    user_of(client(kubeconfig, runtime).await).await
}

/// The purposes and names of all certificates.
async fn shown(pki: &Pki) -> Vec<(&'static str, String)> {
    let all = pki.show().await.unwrap();
    all.into_iter().map(|known| (known.purpose, known.info.name)).collect()
}

#[tokio::test]
async fn an_authority_in_a_folder_is_rotated_while_the_server_runs() {
    let (env, folder) = (Env::system(), tempfile::tempdir().unwrap());
    let runtime = on_disk(folder.path()).await;
    let pki = Pki::folder(&env, folder.path().join("pki"));
    let url = runtime.url().unwrap().to_owned();
    let alice = pki.issue(&url, &NewUser::new("alice").in_groups(["devs"])).await.unwrap();
    let admin = runtime.kubeconfig().unwrap().to_owned();
    assert_eq!(who(&alice, &runtime).await.unwrap(), "alice");
    let before = shown(&pki).await;
    let purposes: Vec<&str> = before.iter().map(|(purpose, _)| *purpose).collect();
    assert_eq!(purposes, ["authority", "server", "user"]);

    pki.rotate(DAY * 30).await.unwrap();
    let bob = pki.issue(&url, &NewUser::new("bob")).await.unwrap();
    // The new authority's clients are known as soon as the server has seen it.
    eventually(&env, "the new authority is known", || async {
        who(&bob, &runtime).await.is_ok_and(|user| user == "bob")
    })
    .await;
    for (kubeconfig, user) in [(&alice, "alice"), (&admin, "admin"), (&bob, "bob")] {
        assert_eq!(who(kubeconfig, &runtime).await.unwrap(), user);
    }
    // What the running server issues is by the new authority, too.
    let carol = runtime.kubeconfig_of(&NewUser::new("carol")).unwrap();
    assert_eq!(who(&carol, &runtime).await.unwrap(), "carol");
    let after = shown(&pki).await;
    let purposes: Vec<&str> = after.iter().map(|(purpose, _)| *purpose).collect();
    assert_eq!(purposes, ["authority", "earlier authority", "overlap", "server", "user", "user"]);
    assert_eq!((&*after[1].1, after[0].1 == before[0].1), ("k1s", false));
    runtime.stop().await.unwrap();

    // All of it is kept.
    let runtime = on_disk(folder.path()).await;
    for (kubeconfig, user) in [(&alice, "alice"), (&admin, "admin"), (&bob, "bob")] {
        assert_eq!(who(kubeconfig, &runtime).await.unwrap(), user);
    }
    // Without overlap, the kubeconfigs of before are worth nothing.
    pki.rotate(Duration::ZERO).await.unwrap();
    let dave = pki.issue(&url, &NewUser::new("dave")).await.unwrap();
    eventually(&env, "the third authority is known", || async {
        who(&dave, &runtime).await.is_ok_and(|user| user == "dave")
    })
    .await;
    for kubeconfig in [&alice, &admin, &bob, &carol] {
        assert!(who(kubeconfig, &runtime).await.is_err());
    }
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn servers_that_share_a_store_agree_on_a_rotation() {
    let env = Env::system();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let start = async |controllers: ControllersOptions| {
        let builder = Runtime::builder().shared_store(store.clone()).controllers(controllers);
        let builder = builder.listen(ANY_PORT).tls_reload_interval(QUICK);
        builder.start().await.unwrap()
    };
    let (one, other) = (start(ControllersOptions::default()).await, start(ControllersOptions::none()).await);
    let pki = Pki::store(&env, store.clone());
    let alice = pki.issue(one.url().unwrap(), &NewUser::new("alice")).await.unwrap();
    pki.rotate(DAY * 30).await.unwrap();
    let bob = pki.issue(one.url().unwrap(), &NewUser::new("bob")).await.unwrap();
    for runtime in [&one, &other] {
        eventually(&env, "both know the new authority", || async {
            who(&bob, runtime).await.is_ok_and(|user| user == "bob")
        })
        .await;
        assert_eq!(who(&alice, runtime).await.unwrap(), "alice");
    }
    assert_eq!(shown(&pki).await.len(), 5);
    assert!(matches!(pki.renew(), Err(StartError::Certificate(_))));
    // Rotations at the same time: one of them has to begin again.
    let (first, second) = tokio::join!(pki.rotate(DAY), pki.rotate(DAY));
    assert!(first.is_ok() || second.is_ok());
    for runtime in [one, other] {
        runtime.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_and_an_interrupted_rotation_is_completed() {
    let (env, folder) = (Env::system(), tempfile::tempdir().unwrap());
    let runtime = on_disk(folder.path()).await;
    let admin = runtime.kubeconfig().unwrap().to_owned();
    runtime.stop().await.unwrap();
    let path = |name: &str| folder.path().join("pki").join(name);
    let pki = Pki::folder(&env, folder.path().join("pki"));
    let before = fs::read_to_string(path("apiserver.crt")).unwrap();
    let names = pki.show().await.unwrap()[1].info.names.clone();
    pki.renew().unwrap();
    assert_ne!(fs::read_to_string(path("apiserver.crt")).unwrap(), before);
    assert_eq!(pki.show().await.unwrap()[1].info.names, names);
    // The files of a rotation that was killed in its middle.
    let old: Vec<String> = ["ca.crt", "ca.key"].map(|name| fs::read_to_string(path(name)).unwrap()).to_vec();
    pki.rotate(DAY).await.unwrap();
    let files = ["ca.crt", "ca.key", "ca.earlier.crt", "apiserver.crt", "apiserver.key"];
    let changes: k1s::serde_json::Map<String, k1s::serde_json::Value> =
        files.iter().map(|name| ((*name).into(), fs::read_to_string(path(name)).unwrap().into())).collect();
    fs::write(path(".changes"), k1s::serde_json::Value::Object(changes.clone()).to_string()).unwrap();
    fs::write(path("ca.crt"), &old[0]).unwrap();
    fs::remove_file(path("ca.earlier.crt")).unwrap();
    let runtime = on_disk(folder.path()).await;
    assert!(!path(".changes").exists());
    for name in files {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), changes[name].as_str().unwrap(), "{name}");
    }
    assert_eq!(who(&admin, &runtime).await.unwrap(), "admin");
    runtime.stop().await.unwrap();

    // Somebody else's certificate is not replaced.
    let other = tempfile::tempdir().unwrap();
    on_disk(other.path()).await.stop().await.unwrap();
    for name in ["apiserver.crt", "apiserver.key"] {
        fs::copy(other.path().join("pki").join(name), path(name)).unwrap();
    }
    let refused = pki.renew().unwrap_err().to_string();
    assert!(
        refused.contains("apiserver.crt: it was not issued by the authority of this folder"),
        "{refused}"
    );
    let kept = fs::read_to_string(path("apiserver.crt")).unwrap();
    pki.rotate(DAY).await.unwrap();
    assert_eq!(fs::read_to_string(path("apiserver.crt")).unwrap(), kept);
    let missing = Pki::folder(&env, path("none")).show().await.unwrap_err().to_string();
    assert!(missing.contains("there is no ca.crt"), "{missing}");
}
