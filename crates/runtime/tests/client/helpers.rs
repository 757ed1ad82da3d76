//! Helpers that need a server or time.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use k1s_env::Env;
use k1s_runtime::{
    client::{Call, Error, Interceptor, Verb},
    util::{
        Backoff, OperationResult, create_or_patch, create_or_update, retry_on_conflict, retry_on_error,
        set_controller_reference,
    },
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use parking_lot::Mutex;
use serde_json::json;

use crate::{Widget, WidgetStatus, client, client_with_widgets, config_map, deployment, from, key, widget};

fn skeleton(name: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name, "namespace": "default"}}))
}

/// Records writes.
struct Writes(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Interceptor for Writes {
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        if call.verb.is_write() {
            let body = call.body.map(|body| String::from_utf8_lossy(body).into_owned()).unwrap_or_default();
            self.0.lock().push(format!("{} {} {body}", call.verb, call.subresource.unwrap_or("-")));
        }
        Ok(())
    }
}

#[tokio::test]
async fn create_or_update_creates_updates_and_leaves_alone() {
    let writes = Arc::new(Mutex::new(Vec::new()));
    let client = client().await.intercept(Writes(Arc::clone(&writes)));
    let owner = client.create(&deployment("owner")).await.unwrap();
    writes.lock().clear();
    let set = |value: &'static str| {
        let owner = &owner;
        move |object: &mut ConfigMap| {
            object.data = Some([("k".to_owned(), value.to_owned())].into());
            object.metadata.annotations.get_or_insert_default();
            set_controller_reference(owner, object)
        }
    };
    let (created, done) = create_or_update(&client, skeleton("a"), set("1")).await.unwrap();
    assert_eq!(done, OperationResult::Created);
    assert!(created.metadata.uid.is_some());
    let (same, done) = create_or_update(&client, skeleton("a"), set("1")).await.unwrap();
    assert_eq!(
        (done.as_str(), same.metadata.resource_version),
        ("unchanged", created.metadata.resource_version.clone())
    );
    assert_eq!(writes.lock().len(), 1);
    let (updated, done) = create_or_update(&client, skeleton("a"), set("2")).await.unwrap();
    assert_eq!(done, OperationResult::Updated);
    assert_ne!(updated.metadata.resource_version, created.metadata.resource_version);
    assert_eq!(writes.lock().len(), 2);
}

#[tokio::test]
async fn a_mutation_may_fail_and_may_not_rename() {
    let client = client().await;
    let other = client.create(&deployment("other")).await.unwrap();
    let owner = client.create(&deployment("owner")).await.unwrap();
    create_or_update(&client, skeleton("a"), |object| set_controller_reference(&other, object))
        .await
        .unwrap();
    let error = create_or_update(&client, skeleton("a"), |object| set_controller_reference(&owner, object))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"cannot change ConfigMap default/a: default/a is already controlled by Deployment "other" (apps/v1)"#
    );
    let error = create_or_update(&client, skeleton("a"), |object| object.metadata.name = Some("b".into()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot change ConfigMap default/a: its name and namespace must stay, but became default/b"
    );
    let error =
        create_or_patch(&client, skeleton("b"), |object| object.metadata.namespace = None).await.unwrap_err();
    assert!(matches!(error, Error::Mutate { .. }));
    assert!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap().is_none());
}

#[tokio::test]
async fn create_or_patch_sends_the_difference_and_the_status_separately() {
    let writes = Arc::new(Mutex::new(Vec::new()));
    let client = client_with_widgets().await.intercept(Writes(Arc::clone(&writes)));
    let apply = async |text: &str, replicas: Option<i32>| {
        let (stored, done) = create_or_patch(&client, widget("w"), |object: &mut Widget| {
            object.spec.text = text.to_owned();
            object.status = replicas.map(|replicas| WidgetStatus { replicas });
        })
        .await
        .unwrap();
        let mut sent = writes.lock();
        (stored, done, std::mem::take(&mut *sent))
    };
    let (stored, done, _) = apply("a", Some(1)).await;
    assert_eq!((done, stored.status), (OperationResult::Created, None), "a new object has no status");
    let (stored, done, sent) = apply("a", Some(1)).await;
    assert_eq!((done, stored.status.unwrap().replicas), (OperationResult::UpdatedStatusOnly, 1));
    assert_eq!(sent, [r#"patch status {"status":{"replicas":1}}"#]);
    let (_, done, sent) = apply("a", Some(1)).await;
    assert_eq!((done, sent.len()), (OperationResult::Unchanged, 0));
    let (_, done, sent) = apply("b", Some(1)).await;
    assert_eq!(done, OperationResult::Updated);
    assert_eq!(sent, [r#"patch - {"spec":{"text":"b"}}"#]);
    let (stored, done, sent) = apply("c", Some(2)).await;
    assert_eq!((done, sent.len()), (OperationResult::UpdatedStatus, 2));
    assert_eq!((stored.spec.text.as_str(), stored.status.unwrap().replicas), ("c", 2));
    let (stored, done, _) = apply("c", None).await;
    assert_eq!((done, stored.status), (OperationResult::UpdatedStatusOnly, None));
}

#[tokio::test]
async fn conflicts_are_retried_until_they_succeed() {
    let client = client().await;
    let mut stale = client.create(&config_map("a")).await.unwrap();
    let other = client
        .update(&{
            let mut other = stale.clone();
            other.data = None;
            other
        })
        .await
        .unwrap();
    let (env, clock) = Env::simulated(2);
    let tries = Arc::new(Mutex::new(Vec::new()));
    let task = env.spawn("retry", {
        let (env, tries, client) = (env.clone(), Arc::clone(&tries), client.clone());
        async move {
            let began = env.now();
            retry_on_conflict(&env, Backoff::DEFAULT_RETRY, || {
                tries.lock().push(env.now() - began);
                // The third attempt has read the newest state.
                if tries.lock().len() == 3 {
                    stale.metadata.resource_version.clone_from(&other.metadata.resource_version);
                }
                let (client, object) = (client.clone(), stale.clone());
                async move { client.update(&object).await }
            })
            .await
        }
    });
    for _ in 0..30 {
        clock.advance_and_settle(Duration::from_millis(1)).await;
    }
    task.await.unwrap().unwrap();
    let tries = tries.lock();
    assert_eq!(tries.len(), 3);
    for pair in tries.windows(2) {
        let wait = pair[1] - pair[0];
        assert!(wait >= Duration::from_millis(10) && wait <= Duration::from_millis(12), "{wait:?}");
    }
}

#[tokio::test]
async fn retries_end_after_their_steps_and_with_other_errors() {
    let (env, clock) = Env::simulated(2);
    let failing = |env: Env, backoff: Backoff, reason: &'static str| async move {
        let mut tries = 0;
        let began = env.now();
        let result = retry_on_error(
            &env,
            backoff,
            |status: &Status| status.reason == "Conflict",
            || {
                tries += 1;
                async move { Err::<(), _>(Status::failure("no", reason)) }
            },
        )
        .await;
        assert_eq!(result.unwrap_err().reason, reason);
        (tries, env.now() - began)
    };
    let task = env.spawn("retry", failing(env.clone(), Backoff::DEFAULT_BACKOFF, "Conflict"));
    for _ in 0..400 {
        clock.advance_and_settle(Duration::from_millis(1)).await;
    }
    let (tries, took) = task.await.unwrap();
    assert_eq!(tries, 4);
    assert!(took >= Duration::from_millis(310) && took <= Duration::from_millis(345), "{took:?}");
    let (tries, took) = failing(env.clone(), Backoff::default(), "Invalid").await;
    assert_eq!((tries, took), (1, Duration::ZERO));
}

#[test]
fn verbs_have_display_names_and_rbac_names() {
    assert_eq!((Verb::Apply.to_string().as_str(), Verb::Apply.permission()), ("apply", "patch"));
    assert!(Verb::DeleteAllOf.is_write() && !Verb::Watch.is_write());
}
