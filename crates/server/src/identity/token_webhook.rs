//! Tokens that another server knows: it is sent a `TokenReview`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_env::Env;
use serde_json::{Value, json};

use super::{TokenWebhookError, TokenWebhookOptions, User, token_cache::TokenCache};
use crate::webhook::{CallError, KubeconfigClient};

/// How long a review may take with all its attempts.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long one attempt may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses before further attempts: after failures that may pass.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_millis(750),
    Duration::from_millis(1125),
    Duration::from_millis(1690),
];

/// The answer to a review: the user and its audiences, if the token is valid.
type Answer = Result<Option<(User, Vec<String>)>, String>;

/// Asks a webhook about tokens.
pub(super) struct TokenWebhook {
    asks: Arc<Asks>,
    cache: TokenCache<Answer>,
}

struct Asks {
    env: Env,
    client: KubeconfigClient,
    version: String,
    /// The audiences of this server.
    own: Vec<String>,
}

impl TokenWebhook {
    pub(super) fn new(
        env: &Env,
        options: &TokenWebhookOptions,
        own: &[String],
    ) -> Result<TokenWebhook, TokenWebhookError> {
        if !matches!(options.version.as_str(), "v1" | "v1beta1") {
            return Err(TokenWebhookError::Version(options.version.clone()));
        }
        let client = KubeconfigClient::load(&options.kubeconfig).map_err(TokenWebhookError::Client)?;
        let asks = Asks { env: env.clone(), client, version: options.version.clone(), own: own.to_vec() };
        Ok(TokenWebhook { asks: Arc::new(asks), cache: TokenCache::new(env, options.cache_ttl) })
    }

    /// The user of a token, and which of the wanted audiences it is for; `None` if the webhook does not know it.
    ///
    /// # Errors
    /// What the webhook says is wrong, or why it could not be asked.
    pub(super) async fn authenticate(&self, token: &str, wanted: &[String]) -> Answer {
        let call = || {
            let (asks, token, wanted) = (self.asks.clone(), token.to_owned(), wanted.to_vec());
            async move {
                match asks.env.timeout(TIMEOUT, asks.review(&token, &wanted)).await {
                    Ok(answer) => answer,
                    Err(_) => Err("context deadline exceeded".into()),
                }
            }
        };
        self.cache.get(token, wanted, call, Result::is_ok).await
    }
}

impl Asks {
    async fn review(&self, token: &str, wanted: &[String]) -> Answer {
        let review = json!({
            "apiVersion": format!("authentication.k8s.io/{}", self.version), "kind": "TokenReview",
            "metadata": {"creationTimestamp": null}, "spec": {"token": token, "audiences": wanted},
            "status": {"user": {}},
        });
        let body = Bytes::from(review.to_string());
        let mut pauses = PAUSES.into_iter();
        let answer = loop {
            match self.call(body.clone()).await {
                Ok(answer) => break answer,
                Err(failure) => match pauses.next().filter(|_| failure.may_pass) {
                    Some(pause) => self.env.sleep(pause).await,
                    None => {
                        tracing::error!(error = %failure.why, "the webhook for tokens could not be asked");
                        return Err(failure.why);
                    }
                },
            }
        };
        self.read(&answer, wanted)
    }

    async fn call(&self, body: Bytes) -> Result<Value, Failure> {
        let answer = self.client.post(&self.env, body, CALL_TIMEOUT).await.map_err(|error| {
            let may_pass = match &error {
                CallError::Answered { code, .. } => *code >= 500 || *code == 429,
                _ => true,
            };
            Failure { why: error.to_string(), may_pass }
        })?;
        let review: Value = serde_json::from_slice(&answer)
            .map_err(|_| Failure::lasting("the webhook for tokens answered with something else than JSON"))?;
        if review["kind"] != "TokenReview"
            || review["apiVersion"] != format!("authentication.k8s.io/{}", self.version)
        {
            return Err(Failure::lasting(
                "the webhook for tokens answered with something else than a TokenReview",
            ));
        }
        Ok(review)
    }

    fn read(&self, review: &Value, wanted: &[String]) -> Answer {
        let status = &review["status"];
        let texts = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let named = texts(&status["audiences"]);
        let named = if named.is_empty() { &self.own } else { &named };
        let audiences: Vec<String> = wanted.iter().filter(|one| named.contains(one)).cloned().collect();
        if audiences.is_empty() {
            return Ok(None);
        }
        if status["authenticated"] != true {
            return match status["error"].as_str().unwrap_or_default() {
                "" => Ok(None),
                why => Err(why.to_owned()),
            };
        }
        let user = &status["user"];
        let text = |field: &str| user[field].as_str().unwrap_or_default().to_owned();
        let extra = user["extra"].as_object().into_iter().flatten();
        let user = User {
            name: text("username"),
            uid: text("uid"),
            groups: texts(&user["groups"]),
            extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
        };
        Ok(Some((user.authenticated(), audiences)))
    }
}

/// Why there is no answer.
struct Failure {
    why: String,
    /// Whether another attempt makes sense.
    may_pass: bool,
}

impl Failure {
    fn lasting(why: &str) -> Failure {
        Failure { why: why.to_owned(), may_pass: false }
    }
}
