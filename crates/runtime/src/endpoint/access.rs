//! Who may read an endpoint: the API server is asked, as by Go's `filters.WithAuthenticationAndAuthorization`.

use std::{collections::HashMap, fmt, hash::Hash, sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header};
use k1s_env::{Env, Instant};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, api::PostParams};
use parking_lot::Mutex;

/// So many answers of each sort are kept.
const KEPT: usize = 1024;

/// How long answers of the API server are good for. The defaults are those of Go's filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessReviewOptions {
    /// Who a token belongs to: a minute.
    pub token_ttl: Duration,
    /// That somebody may: 5 minutes.
    pub allow_ttl: Duration,
    /// That somebody may not: 30 s.
    pub deny_ttl: Duration,
    /// How long the API server has for an answer: 10 s.
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

/// Lets those read whose token the API server knows (`TokenReview`), and who may `get` the path (`SubjectAccessReview`).
///
/// The program itself needs to be allowed to `create` `tokenreviews.authentication.k8s.io` and
/// `subjectaccessreviews.authorization.k8s.io`; who reads metrics, to `get` the non-resource URL `/metrics`.
///
/// Without a token, or with one that is not good, the answer is 401; without permission, 403. (For a bad token Go's filter
/// answers 500, as if the API server had failed.)
#[derive(Clone)]
pub struct AccessReview {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    client: kube::Client,
    options: AccessReviewOptions,
    users: Mutex<Kept<String, Option<UserInfo>>>,
    /// By what was asked.
    decisions: Mutex<Kept<String, bool>>,
}

/// A refusal: what is answered.
pub(super) type Refusal = (StatusCode, String);

impl AccessReview {
    /// Asks through a client.
    #[must_use]
    pub fn new(env: &Env, client: kube::Client, options: AccessReviewOptions) -> AccessReview {
        let (users, decisions) = (Mutex::default(), Mutex::default());
        AccessReview { inner: Arc::new(Inner { env: env.clone(), client, options, users, decisions }) }
    }

    /// Whether a request may be answered.
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

    /// Whose token it is, if anybody's.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, String> {
        let inner = &self.inner;
        if let Some(user) = inner.users.lock().get(token, inner.env.now()) {
            return Ok(user);
        }
        let spec = TokenReviewSpec { token: token.to_owned(), ..Default::default() };
        let status = self.ask(TokenReview { spec, ..Default::default() }).await?.status.unwrap_or_default();
        if let Some(error) = status.error.filter(|error| !error.is_empty()) {
            tracing::debug!(%error, "a token is not good");
        }
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let until = inner.env.now() + inner.options.token_ttl;
        inner.users.lock().put(token.to_owned(), user.clone(), until, inner.env.now());
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
        let asked = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        if let Some(allowed) = inner.decisions.lock().get(&asked, inner.env.now()) {
            return Ok(allowed);
        }
        let review = self.ask(SubjectAccessReview { spec, ..Default::default() }).await?;
        let status = review.status.unwrap_or_default();
        let allowed = status.allowed && status.denied != Some(true);
        let ttl = if allowed { inner.options.allow_ttl } else { inner.options.deny_ttl };
        inner.decisions.lock().put(asked, allowed, inner.env.now() + ttl, inner.env.now());
        Ok(allowed)
    }

    async fn ask<K>(&self, review: K) -> Result<K, String>
    where
        K: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let api: Api<K> = Api::all(self.inner.client.clone());
        let asked = async { api.create(&PostParams::default(), &review).await };
        match self.inner.env.timeout(self.inner.options.timeout, asked).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("the API server did not answer in time".to_owned()),
        }
    }
}

/// The token of `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// Answers that are good for a while.
struct Kept<K, V> {
    all: HashMap<K, (Instant, V)>,
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Instant) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.all.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value.clone())
    }

    fn put(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.all.len() >= KEPT {
            self.all.retain(|_, (until, _)| now < *until);
            // Somebody tries tokens: what is good is asked for again.
            if self.all.len() >= KEPT {
                self.all.clear();
            }
        }
        self.all.insert(key, (until, value));
    }
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept { all: HashMap::new() }
    }
}

impl fmt::Debug for AccessReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessReview").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
