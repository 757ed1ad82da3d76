//! Cases of upstream's tests of admission, played against the server. The data keeps the names of upstream.

mod dispatch;
mod integration;
mod patches;
mod validating;

use std::{fs, path::PathBuf};

use k1s_server::{ApiServer, AuditLogOptions, AuditMode, AuditPolicy, User};
use tempfile::TempDir;

use super::*;

/// A server whose audit events can be read.
struct Audited {
    stage: Stage,
    folder: TempDir,
}

impl Audited {
    async fn new() -> Audited {
        let folder = TempDir::new().unwrap();
        let mut options = ServerOptions::default();
        let mut log = AuditLogOptions::new(log_in(&folder));
        log.mode = AuditMode::Blocking;
        let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, omitStages: [RequestReceived]}]\n";
        options.audit.policy = Some(AuditPolicy::parse(policy).unwrap());
        options.audit.log = Some(log);
        let local = LocalServices::default();
        options.services.local = local.clone();
        let env = Env::system();
        // Controllers would be recorded, too.
        let server = ApiServer::new(env, Arc::new(MemoryStore::default()), options).await.unwrap();
        let client = common::client(&server.as_user(User::admin()));
        Audited { stage: Stage { client, local }, folder }
    }

    /// The events since the last call.
    fn events(&self) -> Vec<Value> {
        let path = log_in(&self.folder);
        let text = fs::read_to_string(&path).unwrap_or_default();
        if !text.is_empty() {
            fs::File::options().write(true).truncate(true).open(&path).unwrap();
        }
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn log_in(folder: &TempDir) -> PathBuf {
    folder.path().join("audit.log")
}

/// The cases of a file.
fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

/// Without what is empty, which Go does not tell from what is missing.
fn without_empty(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(without_empty);
            map.retain(|_, value| !is_empty(value));
        }
        Value::Array(list) => list.iter_mut().for_each(without_empty),
        _ => {}
    }
}
