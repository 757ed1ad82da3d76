//! The authenticators that all tenants share.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use k1s_env::Env;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "tls")]
use super::token_webhook::TokenWebhook;
use super::{
    Algorithm, AnonymousOptions, AuthenticationOptions, JwtError, RequestHeaderError, RequestHeaders,
    ServiceAccountError, TokenWebhookError, User,
    oidc::{AuthenticationConfiguration, Issuers},
    token_cache::TokenCache,
};

/// How long a token of an issuer is not verified again.
const VERIFIED_FOR: Duration = Duration::from_secs(10);
/// How long the issuers of a new configuration may take to answer before it counts.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// What came of a token: its user and audiences, if it is valid.
pub(crate) type Verified = Result<Option<(User, Vec<String>)>, String>;

/// The authenticators that all tenants share, made from the options of a server.
pub(crate) struct Authenticators {
    env: Env,
    /// The headers of front proxies; none name a user if there are no front proxies.
    pub(crate) headers: RequestHeaders,
    /// Requests without credentials.
    pub(crate) anonymous: AnonymousOptions,
    jwt: Arc<ArcSwap<Jwt>>,
    #[cfg(feature = "tls")]
    webhook: Option<TokenWebhook>,
}

/// The issuers of tokens, and the tokens that were verified.
struct Jwt {
    config: AuthenticationConfiguration,
    issuers: Arc<Issuers>,
    verified: TokenCache<Result<Option<User>, String>>,
}

/// Why authenticators cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    #[error(transparent)]
    RequestHeader(#[from] RequestHeaderError),
    #[error(transparent)]
    ServiceAccounts(#[from] ServiceAccountError),
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error(transparent)]
    Webhook(#[from] TokenWebhookError),
}

impl Jwt {
    fn start(
        env: &Env,
        options: &AuthenticationOptions,
        config: AuthenticationConfiguration,
        stop: &CancellationToken,
    ) -> Result<Jwt, JwtError> {
        let algorithms: Arc<[Algorithm]> = match options.signing_algorithms.as_slice() {
            [] => Algorithm::ALL.into(),
            some => some.into(),
        };
        let disallowed = &options.service_accounts.issuers;
        let issuers = Arc::new(Issuers::start(env, &config, &algorithms, disallowed, stop)?);
        Ok(Jwt { config, issuers, verified: TokenCache::new(env, VERIFIED_FOR) })
    }
}

impl Authenticators {
    pub(crate) fn new(
        env: &Env,
        options: &AuthenticationOptions,
        stop: &CancellationToken,
    ) -> Result<Authenticators, OptionsError> {
        options.service_accounts.check()?;
        let headers = options.request_header.as_ref().map(RequestHeaders::new).transpose()?;
        let jwt = Jwt::start(env, options, options.configuration.clone(), stop)?;
        let jwt = Arc::new(ArcSwap::from_pointee(jwt));
        #[cfg(feature = "tls")]
        let webhook =
            options.webhook.as_ref().map(|webhook| TokenWebhook::new(env, webhook, options.audiences()));
        #[cfg(not(feature = "tls"))]
        if options.webhook.is_some() {
            return Err(TokenWebhookError::Client("this server is built without TLS".into()).into());
        }
        if options.configuration_file.is_some() {
            let following = follow(env.clone(), options.clone(), jwt.clone(), stop.clone());
            drop(env.spawn("authentication configuration", following));
        }
        Ok(Authenticators {
            env: env.clone(),
            headers: headers.unwrap_or_default(),
            anonymous: options.configuration.anonymous.clone().unwrap_or_else(|| options.anonymous.clone()),
            jwt,
            #[cfg(feature = "tls")]
            webhook: webhook.transpose()?,
        })
    }

    /// The user of a token of an issuer; `None` if it is by none.
    pub(crate) async fn jwt(&self, token: &str) -> Result<Option<User>, String> {
        let jwt = self.jwt.load_full();
        if jwt.config.jwt.is_empty() {
            return Ok(None);
        }
        let now = crate::time::now(&self.env).as_second();
        let call = || {
            let (issuers, token) = (jwt.issuers.clone(), token.to_owned());
            async move { issuers.authenticate(&token, now).await }
        };
        let user = jwt.verified.get(token, &[], call, |verified| matches!(verified, Ok(Some(_)))).await?;
        Ok(user.map(User::authenticated))
    }

    /// The user of a token that the webhook knows.
    pub(crate) async fn webhook(&self, token: &str, wanted: &[String]) -> Verified {
        #[cfg(feature = "tls")]
        if let Some(webhook) = &self.webhook {
            return webhook.authenticate(token, wanted).await;
        }
        let _ = (token, wanted);
        Ok(None)
    }
}

impl std::fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticators").field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// Reads the file again and again, and takes over what has changed in it. What cannot be used is logged, once.
async fn follow(env: Env, options: AuthenticationOptions, jwt: Arc<ArcSwap<Jwt>>, stop: CancellationToken) {
    let Some(path) = options.configuration_file.clone() else { return };
    let mut seen: Option<Vec<u8>> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = env.sleep(options.reload_interval) => {}
        }
        let file = path.clone();
        let read =
            env.spawn_blocking("read the authentication configuration", move || std::fs::read(file)).await;
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                tracing::error!(%error, "failed to read authentication config file");
                continue;
            }
            Err(_) => continue,
        };
        if seen.as_ref() == Some(&bytes) {
            continue;
        }
        let config = match AuthenticationConfiguration::parse(&bytes) {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "failed to load authentication config");
                seen = Some(bytes);
                continue;
            }
        };
        if config == jwt.load().config {
            seen = Some(bytes);
            continue;
        }
        if config.anonymous != options.configuration.anonymous {
            let error = "anonymous: Forbidden: changed from initial configuration file";
            tracing::error!(error, "failed to validate authentication config");
            seen = Some(bytes);
            continue;
        }
        let new = match Jwt::start(&env, &options, config, &stop) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!(%error, "failed to validate authentication config");
                seen = Some(bytes);
                continue;
            }
        };
        // Until the new issuers have answered, the old configuration counts. One that does not answer is tried again.
        if env.timeout(READY_TIMEOUT, new.issuers.ready()).await.is_err() {
            let problems = new.issuers.problems().join(", ");
            tracing::error!(error = problems, "failed to update authentication config");
            continue;
        }
        jwt.store(Arc::new(new));
        seen = Some(bytes);
        tracing::info!("reloaded authentication config");
    }
}
