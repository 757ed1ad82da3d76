//! Distributed claims: groups that a token does not have, but says where they are.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_object::field::quote;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    claims::{self, Claims},
    keys::{Keys, Place},
    parse, verify,
};
use crate::{https::HttpsClient, identity::Algorithm};

/// How long an endpoint may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the keys of an issuer that was not known before.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of issuers of distributed claims.
const MAX_ISSUERS: usize = 16;

/// Finds the values of one claim.
pub(super) struct Resolver {
    env: Env,
    claim: String,
    client: Arc<HttpsClient>,
    stop: CancellationToken,
    issuers: Mutex<HashMap<String, Arc<Keys>>>,
}

impl Resolver {
    pub(super) fn new(
        env: &Env,
        claim: String,
        client: Arc<HttpsClient>,
        stop: CancellationToken,
    ) -> Resolver {
        Resolver { env: env.clone(), claim, client, stop, issuers: Mutex::default() }
    }

    /// The keys of an issuer, which are fetched from when they are first needed.
    fn keys(&self, issuer: &str) -> Option<Arc<Keys>> {
        let mut issuers = self.issuers.lock();
        if let Some(keys) = issuers.get(issuer) {
            return Some(keys.clone());
        }
        if issuers.len() >= MAX_ISSUERS || !issuer.starts_with("https://") {
            return None;
        }
        let place = Place { issuer: issuer.to_owned(), discovery: String::new() };
        let keys = Arc::new(Keys::fetch(&self.env, self.client.clone(), place, self.stop.clone()));
        issuers.insert(issuer.to_owned(), keys.clone());
        Some(keys)
    }

    /// Adds the claim to those of a verified token, if they refer to it.
    pub(super) async fn expand(
        &self,
        claims: &mut Claims,
        audiences: &[String],
        algorithms: &[Algorithm],
        now: i64,
    ) -> Result<(), String> {
        let Some(endpoint) = claims::endpoint(claims, &self.claim)? else { return Ok(()) };
        let claim = quote(&self.claim);
        let bearer = (!endpoint.token.is_empty()).then_some(endpoint.token.as_str());
        let answer = self.client.get(&endpoint.url, bearer, TIMEOUT).await;
        let answer = answer.map_err(|why| format!("while getting distributed claim {claim}: {why}"))?;
        if !answer.status.is_success() {
            return Err(format!(
                "while getting distributed claim {claim}: error while getting distributed claim JWT: {}",
                answer.status
            ));
        }
        let token = String::from_utf8_lossy(&answer.body);
        let url = &endpoint.url;
        let Some((parts, found)) = parse(token.trim()) else {
            return Err(format!(
                "getting untrusted issuer from endpoint {url} failed for claim {claim}: malformed token"
            ));
        };
        let issuer = claims::issuer(&found);
        let unknown = || {
            let quoted = quote(issuer);
            format!(
                "verifying untrusted issuer {issuer} failed: verifier not initialized for issuer: {quoted}"
            )
        };
        let keys = self.keys(issuer).ok_or_else(unknown)?;
        self.env.timeout(PATIENCE, keys.ready()).await.map_err(|_| unknown())?;
        verify(&parts, &found, &keys, audiences, algorithms, now)
            .await
            .map_err(|why| format!("verify distributed claim token: {why}"))?;
        let Some(value) = found.get(&self.claim) else {
            return Err(format!(
                "jwt returned by distributed claim endpoint {} did not contain claim: {}",
                quote(url),
                self.claim
            ));
        };
        claims.insert(self.claim.clone(), value.clone());
        Ok(())
    }
}
