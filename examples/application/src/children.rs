//! The children of an Application: each function sets the desired fields of an object and leaves its other
//! fields alone.
//!
//! They work on the object from the server, including its defaults: fields they do not mention are kept,
//! fields they mention are corrected.

use std::{collections::BTreeMap, fmt::Write as _};

use k1s::{
    ObjectKey,
    controller::util::{OwnerError, set_controller_reference},
};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentStrategy},
        core::v1::{
            ConfigMap, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, PodSpec, Service,
            ServicePort,
        },
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{Resource, api::ObjectMeta};
use sha2::{Digest as _, Sha256};

use crate::{Application, Strategy};

/// A change of this pod annotation triggers a new rollout: containers read their configuration at startup.
pub const CONFIG_HASH: &str = "cloudnative.elide.dev/config-hash";

/// The name of the application's container.
const CONTAINER: &str = "app";
/// The ports of the container and of the service.
const PORT: i32 = 8080;
const SERVICE_PORT: i32 = 80;

/// The name of the `ConfigMap`. The other children have the Application's name.
#[must_use]
pub fn config_map_key(app: &ObjectKey) -> ObjectKey {
    ObjectKey::new(app.namespace(), &format!("{}-config", app.name()))
}

/// An object with only a name.
#[must_use]
pub fn skeleton<K: Resource + Default>(key: &ObjectKey) -> K {
    let mut object = K::default();
    *object.meta_mut() = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        ..ObjectMeta::default()
    };
    object
}

/// The label selector of an Application's pods.
fn selector(app: &Application) -> BTreeMap<String, String> {
    let name = app.metadata.name.clone().unwrap_or_default();
    [("app.kubernetes.io/name".to_owned(), name)].into()
}

/// Sets the owner and the labels that all children have in common.
fn adopt<K: Resource>(app: &Application, child: &mut K) -> Result<(), OwnerError> {
    let labels = child.meta_mut().labels.get_or_insert_default();
    labels.extend(selector(app));
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "application-operator".to_owned());
    set_controller_reference(app, child)
}

/// The configuration.
///
/// # Errors
/// If another object controls it.
pub fn config_map(app: &Application, map: &mut ConfigMap) -> Result<(), OwnerError> {
    adopt(app, map)?;
    map.data = (!app.spec.config.is_empty()).then(|| app.spec.config.clone());
    map.binary_data = None;
    Ok(())
}

/// The service.
///
/// # Errors
/// If another object controls it.
pub fn service(app: &Application, service: &mut Service) -> Result<(), OwnerError> {
    adopt(app, service)?;
    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(selector(app));
    let ports = spec.ports.get_or_insert_default();
    ports.resize_with(1, ServicePort::default);
    for port in ports {
        port.name = Some("http".to_owned());
        port.port = SERVICE_PORT;
        port.target_port = Some(IntOrString::Int(PORT));
    }
    Ok(())
}

/// The deployment.
///
/// # Errors
/// If another object controls it.
pub fn deployment(app: &Application, deployment: &mut Deployment) -> Result<(), OwnerError> {
    adopt(app, deployment)?;
    let spec = &mut deployment.spec;
    spec.replicas = Some(app.spec.replicas);
    // It is immutable after creation.
    if spec.selector == LabelSelector::default() {
        spec.selector.match_labels = Some(selector(app));
    }
    let strategy = spec.strategy.get_or_insert_with(DeploymentStrategy::default);
    strategy.type_ = Some(app.spec.strategy.as_str().to_owned());
    if app.spec.strategy == Strategy::Recreate {
        strategy.rolling_update = None;
    }
    let template = spec.template.metadata.get_or_insert_default();
    template.labels.get_or_insert_default().extend(selector(app));
    let annotations = template.annotations.get_or_insert_default();
    annotations.insert(CONFIG_HASH.to_owned(), config_hash(&app.spec.config));
    let pod = spec.template.spec.get_or_insert_with(PodSpec::default);
    pod.containers.retain(|container| container.name == CONTAINER);
    pod.containers.resize_with(1, Container::default);
    for container in &mut pod.containers {
        container.name = CONTAINER.to_owned();
        container.image = Some(app.spec.image.clone());
        let ports = container.ports.get_or_insert_default();
        ports.resize_with(1, ContainerPort::default);
        for port in ports {
            port.name = Some("http".to_owned());
            port.container_port = PORT;
        }
        let config = config_map_key(&ObjectKey::of(app)).name().to_owned();
        let source = ConfigMapEnvSource { name: config, optional: None };
        container.env_from =
            Some(vec![EnvFromSource { config_map_ref: Some(source), ..EnvFromSource::default() }]);
    }
    Ok(())
}

/// A hash of the configuration.
fn config_hash(config: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (key, value) in config {
        for text in [key, value] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApplicationSpec;

    fn app() -> Application {
        let mut app = Application::new(
            "web",
            ApplicationSpec { replicas: 2, image: "nginx:1".into(), ..ApplicationSpec::default() },
        );
        app.metadata.namespace = Some("default".into());
        app.metadata.uid = Some("1".into());
        app
    }

    fn made(app: &Application) -> Deployment {
        let mut object = skeleton(&ObjectKey::of(app));
        deployment(app, &mut object).unwrap();
        object
    }

    #[test]
    fn a_correct_deployment_is_not_changed() {
        let first = made(&app());
        let mut second = first.clone();
        deployment(&app(), &mut second).unwrap();
        assert_eq!(first, second);
    }

    #[test]
    fn drift_is_corrected_and_foreign_fields_are_kept() {
        let mut object = made(&app());
        let spec = &mut object.spec;
        spec.replicas = Some(7);
        spec.revision_history_limit = Some(3);
        let pod = spec.template.spec.as_mut().unwrap();
        pod.containers[0].image = Some("other".into());
        pod.containers[0].termination_message_path = Some("/dev/null".into());
        pod.containers.push(Container { name: "stowaway".into(), ..Container::default() });
        deployment(&app(), &mut object).unwrap();
        let spec = object.spec;
        assert_eq!((spec.replicas, spec.revision_history_limit), (Some(2), Some(3)));
        let containers = spec.template.spec.unwrap().containers;
        assert_eq!(containers.len(), 1);
        assert_eq!(containers[0].image.as_deref(), Some("nginx:1"));
        assert_eq!(containers[0].termination_message_path.as_deref(), Some("/dev/null"));
    }

    #[test]
    fn pods_differ_if_the_configuration_does() {
        let template = |config: &[(&str, &str)]| {
            let mut app = app();
            app.spec.config = config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            made(&app).spec.template
        };
        assert_eq!(template(&[("a", "b")]), template(&[("a", "b")]));
        assert_ne!(template(&[("a", "b")]), template(&[("a", "c")]));
        assert_ne!(template(&[("a", "b")]), template(&[]));
        assert_ne!(template(&[("ab", "c")]), template(&[("a", "bc")]));
    }
}
