//! Garbage collection over the API: every propagation policy, on a k1s server and on other servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{
    Api, DEFINITIONS, MAPS, NODES, SECRETS, VIEWS, View, all, blocking, definition, held, owner,
    remove_finalizers,
};
use http::Method;
use k1s_env::Env;
use k1s_store::MemoryStore;
use serde_json::{Value, json};

#[tokio::test]
async fn background_deletion_goes_down_five_levels_and_leaves_others_alone() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let mut uid = api.create(MAPS, "level-0", &[]).await;
        for level in 1..=5 {
            let above = owner(&format!("level-{}", level - 1), &uid);
            uid = api.create(MAPS, &format!("level-{level}"), &[above]).await;
        }
        let other = api.create(MAPS, "other", &[]).await;
        api.create(MAPS, "kept", &[owner("other", &other)]).await;
        api.delete(&format!("{MAPS}/level-0"), "Background").await;
        api.gone(MAPS, "level-5").await;
        api.settle().await;
        assert_eq!(api.get(&format!("{MAPS}/kept")).await["kind"], "ConfigMap");
    }
}

#[tokio::test]
async fn a_dependent_with_finalizers_is_marked_and_waits() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(MAPS, "o", &[]).await;
        api.create_with(SECRETS, held("d", &[owner("o", &uid)])).await;
        api.delete(&format!("{MAPS}/o"), "Background").await;
        api.becomes(SECRETS, "d", |item| item["metadata"]["deletionTimestamp"].is_string()).await;
        remove_finalizers(&api, &format!("{SECRETS}/d")).await;
        api.gone(SECRETS, "d").await;
    }
}

#[tokio::test]
async fn foreground_deletion_takes_the_dependents_first() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let top = api.create(MAPS, "top", &[]).await;
        let middle = api.create(MAPS, "middle", &[blocking("top", &top)]).await;
        api.create_with(SECRETS, held("leaf", &[blocking("middle", &middle)])).await;
        api.delete(&format!("{MAPS}/top"), "Foreground").await;
        api.becomes(SECRETS, "leaf", |item| item["metadata"]["deletionTimestamp"].is_string()).await;
        for name in ["top", "middle"] {
            let object = api.get(&format!("{MAPS}/{name}")).await;
            assert_eq!(object["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{object}");
            assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}");
        }
        remove_finalizers(&api, &format!("{SECRETS}/leaf")).await;
        api.gone(MAPS, "top").await;
        assert_eq!(api.get(&format!("{MAPS}/middle")).await["reason"], "NotFound");
    }
}

#[tokio::test]
async fn foreground_deletion_does_not_wait_for_non_blocking_dependents() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(MAPS, "o", &[]).await;
        api.create_with(SECRETS, held("d", &[owner("o", &uid)])).await;
        api.delete(&format!("{MAPS}/o"), "Foreground").await;
        api.gone(MAPS, "o").await;
        api.becomes(SECRETS, "d", |item| item["metadata"]["deletionTimestamp"].is_string()).await;
    }
}

#[tokio::test]
async fn foreground_deletion_without_dependents_is_deletion() {
    for view in VIEWS {
        let api = Api::new(view).await;
        api.create(MAPS, "o", &[]).await;
        api.delete(&format!("{MAPS}/o"), "Foreground").await;
        api.gone(MAPS, "o").await;
    }
}

#[tokio::test]
async fn orphans_lose_their_reference_and_stay() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(MAPS, "o", &[]).await;
        let second = api.create(MAPS, "second", &[]).await;
        api.create(MAPS, "d", &[owner("o", &uid)]).await;
        api.create_with(SECRETS, held("e", &[owner("o", &uid), owner("second", &second)])).await;
        api.delete(&format!("{MAPS}/o"), "Orphan").await;
        api.gone(MAPS, "o").await;
        api.settle().await;
        let (d, e) = (api.get(&format!("{MAPS}/d")).await, api.get(&format!("{SECRETS}/e")).await);
        assert_eq!(d["metadata"].get("ownerReferences"), None, "{d}");
        assert_eq!(e["metadata"]["ownerReferences"], json!([owner("second", &second)]));
    }
}

#[tokio::test]
async fn a_dependent_of_two_owners_is_deleted_with_the_last_one() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let (one, two) = (api.create(MAPS, "one", &[]).await, api.create(MAPS, "two", &[]).await);
        api.create(SECRETS, "d", &[owner("one", &one), blocking("two", &two)]).await;
        api.delete(&format!("{MAPS}/one"), "Background").await;
        api.becomes(SECRETS, "d", |item| {
            item["metadata"]["ownerReferences"] == json!([blocking("two", &two)])
        })
        .await;
        api.delete(&format!("{MAPS}/two"), "Foreground").await;
        api.gone(MAPS, "two").await;
        api.gone(SECRETS, "d").await;
    }
}

#[tokio::test]
async fn a_foreground_deletion_releases_a_dependent_with_another_owner() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let (one, two) = (api.create(MAPS, "one", &[]).await, api.create(MAPS, "two", &[]).await);
        api.create(SECRETS, "d", &[blocking("one", &one), owner("two", &two)]).await;
        api.delete(&format!("{MAPS}/one"), "Foreground").await;
        api.gone(MAPS, "one").await;
        assert_eq!(
            api.get(&format!("{SECRETS}/d")).await["metadata"]["ownerReferences"],
            json!([owner("two", &two)])
        );
    }
}

#[tokio::test]
async fn objects_that_own_each_other_are_deleted_together() {
    for (policies, length) in
        [(["Foreground", "Foreground"], 2), (["Foreground", ""], 2), (["Foreground", ""], 4)]
    {
        let api = Api::new(View::K1s).await;
        let mut uids = Vec::new();
        for place in 0..length {
            uids.push(api.create(MAPS, &format!("m{place}"), &[]).await);
        }
        for place in 0..length {
            let above = (place + 1) % length;
            let owners =
                json!({"metadata": {"ownerReferences": [blocking(&format!("m{above}"), &uids[above])]}});
            let (code, answer) = api.send(Method::PATCH, &format!("{MAPS}/m{place}"), owners).await;
            assert_eq!(code, 200, "{answer}");
        }
        for (place, policy) in policies.iter().enumerate().filter(|(_, policy)| !policy.is_empty()) {
            // The second may be deleted already.
            let path = format!("{MAPS}/m{place}");
            let (code, answer) = api.send(Method::DELETE, &path, json!({"propagationPolicy": policy})).await;
            assert!(matches!(code, 200 | 404), "{answer}");
        }
        for place in 0..length {
            api.gone(MAPS, &format!("m{place}")).await;
        }
    }
}

#[tokio::test]
async fn an_owner_of_another_uid_kind_or_namespace_is_no_owner() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(MAPS, "o", &[]).await;
        let wrong = "11111111-2222-3333-4444-555555555555";
        let with_kind = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": uid});
        let elsewhere = "/api/v1/namespaces/kube-public/secrets";
        api.create(SECRETS, "mine", &[owner("o", &uid)]).await;
        api.create(SECRETS, "wrong-uid", &[owner("o", wrong)]).await;
        api.create(SECRETS, "wrong-name", &[owner("p", &uid)]).await;
        api.create(SECRETS, "wrong-kind", &[with_kind("Service")]).await;
        api.create(elsewhere, "wrong-namespace", &[owner("o", &uid)]).await;
        for name in ["wrong-uid", "wrong-name", "wrong-kind"] {
            api.gone(SECRETS, name).await;
        }
        api.gone(elsewhere, "wrong-namespace").await;
        assert_eq!(api.get(&format!("{SECRETS}/mine")).await["kind"], "Secret");
    }
}

#[tokio::test]
async fn an_invalid_reference_is_ignored() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(MAPS, "o", &[]).await;
        let unknown = json!({"apiVersion": "example.com/v1", "kind": "Nothing", "name": "x", "uid": "u"});
        let review =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "x", "uid": "u"});
        api.create(NODES, "of-the-cluster", &[owner("o", &uid)]).await;
        api.create(SECRETS, "unknown", &[unknown]).await;
        api.create(SECRETS, "review", &[review]).await;
        api.delete(&format!("{MAPS}/o"), "Background").await;
        api.settle().await;
        for path in
            ["/api/v1/nodes/of-the-cluster", &format!("{SECRETS}/unknown"), &format!("{SECRETS}/review")]
        {
            let object = api.get(path).await;
            assert!(object["metadata"]["ownerReferences"].is_array(), "{object}");
        }
    }
}

fn widget(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid})
}

#[tokio::test]
async fn custom_resources_can_own_and_be_owned() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let widgets = "/apis/example.com/v1/namespaces/default/widgets";
        let typed = |mut object: Value| {
            object["apiVersion"] = "example.com/v1".into();
            object["kind"] = "Widget".into();
            object
        };
        // The reference exists before its kind does.
        api.create(SECRETS, "early", &[widget("never", "11111111-2222-3333-4444-555555555555")]).await;
        api.settle().await;
        assert_eq!(api.get(&format!("{SECRETS}/early")).await["kind"], "Secret");
        api.create_with(DEFINITIONS, definition("Namespaced")).await;
        api.gone(SECRETS, "early").await;
        let top = api.create(MAPS, "top", &[]).await;
        let middle =
            typed(json!({"metadata": {"name": "middle", "ownerReferences": [blocking("top", &top)]}}));
        let middle = api.create_with(widgets, middle).await;
        api.create(SECRETS, "leaf", &[widget("middle", &middle)]).await;
        api.delete(&format!("{MAPS}/top"), "Foreground").await;
        api.gone(MAPS, "top").await;
        api.gone(SECRETS, "leaf").await;
        assert_eq!(api.get(&format!("{widgets}/middle")).await["reason"], "NotFound");
        // The definition is deleted with all its objects, and those with their dependents.
        let last = api.create_with(widgets, typed(json!({"metadata": {"name": "last"}}))).await;
        api.create(SECRETS, "leaf", &[widget("last", &last)]).await;
        api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
        api.gone(SECRETS, "leaf").await;
    }
}

#[tokio::test]
async fn a_cluster_scoped_owner_has_dependents_in_all_namespaces() {
    for view in VIEWS {
        let api = Api::new(view).await;
        let uid = api.create(NODES, "n", &[]).await;
        let of_node = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid});
        let elsewhere = "/api/v1/namespaces/kube-public/secrets";
        api.create(NODES, "m", std::slice::from_ref(&of_node)).await;
        api.create(SECRETS, "d", std::slice::from_ref(&of_node)).await;
        api.create(elsewhere, "d", &[of_node]).await;
        api.settle().await;
        assert_eq!(api.get(&format!("{SECRETS}/d")).await["kind"], "Secret");
        api.delete(&format!("{NODES}/n"), "Background").await;
        api.gone(NODES, "m").await;
        api.gone(SECRETS, "d").await;
        api.gone(elsewhere, "d").await;
    }
}

#[tokio::test]
async fn a_second_server_finishes_a_deletion_the_first_began() {
    let store = Arc::new(MemoryStore::default());
    let api = Api::bare(Env::system(), store.clone()).await;
    let foreground = api.create(MAPS, "foreground", &[]).await;
    let orphan = api.create(MAPS, "orphan", &[]).await;
    let background = api.create(MAPS, "background", &[]).await;
    api.create(SECRETS, "f", &[blocking("foreground", &foreground)]).await;
    api.create(SECRETS, "o", &[owner("orphan", &orphan)]).await;
    api.create(SECRETS, "b", &[owner("background", &background)]).await;
    for (name, policy) in [("foreground", "Foreground"), ("orphan", "Orphan"), ("background", "Background")] {
        api.delete(&format!("{MAPS}/{name}"), policy).await;
    }
    for name in ["f", "o", "b"] {
        assert_eq!(api.get(&format!("{SECRETS}/{name}")).await["kind"], "Secret", "no collector runs here");
    }
    api.server.shutdown();
    let api = Api::bare(Env::system(), store).await;
    drop(api.run(View::K1s, all()));
    api.gone(MAPS, "foreground").await;
    api.gone(MAPS, "orphan").await;
    api.gone(SECRETS, "b").await;
    assert_eq!(api.get(&format!("{SECRETS}/f")).await["reason"], "NotFound");
    assert_eq!(api.get(&format!("{SECRETS}/o")).await["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn nothing_is_left_running_when_the_controllers_have_ended() {
    for view in VIEWS {
        let api = Api::bare(Env::system(), Arc::new(MemoryStore::default())).await;
        let before = api.env.tasks().len();
        let controllers = api.run(view, all());
        api.settle().await;
        assert!(api.env.tasks().len() > before);
        api.stop();
        controllers.await.unwrap();
        let ours =
            |name: &str| name.contains("controller") || name.contains("informer") || name.contains("feed");
        let left: Vec<String> =
            api.env.tasks().iter().map(|task| task.name.to_string()).filter(|name| ours(name)).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

#[tokio::test]
async fn five_thousand_dependents_follow_their_owner() {
    const COUNT: usize = 5000;
    for policy in ["Background", "Foreground", "Orphan"] {
        let api = Api::new(View::K1s).await;
        let uid = api.create(MAPS, "o", &[]).await;
        for number in 0..COUNT {
            api.create(SECRETS, &format!("d{number}"), &[blocking("o", &uid)]).await;
        }
        let started = api.env.now();
        api.delete(&format!("{MAPS}/o"), policy).await;
        api.gone(MAPS, "o").await;
        if policy == "Orphan" {
            let (_, list) = api.send(Method::GET, SECRETS, Value::Null).await;
            let items = list["items"].as_array().unwrap();
            assert_eq!(items.len(), COUNT);
            assert!(items.iter().all(|item| item["metadata"].get("ownerReferences").is_none()));
        } else {
            // Not watched one by one: each list costs as much as thousands of deletions.
            let last = format!("{SECRETS}?limit=1");
            while api.get(&last).await["items"].as_array().is_some_and(|items| !items.is_empty()) {
                api.env.yield_now().await;
            }
        }
        println!("{policy}: {COUNT} dependents in {:?}", api.env.now() - started);
    }
}
