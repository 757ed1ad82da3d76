//! The identity of a control plane to its clients: certificate authority and administrator's token, and where
//! they are stored.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::{Authority, ServedCertificate, TlsFiles, certificate};
use k1s_store::Store;
use serde_json::{Value, json};

use super::{
    super::StartError,
    pki::{PkiFolder, RENEW_BEFORE},
};

/// The key in the store. Tenant names cannot start like this.
const PLACE: &str = "/_k1s/identity";

/// Interval between checks for renewal of the certificate. Short, because the wall clock may jump.
const CHECK_INTERVAL: Duration = Duration::from_secs(12 * 3600);

/// Where the certificate authority and token are stored.
#[derive(Debug, Clone)]
pub(in super::super) enum Keep {
    /// Not stored: they are lost with the runtime, like its data.
    Nowhere,
    /// In files.
    Folder(PathBuf),
    /// In the store: servers that share it have the same identity.
    Store,
}

/// The token and certificate that a runtime serves with.
pub(super) struct Identity {
    pub(super) token: String,
    /// `None` if no certificate is needed.
    pub(super) tls: Option<(TlsFiles, Option<Renewal>)>,
}

/// How to renew the certificate.
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
    /// Loads the stored identity, or creates it. `names`: the names of the certificate, `None` if none is
    /// needed. `token`: the token, if the caller has one.
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
    let authority = Authority::from_pem(text("ca.crt"), text("ca.key")).map_err(|error| damaged(&error))?;
    let files =
        authority.issue(&names, env.wall()).map_err(|error| StartError::Certificate(error.to_string()))?;
    let by = Issuer::Authority(Arc::new(authority));
    Ok(Identity { token, tls: Some((files, Some(Renewal { names, by }))) })
}

/// The identity in the store; of several concurrent starts, one creates it.
async fn load_or_make(env: &Env, store: &dyn Store) -> Result<Value, StartError> {
    let failed = |error: &k1s_store::Error| {
        StartError::Certificate(format!("could not read the authority from the store: {error}"))
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
        // Created by this or another start.
        Some(entry) => parse(&entry.value),
        None => Err(created.err().map_or_else(
            || StartError::Certificate("the authority that was just stored is missing".into()),
            |error| failed(&error),
        )),
    }
}

impl Renewal {
    /// Renews the certificate before it expires, forever. Failures are logged and retried.
    pub(super) async fn run(self, env: Env, mut served: TlsFiles, slot: ServedCertificate) {
        loop {
            env.sleep(CHECK_INTERVAL).await;
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
                    if files.certificate != served.certificate {
                        tracing::info!("the serving certificate was renewed");
                    }
                    served = files;
                }
                Err(error) => tracing::error!(%error, "could not renew the serving certificate"),
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

#[cfg(test)]
mod tests {
    use k1s_server::Listener;
    use k1s_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_served_certificate_is_renewed_before_it_expires() {
        let (env, clock) = Env::simulated(1);
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned()];
        let keep = Keep::Folder(folder.path().to_owned());
        let identity = keep.identity(&env, &MemoryStore::default(), Some(names.clone()), None).await.unwrap();
        let (first, renewal) = identity.tls.unwrap();
        let listener = Listener::http(([127, 0, 0, 1], 0).into()).await.unwrap().with_tls(&first).unwrap();
        let slot = listener.served_certificate().unwrap();
        let renewing = env.spawn("renewing", renewal.unwrap().run(env.clone(), first.clone(), slot));
        let path = folder.path().join("apiserver.crt");
        // Checks twice a day.
        let mut looks = 0;
        while std::fs::read_to_string(&path).unwrap() == first.certificate {
            while clock.sleepers() == 0 {
                env.yield_now().await;
                // A renewal is in progress.
                if std::fs::read_to_string(&path).unwrap() != first.certificate {
                    break;
                }
            }
            clock.advance_to_next();
            looks += 1;
            assert!(looks < 800, "it has expired");
        }
        let days = looks / 2;
        assert!((335..338).contains(&days), "30 days before its end: {days}");
        let renewed = TlsFiles { certificate: std::fs::read_to_string(&path).unwrap(), ..first.clone() };
        assert!(first.check(&names, env.wall() + RENEW_BEFORE).is_err());
        // The key was written before the certificate.
        let key = std::fs::read_to_string(folder.path().join("apiserver.key")).unwrap();
        TlsFiles { key, ..renewed }.check(&names, env.wall() + RENEW_BEFORE).unwrap();
        renewing.abort();
    }

    #[tokio::test]
    async fn a_damaged_identity_in_the_store_is_refused() {
        let env = Env::system();
        for damaged in ["not JSON", "{}", r#"{"admin.token": "t", "ca.key": "", "ca.crt": ""}"#] {
            let store = MemoryStore::default();
            store.create(PLACE.into(), damaged.into()).await.unwrap();
            let refused = Keep::Store.identity(&env, &store, Some(vec!["localhost".into()]), None).await;
            let Err(refused) = refused else { panic!("{damaged} was taken") };
            assert!(
                refused.to_string().contains("the authority in the store (at /_k1s/identity)"),
                "{refused}"
            );
        }
    }
}
