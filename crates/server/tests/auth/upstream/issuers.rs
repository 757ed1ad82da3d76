//! The cases of `TestToken` that need an issuer, over HTTPS.

use k1s_server::AuthenticationConfiguration;

use super::{
    super::{
        issuer::{Issuer, Page, RSA_1, signed},
        oidc::{error, initialized, review},
    },
    *,
};

/// Upstream's clock stands in 2009; that of the server does not. Tokens that are valid then are valid forever.
fn filled(text: &str, issuer: &Issuer) -> String {
    text.replace("{{.URL}}", &issuer.url)
        .replace("1257897600", "9999999999")
        .replace("{{.Expired}}", "2009-11-10 22:00:00 +0000 UTC")
}

fn needs_issuer(case: &Value) -> bool {
    ["responses", "unhealthy", "remote"].iter().any(|field| !case[*field].is_null())
        || case["jwt"]["issuer"]["url"].as_str().unwrap().contains("{{")
}

/// The user of a case, or what is wrong.
async fn outcome(case: &Value, issuer: &Issuer) -> Result<Value, String> {
    let jwt: Value = serde_json::from_str(&filled(&case["jwt"].to_string(), issuer)).unwrap();
    let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
    let mut config =
        AuthenticationConfiguration::parse(file.to_string().as_bytes()).map_err(|error| error.to_string())?;
    config.jwt[0].issuer.certificate_authority = issuer.authority.certificate().to_owned();
    let text = |field: &str| filled(case[field].as_str().unwrap_or_default(), issuer);
    let claims = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    issuer.set_keys(&[("rsa_1", RSA_1)]);
    if !case["discovery"].is_null() {
        let document = Page::Body(text("discovery").replace("/.testing/keys", "/keys"));
        for folder in ["", "/c/d/bar"] {
            issuer.pages.set(&format!("{folder}/.well-known/openid-configuration"), document.clone());
        }
    }
    for (name, response) in case["responses"].as_object().into_iter().flatten() {
        let token = signed("rsa_1", RSA_1, &claims(&filled(response.as_str().unwrap(), issuer)));
        issuer.pages.set(&format!("/{name}"), Page::Body(token));
    }
    // Upstream gives this one a client that fails.
    if case["name"] == "groups-distributed invalid client" {
        issuer.pages.set("/groups", Page::Status(500));
    }
    let mut options = ServerOptions::default();
    options.authentication.configuration = config;
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await;
    let server = server.map_err(|status| status.message)?;
    if !case["unhealthy"].is_null() {
        let claims = json!({"iss": case["jwt"]["issuer"]["url"], "aud": "my-client", "username": "jane", "exp": 9_999_999_999_i64});
        return Err(error(&server, &signed("rsa_1", RSA_1, &claims)).await);
    }
    assert_eq!(case["signing"], json!({"key": "rsa_1", "alg": "RS256"}));
    let token = signed("rsa_1", RSA_1, &claims(&text("claims")));
    initialized(&server, &token).await;
    let wrong = error(&server, &token).await;
    match review(&server, &token).await["user"].take() {
        user if wrong.is_empty() => Ok(user),
        _ => Err(wrong),
    }
}

#[tokio::test]
async fn test_token_with_an_issuer() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("oidc.json")).unwrap();
    let mut differences = Vec::new();
    let mut held = 0;
    for case in cases.iter().filter(|case| needs_issuer(case)) {
        let name = case["name"].as_str().unwrap();
        let issuer = Issuer::start(&[]).await;
        let found = outcome(case, &issuer).await;
        let expected = match case["error"].as_str() {
            Some(error) => Err(filled(error, &issuer)),
            None if !case["unhealthy"].is_null() => Err(case["unhealthy"].as_str().unwrap().to_owned()),
            None => {
                let mut groups = case["user"]["groups"].as_array().cloned().unwrap_or_default();
                groups.push("system:authenticated".into());
                Ok(json!({"username": case["user"]["name"], "groups": groups}))
            }
        };
        let holds = match (&found, &expected) {
            // The reason of the client that fails is another one.
            (Err(found), Err(expected)) if name == "groups-distributed invalid client" => {
                let (start, _) = expected.split_once("Get ").unwrap();
                found.starts_with(start)
            }
            _ => found == expected,
        };
        match holds {
            true => held += 1,
            false => differences.push((name, format!("expected {expected:?}, found {found:?}"))),
        }
    }
    let names: Vec<&str> = differences.iter().map(|(name, _)| *name).collect();
    // The first has other words, and there are no egress selectors.
    let expected = [
        "health check failure",
        "valid egress type with broken dialer",
        "valid egress type with working dialer",
    ];
    assert_eq!(names, expected, "{differences:#?}");
    assert_eq!(held, 16);
}
