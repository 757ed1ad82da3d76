//! What others know a control plane by: its certificate authority and the administrator's token, and where they are kept.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::{Authority, ServedCertificate, TlsFiles, certificate};
use k1s_store::Store;
use serde_json::{Value, json};

use super::{
    StartError,
    pki::{PkiFolder, RENEW_BEFORE},
};

/// Where they lie in a store. No tenant's name begins like this.
const PLACE: &str = "/_k1s/identity";

/// How often it is looked whether the certificate has to be renewed. The wall clock may jump, so not once a year.
const LOOK: Duration = Duration::from_secs(12 * 3600);

/// Where authority and token are kept.
#[derive(Debug, Clone)]
pub(super) enum Keep {
    /// They end with the runtime, as everything does.
    Nowhere,
    /// In files.
    Folder(PathBuf),
    /// With everything else: servers that share a store are one to their clients.
    Store,
}

/// What a runtime serves with.
pub(super) struct Identity {
    pub(super) token: String,
    /// `None`: not asked for.
    pub(super) tls: Option<(TlsFiles, Option<Renewal>)>,
}

/// How to come by the next certificate.
pub(super) struct Renewal {
    names: Vec<String>,
    by: Issuer,
}

#[derive(Clone)]
enum Issuer {
    Folder(PathBuf),
    Authority(Arc<Authority>),
}

impl Keep {
    /// Finds what was kept, or makes it. `names`: what a certificate has to be for; `None`: no certificate is needed. `token`: the
    /// token, if the caller has one.
    pub(super) async fn identity(
        self,
        env: &Env,
        store: &dyn Store,
        names: Option<Vec<String>>,
        token: Option<String>,
    ) -> Result<Identity, StartError> {
        match self {
            Keep::Nowhere => {
                let tls = names.map(|names| certificate(&names)).transpose();
                let tls = tls.map_err(|error| StartError::Certificate(error.to_string()))?;
                let token = token.unwrap_or_else(|| random_token(env));
                Ok(Identity { token, tls: tls.map(|files| (files, None)) })
            }
            Keep::Folder(path) => {
                let inside = env.clone();
                let open = move || in_folder(&inside, path, names, token);
                env.spawn_blocking("opening the folder of certificates", open).await?
            }
            Keep::Store => in_store(env, store, names, token).await,
        }
    }
}

fn in_folder(
    env: &Env,
    path: PathBuf,
    names: Option<Vec<String>>,
    token: Option<String>,
) -> Result<Identity, StartError> {
    let folder = PkiFolder::open(&path)?;
    let token = match token {
        Some(token) => token,
        None => folder.token(|| random_token(env))?,
    };
    let tls = names.map(|names| {
        let files = folder.serving(&names, env.wall())?;
        Ok::<_, StartError>((files, Some(Renewal { names, by: Issuer::Folder(path) })))
    });
    Ok(Identity { token, tls: tls.transpose()? })
}

async fn in_store(
    env: &Env,
    store: &dyn Store,
    names: Option<Vec<String>>,
    token: Option<String>,
) -> Result<Identity, StartError> {
    let damaged = |reason: &dyn std::fmt::Display| {
        StartError::Certificate(format!("the authority in the store (at {PLACE}) cannot be used: {reason}"))
    };
    let kept = load_or_make(env, store).await?;
    let text = |name: &str| kept.get(name).and_then(Value::as_str).unwrap_or_default();
    let token = match token {
        Some(token) => token,
        None if text("admin.token").is_empty() => return Err(damaged(&"it has no admin.token")),
        None => text("admin.token").to_owned(),
    };
    let Some(names) = names else { return Ok(Identity { token, tls: None }) };
    let authority =
        Authority::from_pem(text("ca.crt"), text("ca.key")).map_err(|error| damaged(&error))?;
    let files =
        authority.issue(&names, env.wall()).map_err(|error| StartError::Certificate(error.to_string()))?;
    let by = Issuer::Authority(Arc::new(authority));
    Ok(Identity { token, tls: Some((files, Some(Renewal { names, by }))) })
}

/// What is in the store; of several that start at once, one makes it.
async fn load_or_make(env: &Env, store: &dyn Store) -> Result<Value, StartError> {
    let failed = |error: &k1s_store::Error| {
        StartError::Certificate(format!("the store cannot be asked for the authority: {error}"))
    };
    let parse = |bytes: &[u8]| {
        serde_json::from_slice(bytes).map_err(|error| {
            StartError::Certificate(format!("the authority in the store (at {PLACE}) is damaged: {error}"))
        })
    };
    if let Some(entry) = store.get(PLACE.as_bytes(), None).await.map_err(|error| failed(&error))?.entry {
        return parse(&entry.value);
    }
    let authority =
        Authority::generate(env.wall()).map_err(|error| StartError::Certificate(error.to_string()))?;
    let made = json!({
        "ca.crt": authority.certificate(), "ca.key": authority.key(), "admin.token": random_token(env),
    });
    let created = store.create(PLACE.into(), made.to_string().into()).await;
    match store.get(PLACE.as_bytes(), None).await.map_err(|error| failed(&error))?.entry {
        // Whoever made it.
        Some(entry) => parse(&entry.value),
        None => Err(created.err().map_or_else(
            || StartError::Certificate("the authority that was stored is not there".into()),
            |error| failed(&error),
        )),
    }
}

impl Renewal {
    /// Renews the certificate before it expires, for ever. What fails is logged and tried again.
    pub(super) async fn run(self, env: Env, mut served: TlsFiles, slot: ServedCertificate) {
        loop {
            env.sleep(LOOK).await;
            let now = env.wall();
            let good =
                served.check(&self.names, now).and_then(|()| served.check(&self.names, now + RENEW_BEFORE));
            if good.is_ok() {
                continue;
            }
            let renewed = self.next(&env).await.and_then(|files| {
                slot.replace(&files).map_err(|error| StartError::Certificate(error.to_string()))?;
                Ok(files)
            });
            match renewed {
                Ok(files) => {
                    tracing::info!("the serving certificate was renewed");
                    served = files;
                }
                Err(error) => tracing::error!(%error, "the serving certificate could not be renewed"),
            }
        }
    }

    async fn next(&self, env: &Env) -> Result<TlsFiles, StartError> {
        let (by, names, now) = (self.by.clone(), self.names.clone(), env.wall());
        let make = move || match by {
            Issuer::Folder(path) => PkiFolder::open(&path)?.serving(&names, now),
            Issuer::Authority(authority) => {
                authority.issue(&names, now).map_err(|error| StartError::Certificate(error.to_string()))
            }
        };
        env.spawn_blocking("renewing the certificate", make).await?
    }
}

fn random_token(env: &Env) -> String {
    let mut bytes = [0_u8; 24];
    env.fill_random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
