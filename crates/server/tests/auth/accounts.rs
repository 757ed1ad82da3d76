//! Tokens of service accounts: keys and issuers that the server is given, and tokens in Secrets.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD, prelude::BASE64_STANDARD};
use k1s_server::{PublicKeys, SigningKey};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};

use super::*;

const RSA_1: &str = include_str!("keys/rsa_1.pem");
const EC_384: &str = include_str!("keys/ecdsa_384.pem");
const ISSUER: &str = "https://issuer.example";

/// A token with these claims, by the key `rsa_1`.
fn signed(claims: &Value) -> String {
    let body: String = RSA_1.lines().filter(|line| !line.starts_with('-')).collect();
    let pair = RsaKeyPair::from_der(&BASE64_STANDARD.decode(body).unwrap()).unwrap();
    let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let text = format!("{}.{}", part(json!({"alg": "RS256"})), part(claims.clone()));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn payload(token: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

fn header(token: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap()).unwrap()
}

async fn with_keys(change: impl FnOnce(&mut ServerOptions)) -> ApiServer {
    let mut options = ServerOptions::default();
    let accounts = &mut options.authentication.service_accounts;
    accounts.issuers = vec![ISSUER.into(), "https://old.example".into()];
    accounts.keys = PublicKeys::from_pem(RSA_1).unwrap();
    change(&mut options);
    server_with(options).await
}

/// The claims of a token for the account `robot`, as another server of the same issuer makes them.
async fn claims(admin: &Client, issuer: &str) -> Value {
    let account = admin.get(&format!("{ACCOUNTS}/robot")).await.1;
    json!({
        "iss": issuer, "aud": [ISSUER], "exp": 9_999_999_999_i64, "iat": 1_600_000_000, "nbf": 1_600_000_000,
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}},
    })
}

#[tokio::test]
async fn tokens_are_signed_with_the_given_key() {
    for (pem, algorithm) in [(RSA_1, "RS256"), (EC_384, "ES384")] {
        let server = with_keys(|options| {
            options.authentication.service_accounts.signing_key = Some(SigningKey::from_pem(pem).unwrap());
        })
        .await;
        let admin = Client::admin(&server);
        let token = admin.robot(json!({})).await;
        let (code, keys) = admin.get("/openid/v1/jwks").await;
        assert_eq!(code, 200);
        let key = keys["keys"].as_array().unwrap().iter().find(|key| key["alg"] == algorithm).unwrap();
        assert_eq!((&header(&token)["alg"], &header(&token)["kid"]), (&json!(algorithm), &key["kid"]));
        assert_eq!(
            (&payload(&token)["iss"], &payload(&token)["aud"]),
            (&json!(ISSUER), &json!([ISSUER, "https://old.example"]))
        );
        assert_eq!(Client::of(&server).bearer(&token).code().await, 201);
        let configuration = admin.get("/.well-known/openid-configuration").await.1;
        assert_eq!(configuration["issuer"], ISSUER);
        assert_eq!(configuration["jwks_uri"], "https://issuer.example/openid/v1/jwks");
        let algorithms = configuration["id_token_signing_alg_values_supported"].as_array().unwrap();
        assert!(algorithms.contains(&json!(algorithm)) && algorithms.contains(&json!("RS256")));
    }
}

#[tokio::test]
async fn tokens_of_other_keys_and_issuers_are_accepted() {
    let server = with_keys(|_| {}).await;
    let admin = Client::admin(&server);
    let own = admin.robot(json!({})).await;
    assert_eq!(header(&own)["alg"], "ES256");
    for issuer in [ISSUER, "https://old.example"] {
        let token = signed(&claims(&admin, issuer).await);
        let user =
            Client::of(&server).bearer(&token).create(SELF, json!({})).await["status"]["userInfo"].take();
        assert_eq!(user["username"], "system:serviceaccount:default:robot");
        assert_eq!(user["extra"], Value::Null);
    }
    let review = async |claims: &Value| {
        let status =
            admin.create(TOKEN_REVIEWS, json!({"spec": {"token": signed(claims)}})).await["status"].take();
        status["error"].as_str().unwrap().to_owned()
    };
    let good = claims(&admin, ISSUER).await;
    let with = |field: &str, value: Value| {
        let mut claims = good.clone();
        claims[field] = value;
        claims
    };
    let cases = [
        (with("iss", "https://new.example".into()), "invalid bearer token"),
        (with("iss", "https://issuer.example/clusters/other".into()), "invalid bearer token"),
        (
            with("aud", "vault".into()),
            "[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences [\"https://issuer.example\" \"https://old.example\"]]",
        ),
        (with("exp", 1_600_000_001.into()), "[invalid bearer token, service account token has expired]"),
        (
            with("nbf", 9_000_000_000_i64.into()),
            "[invalid bearer token, service account token is not valid yet]",
        ),
        (
            with("iat", 9_000_000_000_i64.into()),
            "[invalid bearer token, service account token is issued in the future]",
        ),
        (
            with(
                "kubernetes.io",
                json!({"namespace": "default", "serviceaccount": {"name": "nobody", "uid": "u"}}),
            ),
            "[invalid bearer token, serviceaccounts \"nobody\" not found]",
        ),
        (
            with(
                "kubernetes.io",
                json!({"namespace": "default", "serviceaccount": good["kubernetes.io"]["serviceaccount"], "secret": {"name": "gone", "uid": "u"}}),
            ),
            "[invalid bearer token, service account token has been invalidated]",
        ),
        (
            with(
                "kubernetes.io",
                json!({"namespace": "default", "serviceaccount": good["kubernetes.io"]["serviceaccount"], "pod": {"name": "gone", "uid": "u"}}),
            ),
            "[invalid bearer token, service account token has been invalidated]",
        ),
    ];
    for (claims, expected) in cases {
        assert_eq!(review(&claims).await, expected, "{claims}");
    }
    // Without a claim for it, the audience is this server.
    let mut none = good.clone();
    none.as_object_mut().unwrap().remove("aud");
    assert_eq!(Client::of(&server).bearer(&signed(&none)).code().await, 201);
    // Only tenants of that issuer: another tenant has another name, and other accounts.
    let other = server.tenant("other").await.unwrap();
    Client::admin(&other).robot(json!({})).await;
    assert_eq!(Client::of(&other).bearer(&signed(&good)).code().await, 401);
    let there = claims(&Client::admin(&other), "https://issuer.example/clusters/other").await;
    assert_eq!(Client::of(&other).bearer(&signed(&there)).code().await, 201);
    assert_eq!(Client::of(&server).bearer(&signed(&there)).code().await, 401);
}

#[tokio::test]
async fn audiences_of_the_server_can_be_chosen() {
    let server = with_keys(|options| options.authentication.api_audiences = vec!["api".into()]).await;
    let admin = Client::admin(&server);
    let token = admin.robot(json!({})).await;
    assert_eq!(payload(&token)["aud"], json!(["api"]));
    assert_eq!(Client::of(&server).bearer(&token).code().await, 201);
    let token = signed(&claims(&admin, ISSUER).await);
    assert_eq!(Client::of(&server).bearer(&token).code().await, 401);
}

#[tokio::test]
async fn the_lifetime_of_tokens_is_limited() {
    let server = with_keys(|options| {
        options.authentication.service_accounts.max_expiration = Some(Duration::from_secs(7200));
        options.authentication.service_accounts.jwks_uri = "https://keys.example/jwks".into();
    })
    .await;
    let admin = Client::admin(&server);
    admin.create(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    for (asked, expected) in [(3600, 3600), (7200, 7200), (7201, 7200)] {
        let answer = admin
            .create(&format!("{ACCOUNTS}/robot/token"), json!({"spec": {"expirationSeconds": asked}}))
            .await;
        assert_eq!(answer["spec"]["expirationSeconds"], expected);
        let claims = payload(answer["status"]["token"].as_str().unwrap());
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), expected);
    }
    assert_eq!(
        admin.get("/.well-known/openid-configuration").await.1["jwks_uri"],
        "https://keys.example/jwks"
    );
    let named =
        with_keys(|options| options.authentication.service_accounts.issuers = vec!["just-a-name".into()])
            .await;
    assert_eq!(Client::admin(&named).get("/.well-known/openid-configuration").await.0, 404);
}

#[tokio::test]
async fn options_that_cannot_be_used_are_refused() {
    type Change = fn(&mut k1s_server::ServiceAccountOptions);
    let refused = async |change: Change| {
        let mut options = ServerOptions::default();
        change(&mut options.authentication.service_accounts);
        let store = Arc::new(MemoryStore::default());
        ApiServer::new(Env::system(), store, options).await.unwrap_err().message
    };
    let cases: [(Change, &str); 5] = [
        (|o| o.issuers.clear(), "service-account-issuer is a required flag"),
        (|o| o.issuers.push(String::new()), "service-account-issuer should not be an empty string"),
        (
            |o| o.issuers = vec!["a".into(), "b".into(), "a".into()],
            "service-account-issuer \"a\" is already specified",
        ),
        (
            |o| o.max_expiration = Some(Duration::from_secs(3599)),
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
        ),
        (
            |o| o.jwks_uri = "http://x".into(),
            "service-account-jwks-uri requires https scheme, parsed as: http://x",
        ),
    ];
    for (change, expected) in cases {
        let message = refused(change).await;
        assert!(message.ends_with(expected), "{message}");
    }
}

#[tokio::test]
async fn a_token_in_a_secret_is_valid_while_the_secret_holds_it() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let server = with_keys(|_| {}).await;
    let admin = Client::admin(&server);
    admin.robot(json!({})).await;
    let account = admin.get(&format!("{ACCOUNTS}/robot")).await.1;
    let claim = |name: &str| format!("kubernetes.io/serviceaccount/{name}");
    let mut claims =
        json!({"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:robot"});
    claims[claim("namespace")] = "default".into();
    claims[claim("secret.name")] = "robot-token".into();
    claims[claim("service-account.name")] = "robot".into();
    claims[claim("service-account.uid")] = account["metadata"]["uid"].clone();
    let token = signed(&claims);
    let error = async |token: &str| {
        let status = admin.create(TOKEN_REVIEWS, json!({"spec": {"token": token}})).await["status"].take();
        status["error"].as_str().unwrap_or_default().replace("[invalid bearer token, ", "").replace(']', "")
    };
    assert_eq!(error(&token).await, "Token has been invalidated");
    let secret = |token: &str| {
        json!({
            "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token", "data": {"token": BASE64_STANDARD.encode(token)},
        })
    };
    admin.create(SECRETS, secret(&token)).await;
    let robot = Client::of(&server).bearer(&token);
    let user = robot.create(SELF, json!({})).await["status"]["userInfo"].take();
    assert_eq!(
        (&user["username"], &user["uid"]),
        (&json!("system:serviceaccount:default:robot"), &account["metadata"]["uid"])
    );
    let path = format!("{SECRETS}/robot-token");
    assert_eq!(admin.call(Method::PUT, &path, secret("another")).await.0, 200);
    assert_eq!((robot.code().await, error(&token).await), (401, "Token does not match server's copy".into()));
    let mut marked = secret(&token);
    marked["metadata"]["labels"] = json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"});
    assert_eq!(admin.call(Method::PUT, &path, marked).await.0, 200);
    assert!(error(&token).await.starts_with(
        "the token in secret default/robot-token for service account default/robot has been marked invalid."
    ));
    assert_eq!(admin.call(Method::PUT, &path, secret(&token)).await.0, 200);
    assert_eq!(robot.code().await, 201);
    // The same token is nobody's elsewhere, and claims have to fit together.
    let other = server.tenant("other").await.unwrap();
    assert_eq!(Client::of(&other).bearer(&token).code().await, 401);
    for (name, value, expected) in [
        ("sub", "", "sub claim is missing"),
        ("sub", "system:serviceaccount:default:other", "sub claim is invalid"),
        ("kubernetes.io/serviceaccount/namespace", "", "namespace claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", "", "secretName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.uid", "", "serviceAccountUID claim is missing"),
    ] {
        let mut changed = claims.clone();
        changed[name] = value.into();
        assert_eq!(error(&signed(&changed)).await, expected, "{name}");
    }
    // An issuer's tokens have the claims of that issuer.
    let mut mixed = super::accounts::claims(&admin, "kubernetes/serviceaccount").await;
    assert_eq!(error(&signed(&mixed)).await, "service account token claims could not be validated");
    mixed = claims.clone();
    mixed["iss"] = ISSUER.into();
    mixed["aud"] = ISSUER.into();
    assert_eq!(error(&signed(&mixed)).await, "service account token claims could not be validated");
    assert_eq!(admin.call(Method::DELETE, &path, Value::Null).await.0, 200);
    assert_eq!(robot.code().await, 401);
    admin.create(SECRETS, secret(&token)).await;
    assert_eq!(robot.code().await, 201);
    assert_eq!(admin.call(Method::DELETE, &format!("{ACCOUNTS}/robot"), Value::Null).await.0, 200);
    assert_eq!(robot.code().await, 401);
}
