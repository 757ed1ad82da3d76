//! Patches.

use k1s_runtime::client::{Patch, PatchType};
use k1s_runtime::metadata;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, EnvVar, Service},
};
use serde_json::{Value, json};

use crate::{client, client_with_widgets, config_map, deployment, from, key, widget};

#[tokio::test]
async fn merge_patches_change_only_what_differs() {
    let client = client().await;
    let original = client.create(&config_map("a")).await.unwrap();
    let other = Patch::merge(&json!({"data": {"other": "1"}}));
    client.patch::<ConfigMap>(&key("a"), other).await.unwrap();
    let mut changed = original.clone();
    changed.data.as_mut().unwrap().insert("mine".into(), "1".into());
    let stored = client.patch(&changed, Patch::merge_from(&original)).await.unwrap();
    let keys: Vec<_> = stored.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["a", "mine", "other"]);
}

#[tokio::test]
async fn an_optimistic_lock_conflicts_with_concurrent_writes() {
    let client = client().await;
    let original = client.create(&config_map("a")).await.unwrap();
    let mut changed = original.clone();
    changed.data.as_mut().unwrap().insert("mine".into(), "1".into());
    let patch = || Patch::merge_from(&original).with_optimistic_lock();
    client.patch(&changed, patch()).await.unwrap();
    let error = client.patch(&changed, patch()).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
}

#[tokio::test]
async fn json_patches_are_operations() {
    let client = client().await;
    client.create(&config_map("a")).await.unwrap();
    let operations: json_patch::Patch =
        from(json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}]));
    let stored = client.patch::<ConfigMap>(&key("a"), Patch::json(&operations)).await.unwrap();
    assert_eq!(stored.data, None);
    let error = client.patch::<ConfigMap>(&key("a"), Patch::json(&operations)).await.unwrap_err();
    assert!(error.to_string().starts_with("patch configmaps default/a: "), "{error}");
    let raw = Patch::raw(PatchType::Merge, &br#"{"data":{"b":"2"}}"#[..]);
    assert!(client.patch::<ConfigMap>(&key("a"), raw).await.unwrap().data.is_some());
}

/// Two clients change the containers of a `Deployment`; each keeps the other's change.
#[tokio::test]
async fn strategic_patches_merge_containers_by_name() {
    let client = client().await;
    let original = client.create(&deployment("d")).await.unwrap();
    let sidecar =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s:1"}]}}}});
    client.patch::<Deployment>(&key("d"), Patch::strategic(&sidecar)).await.unwrap();

    let mut changed = original.clone();
    let container =
        |deployment: &mut Deployment| deployment.spec.template.spec.as_mut().unwrap().containers[0].clone();
    let mut main = container(&mut changed);
    main.image = Some("image:2".into());
    main.env = Some(vec![EnvVar { name: "X".into(), value: Some("1".into()), ..EnvVar::default() }]);
    changed.spec.template.spec.as_mut().unwrap().containers = vec![main];
    changed.metadata.finalizers = Some(vec!["k1s.dev/a".into()]);
    let stored = client.patch(&changed, Patch::strategic_merge_from(&original)).await.unwrap();
    assert_eq!(stored.metadata.finalizers.as_deref(), Some(&["k1s.dev/a".to_owned()][..]));
    let images = |deployment: &Deployment| -> Vec<String> {
        let spec = deployment.spec.template.spec.as_ref().unwrap();
        spec.containers.iter().filter_map(|one| one.image.clone()).collect()
    };
    let mut seen = images(&stored);
    seen.sort();
    assert_eq!(seen, ["image:2", "s:1"], "the sidecar is still there");

    // Containers removed by this client are deleted.
    let mut without = stored.clone();
    without.spec.template.spec.as_mut().unwrap().containers.retain(|one| one.name == "main");
    without.metadata.finalizers = None;
    let after = client.patch(&without, Patch::strategic_merge_from(&stored)).await.unwrap();
    assert_eq!(images(&after), ["image:2"]);
    assert_eq!(after.metadata.finalizers, None);
}

/// Whatever the lists are, the patch turns one state into the other.
#[tokio::test]
async fn strategic_patches_produce_the_wanted_state() {
    let client = client().await;
    let service = |ports: Value, external: Value| -> Service {
        from(json!({
            "metadata": {"name": "s", "namespace": "default", "labels": {"ports": ports.to_string().len().to_string()}},
            "spec": {"selector": {"app": "a"}, "ports": ports, "externalIPs": external},
        }))
    };
    let dns =
        json!([{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]);
    let states = [
        service(json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]), json!(["1.2.3.4"])),
        service(json!([{"name": "b", "port": 81}, {"name": "c", "port": 82}]), json!(["1.2.3.4", "1.2.3.5"])),
        service(dns, json!(["1.2.3.5"])),
        service(json!([{"name": "b", "port": 81}]), json!(["1.2.3.5"])),
    ];
    let mut stored = client.create(&states[0]).await.unwrap();
    for state in &states[1..] {
        let mut wanted = stored.clone();
        wanted.metadata.labels.clone_from(&state.metadata.labels);
        let (spec, new) = (wanted.spec.as_mut().unwrap(), state.spec.as_ref().unwrap());
        spec.ports.clone_from(&new.ports);
        spec.external_ips.clone_from(&new.external_ips);
        let after = client.patch(&wanted, Patch::strategic_merge_from(&stored)).await.unwrap();
        let names = |service: &Service| -> Vec<(Option<String>, i32)> {
            let ports = service.spec.as_ref().unwrap().ports.as_ref().unwrap();
            ports.iter().map(|port| (port.name.clone(), port.port)).collect()
        };
        assert_eq!(names(&after), names(&wanted));
        assert_eq!(after.spec.as_ref().unwrap().external_ips, wanted.spec.as_ref().unwrap().external_ips);
        assert_eq!(after.metadata.labels, wanted.metadata.labels);
        stored = after;
    }
}

/// Between any two states, a patch has the same result as an update.
#[tokio::test]
async fn patches_have_the_same_result_as_updates() {
    let client = client().await;
    let env = client.env().clone();
    let mut stored = client.create(&deployment("d")).await.unwrap();
    for round in 0..120 {
        let mut wanted = serde_json::to_value(&stored).unwrap();
        shuffle(&env, &mut wanted, round);
        let wanted: Deployment = from(wanted);
        let updated =
            client.dry_run().update(&wanted).await.unwrap_or_else(|error| panic!("{round}: {error}"));
        let patch = match round % 3 {
            0 => Patch::merge_from(&stored),
            1 => Patch::strategic_merge_from(&stored),
            _ => Patch::strategic_merge_from(&stored).with_optimistic_lock(),
        };
        let patched = client.patch(&wanted, patch).await.unwrap_or_else(|error| panic!("{round}: {error}"));
        assert_eq!(patched.spec, updated.spec, "round {round}");
        assert_eq!(patched.metadata.finalizers, updated.metadata.finalizers, "round {round}");
        assert_eq!(patched.metadata.owner_references, updated.metadata.owner_references, "round {round}");
        assert_eq!(patched.metadata.labels, updated.metadata.labels, "round {round}");
        stored = patched;
    }
}

/// Generates another state of a deployment: adds, removes and moves items.
fn shuffle(env: &k1s_env::Env, object: &mut Value, round: u64) {
    let some = |names: &[&str], make: &dyn Fn(&str, u64) -> Value| -> Value {
        let mut picked: Vec<(u64, Value)> = Vec::new();
        for name in names {
            if env.random_below(3) > 0 {
                picked.push((env.random(), make(name, env.random_below(3))));
            }
        }
        picked.sort_by_key(|(order, _)| *order);
        picked.into_iter().map(|(_, value)| value).collect()
    };
    let ports = |_: &str, value: u64| match value {
        0 => json!([{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]),
        1 => json!([{"containerPort": 80, "name": "web", "protocol": "TCP"}]),
        _ => {
            json!([{"containerPort": 81, "protocol": "TCP"}, {"containerPort": 80, "name": "web", "protocol": "TCP"}])
        }
    };
    let container = |name: &str, value: u64| {
        json!({
            "name": name, "image": format!("image:{value}"), "args": some(&["a", "b"], &|name, _| name.into()),
            "env": some(&["X", "Y", "Z"], &|name, value| json!({"name": name, "value": value.to_string()})),
            "ports": ports(name, value),
        })
    };
    let meta = &mut object["metadata"];
    meta["finalizers"] = some(&["k1s.dev/a", "k1s.dev/b", "k1s.dev/c"], &|name, _| name.into());
    meta["labels"] = json!({"round": round.to_string(), format!("r{}", env.random_below(3)): "x"});
    meta["ownerReferences"] = some(
        &["u1", "u2", "u3"],
        &|uid, value| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{value}"), "uid": uid}),
    );
    let spec = &mut object["spec"]["template"]["spec"];
    spec["containers"] = some(&["one", "two", "three"], &container);
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        spec["containers"] = json!([container("main", 1)]);
    }
    spec["volumes"] = some(&["v", "w"], &|name, value| match value {
        0 => json!({"name": name, "emptyDir": {}}),
        1 => {
            json!({"name": name, "configMap": {"name": "c", "items": [{"key": "k", "path": env.random_below(9).to_string()}]}})
        }
        _ => json!({"name": name, "secret": {"secretName": "s"}}),
    });
    spec["tolerations"] = some(&["t", "u"], &|name, _| json!({"key": name, "operator": "Exists"}));
    spec["hostAliases"] =
        some(&["1.2.3.4", "1.2.3.5"], &|ip, value| json!({"ip": ip, "hostnames": [format!("h{value}")]}));
    spec["dnsConfig"] = json!({"nameservers": some(&["8.8.8.8", "9.9.9.9"], &|ip, _| ip.into())});
}

#[tokio::test]
async fn custom_kinds_support_no_strategic_patches() {
    let client = client_with_widgets().await;
    let stored = client.create(&widget("w")).await.unwrap();
    let error = client.patch(&stored, Patch::strategic_merge_from(&stored)).await.unwrap_err();
    assert!(error.to_string().contains("415"), "{error}");
}

#[tokio::test]
async fn metadata_can_be_patched() {
    let client = client().await;
    let stored = client.create(&config_map("a")).await.unwrap();
    let configs = client.kind(metadata::<ConfigMap>());
    let read = configs.get(&key("a")).await.unwrap();
    let mut changed = (*read).clone();
    changed.metadata.labels.as_mut().unwrap().insert("x".into(), "y".into());
    let answer = configs.patch(&changed, Patch::merge_from(&*read)).await.unwrap();
    assert_eq!(answer.metadata.labels.as_ref().unwrap()["x"], "y");
    assert_eq!(client.get::<ConfigMap>(&key("a")).await.unwrap().data, stored.data);
}

#[tokio::test]
async fn invalid_patches_are_refused_before_sending() {
    let client = client().await;
    let object = config_map("a");
    let error = client.apply(&object).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "apply configmaps default/a: apply needs a field manager: set it in the options, or with with_field_owner"
    );
    let error = client.patch::<ConfigMap>(&key("a"), Patch::merge_from(&object)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "patch configmaps default/a: a patch from an original needs the changed object: pass that to patch, not its key"
    );
    let error = client.patch(&object, Patch::merge_from(&object).with_optimistic_lock()).await.unwrap_err();
    assert!(error.to_string().ends_with("needs the resource version of the original"), "{error}");
    let options = k1s_runtime::client::PatchOptions { force: true, ..Default::default() };
    let error = client.patch_with(&object, Patch::merge_from(&object), options).await.unwrap_err();
    assert!(error.to_string().ends_with("only an apply patch can be forced"), "{error}");
}
