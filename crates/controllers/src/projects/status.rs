//! The conditions of Projects and `ProjectControlPlanes`.

use std::time::SystemTime;

use k1s_runtime::{
    BoxError,
    client::{KindClient, Patch},
    util::{NewCondition, is_status_condition_true, set_status_condition},
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
    let ready = match definitions {
        _ if !usable => ready(false, reason, &message),
        Some(Definitions::Refused(why)) if !was_ready => ready(false, "DefinitionsRefused", &why.join("; ")),
        Some(Definitions::Installing) if !was_ready => {
            ready(false, "Provisioning", "Definitions are being installed")
        }
        _ => ready(true, "Ready", "The project is ready"),
    };
    let mut conditions = vec![ready, plane.condition()];
    conditions.extend(definitions.map(Definitions::condition));
    if *plane == Plane::Terminating {
        let cleanup = NewCondition::new(RESOURCE_CLEANUP, true, "CleanupStarted");
        conditions.push(cleanup.message("Everything in the project is being deleted"));
    }
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
    }
}
