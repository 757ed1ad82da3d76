//! What security needs at least: to find a user by its token, and one of its rules; to write two lines of a log with something of
//! their own in each; to encrypt and to decrypt an object.

use std::{
    collections::HashMap,
    fs::File,
    hint::black_box,
    io::Write as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, Method, header};
use k1s_env::Env;
use parking_lot::Mutex;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::{Failure, report, server::child::READER};

/// Users by their tokens, and the rules of each.
pub(super) struct Rules {
    users: HashMap<String, &'static str>,
    rules: HashMap<&'static str, Vec<(&'static str, Vec<Method>)>>,
}

impl Rules {
    /// The user who reads, with a role that others do not have. Any other token is an administrator's.
    pub(super) fn new() -> Rules {
        let rules = ["secrets", "configmaps"].map(|resource| (resource, vec![Method::GET, Method::POST]));
        Rules { users: [(READER.to_owned(), "user-7")].into(), rules: [("user-7", rules.to_vec())].into() }
    }

    /// Whether the sender may do this.
    pub(super) fn allow(&self, headers: &HeaderMap, method: &Method, path: &str) -> bool {
        let sent = headers.get(header::AUTHORIZATION).and_then(|sent| sent.to_str().ok());
        let token = sent.and_then(|sent| sent.strip_prefix("Bearer ")).unwrap_or_default();
        let Some(user) = self.users.get(token) else { return true };
        // `/api/v1/namespaces/N/configmaps`
        let resource = path.split('/').nth(5).unwrap_or_default();
        let rules = self.rules.get(user).map(Vec::as_slice).unwrap_or_default();
        rules.iter().any(|(name, methods)| *name == resource && methods.contains(method))
    }
}

/// A line as it is in the log of k1s, but for its time and its id.
const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/configmaps/cm-000007","verb":"get","user":{"username":"user-7","uid":"3","groups":["devs","qa","system:authenticated"]},"sourceIPs":["127.0.0.1"],"userAgent":"k1s-bench","objectRef":{"resource":"configmaps","namespace":"default","name":"cm-000007","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"#;

/// How often the lines are written.
const INTERVAL: Duration = Duration::from_millis(10);

/// A log with two lines for each request, which a task writes.
pub(super) struct Audit {
    env: Env,
    lines: Arc<Mutex<Vec<u8>>>,
    number: AtomicU64,
}

impl Audit {
    pub(super) fn create(env: &Env, path: &Path) -> Result<Audit, Failure> {
        let mut file = File::create(path)?;
        let lines = Arc::<Mutex<Vec<u8>>>::default();
        let (waiting, clock) = (lines.clone(), env.clone());
        drop(env.spawn("floor audit", async move {
            let mut batch = Vec::new();
            loop {
                clock.sleep(INTERVAL).await;
                std::mem::swap(&mut batch, &mut *waiting.lock());
                if let Err(error) = file.write_all(&batch) {
                    return report::progress(&format!("the floor cannot write: {error}"));
                }
                batch.clear();
            }
        }));
        Ok(Audit { env: env.clone(), lines, number: AtomicU64::new(0) })
    }

    pub(super) fn record(&self) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        for _ in 0..2 {
            let at = self.env.wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
            let mut end = Vec::with_capacity(120);
            // Writing to memory does not fail.
            let _ = writeln!(end, "\"auditID\":\"{number:032x}\",\"stageTimestamp\":\"{at}\"}}");
            let mut lines = self.lines.lock();
            lines.extend_from_slice(LINE.as_bytes());
            lines.extend_from_slice(&end);
        }
    }
}

/// Encrypts what is written, and decrypts what is read. What is encrypted is kept: a server that answers lists and watches from
/// memory keeps the plain objects, too.
pub(super) struct Sealed {
    key: LessSafeKey,
    kept: Mutex<Vec<Vec<u8>>>,
    /// The encrypted answer to a GET.
    stored: Vec<u8>,
}

const NONCE: [u8; 12] = [7; 12];

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key(NONCE)
}

impl Sealed {
    pub(super) fn new(answer: &[u8]) -> Result<Sealed, Failure> {
        let failed = |_| Failure("the floor cannot encrypt".to_owned());
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).map_err(failed)?);
        let mut stored = answer.to_vec();
        key.seal_in_place_append_tag(nonce(), Aad::empty(), &mut stored).map_err(failed)?;
        Ok(Sealed { key, kept: Mutex::default(), stored })
    }

    pub(super) fn write(&self, body: &[u8]) {
        let mut sealed = Vec::with_capacity(body.len() + 16);
        sealed.extend_from_slice(body);
        let done = self.key.seal_in_place_append_tag(nonce(), Aad::empty(), &mut sealed);
        self.kept.lock().push(sealed);
        black_box(done.is_ok());
    }

    pub(super) fn read(&self) {
        let mut plain = self.stored.clone();
        let done = self.key.open_in_place(nonce(), Aad::empty(), &mut plain).is_ok();
        black_box((done, plain));
    }
}
