//! Auditing: what the events of requests say, and what becomes of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod events;
mod example;
mod log;
mod outcomes;
mod webhook;

use std::{fs, path::PathBuf, sync::Arc};

use common::{Client, client};
use k1s_env::Env;
use k1s_server::{
    AuditLogOptions, AuditMode, AuditOptions, AuditPolicy, LocalServices, ServerOptions, Tokens,
};
use k1s_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// `Authorization` of the users of [`Stage`].
const ALICE: (&str, &str) = ("authorization", "Bearer alice-token-7f3a");
const ROOT: (&str, &str) = ("authorization", "Bearer root-token-91bc");

const NO_METRICS: &str = "{level: None, nonResourceURLs: [/metrics]}";

/// The server's metrics. They cannot be had while the machine is too busy to count objects.
async fn metrics(client: &Client) -> String {
    loop {
        let answer = client.send("GET", "/metrics", &[], "").await;
        if answer.status == 200 {
            return answer.text();
        }
    }
}

/// A policy with these rules, each in one line.
fn policy(rules: &[&str]) -> AuditPolicy {
    let rules: String = rules.iter().map(|rule| format!("- {rule}\n")).collect();
    AuditPolicy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")).unwrap()
}

/// A server with an audit log that is written before responses are.
struct Stage {
    client: Client,
    /// A client without credentials.
    nobody: Client,
    local: LocalServices,
    folder: TempDir,
}

fn log_in(folder: &TempDir) -> PathBuf {
    folder.path().join("audit/audit.log")
}

fn audit(policy: AuditPolicy, log: AuditLogOptions) -> AuditOptions {
    let mut audit = AuditOptions::default();
    audit.policy = Some(policy);
    audit.log = Some(log);
    audit
}

/// The events in a file.
fn read(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Stage {
    async fn new(policy: AuditPolicy) -> Stage {
        Stage::with(policy, Arc::new(MemoryStore::default()), |_| {}).await
    }

    async fn with(
        policy: AuditPolicy,
        store: Arc<dyn Store>,
        change: impl FnOnce(&mut ServerOptions),
    ) -> Stage {
        let folder = TempDir::new().unwrap();
        let mut log = AuditLogOptions::new(log_in(&folder));
        log.mode = AuditMode::Blocking;
        let mut options = ServerOptions::default();
        options.audit = audit(policy, log);
        options.tokens =
            Tokens::parse("alice-token-7f3a,alice,u-1,devs\nroot-token-91bc,root,u-0,\"system:masters\"\n")
                .unwrap();
        let local = LocalServices::default();
        options.services.local = local.clone();
        change(&mut options);
        let env = Env::system();
        // Controllers would be recorded, too.
        let server = k1s_server::ApiServer::new(env.clone(), store, options).await.unwrap();
        let nobody = Client { server: server.clone(), env: env.clone() };
        let client = client(&server.as_user(k1s_server::User::admin()));
        Stage { client, nobody, local, folder }
    }

    /// The events since the last call.
    fn events(&self) -> Vec<Value> {
        let path = log_in(&self.folder);
        let events = read(&path);
        fs::File::options().write(true).truncate(true).open(&path).unwrap();
        events
    }

    /// The only request since the last call: its stages, and the last event.
    fn one(&self) -> (Vec<String>, Value) {
        let events = self.events();
        let stages = events.iter().map(|event| event["stage"].as_str().unwrap().to_owned()).collect();
        let last = events.last().unwrap_or_else(|| panic!("nothing was recorded")).clone();
        assert!(events.iter().all(|event| event["auditID"] == last["auditID"]), "{events:?}");
        (stages, last)
    }

    /// The log's text so far.
    fn text(&self) -> String {
        fs::read_to_string(log_in(&self.folder)).unwrap()
    }

    /// Lets alice do something with a resource in the namespace `default`.
    async fn grant(&self, group: &str, resources: &[&str], verbs: &[&str]) {
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        let api_version = "rbac.authorization.k8s.io/v1";
        let role = json!({"apiVersion": api_version, "kind": "Role", "metadata": {"name": "may"},
            "rules": [{"apiGroups": [group], "resources": resources, "verbs": verbs}]});
        let binding = json!({"apiVersion": api_version, "kind": "RoleBinding", "metadata": {"name": "alice-may"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "may"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
        self.client.post(&format!("{roles}/roles"), role).await;
        self.client.post(&format!("{roles}/rolebindings"), binding).await;
        self.events();
    }
}

fn configmap(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// The stages of a request that takes no long time.
const USUAL: [&str; 2] = ["RequestReceived", "ResponseComplete"];
