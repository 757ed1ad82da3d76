//! Follows the file of the authorizers, and uses them when it changes.

use std::{fs, io, sync::Arc, time::Duration};

use crate::{
    authorization::{self, AuthorizationError, AuthorizationMode, AuthorizerOptions},
    tenant::Shared,
};

/// Interval between looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts to follow the file, if the authorizers are from one.
pub(crate) fn follow(shared: &Arc<Shared>) {
    let Some(path) = shared.options.authorization.file.clone() else { return };
    // The task holds no reference to the server, which is stopped when its last handle is dropped.
    let (env, stop) = (shared.env.clone(), shared.stop.clone());
    let (authorizer, first) = (shared.authorizer.clone(), shared.options.authorization.authorizers.clone());
    let required = modes(&first);
    let mut seen = Seen { text: None, authorizers: first };
    let work = async move {
        loop {
            let pause = env.clone();
            if stop.run_until_cancelled(pause.sleep(INTERVAL)).await.is_none() {
                return;
            }
            let path = path.clone();
            let read = env.spawn_blocking("read the authorizers", move || fs::read_to_string(path));
            let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            match seen.changed(read, &required) {
                Ok(None) => {}
                Ok(Some(authorizers)) => match authorizer.replace(&authorizers) {
                    Ok(()) => tracing::info!("the authorizers were reloaded"),
                    Err(error) => tracing::error!(error, "could not reload the authorizers"),
                },
                Err(error) => tracing::error!(%error, "could not reload the authorizers"),
            }
        }
    };
    drop(shared.env.spawn("follow the authorizers", work));
}

/// The authorizers that a file may not drop: others could be enabled only from the start.
fn modes(authorizers: &[AuthorizerOptions]) -> Vec<AuthorizationMode> {
    let mode = |one: &AuthorizerOptions| match one {
        AuthorizerOptions::Mode(mode) => Some(*mode),
        AuthorizerOptions::Webhook(_) => None,
    };
    authorizers.iter().filter_map(mode).collect()
}

/// What was last seen of the file.
struct Seen {
    text: Option<String>,
    authorizers: Vec<AuthorizerOptions>,
}

impl Seen {
    /// The authorizers in the text of the file, if they are others than before. An error is reported once.
    fn changed(
        &mut self,
        read: io::Result<String>,
        required: &[AuthorizationMode],
    ) -> Result<Option<Vec<AuthorizerOptions>>, AuthorizationError> {
        // A file that is being replaced is missing for a moment.
        let Ok(text) = read else { return Ok(None) };
        if self.text.as_ref() == Some(&text) {
            return Ok(None);
        }
        let parsed = authorization::parse(&text, required);
        self.text = Some(text);
        let authorizers = parsed?;
        if authorizers == self.authorizers {
            return Ok(None);
        }
        self.authorizers.clone_from(&authorizers);
        Ok(Some(authorizers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_used_once_and_errors_keep_what_is_there() {
        let file = |modes: &[&str]| {
            let mut text =
                "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
                    .to_owned();
            for mode in modes {
                text += &format!("- {{type: {mode}, name: {}}}\n", mode.to_lowercase());
            }
            Ok(text)
        };
        let rbac = AuthorizerOptions::Mode(AuthorizationMode::Rbac);
        let mut seen = Seen { text: None, authorizers: vec![rbac] };
        let required = [AuthorizationMode::Rbac];
        assert!(seen.changed(file(&["RBAC"]), &required).unwrap().is_none());
        assert_eq!(seen.changed(file(&["Node", "RBAC"]), &required).unwrap().unwrap().len(), 2);
        assert!(seen.changed(file(&["Node", "RBAC"]), &required).unwrap().is_none());
        let dropped = seen.changed(file(&["Node"]), &required).unwrap_err();
        assert_eq!(dropped.to_string(), "missing required types: [RBAC]");
        assert!(seen.changed(file(&["Node"]), &required).unwrap().is_none(), "an error is reported once");
        assert!(seen.changed(Err(io::Error::other("gone")), &required).unwrap().is_none());
        assert!(seen.changed(file(&["Node", "RBAC"]), &required).unwrap().is_none());
    }
}
