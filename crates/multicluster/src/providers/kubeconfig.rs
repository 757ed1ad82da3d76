//! Clients from kubeconfigs.

use k1s_env::Env;
use k1s_runtime::{BoxError, ClusterOptions};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A kubeconfig that would act on the machine of this program, and why: it runs a program, or names a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{of:?} has {field}, which acts on the machine of this program; a kubeconfig from elsewhere may have data only, unless with_local_access(true) allows it"
)]
pub(super) struct LocalAccess {
    /// `users[admin]`
    of: String,
    field: &'static str,
}

/// Refuses a kubeconfig that runs programs or reads files: whoever can write it would act with the rights of this program.
pub(super) fn refuse_local_access(config: &Kubeconfig) -> Result<(), LocalAccess> {
    let of_clusters = config.clusters.iter().filter_map(|named| {
        let file = named.cluster.as_ref()?.certificate_authority.as_ref();
        file.map(|_| LocalAccess { of: format!("clusters[{}]", named.name), field: "certificate-authority" })
    });
    let of_users = config.auth_infos.iter().filter_map(|named| {
        let user = named.auth_info.as_ref()?;
        let fields = [
            ("exec", user.exec.is_some()),
            // Some of them run a program, too.
            ("auth-provider", user.auth_provider.is_some()),
            ("tokenFile", user.token_file.is_some()),
            ("client-certificate", user.client_certificate.is_some()),
            ("client-key", user.client_key.is_some()),
        ];
        let (field, _) = fields.into_iter().find(|(_, is_there)| *is_there)?;
        Some(LocalAccess { of: format!("users[{}]", named.name), field })
    });
    of_clusters.chain(of_users).next().map_or(Ok(()), Err)
}

/// The clients of a provider. Those for the same server with the same credentials share one connection for all watches; without
/// TLS, each watch has a connection.
#[derive(Default)]
pub(super) struct Clients {
    #[cfg(feature = "tls")]
    connections: k1s_runtime::client::Http2Connections,
}

impl Clients {
    /// A client for a context of a kubeconfig; the current one by default.
    pub(super) async fn of_kubeconfig(
        &self,
        config: Kubeconfig,
        context: Option<String>,
        options: &ClusterOptions,
    ) -> Result<kube::Client, BoxError> {
        let selected = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(config, &selected).await?;
        Ok(self.of_config(config, options)?)
    }

    /// A client for a configuration.
    pub(super) fn of_config(
        &self,
        config: kube::Config,
        options: &ClusterOptions,
    ) -> Result<kube::Client, kube::Error> {
        self.connect(&options.env.clone().unwrap_or_else(Env::system), config)
    }

    #[cfg(feature = "tls")]
    fn connect(&self, env: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
        self.connections.client(env, config)
    }

    #[cfg(not(feature = "tls"))]
    fn connect(&self, _: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
        kube::Client::try_from(config)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(cluster: &Value, user: &Value) -> Option<String> {
        let config = json!({
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        });
        let config = serde_json::from_value(config).unwrap();
        refuse_local_access(&config).err().map(|error| format!("{} {}", error.of, error.field))
    }

    #[test]
    fn kubeconfigs_that_run_programs_or_read_files_are_refused() {
        let (no, server) = (json!({}), json!({"server": "https://example.com"}));
        let data = json!({"token": "t", "client-certificate-data": "", "client-key-data": ""});
        assert_eq!(refused(&server, &data), None);
        assert_eq!(refused(&json!({"certificate-authority-data": ""}), &no), None);
        let authority = json!({"certificate-authority": "/etc/passwd"});
        assert_eq!(refused(&authority, &no).unwrap(), "clusters[c] certificate-authority");
        let users = [
            ("exec", json!({"command": "id"})),
            ("auth-provider", json!({"name": "gcp", "config": {"cmd-path": "id"}})),
            ("tokenFile", json!("/etc/passwd")),
            ("client-certificate", json!("/etc/passwd")),
            ("client-key", json!("/etc/passwd")),
        ];
        for (field, value) in users {
            assert_eq!(refused(&server, &json!({field: value})).unwrap(), format!("users[u] {field}"));
        }
    }
}
