//! The identity of a control plane to its clients: certificate authority and administrator's token, and where
//! they are stored.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::{Authority, PkiError, ServedCertificate, TlsFiles};
use k1s_store::{Revision, Store};
use serde_json::{Value, json};

use super::{
    super::StartError,
    authority::OwnAuthority,
    pki::{PkiFolder, RENEW_BEFORE},
    reload::ClientAuthorities,
};

/// The key in the store. Tenant names cannot start like this.
pub(super) const PLACE: &str = "/_k1s/identity";

/// Interval between looks for changes that others have made.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(5);

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
    /// The own authority, which also issues certificates to clients.
    pub(super) own: OwnAuthority,
}

/// How to keep the certificate and the authority up to date.
pub(super) struct Renewal {
    names: Vec<String>,
    from: Source,
    own: OwnAuthority,
    /// What was loaded; a change after that is noticed, however soon it is.
    loaded: Stamp,
    /// How often changes by others are looked for.
    interval: Duration,
}

/// Where the authority is kept.
#[derive(Clone)]
enum Source {
    Folder(PathBuf),
    Store(Arc<dyn Store>),
}

impl Keep {
    /// Loads the stored identity, or creates it. `names`: the names of the certificate, `None` if none is
    /// needed. `token`: the token, if the caller has one.
    pub(super) async fn identity(
        self,
        env: &Env,
        store: &Arc<dyn Store>,
        names: Option<Vec<String>>,
        token: Option<String>,
    ) -> Result<Identity, StartError> {
        match self {
            Keep::Nowhere => {
                let wrong = |error: PkiError| StartError::Certificate(error.to_string());
                let token = token.unwrap_or_else(|| random_token(env));
                let Some(names) = names else {
                    return Ok(Identity { token, tls: None, own: OwnAuthority::default() });
                };
                let authority = Authority::generate(env.wall()).map_err(wrong)?;
                let files = authority.issue(&names, env.wall()).map_err(wrong)?;
                Ok(Identity { token, tls: Some((files, None)), own: OwnAuthority::new(Some(authority)) })
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
    let files = names.as_ref().map(|names| folder.serving(names, env.wall())).transpose()?;
    let own = OwnAuthority::new(folder.issuer()?);
    let tls = files.zip(names).map(|(files, names)| {
        // Still locked: nobody has changed anything since.
        let loaded = PkiFolder::stamp(&path);
        let (from, own) = (Source::Folder(path), own.clone());
        (files, Some(Renewal { names, from, own, loaded, interval: FOLLOW_INTERVAL }))
    });
    Ok(Identity { token, tls, own })
}

async fn in_store(
    env: &Env,
    store: &Arc<dyn Store>,
    names: Option<Vec<String>>,
    token: Option<String>,
) -> Result<Identity, StartError> {
    let kept = load_or_make(env, &**store).await?;
    let token = match token {
        Some(token) => token,
        None if kept.text("admin.token").is_empty() => return Err(damaged(&"it has no admin.token")),
        None => kept.text("admin.token"),
    };
    let Some(names) = names else { return Ok(Identity { token, tls: None, own: OwnAuthority::default() }) };
    let authority = kept.authority()?;
    let files =
        authority.issue(&names, env.wall()).map_err(|error| StartError::Certificate(error.to_string()))?;
    let own = OwnAuthority::new(Some(authority));
    let from = Source::Store(store.clone());
    let loaded = vec![Some(kept.bytes)];
    let renewal = Renewal { names, from, own: own.clone(), loaded, interval: FOLLOW_INTERVAL };
    Ok(Identity { token, tls: Some((files, Some(renewal))), own })
}

fn damaged(reason: &dyn std::fmt::Display) -> StartError {
    StartError::Certificate(format!("the authority in the store (at {PLACE}) cannot be used: {reason}"))
}

/// The identity in a store.
pub(super) struct Kept {
    value: Value,
    bytes: Vec<u8>,
    revision: Revision,
}

impl Kept {
    pub(super) fn text(&self, name: &str) -> String {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(super) fn authority(&self) -> Result<Authority, StartError> {
        let authority = Authority::from_pem(&self.text("ca.crt"), &self.text("ca.key"));
        let authority = authority.and_then(|authority| authority.with_earlier(&self.text("ca.earlier.crt")));
        authority.map_err(|error| damaged(&error))
    }

    /// The value with another authority, and the revision that it replaces.
    pub(super) fn with_authority(&self, authority: &Authority) -> (String, Revision) {
        let mut value = self.value.clone();
        value["ca.crt"] = authority.certificate().into();
        value["ca.key"] = authority.key().into();
        value["ca.earlier.crt"] = authority.earlier().into();
        (value.to_string(), self.revision)
    }
}

/// The identity in a store; `None` if no server has created it.
pub(super) async fn stored(store: &dyn Store) -> Result<Option<Kept>, StartError> {
    let found = store.get(PLACE.as_bytes(), None).await.map_err(|error| {
        StartError::Certificate(format!("could not read the authority from the store: {error}"))
    })?;
    let Some(entry) = found.entry else { return Ok(None) };
    let value = serde_json::from_slice(&entry.value).map_err(|error| {
        StartError::Certificate(format!("the authority in the store (at {PLACE}) is damaged: {error}"))
    })?;
    Ok(Some(Kept { value, bytes: entry.value.to_vec(), revision: entry.revision }))
}

/// The identity in the store; of several concurrent starts, one creates it.
async fn load_or_make(env: &Env, store: &dyn Store) -> Result<Kept, StartError> {
    if let Some(kept) = stored(store).await? {
        return Ok(kept);
    }
    let authority =
        Authority::generate(env.wall()).map_err(|error| StartError::Certificate(error.to_string()))?;
    let made = json!({
        "ca.crt": authority.certificate(), "ca.key": authority.key(), "admin.token": random_token(env),
    });
    let created = store.create(PLACE.into(), made.to_string().into()).await;
    // Created by this or another start.
    match stored(store).await? {
        Some(kept) => Ok(kept),
        None => Err(StartError::Certificate(match created {
            Ok(_) => "the authority that was just stored is missing".into(),
            Err(error) => format!("could not write the authority to the store: {error}"),
        })),
    }
}

/// What a certificate and an authority were loaded from.
type Stamp = Vec<Option<Vec<u8>>>;

impl Renewal {
    /// The same with another interval between looks for changes.
    pub(super) fn every(self, interval: Duration) -> Renewal {
        Renewal { interval, ..self }
    }

    /// Renews the certificate before it expires, and follows what others do with the authority, forever. Failures are logged
    /// and retried.
    pub(super) async fn run(
        self,
        env: Env,
        mut served: TlsFiles,
        slot: ServedCertificate,
        clients: ClientAuthorities,
    ) {
        let mut stamp = self.loaded.clone();
        let mut checked = env.now();
        let mut overlap = self.overlap(&env);
        let mut problem = String::new();
        loop {
            env.sleep(self.interval).await;
            let now = env.wall();
            let (found, until) = (self.stamp(&env).await, self.overlap(&env));
            let changed = matches!(&found, Ok(found) if stamp != *found) || until != overlap;
            let due = env.now() - checked >= CHECK_INTERVAL;
            if !changed && !due {
                continue;
            }
            checked = env.now();
            if !changed
                && served
                    .check(&self.names, now)
                    .and_then(|()| served.check(&self.names, now + RENEW_BEFORE))
                    .is_ok()
            {
                continue;
            }
            let renewed = self.next(&env, changed).await.and_then(|(files, authority)| {
                let wrong = |error: std::io::Error| StartError::Certificate(error.to_string());
                if changed {
                    let own = authority.as_ref().map_or_else(String::new, |authority| authority.trusted(now));
                    clients.set_own(&own, &slot).map_err(wrong)?;
                    self.own.set(authority);
                }
                slot.replace(&files).map_err(wrong)?;
                Ok(files)
            });
            match renewed {
                Ok(files) => {
                    if files.certificate != served.certificate {
                        tracing::info!("the serving certificate was renewed");
                    }
                    served = files;
                    overlap = self.overlap(&env);
                    // What was written just now is looked at once more.
                    stamp = found.unwrap_or(stamp);
                    problem.clear();
                }
                Err(error) => {
                    // Half of a change may be visible: the next look may find the rest.
                    let why = error.to_string();
                    if why != problem {
                        tracing::error!(%error, "could not renew the serving certificate");
                    }
                    problem = why;
                }
            }
        }
    }

    fn overlap(&self, env: &Env) -> Option<i64> {
        self.own.get().and_then(|authority| authority.overlap_ends(env.wall()))
    }

    async fn stamp(&self, env: &Env) -> Result<Stamp, StartError> {
        match self.from.clone() {
            Source::Folder(path) => {
                Ok(env.spawn_blocking("reading certificates", move || PkiFolder::stamp(&path)).await?)
            }
            Source::Store(store) => Ok(vec![stored(&*store).await?.map(|kept| kept.bytes)]),
        }
    }

    /// The certificate and the authority. `changed`: whether they may be others than before.
    async fn next(&self, env: &Env, changed: bool) -> Result<(TlsFiles, Option<Authority>), StartError> {
        let (names, now) = (self.names.clone(), env.wall());
        match self.from.clone() {
            Source::Folder(path) => {
                let make = move || {
                    let folder = PkiFolder::open(&path)?;
                    Ok((folder.serving(&names, now)?, folder.issuer()?))
                };
                env.spawn_blocking("renewing the certificate", make).await?
            }
            Source::Store(store) => {
                let issue = |authority: &Authority| {
                    authority.issue(&names, now).map_err(|error| StartError::Certificate(error.to_string()))
                };
                match self.own.get() {
                    Some(authority) if !changed => Ok((issue(&authority)?, None)),
                    _ => {
                        let kept = stored(&*store).await?.ok_or_else(|| damaged(&"it is gone"))?;
                        let authority = kept.authority()?;
                        Ok((issue(&authority)?, Some(authority)))
                    }
                }
            }
        }
    }
}

/// Seconds since 1970.
pub(super) fn seconds(time: std::time::SystemTime) -> i64 {
    let since = time.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
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

    fn memory() -> Arc<dyn Store> {
        Arc::new(MemoryStore::default())
    }

    #[tokio::test]
    async fn a_served_certificate_is_renewed_before_it_expires() {
        let (env, clock) = Env::simulated(1);
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned()];
        let keep = Keep::Folder(folder.path().to_owned());
        let identity = keep.identity(&env, &memory(), Some(names.clone()), None).await.unwrap();
        let (first, renewal) = identity.tls.unwrap();
        let listener = Listener::http(([127, 0, 0, 1], 0).into()).await.unwrap().with_tls(&first).unwrap();
        let slot = listener.served_certificate().unwrap();
        let renewal = Renewal { interval: CHECK_INTERVAL, ..renewal.unwrap() };
        let clients = ClientAuthorities::default();
        let renewing = env.spawn("renewing", renewal.run(env.clone(), first.clone(), slot, clients));
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
            let store = memory();
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
