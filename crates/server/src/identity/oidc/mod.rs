//! OpenID Connect: tokens of issuers that the administrator trusts.
//!
//! `config` is the configuration, `validate` its rules; `keys` fetches the keys of an issuer, `claims` makes a user of a token's
//! claims, with `expressions`; `distributed` finds groups that a token only refers to.

mod claims;
mod config;
mod distributed;
mod expressions;
mod keys;
mod validate;

use std::sync::Arc;

use k1s_env::Env;
use k1s_object::{FieldError, field::quote};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    claims::{Claims, Mapping},
    distributed::Resolver,
    keys::{Keys, Place},
};
pub use config::{
    AuthenticationConfiguration, ClaimMappings, ClaimOrExpression, ClaimValidationRule, ConfigurationError,
    ExtraMapping, Issuer, JwtAuthenticator, PrefixedClaimOrExpression, UserValidationRule,
};

use super::{Algorithm, User, jwt::Parts};
use crate::https::HttpsClient;

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// It breaks rules.
    #[error("invalid authentication configuration: {}", aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// There are no egress selectors here.
    #[error("oidc: egress lookup required with egress selector type {0:?}")]
    Egress(String),
    /// The authorities of an issuer cannot be used.
    #[error("Failed to read the CA contents: {0}")]
    Authority(String),
}

fn aggregate(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The issuers of one configuration. Their tasks end with it.
pub(super) struct Issuers {
    all: Vec<Arc<Authenticator>>,
    _stop: DropGuard,
}

/// An issuer.
struct Authenticator {
    url: String,
    audiences: Vec<String>,
    algorithms: Arc<[Algorithm]>,
    keys: Keys,
    mapping: Mapping,
    /// Finds groups that are elsewhere; `None` if no claim has them.
    resolver: Option<Resolver>,
}

impl Issuers {
    /// Checks a configuration, and starts to fetch the keys of its issuers. `disallowed` are the issuers of service accounts.
    pub(super) fn start(
        env: &Env,
        config: &AuthenticationConfiguration,
        algorithms: &Arc<[Algorithm]>,
        disallowed: &[String],
        stop: &CancellationToken,
    ) -> Result<Issuers, JwtError> {
        let wrong = validate::configuration(config, disallowed);
        if !wrong.is_empty() {
            return Err(JwtError::Invalid(wrong));
        }
        let stop = stop.child_token();
        let one = |jwt: &JwtAuthenticator| {
            Authenticator::start(env, jwt, algorithms, disallowed, &stop).map(Arc::new)
        };
        let all = config.jwt.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Issuers { all, _stop: stop.drop_guard() })
    }

    /// The user of a token; `None` if it is by none of the issuers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn authenticate(&self, token: &str, now: i64) -> Result<Option<User>, String> {
        let Some((parts, claims)) = parse(token) else { return Ok(None) };
        let issuer = claims::issuer(&claims);
        match self.all.iter().find(|authenticator| authenticator.url == issuer) {
            Some(authenticator) => authenticator.authenticate(&parts, claims, now).await.map(Some),
            None => Ok(None),
        }
    }

    /// Why tokens of some issuers cannot be verified yet; empty if they all can.
    pub(super) fn problems(&self) -> Vec<String> {
        let problem = |one: &Arc<Authenticator>| {
            let why = one.keys.problem()?;
            Some(format!("oidc: authenticator for issuer {} is not healthy: {why}", quote(&one.url)))
        };
        self.all.iter().filter_map(problem).collect()
    }

    /// Completes when tokens of all issuers can be verified.
    pub(super) async fn ready(&self) {
        for one in &self.all {
            one.keys.ready().await;
        }
    }
}

/// The parts of a token, and its claims, before they are believed.
fn parse(token: &str) -> Option<(Parts<'_>, Claims)> {
    let parts = Parts::of(token)?;
    let claims = serde_json::from_slice(&parts.payload()?).ok()?;
    Some((parts, claims))
}

/// Checks everything about a token but its issuer.
async fn verify(
    parts: &Parts<'_>,
    claims: &Claims,
    keys: &Keys,
    audiences: &[String],
    algorithms: &[Algorithm],
    now: i64,
) -> Result<(), String> {
    claims::check(claims, audiences, now)?;
    let malformed =
        || "oidc: malformed jwt: go-jose/go-jose: compact JWS format must have three parts".to_owned();
    let header = parts.header().ok_or_else(malformed)?;
    let signature = parts.signature().ok_or_else(malformed)?;
    let algorithm = keys::allowed(&header.alg, algorithms)?;
    keys.verify(&header.kid, algorithm, parts.signed.as_bytes(), &signature).await?;
    claims::check_audience(claims, audiences)
}

impl Authenticator {
    fn start(
        env: &Env,
        jwt: &JwtAuthenticator,
        algorithms: &Arc<[Algorithm]>,
        disallowed: &[String],
        stop: &CancellationToken,
    ) -> Result<Authenticator, JwtError> {
        let (mapping, client) = Authenticator::prepare(env, jwt, disallowed)?;
        let place = Place { issuer: jwt.issuer.url.clone(), discovery: jwt.issuer.discovery_url.clone() };
        let keys = Keys::fetch(env, client.clone(), place, stop.clone());
        Ok(Authenticator::new(env, jwt, mapping, keys, client, algorithms, stop))
    }

    fn prepare(
        env: &Env,
        jwt: &JwtAuthenticator,
        disallowed: &[String],
    ) -> Result<(Mapping, Arc<HttpsClient>), JwtError> {
        let (mappers, wrong) = validate::authenticator(jwt, disallowed, "");
        if !wrong.is_empty() {
            return Err(JwtError::Invalid(wrong));
        }
        if !jwt.issuer.egress_selector_type.is_empty() {
            return Err(JwtError::Egress(jwt.issuer.egress_selector_type.clone()));
        }
        let client = HttpsClient::new(env, &jwt.issuer.certificate_authority).map_err(JwtError::Authority)?;
        Ok((Mapping::new(jwt.clone(), mappers), Arc::new(client)))
    }

    fn new(
        env: &Env,
        jwt: &JwtAuthenticator,
        mapping: Mapping,
        keys: Keys,
        client: Arc<HttpsClient>,
        algorithms: &Arc<[Algorithm]>,
        stop: &CancellationToken,
    ) -> Authenticator {
        let claim = mapping.groups_claim().to_owned();
        let resolver = (!claim.is_empty()).then(|| Resolver::new(env, claim, client, stop.clone()));
        Authenticator {
            url: jwt.issuer.url.clone(),
            audiences: jwt.issuer.audiences.clone(),
            algorithms: algorithms.clone(),
            keys,
            mapping,
            resolver,
        }
    }

    async fn authenticate(&self, parts: &Parts<'_>, mut claims: Claims, now: i64) -> Result<User, String> {
        if self.keys.problem().is_some() {
            return Err("oidc: authenticator not initialized".into());
        }
        verify(parts, &claims, &self.keys, &self.audiences, &self.algorithms, now)
            .await
            .map_err(|why| format!("oidc: verify token: {why}"))?;
        if let Some(resolver) = &self.resolver {
            resolver
                .expand(&mut claims, &self.audiences, &self.algorithms, now)
                .await
                .map_err(|why| format!("oidc: could not expand distributed claims: {why}"))?;
        }
        self.mapping.user(claims)
    }
}

#[cfg(test)]
mod tests;
