//! Users and their credentials. Nothing here depends on a tenant.

mod authenticators;
mod by_user;
#[cfg(feature = "tls")]
mod certificates;
mod claims;
mod csv;
mod jwt;
mod keys;
mod oidc;
mod options;
mod request_header;
mod token_cache;
#[cfg(feature = "tls")]
mod token_webhook;
mod tokens;

pub(crate) use authenticators::Authenticators;
pub(crate) use by_user::ByUser;
#[cfg(feature = "tls")]
pub(crate) use certificates::{Certificate, valid_until};
pub(crate) use claims::{AccountClaims, Claims, LegacyClaims, ObjectRef, Private};
pub(crate) use jwt::Verdict;
pub use keys::{Algorithm, KeyError, PublicKeys, SigningKey};
pub use oidc::{
    AuthenticationConfiguration, ClaimMappings, ClaimOrExpression, ClaimValidationRule, ConfigurationError,
    ExtraMapping, Issuer, JwtAuthenticator, JwtError, PrefixedClaimOrExpression, UserValidationRule,
};
pub use options::{
    AnonymousOptions, AuthenticationOptions, ServiceAccountError, ServiceAccountOptions, TokenWebhookError,
    TokenWebhookOptions,
};
pub(crate) use request_header::RequestHeaders;
pub use request_header::{RequestHeaderError, RequestHeaderOptions};
pub use tokens::Tokens;
pub(crate) use tokens::same_secret;

/// Signs and verifies the tokens of service accounts.
pub(crate) type TokenSigner = jwt::Signer<AccountClaims>;

/// The user that sends a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Additional attributes, such as the pod a token is bound to.
    pub extra: Vec<(String, Vec<String>)>,
}

/// The client of a connection, by its certificate: verified when it connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Whom the authorities of users take it for.
    pub(crate) user: Verified<User>,
    /// Whether the authorities of front proxies take it for one.
    pub(crate) proxy: Verified<()>,
    /// The only tenant in which it is valid; `None` if it is in all.
    pub(crate) tenant: Option<Box<str>>,
}

/// What the authorities for one purpose make of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "certificates come with TLS"))]
pub(crate) enum Verified<T> {
    /// There are none, or the certificate names nobody.
    NoOpinion,
    Good {
        value: T,
        /// When the certificate expires, in seconds since 1970.
        until: i64,
    },
    /// It is not valid for this.
    Refused,
}

impl<T> Verified<T> {
    /// What is valid at this time, in seconds since 1970.
    pub(crate) fn at(&self, now: i64) -> Option<&T> {
        match self {
            Verified::Good { value, until } if now <= *until => Some(value),
            _ => None,
        }
    }

    fn is_refused(&self, now: i64) -> bool {
        match self {
            Verified::NoOpinion => false,
            Verified::Good { until, .. } => now > *until,
            Verified::Refused => true,
        }
    }
}

impl Peer {
    /// A client whose certificate is valid for nothing.
    pub(crate) const REFUSED: Peer =
        Peer { user: Verified::Refused, proxy: Verified::NoOpinion, tenant: None };

    /// Whether the certificate is not valid for something. Without other credentials, its client is then nobody.
    pub(crate) fn is_refused(&self, now: i64) -> bool {
        self.user.is_refused(now) || self.proxy.is_refused(now)
    }
}

/// The name of the node that a user is, possibly empty; `None` for other users.
pub(crate) fn node_of(user: &User) -> Option<&str> {
    user.name.strip_prefix("system:node:").filter(|_| user.is_in("system:nodes"))
}

impl User {
    /// A user in these groups and in `system:authenticated`.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> User {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        groups.push("system:authenticated".into());
        User { name: name.into(), groups, ..User::default() }
    }

    /// The administrator: the default user of clients in this process.
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

    /// The same user in the group of all that are authenticated, unless it is in one of the two groups already.
    pub(crate) fn authenticated(mut self) -> User {
        let known = self.name == "system:anonymous"
            || self.is_in("system:authenticated")
            || self.is_in("system:unauthenticated");
        if !known {
            self.groups.push("system:authenticated".into());
        }
        self
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Whether the user is a member of `system:masters`, who may do everything.
    pub fn is_admin(&self) -> bool {
        self.is_in("system:masters")
    }
}
