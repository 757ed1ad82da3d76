//! Applying objects of several kinds.

use std::fmt;

use futures_util::future::BoxFuture;
use kube::core::{DynamicObject, TypeMeta};

use super::ApplyConfiguration;
use crate::{
    ObjectKey,
    client::{ApplyOptions, Client, Error, Verb},
};

/// The outcome for one of several objects. Displayed as `configmap default/a applied`, or with the error.
#[derive(Debug)]
#[non_exhaustive]
pub struct ApplyReport {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// The namespace and name, as they were given.
    pub key: ObjectKey,
    /// The object as it is stored, or why it was not applied.
    pub outcome: Result<DynamicObject, Error>,
}

impl fmt::Display for ApplyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.to_lowercase(), self.key)?;
        match &self.outcome {
            Ok(_) => f.write_str(" applied"),
            Err(error) => write!(f, ": {error}"),
        }
    }
}

impl Client {
    /// Applies objects of any kinds, one after the other, and reports on each of them. A failure does not stop the rest.
    ///
    /// ```
    /// # use k1s_runtime::{Client, client::{ApplyConfiguration, ApplyOptions, Error}};
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # async fn example(client: Client, settings: ConfigMap, web: Deployment) -> Result<(), Error> {
    /// let all = [ApplyConfiguration::of(&settings).erase(), ApplyConfiguration::of(&web).erase()];
    /// for report in client.apply_all(all, ApplyOptions::forced()).await {
    ///     println!("{report}");
    ///     report.outcome?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply_all(
        &self,
        configurations: impl IntoIterator<Item = ApplyConfiguration>,
        options: impl Into<ApplyOptions>,
    ) -> Vec<ApplyReport> {
        let options = options.into();
        let mut reports = Vec::new();
        for configuration in configurations.into_iter().collect::<Vec<_>>() {
            let outcome = self.apply_dynamic(&configuration, options.clone()).await;
            reports.push(ApplyReport {
                api_version: configuration.text("apiVersion").to_owned(),
                kind: configuration.text("kind").to_owned(),
                key: configuration.key(),
                outcome,
            });
        }
        reports
    }

    /// Boxed: the body of an async function is compiled again in every crate that awaits it.
    #[inline(never)]
    fn apply_dynamic<'a>(
        &'a self,
        configuration: &'a ApplyConfiguration,
        options: ApplyOptions,
    ) -> BoxFuture<'a, Result<DynamicObject, Error>> {
        Box::pin(async move {
            let types = TypeMeta {
                api_version: configuration.text("apiVersion").to_owned(),
                kind: configuration.text("kind").to_owned(),
            };
            let kind = self.dynamic_of(types).await?;
            let key = configuration.key();
            // A request to the cluster scope would be rejected as a path that does not exist.
            if key.namespace().is_none() && self.settings.namespace.is_none() && kind.is_namespaced().await? {
                let message = "the kind is namespaced: a namespace is needed";
                return Err(kind.refuse(Verb::Apply, &key, None, message));
            }
            kind.apply_with(configuration, options).await
        })
    }
}
