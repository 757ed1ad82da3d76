//! The log: written, rotated, full, and slow.

use std::{fs, path::Path, sync::Arc, time::Duration};

use flate2::read::GzDecoder;
use k1s_env::Env;
use k1s_server::{ApiServer, AuditLogOptions, AuditMode, AuditTruncation, ServerOptions, User};
use k1s_store::MemoryStore;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    CONFIGMAPS, NO_METRICS, Stage, audit, client, common::Client, configmap, log_in, metrics, policy, read,
};

async fn server(policy: k1s_server::AuditPolicy, log: AuditLogOptions) -> Client {
    let mut options = ServerOptions::default();
    options.audit = audit(policy, log);
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    client(&server.as_user(User::admin()))
}

fn metadata() -> k1s_server::AuditPolicy {
    policy(&[NO_METRICS, "{level: Metadata, omitStages: [RequestReceived]}"])
}

/// The files of a folder, sorted, with their contents; compressed ones are decompressed.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let mut text = String::new();
            let file = fs::File::open(entry.path()).unwrap();
            match name.ends_with(".gz") {
                true => std::io::Read::read_to_string(&mut GzDecoder::new(file), &mut text).unwrap(),
                false => std::io::Read::read_to_string(&mut { file }, &mut text).unwrap(),
            };
            (name, text)
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_batch_is_written_when_auditing_ends() {
    let folder = TempDir::new().unwrap();
    let mut log = AuditLogOptions::new(log_in(&folder));
    log.linger = Duration::from_secs(3600);
    let client = server(metadata(), log).await;
    for _ in 0..2500 {
        client.send("GET", "/version", &[], "").await;
    }
    client.server.shutdown();
    client.server.close_audit().await;
    assert_eq!(read(&log_in(&folder)).len(), 2500);
    // Later events are lost, and counted.
    client.send("GET", "/version", &[], "").await;
    assert_eq!(read(&log_in(&folder)).len(), 2500);
    let counted = metrics(&client).await;
    assert!(counted.contains("apiserver_audit_error_total{plugin=\"buffered\"} 1\n"), "{counted}");
}

#[tokio::test]
async fn a_batch_is_written_soon() {
    let folder = TempDir::new().unwrap();
    let client = server(metadata(), AuditLogOptions::new(log_in(&folder))).await;
    client.send("GET", "/version", &[], "").await;
    crate::common::eventually("the event is in the log", || async { read(&log_in(&folder)).len() == 1 })
        .await;
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&log_in(&folder)), mode(&folder.path().join("audit"))), (0o600, 0o700));
}

#[tokio::test]
async fn a_full_queue_drops_events_and_counts_them() {
    let folder = TempDir::new().unwrap();
    for (events, bytes, kept) in [(5, usize::MAX, 5), (1000, 1, 1)] {
        let mut log = AuditLogOptions::new(log_in(&folder));
        log.linger = Duration::from_secs(3600);
        (log.queue.max_events, log.queue.max_bytes) = (events, bytes);
        let client = server(metadata(), log).await;
        for _ in 0..20 {
            assert_eq!(client.send("GET", "/version", &[], "").await.status, 200);
        }
        let counted = metrics(&client).await;
        assert!(
            counted.contains(&format!("apiserver_audit_error_total{{plugin=\"buffered\"}} {}\n", 20 - kept)),
            "{counted}"
        );
        assert!(counted.contains("apiserver_audit_event_total 20\n"), "{counted}");
        client.server.close_audit().await;
        assert_eq!(read(&log_in(&folder)).len(), kept);
        fs::remove_file(log_in(&folder)).unwrap();
    }
}

#[tokio::test]
async fn a_large_log_is_renamed_and_a_new_one_begun() {
    let folder = TempDir::new().unwrap();
    let mut log = AuditLogOptions::new(log_in(&folder));
    (log.mode, log.max_size, log.max_backups) = (AuditMode::Blocking, 4096, 0);
    let client = server(metadata(), log.clone()).await;
    for number in 0..60 {
        client.send("GET", "/version", &[("audit-id", &format!("id-{number:02}"))], "").await;
    }
    client.server.close_audit().await;
    let found = files(&folder.path().join("audit"));
    assert!(found.len() > 3, "{} files", found.len());
    let ids: Vec<String> = found
        .iter()
        .flat_map(|(name, text)| {
            assert!(text.len() <= 4096 && text.ends_with('\n'), "{name}: {} bytes", text.len());
            text.lines().map(|line| {
                let event: Value = serde_json::from_str(line).unwrap();
                event["auditID"].as_str().unwrap().to_owned()
            })
        })
        .collect();
    // The names sort in the order of time, with the current file last.
    let expected: Vec<String> = (0..60).map(|number| format!("id-{number:02}")).collect();
    assert_eq!(ids, expected);
    // Another server continues the file.
    let before = found.len();
    let client = server(metadata(), log).await;
    client.send("GET", "/version", &[], "").await;
    client.server.close_audit().await;
    let lines: usize = files(&folder.path().join("audit")).iter().map(|(_, text)| text.lines().count()).sum();
    assert_eq!(lines, 61);
    assert!(files(&folder.path().join("audit")).len() <= before + 1);
}

#[tokio::test]
async fn an_event_larger_than_a_file_has_one_of_its_own() {
    let folder = TempDir::new().unwrap();
    let mut log = AuditLogOptions::new(log_in(&folder));
    (log.mode, log.max_size) = (AuditMode::Blocking, 10);
    let client = server(metadata(), log).await;
    for _ in 0..3 {
        client.send("GET", "/version", &[], "").await;
    }
    let found = files(&folder.path().join("audit"));
    assert_eq!(found.iter().map(|(_, text)| text.lines().count()).collect::<Vec<_>>(), [1, 1, 1]);
}

#[tokio::test]
async fn old_files_are_compressed_and_removed() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("audit");
    fs::create_dir(&place).unwrap();
    for (name, text) in [
        // Too old, and not a file of this log.
        ("audit-2020-01-02T03-04-05.000.log", "ancient\n"),
        ("audit-2020-01-02T03-04-05.000.log.gz", "not gzip"),
        ("audit-notes.log", "kept\n"),
        ("other-2020-01-02T03-04-05.000.log", "kept\n"),
    ] {
        fs::write(place.join(name), text).unwrap();
    }
    let mut log = AuditLogOptions::new(place.join("audit.log"));
    (log.mode, log.max_size, log.max_backups, log.compress) = (AuditMode::Blocking, 10, 3, true);
    log.max_age = Duration::from_secs(24 * 60 * 60);
    let client = server(metadata(), log).await;
    for _ in 0..8 {
        client.send("GET", "/version", &[], "").await;
    }
    let done = || async {
        let names: Vec<String> = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let compressed = names.iter().filter(|name| name.ends_with(".gz")).count();
        names.len() == 6 && compressed == 3
    };
    crate::common::eventually("three compressed files are left", done).await;
    let found = files(&place);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"audit-notes.log") && names.contains(&"other-2020-01-02T03-04-05.000.log"),
        "{names:?}"
    );
    for (name, text) in found.iter().filter(|(name, _)| name.ends_with(".gz")) {
        assert_eq!(text.lines().count(), 1, "{name}: {text}");
        let event: Value = serde_json::from_str(text).unwrap();
        assert_eq!(event["requestURI"], "/version");
    }
}

#[tokio::test]
async fn truncation_keeps_the_metadata_of_a_large_event() {
    let folder = TempDir::new().unwrap();
    let mut log = AuditLogOptions::new(log_in(&folder));
    let mut truncation = AuditTruncation::default();
    truncation.max_event_bytes = 2000;
    (log.mode, log.truncation) = (AuditMode::Blocking, Some(truncation));
    let client = server(policy(&[NO_METRICS, "{level: Request, omitStages: [RequestReceived]}"]), log).await;
    let mut large = configmap("a");
    large["data"]["k"] = "x".repeat(3000).into();
    client.post(CONFIGMAPS, large).await;
    client
        .send("GET", "/version", &[("user-agent", &"u".repeat(1024)), ("audit-id", &"i".repeat(2000))], "")
        .await;
    let counted = metrics(&client).await;
    assert!(counted.contains("apiserver_audit_error_total{plugin=\"truncate\"} 1\n"), "{counted}");
    let events = read(&log_in(&folder));
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].get("requestObject"), None);
    assert_eq!(events[0]["annotations"]["audit.k8s.io/truncated"], "true");
    assert_eq!(events[0]["objectRef"]["name"], "a");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_requests_only_if_that_is_wanted() {
    for (mode, code, rejected) in [(AuditMode::Blocking, 200, 0), (AuditMode::BlockingStrict, 500, 1)] {
        // Every write to this device fails: no space is left.
        let mut log = AuditLogOptions::new("/dev/full");
        (log.mode, log.max_size) = (mode, 0);
        let rules = policy(&[NO_METRICS, "level: Metadata"]);
        let client = server(rules, log).await;
        let answer = client.send("GET", CONFIGMAPS, &[], "").await;
        assert_eq!(answer.status, code);
        if code == 500 {
            assert!(answer.text().contains("failed to store audit event"), "{}", answer.text());
        }
        let counted = metrics(&client).await;
        assert!(
            counted.contains(&format!("apiserver_audit_requests_rejected_total {rejected}\n")),
            "{counted}"
        );
        // A rejected request has no further events.
        let lost = if rejected == 1 { 1 } else { 2 };
        client.server.close_audit().await;
        let counted = metrics(&client).await;
        assert!(
            counted.contains(&format!("apiserver_audit_error_total{{plugin=\"log\"}} {lost}\n")),
            "{counted}"
        );
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_opened_is_an_error_at_start() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let mut options = ServerOptions::default();
    options.audit = audit(metadata(), AuditLogOptions::new(folder.path().join("file/audit.log")));
    let error = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap_err();
    assert!(
        error.message.contains("the audit log") && error.message.contains("file/audit.log"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn metrics_count_events_and_levels() {
    let rules = [
        "{level: None, nonResourceURLs: [/version, /metrics]}",
        "{level: Request, verbs: [create]}",
        "level: Metadata",
    ];
    let stage = Stage::new(policy(&rules)).await;
    stage.client.get("/version").await;
    stage.client.post(CONFIGMAPS, configmap("a")).await;
    stage.client.get(&format!("{CONFIGMAPS}/a")).await;
    let counted = metrics(&stage.client).await;
    for line in [
        "apiserver_audit_event_total 4",
        // And a level "None" for every attempt to read the metrics.
        "apiserver_audit_level_total{level=\"Metadata\"} 1",
        "apiserver_audit_level_total{level=\"Request\"} 1",
        "apiserver_audit_level_total{level=\"RequestResponse\"} 0",
        "apiserver_audit_requests_rejected_total 0",
    ] {
        assert!(counted.lines().any(|one| one == line), "{line} in {counted}");
    }
}
