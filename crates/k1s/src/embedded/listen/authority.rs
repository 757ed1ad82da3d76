//! The own authority: the one in use, and what its owner can do with it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k1s_env::Env;
use k1s_server::{Authority, CertificateInfo, inspect};
use k1s_store::{Range, Store};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{
    super::StartError,
    identity::{self, Kept},
    pki::PkiFolder,
    users::{self, NewUser},
};

/// The own authority of a runtime, which a rotation replaces while it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnAuthority(Arc<RwLock<Option<Arc<Authority>>>>);

impl OwnAuthority {
    pub(super) fn new(authority: Option<Authority>) -> OwnAuthority {
        OwnAuthority(Arc::new(RwLock::new(authority.map(Arc::new))))
    }

    /// The authority; `None` if its key is not here.
    pub(super) fn get(&self) -> Option<Arc<Authority>> {
        self.0.read().clone()
    }

    pub(super) fn set(&self, authority: Option<Authority>) {
        *self.0.write() = authority.map(Arc::new);
    }
}

/// The authority and the certificates of a control plane, where they are kept. A server that uses them may be running: it
/// notices changes within seconds.
#[derive(Clone)]
pub struct Pki {
    env: Env,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Folder(PathBuf),
    Store(Arc<dyn Store>),
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pki")
    }
}

/// A certificate of a control plane.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KnownCertificate {
    /// What it is for: `authority`, `earlier authority`, `overlap`, `server` or `user`.
    pub purpose: &'static str,
    /// What it says.
    pub info: CertificateInfo,
}

/// The place of a record of what was issued; after it comes its number.
const ISSUED: &str = "/_k1s/issued/";

fn store_failed(error: &k1s_store::Error) -> StartError {
    StartError::Certificate(format!("the store that has the authority failed: {error}"))
}

impl Pki {
    /// Those in a folder: `RuntimeBuilder::cert_dir`, or `pki` in a data folder.
    pub fn folder(env: &Env, path: impl Into<PathBuf>) -> Pki {
        Pki { env: env.clone(), place: Place::Folder(path.into()) }
    }

    /// Those in a store that several servers share.
    pub fn store(env: &Env, store: Arc<dyn Store>) -> Pki {
        Pki { env: env.clone(), place: Place::Store(store) }
    }

    /// Those in an etcd.
    ///
    /// # Errors
    /// If it cannot be reached.
    #[cfg(feature = "etcd")]
    pub async fn etcd(env: &Env, options: k1s_store_etcd::EtcdOptions) -> Result<Pki, StartError> {
        let store = super::super::store::StoreChoice::Etcd(options).open(env).await?;
        Ok(Pki::store(env, store))
    }

    fn open(&self, path: &Path) -> Result<PkiFolder, StartError> {
        match path.is_dir() {
            true => PkiFolder::open(path),
            false => Err(missing(path)),
        }
    }

    async fn kept(&self, store: &dyn Store) -> Result<Kept, StartError> {
        let kept = identity::stored(store).await?;
        kept.ok_or_else(|| StartError::Certificate("no server has created an authority in this store".into()))
    }

    /// All certificates that are known: authorities, that of the server, and those issued to users with [`Pki::issue`] that are
    /// still valid.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn show(&self) -> Result<Vec<KnownCertificate>, StartError> {
        let (texts, issued) = match &self.place {
            Place::Folder(path) => {
                let folder = self.open(path)?;
                (folder.certificates()?, folder.issued()?)
            }
            Place::Store(store) => {
                let kept = self.kept(&**store).await?;
                let texts =
                    vec![("ca.crt", kept.text("ca.crt")), ("ca.earlier.crt", kept.text("ca.earlier.crt"))];
                (texts, self.issued_in(&**store).await?.into_iter().map(|(_, line)| line).collect())
            }
        };
        let mut all = Vec::new();
        for (name, text) in texts.iter().filter(|(_, text)| !text.trim().is_empty()) {
            let found = inspect(text).map_err(|error| StartError::Certificate(format!("{name}: {error}")))?;
            for (place, info) in found.into_iter().enumerate() {
                let purpose = match *name {
                    "ca.crt" => "authority",
                    "ca.earlier.crt" if place % 2 == 0 => "earlier authority",
                    "ca.earlier.crt" => "overlap",
                    // Those after it are intermediate ones.
                    _ if place == 0 => "server",
                    _ => continue,
                };
                all.push(KnownCertificate { purpose, info });
            }
        }
        let now = identity::seconds(self.env.wall());
        let users = issued.iter().filter_map(|line| record(line)).filter(|info| info.until > now);
        all.extend(users.map(|info| KnownCertificate { purpose: "user", info }));
        Ok(all)
    }

    /// A kubeconfig of a user for the server at this URL, as YAML, with a certificate of the authority, which is recorded.
    ///
    /// # Errors
    /// If there is no authority, or a name cannot be in a certificate.
    pub async fn issue(&self, url: &str, user: &NewUser) -> Result<String, StartError> {
        let now = self.env.wall();
        match &self.place {
            Place::Folder(path) => {
                let folder = self.open(path)?;
                let issuer = folder.issuer()?.ok_or_else(|| missing(path))?;
                let issued = users::issue(&self.env, &issuer, url, Some(&issuer.trusted(now)), user)?;
                let is_valid =
                    |line: &String| record(line).is_some_and(|one| one.until > identity::seconds(now));
                let mut lines: Vec<String> = folder.issued()?.into_iter().filter(is_valid).collect();
                lines.push(issued.record.to_string());
                folder.set_issued(&lines)?;
                Ok(issued.kubeconfig)
            }
            Place::Store(store) => {
                let issuer = self.kept(&**store).await?.authority()?;
                let issued = users::issue(&self.env, &issuer, url, Some(&issuer.trusted(now)), user)?;
                for (key, line) in self.issued_in(&**store).await? {
                    if record(&line).is_none_or(|one| one.until <= identity::seconds(now)) {
                        let delete = k1s_store::Txn::new().delete(key, k1s_store::Precondition::Any);
                        store.txn(delete).await.map_err(|error| store_failed(&error))?;
                    }
                }
                let key = format!("{ISSUED}{}", issued.record["serial"].as_str().unwrap_or_default());
                let created = store.create(key.into(), issued.record.to_string().into()).await;
                created.map_err(|error| store_failed(&error))?;
                Ok(issued.kubeconfig)
            }
        }
    }

    async fn issued_in(&self, store: &dyn Store) -> Result<Vec<(Vec<u8>, String)>, StartError> {
        let range = store.range(Range::prefix(ISSUED)).await.map_err(|error| store_failed(&error))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(range.entries.iter().map(|entry| (entry.key.to_vec(), text(&entry.value))).collect())
    }

    /// Renews the serving certificate. Servers that keep the authority in their store have a certificate each, which they
    /// renew themselves.
    ///
    /// # Errors
    /// If there is no authority, or another one has issued the certificate.
    pub fn renew(&self) -> Result<(), StartError> {
        match &self.place {
            Place::Folder(path) => self.open(path)?.renew(self.env.wall()),
            Place::Store(_) => Err(StartError::Certificate(
                "each server has a certificate of its own, which it renews itself, and when it starts".into(),
            )),
        }
    }

    /// Puts a new authority in the place of this one. For the time of the overlap the server is accepted by clients that know
    /// only the old one, and accepts theirs; new kubeconfigs have both. Without overlap, all certificates of the old
    /// authority are worth nothing at once.
    ///
    /// # Errors
    /// If there is no authority, or it cannot be replaced.
    pub async fn rotate(&self, overlap: Duration) -> Result<(), StartError> {
        let now = self.env.wall();
        match &self.place {
            Place::Folder(path) => self.open(path)?.rotate(overlap, now),
            Place::Store(store) => {
                let kept = self.kept(&**store).await?;
                let next = kept.authority()?.rotate(overlap, now);
                let next = next.map_err(|error| StartError::Certificate(error.to_string()))?;
                let (value, revision) = kept.with_authority(&next);
                // Of two rotations at the same time, one fails here.
                let updated = store.update(identity::PLACE.into(), value.into(), revision).await;
                updated.map(drop).map_err(|error| store_failed(&error))
            }
        }
    }
}

fn missing(path: &Path) -> StartError {
    StartError::Pki {
        path: path.to_owned(),
        reason: "there is no ca.crt with its ca.key, which a server creates at its first start".into(),
    }
}

/// A record of what was issued.
pub(super) fn line(info: &CertificateInfo) -> Value {
    json!({
        "serial": info.serial, "user": info.name, "groups": info.groups, "issuer": info.issuer, "from": info.from,
        "until": info.until,
    })
}

fn record(text: &str) -> Option<CertificateInfo> {
    let record: Value = serde_json::from_str(text).ok()?;
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let groups = record["groups"].as_array()?.iter().filter_map(|one| one.as_str().map(str::to_owned));
    let mut info = CertificateInfo::default();
    (info.serial, info.name, info.issuer) = (text("serial"), text("user"), text("issuer"));
    info.groups = groups.collect();
    info.from = record["from"].as_i64()?;
    info.until = record["until"].as_i64()?;
    Some(info)
}
