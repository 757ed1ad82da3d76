//! Simulates Jobs, one pod at a time, for control planes without nodes.
//!
//! It writes the status that the Job controller would write. No containers run. An image with the tag `broken` cannot
//! be pulled.

use std::time::{Duration, SystemTime};

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
use k8s_openapi::{
    api::batch::v1::{Job, JobCondition, JobStatus},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

/// Adds the controller `run` to a manager.
///
/// # Errors
/// If the manager has a controller with that name.
pub fn add_to(manager: &Manager, step: Duration) -> Result<(), BuildError> {
    // Its own writes do not change the generation, so only `requeue_after` determines the pace.
    Controller::managed_by(manager)
        .named("run")
        .for_(kind::<Job>().with_predicate(predicate::generation_changed()))
        .complete(Jobs { client: manager.client(), step })
}

#[derive(Debug)]
struct Jobs {
    client: Client,
    step: Duration,
}

impl Reconciler for Jobs {
    type Error = client::Error;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, client::Error> {
        let Some(job) = self.client.get_opt::<Job>(&request).await? else { return Ok(Action::done()) };
        if job.metadata.deletion_timestamp.is_some() {
            return Ok(Action::done());
        }
        let Some(status) = next(&job, &seconds(self.client.env().wall())) else { return Ok(Action::done()) };
        let over = status.conditions.is_some();
        let mut changed = (*job).clone();
        changed.status = Some(status);
        ignore_not_found(self.client.status().patch(&changed, Patch::merge_from(&*job)).await)?;
        Ok(if over { Action::done() } else { Action::requeue_after(self.step) })
    }
}

/// The API stores whole seconds.
fn seconds(now: SystemTime) -> Time {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// The status after one step; `None` when the job is complete or has failed.
fn next(job: &Job, now: &Time) -> Option<JobStatus> {
    let mut status = job.status.clone().unwrap_or_default();
    if status.conditions.iter().flatten().any(|one| matches!(&*one.type_, "Complete" | "Failed")) {
        return None;
    }
    let spec = job.spec.clone().unwrap_or_default();
    let wanted = spec.completions.unwrap_or(1);
    let broken = spec
        .template
        .spec
        .iter()
        .flat_map(|pod| &pod.containers)
        .find_map(|container| container.image.as_deref().filter(|image| image.ends_with(":broken")));
    let started = status.start_time.is_some();
    status.start_time.get_or_insert_with(|| now.clone());
    let end = |status: &mut JobStatus, types: [&str; 2], reason: &str, message: String| {
        let condition = |type_: &str| JobCondition {
            type_: type_.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.clone()),
            last_probe_time: Some(now.clone()),
            last_transition_time: Some(now.clone()),
        };
        status.conditions = Some(types.map(condition).into());
        (status.active, status.ready) = (None, Some(0));
    };
    if let Some(image) = broken.filter(|_| wanted > 0) {
        let why = format!("the image {image:?} cannot be pulled");
        end(&mut status, ["FailureTarget", "Failed"], "BackoffLimitExceeded", why);
        return Some(status);
    }
    // The first step starts the pods, each other one ends one of them.
    let succeeded = if started { status.succeeded.unwrap_or(0) + 1 } else { 0 }.min(wanted);
    status.succeeded = (succeeded > 0).then_some(succeeded);
    (status.active, status.ready) = (Some(wanted - succeeded), Some(wanted - succeeded));
    if succeeded == wanted {
        let why = "Reached expected number of succeeded pods".to_owned();
        end(&mut status, ["SuccessCriteriaMet", "Complete"], "CompletionsReached", why);
        status.completion_time = Some(now.clone());
    }
    Some(status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Active and succeeded pods, step by step, and the last condition.
    fn steps(completions: i32, image: &str) -> (Vec<(i32, i32)>, String) {
        let mut job: Job = serde_json::from_value(json!({"metadata": {}, "spec": {
            "completions": completions, "parallelism": completions,
            "template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}))
        .unwrap();
        let (mut seen, now) = (Vec::new(), serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        while let Some(status) = next(&job, &now) {
            seen.push((status.active.unwrap_or(0), status.succeeded.unwrap_or(0)));
            job.status = Some(status);
            assert!(seen.len() < 20, "the run does not end: {seen:?}");
        }
        let last = job.status.unwrap().conditions.unwrap().pop().unwrap();
        (seen, last.type_)
    }

    #[test]
    fn a_run_completes_pod_by_pod() {
        assert_eq!(steps(2, "nginx:1"), (vec![(2, 0), (1, 1), (0, 2)], "Complete".to_owned()));
        assert_eq!(steps(0, "nginx:1"), (vec![(0, 0)], "Complete".to_owned()));
    }

    #[test]
    fn an_image_that_cannot_be_pulled_fails_the_run() {
        assert_eq!(steps(2, "nginx:broken"), (vec![(0, 0)], "Failed".to_owned()));
    }
}
