//! The keys of an issuer: found through its discovery document, kept, and fetched again when they change.
//!
//! A task of the issuer does all of it, so that a request never waits for an issuer whose keys are known, and no issuer waits for
//! another. A token that names an unknown key asks for them to be fetched again: not more often than every
//! [`MIN_INTERVAL`], whoever sends such tokens, and it waits no longer than [`PATIENCE`].

use std::{sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::claims::go_list;
use crate::{
    https::HttpsClient,
    identity::keys::{Algorithm, KeySet},
};

/// Interval between attempts to reach an issuer that has not answered yet.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum interval between fetches of keys that tokens cause.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between fetches that nothing causes: after it, a key that the issuer has withdrawn is accepted no more.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// How long an issuer may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a token with an unknown key waits for the keys.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of an issuer.
#[derive(Debug, Default)]
struct State {
    /// The keys; `None` until the issuer has answered.
    keys: Option<Arc<KeySet>>,
    /// Why not, in upstream's words.
    problem: String,
    /// Fetches that have ended.
    fetches: u64,
    /// Whether one is on its way.
    fetching: bool,
    /// When the last one ended.
    ended: Option<Instant>,
}

/// The keys of an issuer.
pub(super) enum Keys {
    /// They are fetched.
    Remote(Remote),
    /// They are given.
    #[cfg(test)]
    Given(Arc<KeySet>),
}

pub(super) struct Remote {
    env: Env,
    state: watch::Receiver<State>,
    wanted: Arc<Notify>,
}

/// The discovery document, as far as it counts.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    jwks_uri: String,
}

/// Where an issuer is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) issuer: String,
    /// Its discovery document, if not in the usual place.
    pub(super) discovery: String,
}

impl Place {
    fn document(&self) -> String {
        if self.discovery.is_empty() {
            format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'))
        } else {
            self.discovery.clone()
        }
    }
}

impl Keys {
    /// Starts to fetch the keys of an issuer, until `stop`.
    pub(super) fn fetch(env: &Env, client: Arc<HttpsClient>, place: Place, stop: CancellationToken) -> Keys {
        let initial = State {
            problem: format!("oidc: authenticator for issuer {:?} is not initialized", place.issuer),
            ..State::default()
        };
        let (sender, state) = watch::channel(initial);
        let wanted = Arc::new(Notify::new());
        let (task_env, asked) = (env.clone(), wanted.clone());
        drop(env.spawn("keys of a token issuer", async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = run(&task_env, &client, &place, &sender, &asked) => {}
            }
        }));
        Keys::Remote(Remote { env: env.clone(), state, wanted })
    }

    /// Why tokens cannot be verified yet, if they cannot.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Keys::Remote(remote) => {
                let state = remote.state.borrow();
                state.keys.is_none().then(|| state.problem.clone())
            }
            #[cfg(test)]
            Keys::Given(_) => None,
        }
    }

    /// Completes when tokens can be verified.
    pub(super) async fn ready(&self) {
        match self {
            Keys::Remote(remote) => {
                let mut state = remote.state.clone();
                let _ = state.wait_for(|state| state.keys.is_some()).await;
            }
            #[cfg(test)]
            Keys::Given(_) => {}
        }
    }

    fn current(&self) -> Option<Arc<KeySet>> {
        match self {
            Keys::Remote(remote) => remote.state.borrow().keys.clone(),
            #[cfg(test)]
            Keys::Given(keys) => Some(keys.clone()),
        }
    }

    /// Checks a signature.
    pub(super) async fn verify(
        &self,
        id: &str,
        algorithm: Algorithm,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), String> {
        let verifies = |keys: &KeySet| keys.verifies(id, algorithm, signed, signature);
        let known = self.current();
        if known.as_deref().is_some_and(verifies) {
            return Ok(());
        }
        match self {
            Keys::Remote(remote) => match remote.fetch_again().await {
                Some(keys) if verifies(&keys) => Ok(()),
                _ => Err("failed to verify signature: failed to verify id token signature".into()),
            },
            #[cfg(test)]
            Keys::Given(keys) if !keys.has(id) => {
                Err("failed to verify signature: no keys matches jwk keyid".into())
            }
            #[cfg(test)]
            Keys::Given(_) => Err("failed to verify signature: failed to verify id token signature".into()),
        }
    }
}

impl Remote {
    /// The keys after another fetch; `None` if it is too early for one, or it takes too long.
    async fn fetch_again(&self) -> Option<Arc<KeySet>> {
        let mut state = self.state.clone();
        let before = {
            let state = state.borrow();
            let early = state.ended.is_some_and(|ended| self.env.now() - ended < MIN_INTERVAL);
            if early && !state.fetching {
                return None;
            }
            state.fetches
        };
        self.wanted.notify_one();
        let fetched =
            async { state.wait_for(|state| state.fetches > before).await.map(|state| state.keys.clone()) };
        self.env.timeout(PATIENCE, fetched).await.ok()?.ok()?
    }
}

/// Fetches the keys, and again when that is wanted or due.
async fn run(env: &Env, client: &HttpsClient, place: &Place, state: &watch::Sender<State>, wanted: &Notify) {
    let mut uri = None;
    loop {
        state.send_modify(|state| state.fetching = true);
        let fetched = fetch(client, place, &mut uri).await;
        let ended = env.now();
        let failed = fetched.as_ref().err().cloned();
        state.send_modify(|state| {
            state.fetching = false;
            state.fetches += 1;
            state.ended = Some(ended);
            match fetched {
                Ok(keys) => state.keys = Some(Arc::new(keys)),
                // Keys that are known stay in use: an issuer that is down for a while makes no token invalid.
                Err(why) => state.problem = why,
            }
        });
        let next = match failed {
            Some(why) => {
                tracing::warn!(issuer = %place.issuer, error = %why, "the keys of a token issuer could not be fetched");
                RETRY_INTERVAL
            }
            None => REFRESH_INTERVAL,
        };
        let due = env.sleep_until(ended + next);
        tokio::pin!(due);
        loop {
            tokio::select! {
                () = &mut due => break,
                () = wanted.notified() => {
                    if env.now() - ended >= MIN_INTERVAL {
                        break;
                    }
                }
            }
        }
    }
}

/// Fetches the keys, and first, unless it is known, where they are.
async fn fetch(client: &HttpsClient, place: &Place, uri: &mut Option<String>) -> Result<KeySet, String> {
    let at = match uri {
        Some(uri) => uri.clone(),
        None => uri.insert(discover(client, place).await?).clone(),
    };
    let fetched = keys(client, &at).await;
    if fetched.is_err() {
        // They may have moved.
        *uri = None;
    }
    fetched
}

async fn discover(client: &HttpsClient, place: &Place) -> Result<String, String> {
    let answer = client.get(&place.document(), None, TIMEOUT).await?;
    let text = || String::from_utf8_lossy(answer.body.get(..1024).unwrap_or(&answer.body)).into_owned();
    if !answer.status.is_success() {
        return Err(format!("{}: {}", answer.status, text()));
    }
    let document: Document = serde_json::from_slice(&answer.body)
        .map_err(|why| format!("oidc: failed to decode provider discovery object: {why}"))?;
    if document.issuer != place.issuer {
        return Err(format!(
            "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
            k1s_object::field::quote(&place.issuer),
            k1s_object::field::quote(&document.issuer)
        ));
    }
    if document.jwks_uri.is_empty() {
        return Err("provider did not return JWKS URL".into());
    }
    Ok(document.jwks_uri)
}

async fn keys(client: &HttpsClient, uri: &str) -> Result<KeySet, String> {
    let answer =
        client.get(uri, None, TIMEOUT).await.map_err(|why| format!("oidc: get keys failed {why}"))?;
    if !answer.status.is_success() {
        return Err(format!("oidc: get keys failed: {}", answer.status));
    }
    KeySet::parse(&answer.body).map_err(|why| format!("oidc: failed to decode keys: {why}"))
}

/// Checks that an algorithm may be used.
pub(super) fn allowed(name: &str, allowed: &[Algorithm]) -> Result<Algorithm, String> {
    Algorithm::named(name).filter(|algorithm| allowed.contains(algorithm)).ok_or_else(|| {
        let names: Vec<&str> = allowed.iter().map(|algorithm| algorithm.name()).collect();
        format!(
            "oidc: id token signed with unsupported algorithm, expected {} got {}",
            go_list(&names),
            k1s_object::field::quote(name)
        )
    })
}
