//! Who sends a request, and whether they may.

mod authorizer;
mod csv;
mod impersonate;
mod jwt;
mod service_accounts;
mod tokens;

use std::sync::Arc;

use http::{HeaderMap, header};
use k1s_object::Status;

pub(crate) use authorizer::{Attributes, Authorizer, Defaults, Target, check};
pub(crate) use impersonate::{could_allow, impersonate};
pub(crate) use service_accounts::{Bound, Grant, Ref, audiences, configuration, find, issue};
pub use tokens::Tokens;

use crate::tenant::{Shared, Tenant};

/// Signs and checks the tokens of service accounts.
pub(crate) type TokenSigner = jwt::Signer<service_accounts::Claims>;

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// More about them, such as the pod a token is bound to.
    pub extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// A user of these groups, and of `system:authenticated`.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> User {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        groups.push("system:authenticated".into());
        User { name: name.into(), groups, ..User::default() }
    }

    /// The administrator that programs in this process are, unless they say otherwise.
    pub fn admin() -> User {
        User::new("admin", &["system:masters"])
    }

    pub(crate) fn anonymous() -> User {
        User {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..User::default()
        }
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Whether everything is allowed to them.
    pub fn is_admin(&self) -> bool {
        self.is_in("system:masters")
    }
}

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
