//! The children of an Application: each function builds what the operator applies of an object, and thereby owns.
//!
//! Fields they do not mention are left to the server's defaults and to others; fields they mention are corrected.

use std::{collections::BTreeMap, fmt::Write as _};

use k1s::{
    ObjectKey,
    controller::util::{OwnerError, set_controller_reference},
};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        batch::v1::{Job, JobSpec},
        core::v1::{
            ConfigMap, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, PodSpec, PodTemplateSpec,
            Service, ServicePort, ServiceSpec,
        },
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::api::ObjectMeta;
use sha2::{Digest as _, Sha256};

use crate::{Application, Strategy};

/// A change of this pod annotation triggers a new rollout: containers read their configuration at startup.
pub const CONFIG_HASH: &str = "cloudnative.elide.dev/config-hash";

/// The label, and its value, that all children have.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "application-operator");

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

/// The label selector of an Application's pods.
fn selector(app: &Application) -> BTreeMap<String, String> {
    let name = app.metadata.name.clone().unwrap_or_default();
    [("app.kubernetes.io/name".to_owned(), name)].into()
}

/// The name, the owner and the labels that all children have in common.
fn metadata(app: &Application, key: &ObjectKey) -> Result<ObjectMeta, OwnerError> {
    let mut labels = selector(app);
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    let mut child = ConfigMap { metadata, ..ConfigMap::default() };
    set_controller_reference(app, &mut child)?;
    Ok(child.metadata)
}

/// The configuration.
///
/// # Errors
/// If the Application cannot own it: it has not been created.
pub fn config_map(app: &Application) -> Result<ConfigMap, OwnerError> {
    Ok(ConfigMap {
        metadata: metadata(app, &config_map_key(&ObjectKey::of(app)))?,
        data: (!app.spec.config.is_empty()).then(|| app.spec.config.clone()),
        ..ConfigMap::default()
    })
}

/// The service.
///
/// # Errors
/// As [`config_map`].
pub fn service(app: &Application) -> Result<Service, OwnerError> {
    let port = ServicePort {
        name: Some("http".to_owned()),
        port: SERVICE_PORT,
        target_port: Some(IntOrString::Int(PORT)),
        ..ServicePort::default()
    };
    let spec =
        ServiceSpec { selector: Some(selector(app)), ports: Some(vec![port]), ..ServiceSpec::default() };
    Ok(Service { metadata: metadata(app, &ObjectKey::of(app))?, spec: Some(spec), ..Service::default() })
}

/// The deployment.
///
/// # Errors
/// As [`config_map`].
pub fn deployment(app: &Application) -> Result<Deployment, OwnerError> {
    let spec = DeploymentSpec {
        replicas: Some(app.spec.replicas),
        selector: LabelSelector { match_labels: Some(selector(app)), ..LabelSelector::default() },
        strategy: Some(strategy(app.spec.strategy)),
        template: template(app, None),
        ..DeploymentSpec::default()
    };
    Ok(Deployment { metadata: metadata(app, &ObjectKey::of(app))?, spec, ..Deployment::default() })
}

/// The job of an application that runs once: all replicas at a time, each of them to completion.
///
/// # Errors
/// As [`config_map`].
pub fn job(app: &Application) -> Result<Job, OwnerError> {
    let spec = JobSpec {
        parallelism: Some(app.spec.replicas),
        completions: Some(app.spec.replicas),
        template: template(app, Some("Never")),
        ..JobSpec::default()
    };
    Ok(Job { metadata: metadata(app, &ObjectKey::of(app))?, spec: Some(spec), ..Job::default() })
}

fn template(app: &Application, restart_policy: Option<&str>) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(selector(app)),
            annotations: Some([(CONFIG_HASH.to_owned(), config_hash(&app.spec.config))].into()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container(app)],
            restart_policy: restart_policy.map(str::to_owned),
            ..PodSpec::default()
        }),
    }
}

fn container(app: &Application) -> Container {
    let config = config_map_key(&ObjectKey::of(app)).name().to_owned();
    let source = ConfigMapEnvSource { name: config, optional: None };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(app.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some("http".to_owned()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        env_from: Some(vec![EnvFromSource { config_map_ref: Some(source), ..EnvFromSource::default() }]),
        ..Container::default()
    }
}

/// The server's defaults for rolling updates are written out: a field that was applied is removed when it is not applied
/// any more, a default is not, and with `Recreate` it would be invalid.
fn strategy(strategy: Strategy) -> DeploymentStrategy {
    let quarter = || Some(IntOrString::String("25%".to_owned()));
    let rolling = || RollingUpdateDeployment { max_surge: quarter(), max_unavailable: quarter() };
    DeploymentStrategy {
        type_: Some(strategy.as_str().to_owned()),
        rolling_update: (strategy == Strategy::RollingUpdate).then(rolling),
    }
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

    #[test]
    fn children_belong_to_their_application() {
        let (map, service) = (config_map(&app()).unwrap(), service(&app()).unwrap());
        let (deployment, job) = (deployment(&app()).unwrap(), job(&app()).unwrap());
        for (meta, name) in [
            (map.metadata, "web-config"),
            (service.metadata, "web"),
            (deployment.metadata, "web"),
            (job.metadata, "web"),
        ] {
            assert_eq!((meta.name.as_deref(), meta.namespace.as_deref()), (Some(name), Some("default")));
            assert_eq!(meta.owner_references.unwrap()[0].uid, "1");
            assert_eq!(meta.labels.unwrap()["app.kubernetes.io/name"], "web");
        }
        let mut unborn = app();
        unborn.metadata.uid = None;
        assert!(matches!(config_map(&unborn), Err(OwnerError::NoUid { .. })));
    }

    #[test]
    fn only_a_rolling_update_has_limits() {
        let mut app = app();
        let mut strategy = |strategy| {
            app.spec.strategy = strategy;
            deployment(&app).unwrap().spec.strategy.unwrap()
        };
        assert!(strategy(Strategy::RollingUpdate).rolling_update.is_some());
        assert_eq!(strategy(Strategy::Recreate).rolling_update, None);
    }

    #[test]
    fn pods_differ_if_the_configuration_does() {
        let template = |config: &[(&str, &str)]| {
            let mut app = app();
            app.spec.config = config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            deployment(&app).unwrap().spec.template
        };
        assert_eq!(template(&[("a", "b")]), template(&[("a", "b")]));
        assert_ne!(template(&[("a", "b")]), template(&[("a", "c")]));
        assert_ne!(template(&[("a", "b")]), template(&[]));
        assert_ne!(template(&[("ab", "c")]), template(&[("a", "bc")]));
    }
}
