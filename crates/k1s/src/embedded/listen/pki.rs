//! The folder of certificates and keys: `ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key`, `admin.token`; after a rotation
//! of the authority also `ca.earlier.crt`.
//!
//! Clients remember the certificate authority and the token, in their kubeconfigs and in the `ConfigMaps` of
//! namespaces: they are created once, and damage is reported, not repaired. The serving certificate is
//! recreated whenever needed, unless it was issued by another authority.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use k1s_server::{Authority, PkiError, TlsFiles, inspect};
use serde_json::{Map, Value};

use super::super::StartError;

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// The authorities that this one has replaced; see `Authority::earlier`.
const CA_EARLIER: &str = "ca.earlier.crt";
/// The new content of files that have to change together.
const CHANGES: &str = ".changes";
/// What was issued to users: a line of JSON each.
const ISSUED: &str = "issued.jsonl";
const CERTIFICATE: &str = "apiserver.crt";
const KEY: &str = "apiserver.key";
const TOKEN: &str = "admin.token";

/// Remaining validity below which a serving certificate is replaced.
pub(super) const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Advice for a lost certificate authority.
const RESTORE_AUTHORITY: &str = "restore it from a copy, or remove ca.key and ca.crt from the folder: \
                                 then a new authority is created, which clients with an older kubeconfig do not trust";

/// A folder of certificates and keys, locked by this process until the value is dropped.
pub(super) struct PkiFolder {
    path: PathBuf,
    /// `None` if the folder is read-only, so that no lock is needed.
    _lock: Option<File>,
}

impl PkiFolder {
    /// Waits while another process has the folder locked. Creates the folder if needed.
    pub(super) fn open(path: &Path) -> Result<PkiFolder, StartError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if !path.exists() {
            builder.create(path).and_then(|()| sync_parent(path)).map_err(|error| wrong(path, &error))?;
        }
        let lock_path = path.join(".lock");
        let lock = match private().create(true).truncate(false).open(&lock_path) {
            Ok(lock) => {
                lock.lock().map_err(|error| wrong(&lock_path, &error))?;
                Some(lock)
            }
            Err(error) if cannot_write(&error) => None,
            Err(error) => return Err(wrong(&lock_path, &error)),
        };
        let folder = PkiFolder { path: path.to_owned(), _lock: lock };
        for secret in [CA_KEY, KEY, TOKEN] {
            folder.warn_if_open_to_others(secret);
        }
        folder.finish_changes()?;
        Ok(folder)
    }

    /// The administrator's token; created on first use.
    pub(super) fn token(&self, make: impl FnOnce() -> String) -> Result<String, StartError> {
        let Some(text) = self.read(TOKEN)? else {
            let token = make();
            self.write(TOKEN, &format!("{token}\n"))?;
            return Ok(token);
        };
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "it is damaged: one line with a token was expected; restore it from a copy, or remove it: then a \
                          new one is created, and older kubeconfigs stop working";
            return Err(self.wrong(TOKEN, &reason));
        }
        Ok(token.to_owned())
    }

    /// A serving certificate for these names, issued by the authority of this folder: the existing one if it
    /// is suitable, or a new one. The authority is created if there is none.
    ///
    /// A certificate of another authority was provided by the user, who is also responsible for its renewal:
    /// it is used as it is.
    pub(super) fn serving(&self, names: &[String], now: SystemTime) -> Result<TlsFiles, StartError> {
        let found = (self.read(CERTIFICATE)?, self.read(KEY)?);
        let has_authority = [CA_CERTIFICATE, CA_KEY].iter().any(|name| self.path.join(name).exists());
        match &found {
            (Some(certificate), Some(key)) if !has_authority => {
                return self.provided(certificate, key, names, now);
            }
            (Some(_), None) if !has_authority => return Err(self.alone(CERTIFICATE, KEY)),
            (None, Some(_)) if !has_authority => return Err(self.alone(KEY, CERTIFICATE)),
            _ => {}
        }
        let (authority, issuer) = self.authority(now)?;
        let mut is_ours = true;
        let why = match found {
            (Some(certificate), Some(key)) => {
                let files = TlsFiles { certificate, key, authority };
                let good = files.check(names, now).and_then(|()| files.check(names, now + RENEW_BEFORE));
                let Err(why) = good else { return Ok(files) };
                is_ours = files.is_by_its_authority(now);
                if !is_ours && issuer.is_some() && files.check(&[], now).is_ok() {
                    return self.provided(&files.certificate, &files.key, names, now);
                }
                why
            }
            _ => "it is missing".to_owned(),
        };
        let Some(issuer) = issuer else {
            let reason = format!("{why}; it cannot be renewed without {CA_KEY}");
            return Err(self.wrong(CERTIFICATE, &reason));
        };
        let files = issuer.issue(names, now).map_err(|error| match error {
            PkiError::Foreign(_) => {
                let reason =
                    format!("{error}; have it issue {CERTIFICATE} and {KEY} for {}", names.join(", "));
                self.wrong(CA_CERTIFICATE, &reason)
            }
            other => StartError::Certificate(other.to_string()),
        })?;
        if !is_ours {
            self.set_aside(&[KEY, CERTIFICATE])?;
        }
        // Until the certificate is written, the two do not match, and the next start creates both again.
        self.write(KEY, &files.key)?;
        self.write(CERTIFICATE, &files.certificate)?;
        tracing::info!(folder = %self.path.display(), reason = why, "created a serving certificate");
        Ok(files)
    }

    /// A certificate provided by the user. Clients should trust the certificate itself, or the authority in
    /// its chain.
    fn provided(
        &self,
        certificate: &str,
        key: &str,
        names: &[String],
        now: SystemTime,
    ) -> Result<TlsFiles, StartError> {
        let authority = certificate.to_owned();
        let files = TlsFiles { certificate: certificate.to_owned(), key: key.to_owned(), authority };
        let why = "it is not replaced, since it was not issued by the authority of this folder";
        files.check(&[], now).map_err(|reason| self.wrong(CERTIFICATE, &format!("{reason}; {why}")))?;
        let (certificate, key) = (self.path.join(CERTIFICATE), self.path.join(KEY));
        let doubt = files.check(names, now).err().filter(|doubt| doubt.contains("xpired"));
        tracing::warn!(
            "serving with {} and {}, which were not issued by the authority of this folder, so they are not renewed{}",
            certificate.display(),
            key.display(),
            doubt.map_or_else(String::new, |doubt| format!(": {doubt}"))
        );
        Ok(files)
    }

    fn alone(&self, name: &str, other: &str) -> StartError {
        let reason = format!(
            "there is no {other} for it; add that, or remove {name}: then both are created, with their own authority"
        );
        self.wrong(name, &reason)
    }

    /// Renames files that cannot be recreated.
    fn set_aside(&self, names: &[&str]) -> Result<(), StartError> {
        for name in names {
            let path = self.path.join(name);
            let aside = (1..)
                .map(|number| self.path.join(format!("{name}.replaced-{number}")))
                .find(|to| !to.exists());
            if let (true, Some(aside)) = (path.exists(), aside) {
                tracing::warn!("{} cannot be used, and was renamed to {}", path.display(), aside.display());
                fs::rename(&path, &aside).map_err(|error| wrong(&path, &error))?;
            }
        }
        Ok(())
    }

    /// The content of the files that make up the authority and the serving certificate.
    pub(super) fn stamp(path: &Path) -> Vec<Option<Vec<u8>>> {
        let names = [CA_CERTIFICATE, CA_KEY, CA_EARLIER, CERTIFICATE, KEY, CHANGES];
        names.iter().map(|name| fs::read(path.join(name)).ok()).collect()
    }

    /// Replaces several files as one: if this is interrupted, whoever opens the folder next continues.
    fn change(&self, files: &Map<String, Value>) -> Result<(), StartError> {
        self.write(CHANGES, &Value::Object(files.clone()).to_string())?;
        self.finish_changes()
    }

    fn finish_changes(&self) -> Result<(), StartError> {
        let Some(text) = self.read(CHANGES)? else { return Ok(()) };
        let files: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| self.wrong(CHANGES, &error))?;
        for (name, content) in &files {
            self.write(name, content.as_str().unwrap_or_default())?;
        }
        fs::remove_file(self.path.join(CHANGES)).map_err(|error| self.wrong(CHANGES, &error))
    }

    /// Puts a new authority in the place of this one, and has it issue the serving certificate if this one did.
    pub(super) fn rotate(&self, overlap: Duration, now: SystemTime) -> Result<(), StartError> {
        let failed = |error: PkiError| StartError::Certificate(error.to_string());
        let old = self
            .issuer()?
            .ok_or_else(|| self.wrong(CA_KEY, &"there is no authority with its key to rotate"))?;
        let new = old.rotate(overlap, now).map_err(failed)?;
        let mut files = Map::new();
        files.insert(CA_KEY.into(), new.key().into());
        files.insert(CA_CERTIFICATE.into(), new.certificate().into());
        files.insert(CA_EARLIER.into(), new.earlier().into());
        if let Some(names) = self.own_names(&old, now)? {
            let serving = new.issue(&names, now).map_err(failed)?;
            files.insert(KEY.into(), serving.key.into());
            files.insert(CERTIFICATE.into(), serving.certificate.into());
        }
        self.change(&files)
    }

    /// Has the authority issue the serving certificate again, for the same names.
    pub(super) fn renew(&self, now: SystemTime) -> Result<(), StartError> {
        let issuer =
            self.issuer()?.ok_or_else(|| self.wrong(CA_KEY, &"there is no authority with its key"))?;
        let Some(names) = self.own_names(&issuer, now)? else {
            let reason = "it was not issued by the authority of this folder; whoever has issued it renews it";
            return Err(self.wrong(CERTIFICATE, &reason));
        };
        let files = issuer.issue(&names, now).map_err(|error| StartError::Certificate(error.to_string()))?;
        let mut changed = Map::new();
        changed.insert(KEY.into(), files.key.into());
        changed.insert(CERTIFICATE.into(), files.certificate.into());
        self.change(&changed)
    }

    /// The names of the serving certificate, if this authority has issued it.
    fn own_names(&self, authority: &Authority, now: SystemTime) -> Result<Option<Vec<String>>, StartError> {
        let (Some(certificate), Some(key)) = (self.read(CERTIFICATE)?, self.read(KEY)?) else {
            return Ok(None);
        };
        let names = inspect(&certificate).ok().and_then(|all| all.into_iter().next()).map(|info| info.names);
        let files = TlsFiles { certificate, key, authority: authority.trusted(now) };
        Ok(names.filter(|names| !names.is_empty() && files.is_by_its_authority(now)))
    }

    /// The certificates in this folder, by file.
    pub(super) fn certificates(&self) -> Result<Vec<(&'static str, String)>, StartError> {
        let mut found = Vec::new();
        for name in [CA_CERTIFICATE, CA_EARLIER, CERTIFICATE] {
            if let Some(text) = self.read(name)?.filter(|text| !text.trim().is_empty()) {
                found.push((name, text));
            }
        }
        Ok(found)
    }

    /// What was issued to users, as lines.
    pub(super) fn issued(&self) -> Result<Vec<String>, StartError> {
        Ok(self.read(ISSUED)?.unwrap_or_default().lines().map(str::to_owned).collect())
    }

    /// Replaces what was issued to users.
    pub(super) fn set_issued(&self, lines: &[String]) -> Result<(), StartError> {
        self.write(ISSUED, &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }

    /// The authority's certificate; and the issuer, if its key is here.
    fn authority(&self, now: SystemTime) -> Result<(String, Option<Authority>), StartError> {
        let authority = match (self.read(CA_CERTIFICATE)?, self.read(CA_KEY)?) {
            (Some(certificate), None) => return Ok((certificate, None)),
            (Some(certificate), Some(key)) => {
                let earlier = self.read(CA_EARLIER)?.unwrap_or_default();
                Authority::from_pem(&certificate, &key).and_then(|authority| authority.with_earlier(&earlier))
            }
            (None, Some(_)) if self.path.join(CA_EARLIER).exists() => {
                // Its name was in the certificate.
                return Err(self.wrong(CA_CERTIFICATE, &format!("it is missing; {RESTORE_AUTHORITY}")));
            }
            (None, Some(key)) => {
                // A start was interrupted, or the file was removed.
                tracing::warn!(folder = %self.path.display(), "{CA_CERTIFICATE} is missing and is recreated from {CA_KEY}");
                Authority::from_key(&key, now)
            }
            (None, None) => Authority::generate(now),
        };
        let authority = authority.map_err(|error| match error {
            PkiError::Key(_) => self.wrong(CA_KEY, &format!("{error}; {RESTORE_AUTHORITY}")),
            PkiError::Certificate(_) => self.wrong(CA_CERTIFICATE, &format!("{error}; {RESTORE_AUTHORITY}")),
            PkiError::NotThisKeys => {
                self.wrong(CA_CERTIFICATE, &format!("it does not belong to {CA_KEY}; {RESTORE_AUTHORITY}"))
            }
            other => StartError::Certificate(other.to_string()),
        })?;
        // The key first: the certificate can be created from it, but not the reverse.
        if !self.path.join(CA_KEY).exists() {
            self.write(CA_KEY, authority.key())?;
        }
        if !self.path.join(CA_CERTIFICATE).exists() {
            self.write(CA_CERTIFICATE, authority.certificate())?;
        }
        Ok((authority.trusted(now), Some(authority)))
    }

    /// The authority of this folder, if its certificate and its key are here. The certificate of another authority does not
    /// count: nobody but the owner of this folder says who its clients are.
    pub(super) fn issuer(&self) -> Result<Option<Authority>, StartError> {
        let (Some(certificate), Some(key)) = (self.read(CA_CERTIFICATE)?, self.read(CA_KEY)?) else {
            return Ok(None);
        };
        let earlier = self.read(CA_EARLIER)?.unwrap_or_default();
        let authority =
            Authority::from_pem(&certificate, &key).and_then(|authority| authority.with_earlier(&earlier));
        authority.map(Some).map_err(|error| self.wrong(CA_KEY, &error))
    }

    fn wrong(&self, name: &str, reason: &dyn std::fmt::Display) -> StartError {
        wrong(&self.path.join(name), reason)
    }

    fn read(&self, name: &str) -> Result<Option<String>, StartError> {
        match fs::read(self.path.join(name)) {
            // Non-UTF-8 content is not a key either; the parser reports it.
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.wrong(name, &error)),
        }
    }

    /// Writes a file atomically and durably, readable only by its owner.
    fn write(&self, name: &str, content: &str) -> Result<(), StartError> {
        let new = self.path.join(format!(".{name}.new"));
        let write = || {
            // A file left behind by an interrupted start might be readable by others.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = private().create_new(true).open(&new)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path.join(name))?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| self.wrong(name, &error))
    }

    #[cfg(unix)]
    fn warn_if_open_to_others(&self, name: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path.join(name);
        if let Ok(metadata) = fs::metadata(&path)
            && metadata.permissions().mode() & 0o077 != 0
        {
            let mode = metadata.permissions().mode() & 0o777;
            tracing::warn!("{} can be read by others (mode {mode:o}); `chmod 600` it", path.display());
        }
    }

    #[cfg(not(unix))]
    fn warn_if_open_to_others(&self, _: &str) {}
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> StartError {
    StartError::Pki { path: path.to_owned(), reason: reason.to_string() }
}

/// Also syncs the parent: files are only as durable as the name of their folder.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn cannot_write(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Options for a file that only its owner can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn names(more: &[&str]) -> Vec<String> {
        ["localhost", "127.0.0.1"].iter().chain(more).map(|name| (*name).to_owned()).collect()
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * 20_000
    }

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            Place(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join("pki").join(name)
        }

        fn serving(&self, more: &[&str], now: SystemTime) -> Result<TlsFiles, StartError> {
            PkiFolder::open(&self.path("")).unwrap().serving(&names(more), now)
        }

        fn refused(&self) -> String {
            self.serving(&[], now()).unwrap_err().to_string()
        }
    }

    #[test]
    fn valid_files_are_reused() {
        let place = Place::new();
        let first = place.serving(&[], now()).unwrap();
        let again = place.serving(&[], now() + DAY).unwrap();
        assert_eq!((&first.authority, &first.certificate), (&again.authority, &again.certificate));

        // Another name, or an approaching expiry: another certificate by the same authority.
        let named = place.serving(&["k1s.example.com"], now()).unwrap();
        assert_ne!(named.certificate, first.certificate);
        named.check(&names(&["k1s.example.com"]), now()).unwrap();
        let renewed = place.serving(&["k1s.example.com"], now() + DAY * 336).unwrap();
        assert_ne!(renewed.certificate, named.certificate);
        renewed.check(&names(&[]), now() + DAY * 366).unwrap();
        for files in [named, renewed] {
            assert_eq!(files.authority, first.authority);
        }
    }

    #[test]
    fn a_token_is_created_once() {
        let place = Place::new();
        let token = |made: &str| PkiFolder::open(&place.path("")).unwrap().token(|| made.to_owned());
        assert_eq!(token("one").unwrap(), "one");
        assert_eq!(token("two").unwrap(), "one");
        fs::write(place.path(TOKEN), "").unwrap();
        let refused = token("three").unwrap_err().to_string();
        assert!(refused.contains("admin.token: it is damaged"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = Place::new();
        place.serving(&[], now()).unwrap();
        PkiFolder::open(&place.path("")).unwrap().token(|| "t".into()).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(place.path("")), 0o700);
        let mut found = Vec::new();
        for entry in fs::read_dir(place.path("")).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(mode(entry.path()), 0o600, "{entry:?}");
            found.push(entry.file_name().into_string().unwrap());
        }
        found.sort();
        assert_eq!(found, [".lock", TOKEN, CERTIFICATE, KEY, CA_CERTIFICATE, CA_KEY]);
    }

    #[test]
    fn a_damaged_authority_is_refused_and_nothing_is_changed() {
        for (name, text) in [(CA_KEY, "a key"), (CA_KEY, ""), (CA_CERTIFICATE, "a certificate")] {
            let place = Place::new();
            place.serving(&[], now()).unwrap();
            fs::write(place.path(name), text).unwrap();
            let refused = place.refused();
            assert!(refused.contains(&format!("{name}: it is not a ")), "{refused}");
            assert!(refused.contains("restore it from a copy"), "{refused}");
            assert_eq!(fs::read_to_string(place.path(name)).unwrap(), text);
        }
        let (place, other) = (Place::new(), Place::new());
        place.serving(&[], now()).unwrap();
        other.serving(&[], now()).unwrap();
        fs::copy(other.path(CA_KEY), place.path(CA_KEY)).unwrap();
        assert!(place.refused().contains("ca.crt: it does not belong to ca.key"), "{}", place.refused());
    }

    #[test]
    fn files_that_can_be_recreated_are() {
        let place = Place::new();
        let first = place.serving(&[], now()).unwrap();
        for name in [KEY, CERTIFICATE] {
            fs::write(place.path(name), "half of it").unwrap();
            let again = place.serving(&[], now()).unwrap();
            assert_eq!(again.authority, first.authority);
            again.check(&names(&[]), now()).unwrap();
        }
        // Clients that trust the authority still trust the server after its certificate was lost.
        fs::remove_file(place.path(CA_CERTIFICATE)).unwrap();
        let again = place.serving(&["other"], now()).unwrap();
        TlsFiles { authority: first.authority, ..again }.check(&names(&["other"]), now()).unwrap();
    }

    #[test]
    fn a_provided_certificate_is_used_and_never_replaced() {
        let (place, theirs) = (Place::new(), Place::new());
        let provided = theirs.serving(&[], now()).unwrap();
        let bring = || {
            for name in [CERTIFICATE, KEY] {
                fs::copy(theirs.path(name), place.path(name)).unwrap();
            }
        };
        fs::create_dir_all(place.path("")).unwrap();
        bring();
        // Even for other names, after it has expired, and next to an authority.
        let has_authority = || place.path(CA_KEY).exists();
        for (more, at) in [(&[][..], now()), (&["other"], now()), (&[], now() + DAY * 800)] {
            let served = place.serving(more, at).unwrap();
            assert_eq!((&served.certificate, &served.key), (&provided.certificate, &provided.key));
            assert_eq!(served.authority, provided.certificate);
            assert!(!has_authority(), "no authority is needed");
        }
        fs::remove_file(place.path(KEY)).unwrap();
        assert!(place.refused().contains("apiserver.crt: there is no apiserver.key"), "{}", place.refused());
        fs::write(place.path(KEY), "nonsense").unwrap();
        assert!(place.refused().contains("it is not replaced"), "{}", place.refused());
        fs::remove_file(place.path(KEY)).unwrap();
        fs::remove_file(place.path(CERTIFICATE)).unwrap();

        let own = place.serving(&[], now()).unwrap();
        assert!(has_authority());
        bring();
        for at in [now(), now() + DAY * 800] {
            assert_eq!(place.serving(&[], at).unwrap().certificate, provided.certificate);
        }
        // Unusable files are renamed, not deleted.
        fs::write(place.path(CERTIFICATE), "in a format of its own").unwrap();
        let again = place.serving(&[], now()).unwrap();
        assert_eq!(again.authority, own.authority);
        let aside = fs::read_to_string(place.path("apiserver.crt.replaced-1")).unwrap();
        assert_eq!(aside, "in a format of its own");
        assert_eq!(fs::read_to_string(place.path("apiserver.key.replaced-1")).unwrap(), provided.key);
    }

    #[test]
    fn an_authority_without_its_key_is_accepted_while_its_certificate_is_valid() {
        let place = Place::new();
        let first = place.serving(&[], now()).unwrap();
        fs::remove_file(place.path(CA_KEY)).unwrap();
        assert_eq!(place.serving(&[], now()).unwrap().certificate, first.certificate);
        let refused = place.serving(&["other"], now()).unwrap_err().to_string();
        assert!(refused.contains("not good for other"), "{refused}");
        assert!(refused.contains("it cannot be renewed without ca.key"), "{refused}");
    }
}
