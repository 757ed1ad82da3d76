//! The flags about what users may do, and about admission: those of kube-apiserver.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use k1s::server::{
    AdmissionPlugins, AuthorizationMode, AuthorizationOptions, AuthorizationWebhook, AuthorizerOptions,
    ReviewVersion, ServerOptions,
};

use super::{Error, duration};

/// Who decides what users may do, and which admission plugins run.
#[derive(Debug, Clone, Args)]
// The group that clap makes of a struct has its name, and those of one command must differ.
#[group(skip)]
pub(crate) struct Flags {
    /// Who decides what users may do, in this order: Node, RBAC, Webhook, `AlwaysAllow`, `AlwaysDeny`. Members of system:masters
    /// may do everything. [default: RBAC]
    #[arg(long, value_name = "MODES", value_delimiter = ',', conflicts_with = "authorization_config")]
    authorization_mode: Vec<String>,
    /// A kubeconfig that leads to the webhook of the mode Webhook.
    #[arg(long, value_name = "FILE", conflicts_with = "authorization_config")]
    authorization_webhook_config_file: Option<PathBuf>,
    /// The version of the `SubjectAccessReviews` that the webhook is sent: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", conflicts_with = "authorization_config")]
    authorization_webhook_version: String,
    /// How long an allowing answer of the webhook is remembered.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        value_parser = duration,
        conflicts_with = "authorization_config"
    )]
    authorization_webhook_cache_authorized_ttl: Duration,
    /// How long another answer of the webhook is remembered.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration,
        conflicts_with = "authorization_config"
    )]
    authorization_webhook_cache_unauthorized_ttl: Duration,
    /// An `AuthorizationConfiguration` file with the authorizers, instead of the flags above. It is reloaded when it changes.
    #[arg(long, value_name = "FILE")]
    authorization_config: Option<PathBuf>,
    /// Admission plugins to enable besides the default ones: `NodeRestriction`, `ServiceAccount`,
    /// `OwnerReferencesPermissionEnforcement`.
    #[arg(long, value_name = "PLUGINS", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins to disable although they are enabled by default.
    #[arg(long, value_name = "PLUGINS", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

impl Flags {
    /// Sets the options of a server.
    pub(super) fn set(&self, server: &mut ServerOptions) -> Result<(), Error> {
        let wrong = |why: String| Error::Flags(why);
        server.authorization = self.authorizers().map_err(wrong)?;
        server.admission_plugins =
            AdmissionPlugins::with(&self.enable_admission_plugins, &self.disable_admission_plugins)
                .map_err(|error| wrong(error.to_string()))?;
        Ok(())
    }

    fn authorizers(&self) -> Result<AuthorizationOptions, String> {
        if let Some(path) = &self.authorization_config {
            return AuthorizationOptions::from_file(path).map_err(|error| error.to_string());
        }
        let webhook = self.authorization_webhook_config_file.as_ref().map(|path| self.webhook(path));
        // Earlier versions did not mind the case.
        let known = ["Node", "RBAC", "Webhook", "AlwaysAllow", "AlwaysDeny"];
        let exact = |mode: &String| {
            let found = known.iter().find(|known| known.eq_ignore_ascii_case(mode));
            found.map_or_else(|| mode.clone(), |known| (*known).to_owned())
        };
        let modes: Vec<String> = match self.authorization_mode.as_slice() {
            [] => vec!["RBAC".to_owned()],
            modes => modes.iter().map(exact).collect(),
        };
        AuthorizationOptions::of_modes(&modes, webhook.transpose()?.as_ref())
            .map_err(|error| error.to_string())
    }

    fn webhook(&self, path: &std::path::Path) -> Result<AuthorizationWebhook, String> {
        let mut webhook = AuthorizationWebhook::new("default", path);
        webhook.version = match self.authorization_webhook_version.as_str() {
            "v1" => ReviewVersion::V1,
            "v1beta1" => ReviewVersion::V1Beta1,
            other => {
                return Err(format!(
                    "unsupported webhook authorizer version {other:?}, supported versions are \"v1\", \"v1beta1\""
                ));
            }
        };
        webhook.authorized_ttl = self.authorization_webhook_cache_authorized_ttl;
        webhook.unauthorized_ttl = self.authorization_webhook_cache_unauthorized_ttl;
        Ok(webhook)
    }

    /// Whether rights are checked at all: not everybody may do everything.
    pub(super) fn is_guarded(&self) -> bool {
        let all = AuthorizerOptions::Mode(AuthorizationMode::AlwaysAllow);
        self.authorizers().is_ok_and(|options| !options.authorizers.contains(&all))
    }
}
