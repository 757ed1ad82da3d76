//! The conditions of Projects and `ProjectControlPlanes`.

use std::time::SystemTime;

use k1s_runtime::{
    BoxError,
    client::{KindClient, Patch},
    util::{NewCondition, find_status_condition, is_status_condition_true, set_status_condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use serde_json::json;

/// The condition of a Project that an operator from outside waits for.
pub(super) const READY: &str = "Ready";
/// The condition of both kinds: whether the control plane can be used.
pub(super) const CONTROL_PLANE_READY: &str = "ControlPlaneReady";
/// Whether the definitions of a project's templates are installed, as they are in the host.
pub(super) const DEFINITIONS_INSTALLED: &str = "DefinitionsInstalled";
/// The condition of a Project that is being deleted.
pub(super) const RESOURCE_CLEANUP: &str = "ResourceCleanup";

/// The state of a project's control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plane {
    Ready,
    Suspended,
    /// The project is deleted, and what is in it is being deleted: its operators have to work.
    Deleting,
    /// The tenant is removed.
    Terminating,
    /// The project's name cannot be that of a tenant.
    InvalidName(String),
    /// Something else has the project's name.
    NameConflict(String),
    /// The server fails.
    Failed(String),
}

impl Plane {
    /// Status, reason and message of `ControlPlaneReady`.
    fn told(&self) -> (bool, &'static str, String) {
        match self {
            Plane::Ready => (true, "Ready", "The control plane can be used".to_owned()),
            Plane::Suspended => (false, "Suspended", "the project is suspended".to_owned()),
            Plane::Deleting => {
                (true, "Deleting", "the project is being deleted; what is in it may be cleaned up".to_owned())
            }
            Plane::Terminating => (false, "Terminating", "the project is being deleted".to_owned()),
            Plane::InvalidName(why) => (false, "InvalidName", why.clone()),
            Plane::NameConflict(why) => (false, "ProjectNameConflict", why.clone()),
            Plane::Failed(why) => (false, "ProjectControlPlaneNotReady", why.clone()),
        }
    }

    pub(super) fn condition(&self) -> NewCondition {
        let (status, reason, message) = self.told();
        NewCondition::new(CONTROL_PLANE_READY, status, reason).message(message)
    }
}

/// How far the deletion of what is in a project has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cleanup {
    Started,
    /// These objects wait for finalizers.
    Waiting(String),
    /// These objects were still there when the time was over.
    TimedOut(String),
    Complete,
}

impl Cleanup {
    pub(super) fn condition(&self) -> NewCondition {
        let (status, reason, message) = match self {
            Cleanup::Started => {
                (true, "CleanupStarted", "Everything in the project is being deleted".to_owned())
            }
            Cleanup::Waiting(left) => {
                (true, "CleanupAwaitingCompletion", format!("Waiting for finalizers: {left}"))
            }
            Cleanup::TimedOut(left) => {
                (true, "CleanupTimedOut", format!("Removed with objects that wait for finalizers: {left}"))
            }
            Cleanup::Complete => {
                (false, "CleanupComplete", "Everything in the project has been deleted".to_owned())
            }
        };
        NewCondition::new(RESOURCE_CLEANUP, status, reason).message(message)
    }
}

/// When the cleanup of a project began, in seconds.
pub(super) fn cleanup_began(project: &DynamicObject) -> Option<SystemTime> {
    let conditions = conditions(project);
    let began = find_status_condition(&conditions, RESOURCE_CLEANUP).filter(|one| one.status == "True")?;
    Some(began.last_transition_time.0.into())
}

/// Whether the control plane of a project is reported with a reason.
pub(super) fn is_for(project: &DynamicObject, reason: &str) -> bool {
    let conditions = conditions(project);
    find_status_condition(&conditions, CONTROL_PLANE_READY).is_some_and(|one| one.reason == reason)
}

/// The state of the definitions in a project's control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Definitions {
    Installed(usize),
    Installing,
    /// With one message for each that was refused.
    Refused(Vec<String>),
}

impl Definitions {
    fn condition(&self) -> NewCondition {
        let (status, reason, message) = match self {
            Definitions::Installed(0) => (true, "Installed", "The templates have no definitions".to_owned()),
            Definitions::Installed(count) => {
                (true, "Installed", format!("All {count} definitions of the templates are installed"))
            }
            Definitions::Installing => (false, "Installing", "Definitions are being installed".to_owned()),
            Definitions::Refused(why) => (false, "DefinitionsRefused", why.join("; ")),
        };
        NewCondition::new(DEFINITIONS_INSTALLED, status, reason).message(message)
    }
}

/// The conditions of a Project. `was_ready`: whether it has been ready until now. Definitions that are refused later do not
/// take a project away from the operators that work in it.
pub(super) fn of_project(
    plane: &Plane,
    definitions: Option<&Definitions>,
    was_ready: bool,
) -> Vec<NewCondition> {
    let ready =
        |status: bool, reason: &str, message: &str| NewCondition::new(READY, status, reason).message(message);
    let (usable, reason, message) = plane.told();
    // One that was never ready does not become so by its deletion.
    if *plane == Plane::Deleting && !was_ready {
        return vec![plane.condition()];
    }
    let ready = match definitions {
        _ if *plane == Plane::Deleting => ready(true, reason, &message),
        _ if !usable => ready(false, reason, &message),
        Some(Definitions::Refused(why)) if !was_ready => ready(false, "DefinitionsRefused", &why.join("; ")),
        Some(Definitions::Installing) if !was_ready => {
            ready(false, "Provisioning", "Definitions are being installed")
        }
        _ => ready(true, "Ready", "The project is ready"),
    };
    let mut conditions = vec![ready, plane.condition()];
    conditions.extend(definitions.map(Definitions::condition));
    conditions
}

/// Whether a Project has been ready until now.
pub(super) fn is_ready(project: &DynamicObject) -> bool {
    is_status_condition_true(&conditions(project), READY)
}

/// The definitions of a project as they were reported last, if some were refused.
pub(super) fn refused(project: &DynamicObject) -> Option<Definitions> {
    let all = conditions(project).into_iter();
    let mut refused =
        all.filter(|one| one.type_ == DEFINITIONS_INSTALLED && one.reason == "DefinitionsRefused");
    refused.next().map(|one| Definitions::Refused(vec![one.message]))
}

fn conditions(object: &DynamicObject) -> Vec<Condition> {
    serde_json::from_value(object.data["status"]["conditions"].clone()).unwrap_or_default()
}

/// Writes conditions that have changed. Returns the object as it is then stored.
pub(super) async fn report(
    kind: &KindClient<DynamicObject>,
    object: &DynamicObject,
    new: Vec<NewCondition>,
    now: SystemTime,
) -> Result<DynamicObject, BoxError> {
    let mut all = conditions(object);
    let mut changed = false;
    for condition in new {
        let condition = condition.observed_generation(object.metadata.generation);
        changed |= set_status_condition(&mut all, condition, now);
    }
    if !changed {
        return Ok(object.clone());
    }
    let version = &object.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
    Ok(kind.status().patch(object, Patch::merge(&patch)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status and reason of a project's `Ready`.
    fn ready(plane: &Plane, definitions: &Definitions, was_ready: bool) -> (String, String) {
        let all = of_project(plane, Some(definitions), was_ready);
        let ready = all.into_iter().find(|one| one.type_ == READY).unwrap();
        (ready.status.to_string(), ready.reason)
    }

    #[test]
    fn a_project_is_ready_once_its_definitions_are_and_stays_so() {
        let is = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
        let refused = Definitions::Refused(vec!["widgets.example.com: no".to_owned()]);
        assert_eq!(ready(&Plane::Ready, &Definitions::Installed(1), false), is("True", "Ready"));
        assert_eq!(ready(&Plane::Ready, &Definitions::Installing, false), is("False", "Provisioning"));
        assert_eq!(ready(&Plane::Ready, &refused, false), is("False", "DefinitionsRefused"));
        assert_eq!(ready(&Plane::Ready, &refused, true), is("True", "Ready"));
        assert_eq!(ready(&Plane::Ready, &Definitions::Installing, true), is("True", "Ready"));
        assert_eq!(ready(&Plane::Suspended, &Definitions::Installed(1), true), is("False", "Suspended"));
        assert_eq!(ready(&Plane::Deleting, &Definitions::Installed(1), true), is("True", "Deleting"));
    }
}
