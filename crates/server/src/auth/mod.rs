//! Authentication: determines the user of a request from its token and its impersonation headers.

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

/// Why a bearer token is rejected.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It is neither in the token file nor issued by this server.
    Unknown,
    /// It was issued by this server and is not valid.
    Wrong(String),
    /// It could not be checked.
    Failed(Status),
}

impl Refusal {
    /// The response to a request with this token.
    pub(crate) fn status(self) -> Status {
        match self {
            Refusal::Unknown | Refusal::Wrong(_) => Status::unauthorized(),
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
    let wanted = wanted.unwrap_or(&own);
    if let Some(user) = shared.options.tokens.find(token) {
        // A static token has this server as its only audience.
        let good = intersection(&own, wanted);
        return if good.is_empty() { Err(Refusal::Unknown) } else { Ok((user.clone(), good)) };
    }
    let tenant = tenant.ok_or(Refusal::Unknown)?;
    service_accounts::authenticate(tenant, token, wanted).await
}

/// The user of a token in a request to a tenant that may not exist; `None` for a service account of that tenant.
///
/// # Errors
/// 401 for an unknown token, without loading the tenant.
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
