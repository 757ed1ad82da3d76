//! Several servers over one etcd, as processes: to their clients they are one server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod kubectl;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use k1s::{
    env::Env,
    k8s_openapi::{
        api::{
            authentication::v1::{TokenRequest, TokenRequestSpec},
            core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
            rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    },
    kube::{
        self, Api, Client, Config,
        api::{
            ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
            PostParams, WatchEvent, WatchParams,
        },
        config::{KubeConfigOptions, Kubeconfig},
    },
};
use k1s_store_etcd::testing::EtcdServer;
use rustix::process::{Pid, Signal, kill_process};

/// A running `k1s serve`. It is killed when the test ends.
struct Server {
    child: Child,
    kubeconfig: Kubeconfig,
}

impl Server {
    /// Starts a server and waits until it is ready.
    fn start(etcd: &EtcdServer, folder: &Path, name: &str, arguments: &[&str]) -> Server {
        let file = folder.join(name);
        let users = folder.join("users.csv");
        std::fs::write(&users, "alices-token,alice,1\n").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_k1s"));
        command.args(["serve", "--port", "0", "--etcd", &etcd.endpoint(), "--kubeconfig"]).arg(&file);
        command.arg("--token-auth-file").arg(users).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().expect("it ends before it is ready").unwrap().contains("Ctrl-C stops it") {}
        // What it prints later is not read; it must not wait for that.
        drop(lines);
        let kubeconfig = Kubeconfig::read_from(&file).unwrap();
        Server { child, kubeconfig }
    }

    async fn config(&self) -> Config {
        Config::from_custom_kubeconfig(self.kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap()
    }

    async fn client(&self) -> Client {
        Client::try_from(self.config().await).unwrap()
    }

    /// A client with another token.
    async fn with_token(&self, token: &str) -> Client {
        let mut config = self.config().await;
        config.auth_info.token = Some(token.to_owned().into());
        Client::try_from(config).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two servers over one etcd; `None` where there is no etcd.
async fn pair(arguments: &[&str]) -> Option<(EtcdServer, tempfile::TempDir, Server, Server)> {
    let etcd = EtcdServer::start(&Env::system()).await.unwrap()?;
    let folder = tempfile::tempdir().unwrap();
    let a = Server::start(&etcd, folder.path(), "a", arguments);
    let b = Server::start(&etcd, folder.path(), "b", arguments);
    Some((etcd, folder, a, b))
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { labels: Some(BTreeMap::from([("name".into(), name.into())])), ..named(name) },
        data: Some(BTreeMap::from([("k".into(), "v".into())])),
        ..ConfigMap::default()
    }
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

/// The status code of a failed request.
fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_one_is_read_through_the_other_at_once_while_others_write() {
    let Some((_etcd, _folder, a, b)) = pair(&[]).await else { return };
    // One identity: the authority and the administrator's token of each are those of the other.
    let token = |server: &Server| server.kubeconfig.auth_infos[0].auth_info.clone().unwrap().token;
    let authority = |server: &Server| {
        server.kubeconfig.clusters[0].cluster.clone().unwrap().certificate_authority_data.unwrap()
    };
    assert_eq!(authority(&a), authority(&b));
    assert!(token(&a).is_some() && token(&b).is_some());
    let (a, b) = (a.client().await, b.client().await);
    let env = Env::system();
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = [&a, &b, &a, &b]
        .into_iter()
        .enumerate()
        .map(|(number, client)| {
            let (client, stop, written) = (client.clone(), stop.clone(), written.clone());
            env.spawn("load", async move {
                for i in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("load-{number}-{}", i % 50);
                    let _ = maps(&client).delete(&name, &DeleteParams::default()).await;
                    maps(&client).create(&PostParams::default(), &map(&name)).await.unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..150 {
        let (through, other) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let name = format!("probe-{round}");
        let created = maps(through).create(&PostParams::default(), &map(&name)).await.unwrap();
        let selected = ListParams::default().labels(&format!("name={name}"));
        let listed = maps(other).list(&selected).await.unwrap();
        assert_eq!(listed.items.len(), 1, "round {round}: a list");
        assert_eq!(listed.items[0].metadata.uid, created.metadata.uid);
        let got = maps(other).get(&name).await.unwrap();
        assert_eq!(got.metadata.resource_version, created.metadata.resource_version, "round {round}: a GET");
        // An older revision is not shown, either, to who asks for one that is not older.
        let version = created.metadata.resource_version.unwrap();
        let not_older = ListParams::default().labels(&format!("name={name}")).at(&version);
        assert_eq!(maps(other).list(&not_older).await.unwrap().items.len(), 1);
        // A watch from there on begins with the deletion.
        let mut events = maps(other)
            .watch(&WatchParams::default().labels(&format!("name={name}")), &version)
            .await
            .unwrap()
            .boxed();
        maps(through).delete(&name, &DeleteParams::default()).await.unwrap();
        assert!(
            maps(other).list(&selected).await.unwrap().items.is_empty(),
            "round {round}: after a deletion"
        );
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    }
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
    assert!(written.load(Ordering::Relaxed) > 10, "there was load");
}

#[tokio::test]
async fn tokens_of_one_are_valid_at_the_other_until_their_object_is_gone() {
    let Some((_etcd, _folder, a, b)) = pair(&[]).await else { return };
    let client = a.client().await;
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    for round in 0..10 {
        let name = format!("robot-{round}");
        let account = ServiceAccount { metadata: named(&name), ..ServiceAccount::default() };
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
        let issued = accounts.create_token_request(&name, &PostParams::default(), &request).await.unwrap();
        let token = issued.status.unwrap().token.unwrap();
        for server in [&b, &a] {
            // Known, and without rights.
            let robot = server.with_token(&token).await;
            assert_eq!(code(maps(&robot).list(&ListParams::default()).await), 403, "round {round}");
        }
        let robot = b.with_token(&token).await;
        accounts.delete(&name, &DeleteParams::default()).await.unwrap();
        assert_eq!(
            code(maps(&robot).list(&ListParams::default()).await),
            401,
            "round {round}: it is revoked"
        );
    }
}

#[tokio::test]
async fn a_changed_right_counts_for_the_next_request_through_any_server() {
    let Some((_etcd, _folder, a, b)) = pair(&[]).await else { return };
    let admins = [a.client().await, b.client().await];
    let alices = [a.with_token("alices-token").await, b.with_token("alices-token").await];
    let role = Role {
        metadata: named("reader"),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["configmaps".into()]),
            verbs: vec!["get".into(), "list".into()],
            ..PolicyRule::default()
        }]),
    };
    Api::<Role>::default_namespaced(admins[0].clone()).create(&PostParams::default(), &role).await.unwrap();
    let binding = RoleBinding {
        metadata: named("alice"),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "Role".into(),
            name: "reader".into(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "User".into(),
            name: "alice".into(),
            namespace: None,
        }]),
    };
    maps(&admins[0]).create(&PostParams::default(), &map("shared")).await.unwrap();
    for round in 0..60 {
        let (writes, reads) = (round % 2, (round + 1) % 2);
        let bindings = Api::<RoleBinding>::default_namespaced(admins[writes].clone());
        bindings.create(&PostParams::default(), &binding).await.unwrap();
        let allowed = maps(&alices[reads]).list(&ListParams::default()).await;
        assert!(allowed.is_ok(), "round {round}: it is granted: {allowed:?}");
        // What she reads is as new as what an administrator reads.
        let changed = serde_json::json!({"data": {"round": round.to_string()}});
        maps(&admins[writes]).patch("shared", &PatchParams::default(), &Patch::Merge(changed)).await.unwrap();
        let read = maps(&alices[reads]).get("shared").await.unwrap();
        assert_eq!(read.data.unwrap()["round"], round.to_string(), "round {round}");
        maps(&admins[writes]).create(&PostParams::default(), &map("brief")).await.unwrap();
        assert!(maps(&alices[reads]).get("brief").await.is_ok(), "round {round}: it is there");
        maps(&admins[writes]).delete("brief", &DeleteParams::default()).await.unwrap();
        assert_eq!(code(maps(&alices[reads]).get("brief").await), 404, "round {round}: it is gone");
        bindings.delete("alice", &DeleteParams::default()).await.unwrap();
        let refused = maps(&alices[reads]).list(&ListParams::default()).await;
        assert_eq!(code(refused), 403, "round {round}: it is taken away");
        assert_eq!(code(maps(&alices[reads]).get("shared").await), 403, "round {round}: it is taken away");
    }
}

#[tokio::test]
async fn a_definition_through_one_is_served_by_the_other_at_once() {
    let Some((_etcd, _folder, a, b)) = pair(&[]).await else { return };
    let clients = [a.client().await, b.client().await];
    for round in 0..10 {
        let (through, other) = (&clients[round % 2], &clients[(round + 1) % 2]);
        let kind = format!("Widget{round}");
        let plural = format!("widget{round}s");
        let definition: CustomResourceDefinition = serde_json::from_value(serde_json::json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]},
        }))
        .unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(through.clone());
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", &kind), &plural);
        let widgets = Api::<DynamicObject>::default_namespaced_with(other.clone(), &resource);
        let widget =
            DynamicObject::new("one", &resource).data(serde_json::json!({"spec": {"size": 1, "unknown": 2}}));
        let created = widgets.create(&PostParams::default(), &widget).await.unwrap();
        assert_eq!(created.data["spec"], serde_json::json!({"size": 1}), "with its schema");
        let groups = other.list_api_groups().await.unwrap();
        assert!(groups.groups.iter().any(|group| group.name == "example.com"));
    }
}

/// An owner and an object that is to be deleted with it.
async fn family(client: &Client, name: &str) {
    let owner = maps(client).create(&PostParams::default(), &map(name)).await.unwrap();
    let reference = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: name.into(),
        uid: owner.metadata.uid.unwrap(),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta { owner_references: Some(vec![reference]), ..named(name) };
    let secret = Secret { metadata, ..Secret::default() };
    Api::<Secret>::default_namespaced(client.clone()).create(&PostParams::default(), &secret).await.unwrap();
}

/// Deletes an owner, and waits until the controllers have deleted its dependent.
async fn collect(client: &Client, name: &str) {
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let version = secrets.get(name).await.unwrap().metadata.resource_version.unwrap();
    let this = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = secrets.watch(&this, &version).await.unwrap().boxed();
    maps(client).delete(name, &DeleteParams::background()).await.unwrap();
    let wait = async {
        while let Some(event) = events.next().await {
            if matches!(event.unwrap(), WatchEvent::Deleted(_)) {
                return;
            }
        }
    };
    let waited = Env::system().timeout(Duration::from_secs(120), wait).await;
    assert!(waited.is_ok(), "{name}: nobody collects it");
}

#[tokio::test]
async fn controllers_move_at_once_when_their_server_is_stopped_and_its_clients_go_on_elsewhere() {
    // No server would look at the lease again during this test: only a release hands it over.
    let hours = [
        "--leader-elect-lease-duration=4h",
        "--leader-elect-renew-deadline=2h",
        "--leader-elect-retry-period=1h",
    ];
    let Some((etcd, folder, a, b)) = pair(&hours).await else { return };
    let clients = (a.client().await, b.client().await);
    family(&clients.0, "first").await;
    collect(&clients.1, "first").await;
    // Whoever leads is stopped, twice.
    family(&clients.1, "second").await;
    let mut watched = maps(&clients.1).watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let mut a = a;
    a.signal(Signal::TERM);
    assert!(a.child.wait().unwrap().success());
    collect(&clients.1, "second").await;
    // A watch through the other one was not disturbed.
    let mut seen = false;
    while let Some(event) = watched.next().await {
        if let WatchEvent::Deleted(map) = event.unwrap() {
            seen |= map.metadata.name.as_deref() == Some("second");
            if seen {
                break;
            }
        }
    }
    assert!(seen);
    let c = Server::start(&etcd, folder.path(), "c", &hours);
    let client = c.client().await;
    family(&client, "third").await;
    let mut b = b;
    b.signal(Signal::TERM);
    assert!(b.child.wait().unwrap().success());
    collect(&client, "third").await;
}

#[tokio::test]
async fn a_server_that_is_killed_is_missed_by_its_own_connections_only() {
    let short = [
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    ];
    let Some((_etcd, _folder, a, b)) = pair(&short).await else { return };
    let client = b.client().await;
    // The first one leads: its controllers work.
    family(&client, "first").await;
    collect(&client, "first").await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let namespace = Namespace { metadata: named("n"), ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let inside = Api::<ConfigMap>::namespaced(client.clone(), "n");
    for i in 0..20 {
        inside.create(&PostParams::default(), &map(&format!("m{i}"))).await.unwrap();
    }
    family(&client, "second").await;
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    a.signal(Signal::KILL);
    drop(a);
    // Every request is answered while nobody leads, and the work is finished when somebody does.
    for i in 0..50 {
        maps(&client).create(&PostParams::default(), &map(&format!("later-{i}"))).await.unwrap();
    }
    assert_eq!(maps(&client).list(&ListParams::default()).await.unwrap().items.len(), 50 + 2);
    collect(&client, "second").await;
    while namespaces.get_opt("n").await.unwrap().is_some() {
        Env::system().yield_now().await;
    }
}
