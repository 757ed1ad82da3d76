//! `TestJSONPatch`, `TestApplyConfiguration` and the `TestDispatcher` of mutating policies.
//!
//! Most of their objects are not valid. So what policies make of them is read from the review of a webhook, which comes
//! after the policies and before validation.

use super::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const OBSERVER: &str = "observer.k1s.dev";

/// A server with a webhook that sees Deployments after all policies, and refuses them.
struct Observed {
    stage: Stage,
    calls: Calls,
}

impl Observed {
    async fn new() -> Observed {
        let stage = Stage::new().await;
        let calls =
            stage.serve(OBSERVER, |_| json!({"allowed": false, "status": {"code": 418, "message": "seen"}}));
        stage
            .register(
                "Mutating",
                "observer",
                &[json!({"name": OBSERVER, "rules": [rule(&["*"], "apps", &["deployments"])]})],
            )
            .await;
        Observed { stage, calls }
    }

    /// What the policies make of an object, or the message of their refusal.
    async fn send(&self, object: &Value, old: &Value) -> Result<Value, String> {
        let mut object = object.clone();
        let own = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        merge(&mut object, &own);
        object["metadata"]["name"] = "d".into();
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        let (code, answer) = match old {
            Value::Null => self.stage.client.call("POST", DEPLOYMENTS, object).await,
            _ => self.stage.client.call("PUT", &format!("{DEPLOYMENTS}/d"), object).await,
        };
        let calls = std::mem::take(&mut *self.calls.lock());
        let Some(call) = calls.last() else {
            return Err(answer["message"].as_str().unwrap().to_owned());
        };
        assert_eq!((code, calls.len()), (418, 1), "{answer}");
        let mut seen = call["object"].clone();
        for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion", "generation"] {
            seen["metadata"].as_object_mut().unwrap().remove(field);
        }
        without_empty(&mut seen);
        Ok(seen)
    }

    /// Creates a policy with a binding. A policy that the server refuses has a message.
    async fn policy(&self, name: &str, spec: &Value, bindings: &[Value]) -> Result<(), String> {
        let object = |suffix: &str, name: &str, spec: &Value| {
            json!({"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": format!("MutatingAdmissionPolicy{suffix}"), "metadata": {"name": name}, "spec": spec})
        };
        let (code, answer) = self.stage.client.call("POST", &path("ies", ""), object("", name, spec)).await;
        if code != 201 {
            return Err(answer["message"].as_str().unwrap().to_owned());
        }
        for (index, binding) in bindings.iter().enumerate() {
            let binding = object("Binding", &format!("{name}-{index}"), binding);
            self.stage.client.post(&path("ybindings", ""), binding).await;
        }
        Ok(())
    }

    async fn remove(&self, name: &str, bindings: usize) {
        for index in 0..bindings {
            let path = path("ybindings", &format!("/{name}-{index}"));
            self.stage.client.call("DELETE", &path, Value::Null).await;
        }
        self.stage.client.call("DELETE", &path("ies", &format!("/{name}")), Value::Null).await;
    }
}

fn path(suffix: &str, name: &str) -> String {
    format!("{ADMISSION}/mutatingadmissionpolic{suffix}{name}")
}

/// Plays the cases of one kind of patch. `mutation` makes a mutation of an expression.
async fn play(cases: &[Value], mutation: impl Fn(&str) -> Value) {
    let world = Observed::new().await;
    let rules = json!({"resourceRules": [rule(&["*"], "apps", &["deployments"])]});
    for case in cases {
        let what = name(case);
        if !case["old"].is_null() {
            let own = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
            let mut old = case["old"].clone();
            merge(&mut old["spec"], &own);
            old["metadata"] = json!({"name": "d"});
            world.stage.unregister("Mutating", "observer").await;
            world.stage.client.post(DEPLOYMENTS, old).await;
            let hook = json!({"name": OBSERVER, "rules": [rule(&["*"], "apps", &["deployments"])]});
            world.stage.register("Mutating", "observer", &[hook]).await;
        }
        let expected = match case["error"].as_str() {
            None => Ok(world.send(&case["expect"], &case["old"]).await.unwrap()),
            Some(why) => Err(why),
        };
        let spec = json!({"matchConstraints": rules, "reinvocationPolicy": "Never",
            "mutations": [mutation(case["expression"].as_str().unwrap())]});
        let found = match world.policy("p", &spec, &[json!({"policyName": "p"})]).await {
            Ok(()) => world.send(&case["object"], &case["old"]).await,
            Err(why) => Err(why),
        };
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{what}: {found}"),
            (found, expected) => panic!("{what}: {found:?}, not {expected:?}"),
        }
        world.remove("p", 1).await;
    }
}

#[tokio::test]
async fn json_patches() {
    let cases = cases(include_str!("json_patch.json"));
    assert_eq!(cases.len(), 47);
    play(&cases, |expression| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}))
        .await;
}

#[tokio::test]
async fn apply_configurations() {
    let cases = cases(include_str!("apply_configuration.json"));
    assert_eq!(cases.len(), 12);
    let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    play(&cases, apply).await;
}

#[tokio::test]
async fn policies_one_after_the_other() {
    let cases = cases(include_str!("mutating_dispatcher.json"));
    assert_eq!(cases.len(), 5);
    for case in &cases {
        let world = Observed::new().await;
        let expected = world.send(&case["expect"], &Value::Null).await.unwrap();
        for param in case["params"].as_array().into_iter().flatten() {
            world.stage.client.post(CONFIGMAPS, param.clone()).await;
        }
        for hook in case["hooks"].as_array().unwrap() {
            world.policy(name(hook), &hook["spec"], hook["bindings"].as_array().unwrap()).await.unwrap();
        }
        assert_eq!(world.send(&case["object"], &Value::Null).await, Ok(expected), "{}", name(case));
    }
}
