//! Authentication: determines the user of a request from its token and its impersonation headers. What its connection says
//! counts before that (`pipeline/enter.rs`). And the chain of authorizers, which decides what the user may do.
//!
//! Tokens are tried in kube-apiserver's order: the static ones, those of service accounts, bootstrap tokens, those of issuers,
//! and last those that a webhook knows, so that tokens which can be checked here are never sent anywhere. The first
//! authenticator that knows a token decides; what the others found wrong with it is only told in a `TokenReview`.

mod bootstrap_tokens;
mod chain;
mod impersonate;
mod node;
mod rbac;
mod service_accounts;
#[cfg(feature = "tls")]
mod webhook;

use std::sync::Arc;

use http::{HeaderMap, header};
use k1s_object::Status;

pub(crate) use chain::Chain;
pub(crate) use impersonate::{could_allow, impersonate, impersonates};
pub(crate) use service_accounts::{Bound, Grant, audiences, configuration, find, issue};

use crate::{
    identity::User,
    tenant::{Shared, Tenant},
};

/// Why a bearer token is rejected.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No authenticator knows it. With what those that recognized it found wrong, which is for administrators only.
    Rejected(Vec<String>),
    /// It could not be checked.
    Failed(Status),
}

impl Refusal {
    /// The response to a request with this token.
    pub(crate) fn status(self) -> Status {
        match self {
            Refusal::Rejected(_) => Status::unauthorized(),
            Refusal::Failed(status) => status,
        }
    }
}

/// The bearer token in the value of an `Authorization` header.
pub(crate) fn bearer_token(value: &str) -> Option<&str> {
    let mut words = value.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The warning about a token that is ignored because two spaces are before it, if that is so.
pub(crate) fn spaced_token(headers: &HeaderMap) -> Option<&'static str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let mut words = value.trim().splitn(3, ' ');
    let is_bearer = words.next()?.eq_ignore_ascii_case("bearer");
    (is_bearer && words.next()?.is_empty() && words.next().is_some()).then_some(
        "the provided Authorization header contains extra space before the bearer token, and is ignored",
    )
}

/// The bearer token of a request, if it carries one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    bearer_token(headers.get(header::AUTHORIZATION)?.to_str().ok()?)
}

/// The user of a token, and the wanted audiences that it is valid for. `wanted` is `None` for a request, whose audience
/// is this server.
pub(crate) async fn authenticate(
    shared: &Shared,
    tenant: Option<&Arc<Tenant>>,
    token: &str,
    wanted: Option<&[String]>,
) -> Result<(User, Vec<String>), Refusal> {
    let own = audiences(shared);
    let wanted = wanted.unwrap_or(own);
    // The audience of all tokens but those of service accounts is this server.
    let ours = intersection(own, wanted);
    if let Some(user) = shared.options.tokens.find(token)
        && !ours.is_empty()
    {
        return Ok((user.clone(), ours));
    }
    let mut wrong = Vec::new();
    if let Some(tenant) = tenant {
        match service_accounts::authenticate(tenant, token, wanted).await {
            Err(Refusal::Rejected(why)) => wrong.extend(why),
            decided => return decided,
        }
        if let Some(user) = bootstrap_tokens::authenticate(tenant, token).await.map_err(Refusal::Failed)?
            && !ours.is_empty()
        {
            return Ok((user, ours));
        }
    }
    match shared.authenticators.jwt(token).await {
        Ok(Some(user)) if !ours.is_empty() => return Ok((user, ours)),
        Ok(_) => {}
        Err(why) => wrong.push(why),
    }
    match shared.authenticators.webhook(token, wanted).await {
        Ok(Some(found)) => return Ok(found),
        Ok(None) => {}
        Err(why) => wrong.push(why),
    }
    if !wrong.is_empty() {
        tracing::debug!(why = wrong.join(", "), "a token is not valid");
    }
    Err(Refusal::Rejected(wrong))
}

/// The user of a token in a request to a tenant that may not exist; `None` if only that tenant can tell.
///
/// # Errors
/// 401 for an unknown token, without loading the tenant.
pub(crate) async fn outside(shared: &Shared, tenant: &str, token: &str) -> Result<Option<User>, Status> {
    if let Some(user) = shared.options.tokens.find(token) {
        return Ok(Some(user.clone()));
    }
    if service_accounts::is_issued(shared, tenant, token).await?
        || bootstrap_tokens::may_exist(shared, tenant, token).await?
    {
        return Ok(None);
    }
    authenticate(shared, None, token, None).await.map(|(user, _)| Some(user)).map_err(Refusal::status)
}

fn intersection(of: &[String], with: &[String]) -> Vec<String> {
    of.iter().filter(|one| with.contains(one)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_one_word_after_the_scheme() {
        assert_eq!(bearer_token("Bearer abc"), Some("abc"));
        assert_eq!(bearer_token(" bearer abc more"), Some("abc"));
        for other in ["", "Bearer", "Bearer ", "Bearer  abc", "Basic YTpi"] {
            assert_eq!(bearer_token(other), None, "{other}");
        }
    }
}
