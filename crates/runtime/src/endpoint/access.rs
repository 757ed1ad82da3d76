//! Authenticates and authorizes clients of an endpoint, like Go's `filters.WithAuthenticationAndAuthorization`.

use std::{collections::HashMap, fmt, hash::Hash, sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header};
use k1s_env::{Env, Instant};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, api::PostParams};
use parking_lot::Mutex;

/// Maximum number of cached reviews of each kind.
const MAX_ENTRIES: usize = 1024;

/// Options of an [`AccessReview`]. The defaults are those of Go's filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessReviewOptions {
    /// How long the user of a token is cached. A minute by default.
    pub token_ttl: Duration,
    /// How long a permission is cached. 5 minutes by default.
    pub allow_ttl: Duration,
    /// How long a denial is cached. 30 s by default.
    pub deny_ttl: Duration,
    /// Maximum time to wait for the API server. 10 s by default.
    pub timeout: Duration,
}

impl Default for AccessReviewOptions {
    fn default() -> AccessReviewOptions {
        AccessReviewOptions {
            token_ttl: Duration::from_secs(60),
            allow_ttl: Duration::from_secs(300),
            deny_ttl: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
        }
    }
}

/// Accepts requests whose token the API server authenticates (`TokenReview`) and whose user may `get` the path
/// (`SubjectAccessReview`).
///
/// The program itself needs permission to `create` `tokenreviews.authentication.k8s.io` and
/// `subjectaccessreviews.authorization.k8s.io`; readers of metrics, to `get` the non-resource URL `/metrics`.
///
/// The response is 401 without a valid token, 403 without permission. (For an invalid token Go's filter returns 500, as if
/// the API server had failed.)
#[derive(Clone)]
pub struct AccessReview {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    client: kube::Client,
    options: AccessReviewOptions,
    users: Mutex<TtlCache<String, Option<UserInfo>>>,
    /// By the spec of the `SubjectAccessReview`.
    decisions: Mutex<TtlCache<String, bool>>,
}

/// The response to a rejected request.
pub(super) type Refusal = (StatusCode, String);

impl AccessReview {
    /// Sends reviews through a client.
    #[must_use]
    pub fn new(env: &Env, client: kube::Client, options: AccessReviewOptions) -> AccessReview {
        let (users, decisions) = (Mutex::default(), Mutex::default());
        AccessReview { inner: Arc::new(Inner { env: env.clone(), client, options, users, decisions }) }
    }

    /// Authenticates and authorizes a request.
    pub(super) async fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let unauthorized = || (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
        let token = bearer(headers).ok_or_else(unauthorized)?;
        let user = self.user(token).await.map_err(|error| {
            tracing::error!(%error, "Authentication failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed".to_owned())
        })?;
        let user = user.ok_or_else(unauthorized)?;
        let name = user.username.clone().unwrap_or_default();
        let verb = method.as_str().to_ascii_lowercase();
        match self.is_allowed(user, verb, path).await {
            Ok(true) => Ok(()),
            Ok(false) => Err((StatusCode::FORBIDDEN, format!("Authorization denied for user {name}"))),
            Err(error) => {
                let message = format!("Authorization for user {name} failed");
                tracing::error!(%error, "{message}");
                Err((StatusCode::INTERNAL_SERVER_ERROR, message))
            }
        }
    }

    /// The user of a token, if it is valid.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, String> {
        let inner = &self.inner;
        if let Some(user) = inner.users.lock().get(token, inner.env.now()) {
            return Ok(user);
        }
        let spec = TokenReviewSpec { token: token.to_owned(), ..Default::default() };
        let status =
            self.review(TokenReview { spec, ..Default::default() }).await?.status.unwrap_or_default();
        if let Some(error) = status.error.filter(|error| !error.is_empty()) {
            tracing::debug!(%error, "a token is invalid");
        }
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let until = inner.env.now() + inner.options.token_ttl;
        inner.users.lock().insert(token.to_owned(), user.clone(), until, inner.env.now());
        Ok(user)
    }

    async fn is_allowed(&self, user: UserInfo, verb: String, path: &str) -> Result<bool, String> {
        let inner = &self.inner;
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some(verb),
            }),
            ..Default::default()
        };
        let spec_json = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        if let Some(allowed) = inner.decisions.lock().get(&spec_json, inner.env.now()) {
            return Ok(allowed);
        }
        let review = self.review(SubjectAccessReview { spec, ..Default::default() }).await?;
        let status = review.status.unwrap_or_default();
        let allowed = status.allowed && status.denied != Some(true);
        let ttl = if allowed { inner.options.allow_ttl } else { inner.options.deny_ttl };
        inner.decisions.lock().insert(spec_json, allowed, inner.env.now() + ttl, inner.env.now());
        Ok(allowed)
    }

    async fn review<K>(&self, review: K) -> Result<K, String>
    where
        K: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<K> = Api::all(self.inner.client.clone());
        let created = async { api.create(&PostParams::default(), &review).await };
        match self.inner.env.timeout(self.inner.options.timeout, created).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("the API server timed out".to_owned()),
        }
    }
}

/// The token of `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// Values that expire.
struct TtlCache<K, V> {
    all: HashMap<K, (Instant, V)>,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Instant) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.all.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value.clone())
    }

    fn insert(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.all.len() >= MAX_ENTRIES {
            self.all.retain(|_, (until, _)| now < *until);
            // Probably a client that tries tokens. Valid ones are reviewed again.
            if self.all.len() >= MAX_ENTRIES {
                self.all.clear();
            }
        }
        self.all.insert(key, (until, value));
    }
}

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> TtlCache<K, V> {
        TtlCache { all: HashMap::new() }
    }
}

impl fmt::Debug for AccessReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessReview").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
