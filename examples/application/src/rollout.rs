//! Simulates rollouts of Deployments, one replica at a time, for control planes without nodes.
//!
//! It writes the status that a Deployment controller would write. No containers run. An image with the tag
//! `broken` cannot be pulled.

use std::time::Duration;

use k1s::{
    Action, Client, Context, Controller, Manager, Reconciler, Request,
    controller::{
        BuildError,
        client::{self, Patch},
        predicate,
        util::ignore_not_found,
    },
    kind,
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use sha2::{Digest as _, Sha256};

/// Adds the controller `rollout` to a manager.
///
/// # Errors
/// If the manager has a controller with that name.
pub fn add_to(manager: &Manager, step: Duration) -> Result<(), BuildError> {
    // Its own writes do not change the generation, so only `requeue_after` determines the pace.
    Controller::managed_by(manager)
        .named("rollout")
        .for_(kind::<Deployment>().with_predicate(predicate::generation_changed()))
        .complete(Rollout { client: manager.client(), step })
}

#[derive(Debug)]
struct Rollout {
    client: Client,
    step: Duration,
}

impl Reconciler for Rollout {
    type Error = client::Error;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, client::Error> {
        let Some(deployment) = self.client.get_opt::<Deployment>(&request).await? else {
            return Ok(Action::done());
        };
        if deployment.metadata.deletion_timestamp.is_some() {
            return Ok(Action::done());
        }
        let Some(status) = next(&deployment) else { return Ok(Action::done()) };
        let mut changed = (*deployment).clone();
        changed.status = Some(status);
        let again = next(&changed).is_some();
        let patched = self.client.status().patch(&changed, Patch::merge_from(&*deployment)).await;
        ignore_not_found(patched)?;
        Ok(if again { Action::requeue_after(self.step) } else { Action::done() })
    }
}

/// The status after one step; `None` when the rollout is complete or stuck.
fn next(deployment: &Deployment) -> Option<DeploymentStatus> {
    let spec = &deployment.spec;
    let wanted = spec.replicas.unwrap_or(1);
    let before = deployment.status.clone().unwrap_or_default();
    let recreate = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate");
    let broken = spec
        .template
        .spec
        .iter()
        .flat_map(|pod| &pod.containers)
        .find_map(|container| container.image.as_deref().filter(|image| image.ends_with(":broken")));

    // Scaling keeps the pod template, so it starts no new rollout.
    let replica_set = replica_set(deployment);
    let known =
        |condition: &DeploymentCondition| condition.message.iter().any(|text| text.contains(&replica_set));
    let is_new = !before.conditions.iter().flatten().any(known);
    let old = |count: Option<i32>| if is_new && recreate { 0 } else { count.unwrap_or(0).min(wanted) };
    let (mut replicas, mut ready) = (old(before.replicas), old(before.ready_replicas));
    let mut updated = if is_new { 0 } else { before.updated_replicas.unwrap_or(0).min(wanted) };
    if !is_new && broken.is_none() && updated < wanted {
        updated += 1;
        replicas = replicas.max(updated);
        ready = ready.max(updated);
    }
    let progressing = match broken {
        Some(image) => {
            let why = format!("{replica_set} does not progress: the image {image:?} cannot be pulled");
            ("False", "ProgressDeadlineExceeded", why)
        }
        None if updated < wanted => ("True", "ReplicaSetUpdated", format!("{replica_set} is progressing")),
        None => ("True", "NewReplicaSetAvailable", format!("{replica_set} has successfully progressed")),
    };
    let available = if ready >= wanted {
        ("True", "MinimumReplicasAvailable", "enough replicas are ready".to_owned())
    } else {
        ("False", "MinimumReplicasUnavailable", format!("{ready} of {wanted} replicas are ready"))
    };
    let count = |number: i32| (number > 0).then_some(number);
    let after = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: count(replicas),
        updated_replicas: count(updated),
        ready_replicas: count(ready),
        available_replicas: count(ready),
        unavailable_replicas: count(wanted - ready),
        conditions: Some(vec![condition("Available", available), condition("Progressing", progressing)]),
        ..DeploymentStatus::default()
    };
    (after != before).then_some(after)
}

/// The name of a template's pods: it changes with the template.
fn replica_set(deployment: &Deployment) -> String {
    let template = serde_json::to_vec(&deployment.spec.template).unwrap_or_default();
    let hash =
        Sha256::digest(&template).iter().take(4).fold(0_u32, |hash, byte| hash << 8 | u32::from(*byte));
    format!("ReplicaSet \"{}-{hash:08x}\"", deployment.metadata.name.as_deref().unwrap_or_default())
}

fn condition(type_: &str, (status, reason, message): (&str, &str, String)) -> DeploymentCondition {
    DeploymentCondition {
        type_: Some(type_.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..DeploymentCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: i32, strategy: &str, image: &str) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"generation": 1},
            "spec": {
                "replicas": replicas, "selector": {}, "strategy": {"type": strategy},
                "template": {"spec": {"containers": [{"name": "app", "image": image}]}},
            },
        }))
        .unwrap()
    }

    /// Ready and updated replicas, step by step.
    fn steps(deployment: &mut Deployment) -> Vec<(i32, i32)> {
        let mut seen = Vec::new();
        while let Some(status) = next(deployment) {
            seen.push((status.ready_replicas.unwrap_or(0), status.updated_replicas.unwrap_or(0)));
            deployment.status = Some(status);
            assert!(seen.len() < 20, "the rollout does not end: {seen:?}");
        }
        seen
    }

    fn with_image(object: &mut Deployment, image: &str) {
        object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
        object.spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    }

    fn scaled(object: &mut Deployment, replicas: i32) {
        object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
        object.spec.replicas = Some(replicas);
    }

    #[test]
    fn a_rollout_progresses_replica_by_replica_and_completes() {
        let mut object = deployment(3, "RollingUpdate", "nginx:1");
        assert_eq!(steps(&mut object), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        with_image(&mut object, "nginx:2");
        assert_eq!(
            steps(&mut object),
            [(3, 0), (3, 1), (3, 2), (3, 3)],
            "old replicas run until new ones are ready"
        );
    }

    #[test]
    fn scaling_keeps_existing_replicas() {
        let mut object = deployment(2, "RollingUpdate", "nginx:1");
        steps(&mut object);
        scaled(&mut object, 4);
        assert_eq!(steps(&mut object), [(3, 3), (4, 4)]);
        scaled(&mut object, 1);
        assert_eq!(steps(&mut object), [(1, 1)]);
        scaled(&mut object, 0);
        assert_eq!(steps(&mut object), [(0, 0)]);
        assert_eq!(object.status.unwrap().observed_generation, object.metadata.generation);
    }

    #[test]
    fn recreate_stops_the_old_replicas_first() {
        let mut object = deployment(2, "Recreate", "nginx:1");
        steps(&mut object);
        with_image(&mut object, "nginx:2");
        assert_eq!(steps(&mut object), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn an_image_that_cannot_be_pulled_stops_the_rollout() {
        let mut object = deployment(2, "RollingUpdate", "nginx:broken");
        assert_eq!(steps(&mut object), [(0, 0)]);
        let conditions = object.status.unwrap().conditions.unwrap();
        assert_eq!(conditions[1].reason.as_deref(), Some("ProgressDeadlineExceeded"));
    }
}
