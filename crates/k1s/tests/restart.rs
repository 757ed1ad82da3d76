//! The certificate authority and the administrator's token are kept like the data, so clients stay valid
//! across restarts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "restart/requests.rs"]
mod requests;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use k1s::{
    NewUser, Runtime, RuntimeBuilder, StartError,
    env::Env,
    k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::RoleBinding},
    kube::{
        self, Api, Config,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    },
    serde_json::{self, json},
    store::{MemoryStore, etcd::testing::EtcdServer},
};

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// A client of a kubeconfig, over HTTPS; `url` replaces the one in it.
async fn client(kubeconfig: &str, url: Option<&str>) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    if let Some(url) = url {
        config.cluster_url = url.parse().unwrap();
    }
    kube::Client::try_from(config).unwrap()
}

/// The `ConfigMap` with the CA certificate.
async fn root_ca(client: &kube::Client) -> Result<ConfigMap, kube::Error> {
    Api::<ConfigMap>::default_namespaced(client.clone()).get("kube-root-ca.crt").await
}

async fn on_disk(folder: &Path, address: impl Into<SocketAddr>) -> Result<Runtime, StartError> {
    Runtime::builder().disk(folder).listen(address).start().await
}

#[tokio::test]
async fn a_kubeconfig_stays_valid_across_restarts_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = on_disk(folder.path(), ANY_PORT).await.unwrap();
    let (address, kubeconfig) = (runtime.address().unwrap(), runtime.kubeconfig().unwrap().to_owned());
    let before = root_ca(&client(&kubeconfig, None).await).await.unwrap();
    assert_eq!(before.data.as_ref().unwrap()["ca.crt"], runtime.certificate_authority().unwrap());
    runtime.stop().await.unwrap();

    for _ in 0..2 {
        let runtime = on_disk(folder.path(), address).await.unwrap();
        assert_eq!(runtime.kubeconfig().unwrap(), kubeconfig);
        let after = root_ca(&client(&kubeconfig, None).await).await.unwrap();
        assert_eq!(after, before, "the file was not written again");
        runtime.stop().await.unwrap();
    }
}

#[tokio::test]
async fn additional_names_lead_to_a_new_certificate_by_the_same_authority() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = on_disk(folder.path(), ANY_PORT).await.unwrap();
    let kubeconfig = runtime.kubeconfig().unwrap().to_owned();
    runtime.stop().await.unwrap();
    let served = || fs::read_to_string(folder.path().join("pki/apiserver.crt")).unwrap();
    let first = served();
    let builder = || Runtime::builder().disk(folder.path()).listen(ANY_PORT).tls_names(["k1s.example.com"]);
    let runtime = builder().start().await.unwrap();
    assert_ne!(served(), first);
    root_ca(&client(&kubeconfig, runtime.url()).await).await.unwrap();
    runtime.stop().await.unwrap();
}

/// The status code of a request for the `ConfigMap` with the CA certificate.
async fn code(client: &kube::Client) -> u16 {
    match root_ca(client).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn users_with_certificates_have_the_rights_of_their_roles() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = on_disk(folder.path(), ANY_PORT).await.unwrap();
    let alice = runtime.kubeconfig_of(&NewUser::new("alice").in_groups(["qa", "devs"])).unwrap();
    let stranger = Runtime::builder().listen(ANY_PORT).start().await.unwrap();
    let foreign = stranger.kubeconfig_of(&NewUser::new("alice").in_groups(["system:masters"])).unwrap();
    let root = runtime.kubeconfig_of(&NewUser::new("root").in_groups(["system:masters"])).unwrap();
    let alice = client(&alice, None).await;
    assert_eq!(code(&alice).await, 403);
    let bindings = Api::<RoleBinding>::default_namespaced(client(&root, None).await);
    let binding = json!({"metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}]});
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    assert_eq!(code(&alice).await, 200);
    // The same names from another authority mean nothing: 401, also for what everybody may read.
    let mut foreign = Kubeconfig::from_yaml(&foreign).unwrap();
    let clusters = Kubeconfig::from_yaml(runtime.kubeconfig().unwrap()).unwrap().clusters;
    foreign.clusters = clusters;
    let config = Config::from_custom_kubeconfig(foreign, &KubeConfigOptions::default()).await.unwrap();
    let foreign = kube::Client::try_from(config).unwrap();
    assert_eq!(code(&foreign).await, 401);
    let refused = foreign.apiserver_version().await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401));
    // Unless the runtime is told to trust it.
    let trusting = Runtime::builder()
        .listen(ANY_PORT)
        .client_authorities(stranger.certificate_authority().unwrap())
        .start();
    let trusting = trusting.await.unwrap();
    let mut known = Kubeconfig::from_yaml(&stranger.kubeconfig_of(&NewUser::new("bob")).unwrap()).unwrap();
    known.clusters = Kubeconfig::from_yaml(trusting.kubeconfig().unwrap()).unwrap().clusters;
    let config = Config::from_custom_kubeconfig(known, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap().apiserver_version().await.unwrap();
    for runtime in [runtime, stranger, trusting] {
        runtime.stop().await.unwrap();
    }
}

#[tokio::test]
async fn in_memory_every_start_has_a_new_identity() {
    let start = || Runtime::builder().listen(ANY_PORT).start();
    let (one, other) = (start().await.unwrap(), start().await.unwrap());
    assert_ne!(one.certificate_authority(), other.certificate_authority());
    assert_ne!(one.token(), other.token());
    let stranger = client(one.kubeconfig().unwrap(), other.url()).await;
    assert!(root_ca(&stranger).await.is_err());
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}

/// Starts two runtimes at once, and uses the kubeconfig of each with the other.
async fn share_an_identity(start: impl Fn() -> RuntimeBuilder) {
    let (one, other) = tokio::join!(start().start(), start().start());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.token(), other.token());
    assert_eq!(one.certificate_authority(), other.certificate_authority());
    let crossed = client(one.kubeconfig().unwrap(), other.url()).await;
    let found = root_ca(&crossed).await.unwrap();
    assert_eq!(found, root_ca(&client(other.kubeconfig().unwrap(), one.url()).await).await.unwrap());
    one.stop().await.unwrap();
    // A store that was given to both is closed by now.
    let _ = other.stop().await;
}

#[tokio::test]
async fn runtimes_on_one_store_share_an_identity() {
    let store = Arc::new(MemoryStore::default());
    share_an_identity(|| Runtime::builder().store(store.clone()).listen(ANY_PORT)).await;
}

#[tokio::test]
async fn runtimes_on_one_etcd_share_a_lasting_identity() {
    let env = Env::system();
    let Some(etcd) = EtcdServer::start(&env).await.unwrap() else { return };
    let start = || Runtime::builder().etcd([etcd.endpoint()]).listen(ANY_PORT);
    let first = start().start().await.unwrap();
    let kubeconfig = first.kubeconfig().unwrap().to_owned();
    first.stop().await.unwrap();
    share_an_identity(start).await;
    let last = start().start().await.unwrap();
    root_ca(&client(&kubeconfig, last.url()).await).await.unwrap();
    last.stop().await.unwrap();
}

#[tokio::test]
async fn runtimes_with_a_common_certificate_folder_share_an_identity() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("certs");
    let start = || Runtime::builder().cert_dir(&pki).listen(ANY_PORT);
    let (one, other) = tokio::join!(start().start(), start().start());
    let (one, other) = (one.unwrap(), other.unwrap());
    root_ca(&client(one.kubeconfig().unwrap(), other.url()).await).await.unwrap();
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}

#[tokio::test]
async fn a_damaged_key_is_reported_and_the_folder_is_unlocked() {
    let folder = tempfile::tempdir().unwrap();
    on_disk(folder.path(), ANY_PORT).await.unwrap().stop().await.unwrap();
    let path = folder.path().join("pki/ca.key");
    let key = fs::read(&path).unwrap();
    fs::write(&path, &key[..key.len() / 2]).unwrap();
    let error = on_disk(folder.path(), ANY_PORT).await.unwrap_err();
    assert!(matches!(&error, StartError::Pki { path: named, .. } if *named == path), "{error}");
    let text = error.to_string();
    assert!(text.contains("it is not a private key") && text.contains("remove ca.key and ca.crt"), "{text}");

    fs::write(&path, &key).unwrap();
    on_disk(folder.path(), ANY_PORT).await.unwrap().stop().await.unwrap();
}
