//! Users with client certificates.

use std::{path::Path, time::Duration};

use k1s_env::Env;
use k1s_server::{Authority, inspect};
use serde_json::Value;

use super::{
    super::StartError,
    authority::line,
    endpoint::{in_base64, kubeconfig},
    pki::PkiFolder,
};

/// A user to be given a certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewUser {
    /// Its name, which becomes the `CN`.
    pub name: String,
    /// Its groups, which become the `O`s.
    pub groups: Vec<String>,
    /// How long the certificate is valid. A certificate cannot be taken back before.
    pub validity: Duration,
}

impl NewUser {
    /// A user without groups, for a year.
    pub fn new(name: impl Into<String>) -> NewUser {
        NewUser { name: name.into(), groups: Vec::new(), validity: Duration::from_secs(365 * 24 * 3600) }
    }

    /// The same in these groups.
    #[must_use]
    pub fn in_groups(mut self, groups: impl IntoIterator<Item = impl Into<String>>) -> NewUser {
        self.groups = groups.into_iter().map(Into::into).collect();
        self
    }

    /// The same for this long.
    #[must_use]
    pub fn valid_for(mut self, validity: Duration) -> NewUser {
        self.validity = validity;
        self
    }
}

/// A kubeconfig of a user, and the record of it.
pub(super) struct Issued {
    pub(super) kubeconfig: String,
    pub(super) record: Value,
}

/// A kubeconfig of a user for the server at this URL, as YAML, with a certificate of the authority in this folder
/// (`RuntimeBuilder::cert_dir`, or `pki` in a data folder). A server that uses the folder may be running.
///
/// # Errors
/// If the folder has no authority, or a name cannot be in a certificate.
pub fn issue_kubeconfig(env: &Env, folder: &Path, url: &str, user: &NewUser) -> Result<String, StartError> {
    let missing = || StartError::Pki {
        path: folder.to_owned(),
        reason: "there is no ca.crt with its ca.key, which a server creates at its first start".into(),
    };
    if !folder.is_dir() {
        return Err(missing());
    }
    let issuer = PkiFolder::open(folder)?.issuer()?.ok_or_else(missing)?;
    kubeconfig_of(env, &issuer, url, Some(&issuer.trusted(env.wall())), user)
}

pub(super) fn kubeconfig_of(
    env: &Env,
    issuer: &Authority,
    url: &str,
    authority: Option<&str>,
    user: &NewUser,
) -> Result<String, StartError> {
    issue(env, issuer, url, authority, user).map(|issued| issued.kubeconfig)
}

pub(super) fn issue(
    env: &Env,
    issuer: &Authority,
    url: &str,
    authority: Option<&str>,
    user: &NewUser,
) -> Result<Issued, StartError> {
    let mut serial = [0_u8; 16];
    env.fill_random(&mut serial);
    let files = issuer
        .issue_client(&user.name, &user.groups, user.validity, env.wall(), serial)
        .map_err(|error| StartError::Certificate(error.to_string()))?;
    let credential = format!(
        "client-certificate-data: {}\n    client-key-data: {}",
        in_base64(files.certificate.as_bytes()),
        in_base64(files.key.as_bytes())
    );
    // Any name is a string of YAML in this form.
    let name = Value::from(user.name.as_str()).to_string();
    let record = inspect(&files.certificate).ok().and_then(|all| all.first().map(line)).unwrap_or_default();
    Ok(Issued { kubeconfig: kubeconfig(url, authority, &name, &credential), record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_of_a_user_has_its_certificate() {
        let env = Env::system();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pki");
        let alice = NewUser::new("alice: \"a\"").in_groups(["devs", "qa"]).valid_for(Duration::from_secs(60));
        let refused = issue_kubeconfig(&env, &path, "https://127.0.0.1:1", &alice).unwrap_err();
        assert!(refused.to_string().contains("there is no ca.crt"), "{refused}");
        assert!(!path.exists());
        PkiFolder::open(&path).unwrap().serving(&["localhost".into()], env.wall()).unwrap();
        let text = issue_kubeconfig(&env, &path, "https://127.0.0.1:1", &alice).unwrap();
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.auth_infos[0].name, "alice: \"a\"");
        let auth = config.auth_infos[0].auth_info.as_ref().unwrap();
        assert!(auth.client_certificate_data.is_some() && auth.client_key_data.is_some());
        assert!(auth.token.is_none());
        assert!(issue_kubeconfig(&env, &path, "https://127.0.0.1:1", &NewUser::new("")).is_err());
    }
}
