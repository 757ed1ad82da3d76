//! The cases of Kubernetes' own tests of bearer tokens, token files, token webhooks and OpenID Connect, under the names of these tests. Those of
//! client certificates are in `serve/tls/upstream.rs`, those of front proxies in `identity/request_header.rs`,
//! and those of OpenID Connect that need no issuer in `identity/oidc/tests.rs`.

#![allow(clippy::type_complexity, reason = "tables")]

mod bearer;
mod issuers;
mod token_webhook;

use super::*;

/// Who sends a request with these headers: a user, nobody (`Ok("")`), or the code of a refusal; and its warnings.
async fn sender(server: &ApiServer, headers: &[(&str, &str)]) -> (Result<String, u16>, Vec<String>) {
    let mut request = Request::builder().method(Method::POST).uri(SELF);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer =
        server.clone().call(request.body(Body::from("{}".as_bytes().to_vec())).unwrap()).await.unwrap();
    let warnings =
        answer.headers().get_all("warning").iter().map(|one| one.to_str().unwrap().to_owned()).collect();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    let who = match code {
        201 => Ok(body["status"]["userInfo"]["username"].as_str().unwrap().to_owned()),
        // Nobody may not ask who it is.
        403 if body["message"].as_str().unwrap().contains("User \"system:anonymous\" cannot create") => {
            Ok(String::new())
        }
        code => Err(code),
    };
    (who, warnings)
}
