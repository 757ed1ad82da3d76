//! Bootstrap tokens.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::*;

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const TOKEN: &str = "foobar.circumnavigation";

fn secret(more: &Value) -> Value {
    let mut data = json!({
        "token-id": "foobar", "token-secret": "circumnavigation", "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:racks",
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        data[key] = value.clone();
    }
    for value in data.as_object_mut().unwrap().values_mut() {
        *value = BASE64_STANDARD.encode(value.as_str().unwrap()).into();
    }
    json!({"metadata": {"name": "bootstrap-token-foobar"}, "type": "bootstrap.kubernetes.io/token", "data": data})
}

async fn enabled() -> ApiServer {
    let mut options = ServerOptions::default();
    options.authentication.bootstrap_tokens = true;
    server_with(options).await
}

#[tokio::test]
async fn a_bootstrap_token_is_valid_while_its_secret_is() {
    let server = enabled().await;
    let admin = Client::admin(&server);
    let machine = Client::of(&server).bearer(TOKEN);
    assert_eq!(machine.code().await, 401);
    admin.create(SECRETS, secret(&json!({}))).await;
    let user = machine.create(SELF, json!({})).await["status"]["userInfo"].take();
    assert_eq!(
        user,
        json!({"username": "system:bootstrap:foobar",
            "groups": ["system:bootstrappers", "system:bootstrappers:racks", "system:authenticated"]})
    );
    let review = admin.create(TOKEN_REVIEWS, json!({"spec": {"token": TOKEN}})).await;
    assert_eq!(review["status"]["user"]["username"], "system:bootstrap:foobar");
    assert_eq!(review["status"]["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    let review = json!({"spec": {"token": TOKEN, "audiences": ["vault"]}});
    assert_eq!(
        admin.create(TOKEN_REVIEWS, review).await["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
    for wrong in ["foobar.circumnavigatiom", "foobaz.circumnavigation", "foobar.", "foobar"] {
        assert_eq!(Client::of(&server).bearer(wrong).code().await, 401, "{wrong}");
    }
    let path = format!("{SECRETS}/bootstrap-token-foobar");
    let expired = secret(&json!({"expiration": "2020-01-01T00:00:00Z"}));
    assert_eq!(admin.call(Method::PUT, &path, expired).await.0, 200);
    assert_eq!(machine.code().await, 401);
    assert_eq!(admin.call(Method::PUT, &path, secret(&json!({}))).await.0, 200);
    assert_eq!(machine.code().await, 201);
    assert_eq!(admin.call(Method::DELETE, &path, Value::Null).await.0, 200);
    assert_eq!(machine.code().await, 401);
}

#[tokio::test]
async fn bootstrap_tokens_are_off_by_default() {
    let server = server().await;
    Client::admin(&server).create(SECRETS, secret(&json!({}))).await;
    assert_eq!(Client::of(&server).bearer(TOKEN).code().await, 401);
}

#[tokio::test]
async fn a_bootstrap_token_is_valid_in_its_own_tenant_only() {
    let server = enabled().await;
    let one = server.tenant("one").await.unwrap();
    server.tenant("two").await.unwrap();
    Client::admin(&one).create(SECRETS, secret(&json!({}))).await;
    let machine = Client::of(&server).bearer(TOKEN);
    for (tenant, code) in [("one", 201), ("two", 401), ("default", 401), ("nobody", 401)] {
        let path = format!("/clusters/{tenant}{SELF}");
        assert_eq!(machine.call(Method::POST, &path, json!({})).await.0, code, "{tenant}");
    }
}

#[tokio::test]
async fn a_bootstrap_token_opens_the_tenant_that_has_it() {
    let store = Arc::new(MemoryStore::default());
    let start = async || {
        let mut options = ServerOptions::default();
        options.authentication.bootstrap_tokens = true;
        ApiServer::new(Env::system(), store.clone(), options).await.unwrap()
    };
    let first = start().await;
    let one = first.tenant("one").await.unwrap();
    first.tenant("two").await.unwrap();
    Client::admin(&one).create(SECRETS, secret(&json!({}))).await;
    first.shutdown();
    let second = start().await;
    let machine = Client::of(&second).bearer(TOKEN);
    for (tenant, code) in [("two", 401), ("one", 201)] {
        let path = format!("/clusters/{tenant}{SELF}");
        assert_eq!(machine.call(Method::POST, &path, json!({})).await.0, code, "{tenant}");
    }
    assert_eq!(second.tenants(), ["default", "one"]);
}
