//! Who is authenticated how.

use std::{path::PathBuf, time::Duration};

use super::{Algorithm, AuthenticationConfiguration, PublicKeys, RequestHeaderOptions, SigningKey};

/// How senders of requests are authenticated, besides [`ServerOptions::tokens`](crate::ServerOptions::tokens) and the client
/// certificates of a listener.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuthenticationOptions {
    /// The authorities of client certificates, as PEM, for others to read: they are published in the `ConfigMap`
    /// `kube-system/extension-apiserver-authentication`. A runtime that listens adds those that it trusts.
    pub client_authorities: String,
    /// Front proxies, which name the users of the requests that they forward in headers. `None`: nobody may.
    pub request_header: Option<RequestHeaderOptions>,
    /// Whether the Secrets of type `bootstrap.kubernetes.io/token` in the namespace `kube-system` of a tenant are tokens for it.
    pub bootstrap_tokens: bool,
    /// Requests without credentials.
    pub anonymous: AnonymousOptions,
    /// The tokens of service accounts.
    pub service_accounts: ServiceAccountOptions,
    /// The audiences of this server: a token of a service account has to be for one of them. Empty: its issuers.
    pub api_audiences: Vec<String>,
    /// The issuers of tokens (OpenID Connect). If it says who may be anonymous, that counts before
    /// [`anonymous`](Self::anonymous).
    pub configuration: AuthenticationConfiguration,
    /// The file that the configuration is from: it is read again, and changes of its issuers are taken over.
    pub configuration_file: Option<PathBuf>,
    /// Interval between looks at the file.
    pub reload_interval: Duration,
    /// The algorithms with which issuers may sign. Empty: all.
    pub signing_algorithms: Vec<Algorithm>,
    /// A server that knows further tokens.
    pub webhook: Option<TokenWebhookOptions>,
}

impl Default for AuthenticationOptions {
    fn default() -> AuthenticationOptions {
        AuthenticationOptions {
            client_authorities: String::new(),
            request_header: None,
            bootstrap_tokens: false,
            anonymous: AnonymousOptions::default(),
            service_accounts: ServiceAccountOptions::default(),
            api_audiences: Vec::new(),
            configuration: AuthenticationConfiguration::default(),
            configuration_file: None,
            reload_interval: Duration::from_secs(10),
            signing_algorithms: Vec::new(),
            webhook: None,
        }
    }
}

impl AuthenticationOptions {
    /// The audiences of this server.
    pub(crate) fn audiences(&self) -> &[String] {
        if self.api_audiences.is_empty() { &self.service_accounts.issuers } else { &self.api_audiences }
    }
}

/// How tokens of service accounts are issued, and which are accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceAccountOptions {
    /// The issuers of tokens: those of the default tenant. The issuer of another tenant's tokens is followed by
    /// `/clusters/{tenant}`. New tokens are by the first, and tokens of all of them are accepted.
    pub issuers: Vec<String>,
    /// The key that signs. `None`: one that the servers over a store share.
    pub signing_key: Option<SigningKey>,
    /// Keys whose tokens are accepted, besides those of the signing key.
    pub keys: PublicKeys,
    /// The maximum lifetime of a token, if there is one.
    pub max_expiration: Option<Duration>,
    /// Whether a token with the lifetime that kubelets ask for is valid for a year, so that clients that never reload it
    /// continue to work.
    pub extend_expiration: bool,
    /// The address of the keys in the discovery document of the default tenant. Empty: below the issuer.
    pub jwks_uri: String,
}

impl Default for ServiceAccountOptions {
    fn default() -> ServiceAccountOptions {
        ServiceAccountOptions {
            issuers: vec!["https://kubernetes.default.svc.cluster.local".into()],
            signing_key: None,
            keys: PublicKeys::default(),
            max_expiration: None,
            extend_expiration: true,
            jwks_uri: String::new(),
        }
    }
}

/// What is wrong with [`ServiceAccountOptions`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceAccountError {
    /// There is no issuer.
    #[error("service-account-issuer is a required flag")]
    NoIssuer,
    /// An issuer is empty.
    #[error("service-account-issuer should not be an empty string")]
    EmptyIssuer,
    /// An issuer is given twice.
    #[error("service-account-issuer {0:?} is already specified")]
    Duplicate(String),
    /// The lifetime of a token would be too short, or too long.
    #[error("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")]
    MaxExpiration,
    /// The address of the keys is not secure.
    #[error("service-account-jwks-uri requires https scheme, parsed as: {0}")]
    JwksUri(String),
}

impl ServiceAccountOptions {
    /// Checks that the options can be used.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), ServiceAccountError> {
        if self.issuers.is_empty() {
            return Err(ServiceAccountError::NoIssuer);
        }
        for (at, issuer) in self.issuers.iter().enumerate() {
            if issuer.is_empty() {
                return Err(ServiceAccountError::EmptyIssuer);
            }
            if self.issuers.iter().take(at).any(|before| before == issuer) {
                return Err(ServiceAccountError::Duplicate(issuer.clone()));
            }
        }
        if self.max_expiration.is_some_and(|max| !(3600..=1 << 32).contains(&max.as_secs())) {
            return Err(ServiceAccountError::MaxExpiration);
        }
        if !self.jwks_uri.is_empty() && !self.jwks_uri.starts_with("https://") {
            return Err(ServiceAccountError::JwksUri(self.jwks_uri.clone()));
        }
        Ok(())
    }
}

/// A server that knows tokens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenWebhookOptions {
    /// A kubeconfig, whose current context leads to it.
    pub kubeconfig: PathBuf,
    /// The version of `TokenReview` that it takes: `v1` or `v1beta1`.
    pub version: String,
    /// How long its answers count.
    pub cache_ttl: Duration,
}

impl TokenWebhookOptions {
    /// The one that a kubeconfig leads to. As in kube-apiserver, it takes `v1beta1` unless it is told otherwise.
    pub fn new(kubeconfig: impl Into<PathBuf>) -> TokenWebhookOptions {
        TokenWebhookOptions {
            kubeconfig: kubeconfig.into(),
            version: "v1beta1".into(),
            cache_ttl: Duration::from_secs(120),
        }
    }
}

/// Why a webhook cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenWebhookError {
    /// There is no such version.
    #[error("unsupported authentication webhook version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
    Version(String),
    /// Its kubeconfig cannot be used.
    #[error("{0}")]
    Client(String),
}

/// Which requests without credentials are by `system:anonymous`; the others get 401.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnonymousOptions {
    /// Whether any are.
    pub enabled: bool,
    /// Only those for these paths, unless empty.
    pub paths: Vec<String>,
}

impl Default for AnonymousOptions {
    fn default() -> AnonymousOptions {
        AnonymousOptions { enabled: true, paths: Vec::new() }
    }
}

impl AnonymousOptions {
    /// Whether requests for this path are allowed without credentials.
    pub(crate) fn allows(&self, path: &str) -> bool {
        self.enabled && (self.paths.is_empty() || self.paths.iter().any(|allowed| allowed == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_requests_can_be_limited_to_paths() {
        let all = AnonymousOptions::default();
        let health = AnonymousOptions { paths: vec!["/healthz".into()], ..AnonymousOptions::default() };
        let none = AnonymousOptions { enabled: false, ..AnonymousOptions::default() };
        let cases = [
            ("/healthz", [true, true, false]),
            ("/healthz/", [true, false, false]),
            ("/api", [true, false, false]),
        ];
        for (path, expected) in cases {
            assert_eq!([&all, &health, &none].map(|options| options.allows(path)), expected, "{path}");
        }
    }
}
