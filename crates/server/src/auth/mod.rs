//! Authentication: the user of a request, by its token and its impersonation headers.

mod impersonate;
mod service_accounts;

use std::sync::Arc;

use http::{HeaderMap, header};
use k1s_object::Status;

pub(crate) use impersonate::{could_allow, impersonate};
pub(crate) use service_accounts::{Bound, Grant, audiences, configuration, find, issue};

use crate::{
    identity::User,
    tenant::{Shared, Tenant},
};

/// Why a bearer token is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nobody knows it.
    Unknown,
    /// It was issued here, and is not valid.
    Wrong(String),
    /// It could not be looked at.
    Failed(Status),
}

impl Refusal {
    /// What a request with the token gets.
    pub(crate) fn status(self) -> Status {
        match self {
            Refusal::Unknown | Refusal::Wrong(_) => Status::unauthorized(),
            Refusal::Failed(status) => status,
        }
    }
}

/// The token in the value of an `Authorization` header, if it is one of a bearer.
pub(crate) fn bearer_token(value: &str) -> Option<&str> {
    let mut words = value.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The bearer token of a request, if it carries one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    bearer_token(headers.get(header::AUTHORIZATION)?.to_str().ok()?)
}

/// Whose token this is, and for which of the wanted audiences it is good. `wanted` is `None` for a request, whose
/// audience is this server.
pub(crate) async fn authenticate(
    shared: &Shared,
    tenant: Option<&Arc<Tenant>>,
    token: &str,
    wanted: Option<&[String]>,
) -> Result<(User, Vec<String>), Refusal> {
    let own = audiences(shared);
    let wanted = wanted.unwrap_or(&own);
    if let Some(user) = shared.options.tokens.find(token) {
        // Such a token is for this server, whoever asks.
        let good = intersection(&own, wanted);
        return if good.is_empty() { Err(Refusal::Unknown) } else { Ok((user.clone(), good)) };
    }
    let tenant = tenant.ok_or(Refusal::Unknown)?;
    service_accounts::authenticate(tenant, token, wanted).await
}

/// Who sends a request with this token to a tenant that may not be there; `None`: a service account of the tenant, if it is.
///
/// # Errors
/// 401, if the token is nobody's: that needs no look at the tenant.
pub(crate) async fn outside(shared: &Shared, tenant: &str, token: &str) -> Result<Option<User>, Status> {
    if let Some(user) = shared.options.tokens.find(token) {
        return Ok(Some(user.clone()));
    }
    if service_accounts::is_issued(shared, tenant, token).await? {
        return Ok(None);
    }
    Err(Status::unauthorized())
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
