//! The status of an Application.

use std::time::SystemTime;

use k1s::controller::util::{NewCondition, set_status_condition};
use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job};

use crate::{Application, ApplicationStatus, Phase};

/// The reason of both conditions on success.
pub const SUCCEEDED: &str = "ReconciliationSucceeded";
/// The reason of both conditions when the reconcile failed.
pub const FAILED: &str = "ReconciliationFailed";
/// The rollout is in progress.
pub const ROLLING_OUT: &str = "RolloutInProgress";
/// The rollout failed.
pub const ROLLOUT_FAILED: &str = "RolloutFailed";
/// The replicas run to completion.
pub const RUN_IN_PROGRESS: &str = "RunInProgress";
/// A replica failed too often.
pub const RUN_FAILED: &str = "RunFailed";

/// The status of an Application whose children are up to date: the progress of its Deployment.
#[must_use]
pub fn observed(app: &Application, deployment: &Deployment, now: SystemTime) -> ApplicationStatus {
    let wanted = app.spec.replicas;
    let seen = deployment.status.clone().unwrap_or_default();
    // The status of an older generation says nothing about this one.
    let current = seen.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0);
    let (replicas, ready) = (seen.replicas.unwrap_or(0), seen.ready_replicas.unwrap_or(0));
    let updated = seen.updated_replicas.unwrap_or(0);
    let stuck = seen.conditions.iter().flatten().find(|condition| {
        condition.type_.as_deref() == Some("Progressing")
            && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    });
    let complete = current && replicas == wanted && ready == wanted && updated == wanted;
    let (phase, reason, message) = match stuck {
        Some(stuck) if current => {
            let why = stuck.message.clone().unwrap_or_else(|| "the rollout takes too long".to_owned());
            (Phase::Failed, ROLLOUT_FAILED, why)
        }
        _ if complete && wanted == 0 => {
            (Phase::Succeeded, SUCCEEDED, "no replicas are requested, and none is running".to_owned())
        }
        _ if complete => (Phase::Running, SUCCEEDED, format!("{ready} of {wanted} replicas are ready")),
        _ => (Phase::Pending, ROLLING_OUT, format!("{} of {wanted} replicas are ready", ready.min(updated))),
    };
    let mut status = ApplicationStatus { replicas, ready_replicas: ready, ..ApplicationStatus::default() };
    finish(&mut status, app, phase, reason, &message, now);
    status
}

/// The status of an Application that runs once, and whose children are up to date: the progress of its Job.
#[must_use]
pub fn completed(app: &Application, job: &Job, now: SystemTime) -> ApplicationStatus {
    let wanted = app.spec.replicas;
    let seen = job.status.clone().unwrap_or_default();
    let (active, succeeded) = (seen.active.unwrap_or(0), seen.succeeded.unwrap_or(0));
    let done =
        |type_| seen.conditions.iter().flatten().find(|done| done.type_ == type_ && done.status == "True");
    let message = format!("{succeeded} of {wanted} replicas have completed");
    let (phase, reason, message) = if let Some(failed) = done("Failed") {
        (Phase::Failed, RUN_FAILED, failed.message.clone().unwrap_or(message))
    } else if done("Complete").is_some() {
        (Phase::Succeeded, SUCCEEDED, message)
    } else if active > 0 {
        (Phase::Running, RUN_IN_PROGRESS, message)
    } else {
        (Phase::Pending, RUN_IN_PROGRESS, message)
    };
    let ready = seen.ready.unwrap_or(0);
    let mut status =
        ApplicationStatus { replicas: active, ready_replicas: ready, ..ApplicationStatus::default() };
    finish(&mut status, app, phase, reason, &message, now);
    status
}

/// The status of an Application whose reconcile failed. Its pods may still run.
#[must_use]
pub fn failed(app: &Application, error: &str, now: SystemTime) -> ApplicationStatus {
    let mut status = app.status.clone().unwrap_or_default();
    finish(&mut status, app, Phase::Failed, FAILED, error, now);
    status
}

fn finish(
    status: &mut ApplicationStatus,
    app: &Application,
    phase: Phase,
    reason: &str,
    message: &str,
    now: SystemTime,
) {
    let generation = app.metadata.generation;
    status.phase = phase;
    status.observed_generation = generation;
    status.conditions = app.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    // A run is progressing until it is over.
    let progressing = phase == Phase::Pending || reason == RUN_IN_PROGRESS;
    for (type_, holds) in [("Ready", !progressing && phase != Phase::Failed), ("Progressing", progressing)] {
        let condition =
            NewCondition::new(type_, holds, reason).message(message).observed_generation(generation);
        set_status_condition(&mut status.conditions, condition, now);
    }
}

#[cfg(test)]
mod tests {
    use k1s::controller::util::{find_status_condition, is_status_condition_true};
    use serde_json::json;

    use super::*;
    use crate::{ApplicationSpec, Run};

    fn app(replicas: i32) -> Application {
        let spec = ApplicationSpec { replicas, image: "nginx".into(), ..ApplicationSpec::default() };
        let mut app = Application::new("web", spec);
        app.metadata.generation = Some(4);
        app
    }

    fn phase(replicas: i32, generation: i64, status: &serde_json::Value) -> ApplicationStatus {
        let deployment = json!({"metadata": {"generation": generation}, "spec": {}, "status": status});
        let deployment: Deployment = serde_json::from_value(deployment).unwrap_or_default();
        observed(&app(replicas), &deployment, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn it_runs_when_all_replicas_of_this_generation_are_ready() {
        let full = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3});
        let status = phase(3, 2, &full);
        assert_eq!(status.phase, Phase::Running);
        assert_eq!((status.observed_generation, status.replicas, status.ready_replicas), (Some(4), 3, 3));
        let ready = find_status_condition(&status.conditions, "Ready").unwrap();
        assert_eq!((&*ready.status, &*ready.reason), ("True", SUCCEEDED));
        let progressing = find_status_condition(&status.conditions, "Progressing").unwrap();
        assert_eq!((&*progressing.status, &*progressing.reason), ("False", SUCCEEDED));
        // The same numbers of an older generation do not count.
        assert_eq!(phase(3, 3, &full).phase, Phase::Pending);
        assert_eq!(phase(4, 2, &full).phase, Phase::Pending);
    }

    #[test]
    fn it_is_pending_while_it_is_rolled_out() {
        let half = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3});
        let status = phase(3, 2, &half);
        assert_eq!(status.phase, Phase::Pending);
        assert!(is_status_condition_true(&status.conditions, "Progressing"));
        assert!(!is_status_condition_true(&status.conditions, "Ready"));
        assert_eq!(
            find_status_condition(&status.conditions, "Ready").unwrap().message,
            "1 of 3 replicas are ready"
        );
    }

    #[test]
    fn it_has_succeeded_with_zero_replicas() {
        assert_eq!(phase(0, 2, &json!({"observedGeneration": 2})).phase, Phase::Succeeded);
        assert_eq!(phase(0, 2, &json!({"observedGeneration": 2, "replicas": 1})).phase, Phase::Pending);
    }

    #[test]
    fn a_run_succeeds_when_its_job_is_complete() {
        let mut app = app(2);
        app.spec.run = Run::Once;
        let status = |status: serde_json::Value| {
            let job: Job = serde_json::from_value(json!({"status": status})).unwrap();
            completed(&app, &job, SystemTime::UNIX_EPOCH)
        };
        let ready = |status: &ApplicationStatus| {
            let ready = find_status_condition(&status.conditions, "Ready").unwrap();
            (ready.status.clone(), ready.reason.clone(), ready.message.clone())
        };
        let told = |status: &str, reason: &str, message: &str| (status.into(), reason.into(), message.into());
        assert_eq!(status(json!({})).phase, Phase::Pending);

        let half = status(json!({"active": 1, "ready": 1, "succeeded": 1}));
        assert_eq!((half.phase, half.replicas, half.ready_replicas), (Phase::Running, 1, 1));
        assert_eq!(ready(&half), told("False", RUN_IN_PROGRESS, "1 of 2 replicas have completed"));
        assert!(is_status_condition_true(&half.conditions, "Progressing"));

        let over = |type_, message| json!({"succeeded": 2, "conditions": [{"type": type_, "status": "True", "message": message}]});
        let done = status(over("Complete", ""));
        assert_eq!((done.phase, done.replicas), (Phase::Succeeded, 0));
        assert_eq!(ready(&done), told("True", SUCCEEDED, "2 of 2 replicas have completed"));
        assert!(!is_status_condition_true(&done.conditions, "Progressing"));

        let failed = status(over("Failed", "no such image"));
        assert_eq!(failed.phase, Phase::Failed);
        assert_eq!(ready(&failed), told("False", RUN_FAILED, "no such image"));
    }

    #[test]
    fn it_has_failed_when_the_rollout_has() {
        let stuck = json!({"observedGeneration": 2, "replicas": 1, "conditions": [{
            "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "no such image"}]});
        let status = phase(3, 2, &stuck);
        assert_eq!(status.phase, Phase::Failed);
        let ready = find_status_condition(&status.conditions, "Ready").unwrap();
        assert_eq!((&*ready.reason, &*ready.message), (ROLLOUT_FAILED, "no such image"));
    }

    #[test]
    fn a_failure_keeps_the_numbers_and_has_a_message() {
        let mut app = app(3);
        app.status =
            Some(ApplicationStatus { replicas: 3, ready_replicas: 2, ..ApplicationStatus::default() });
        let status = failed(&app, "taken", SystemTime::UNIX_EPOCH);
        assert_eq!((status.phase, status.replicas, status.ready_replicas), (Phase::Failed, 3, 2));
        assert_eq!(find_status_condition(&status.conditions, "Ready").unwrap().reason, FAILED);
    }
}
