//! Token webhooks. `TestV1WebhookTokenAuthenticator` and the others exist for each version of `TokenReview`, with the same cases.

use k1s_server::{Authority, TokenWebhookOptions};

use super::{
    super::{
        issuer::{Issuer, Page},
        webhook::{OURS, answer, asking, review},
    },
    *,
};

/// `Test…WebhookTokenAuthenticator`: eleven cases for each version. Where upstream's has no audiences of its own or wanted ones,
/// which cannot be here, it has those of the server.
#[tokio::test]
async fn test_webhook_token_authenticator() {
    let somebody = |audiences: &[&str]| {
        let status = json!({"authenticated": true, "user": {"username": "somebody"}});
        let mut status = status.as_object().unwrap().clone();
        if !audiences.is_empty() {
            status.insert("audiences".into(), json!(audiences));
        }
        Value::Object(status)
    };
    let person = json!({"username": "person@place.com", "uid": "abcd-1234", "groups": ["stuff-dev", "main-eng"], "extra": {"foo": ["bar", "baz"]}});
    let garbage = json!({"username": "garbage", "uid": "abcd-1234", "groups": ["not-actually-used"]});
    let ours: &[&str] = &[OURS];
    let name = Some(json!("somebody"));
    // The name, the wanted audiences, the answer, and the user or what of it is compared.
    let cases: [(&str, &[&str], Value, Option<Value>); 11] = [
        ("successful response should pass through all user info", &[], somebody(&[]), name.clone()),
        (
            "successful response should pass through all user info",
            &[],
            json!({"authenticated": true, "user": person}),
            Some(json!("person@place.com")),
        ),
        (
            "unauthenticated shouldn't even include extra provided info",
            &[],
            json!({"authenticated": false, "user": garbage}),
            None,
        ),
        (
            "unauthenticated shouldn't even include extra provided info",
            &[],
            json!({"authenticated": false}),
            None,
        ),
        ("good audience", ours, somebody(&[]), name.clone()),
        ("good audience", &[OURS, "other"], somebody(&[]), name.clone()),
        ("bad audiences", &["other"], json!({"authenticated": false}), None),
        ("bad audiences", &["other"], somebody(&[]), None),
        ("audience aware backend", ours, somebody(ours), name.clone()),
        ("audience aware backend", &[], somebody(ours), name),
        ("audience aware backend", ours, somebody(&["other"]), None),
    ];
    for version in ["v1", "v1beta1"] {
        let webhook = Issuer::start(&[]).await;
        let server = asking(&webhook, |options| options.version = version.into()).await;
        for (place, (name, wanted, status, user)) in cases.iter().enumerate() {
            webhook.pages.set("/review", answer(version, status));
            let token = format!("my-s3cr3t-t0ken-{place}");
            let mut spec = json!({ "token": token });
            if !wanted.is_empty() {
                spec["audiences"] = json!(wanted);
            }
            let found = review(&server, spec).await;
            let asked = webhook.pages.last.lock().0.clone();
            assert_eq!(asked["spec"]["token"], token, "{name}");
            assert_eq!(asked["apiVersion"], format!("authentication.k8s.io/{version}"), "{name}");
            assert_eq!(asked["kind"], "TokenReview", "{name}");
            assert_eq!(found["authenticated"] == true, user.is_some(), "{version} {place} {name}: {found}");
            match user {
                Some(user) => {
                    assert_eq!(found["user"]["username"], *user, "{name}");
                    assert_eq!(found["audiences"], json!(ours), "{name}");
                }
                None => assert_eq!(found["user"], json!({}), "{name}"),
            }
            if user.as_ref().is_some_and(|user| user == "person@place.com") {
                let mut expected = person.clone();
                expected["groups"] = json!(["stuff-dev", "main-eng", "system:authenticated"]);
                assert_eq!(found["user"], expected, "{name}");
            }
        }
    }
}

/// `Test…WebhookCacheAndRetry`: eight calls for each version, here of three webhooks at once, since each pause takes its time.
#[tokio::test]
async fn test_webhook_cache_and_retry() {
    /// The status of the webhook, whether the token counts here, and the number of calls.
    type Call = (u16, bool, usize);
    let play = async |version: &'static str, token: &str, calls: &[Call]| {
        let webhook = Issuer::start(&[]).await;
        let server = asking(&webhook, |options| options.version = version.into()).await;
        for (status, known, count) in calls {
            let allowed = answer(
                version,
                &json!({"authenticated": true, "user": {"username": "realHooman@email.com"}}),
            );
            webhook.pages.set("/review", if *status == 200 { allowed } else { Page::Status(*status) });
            let before = webhook.pages.count("/review");
            let code = Client::of(&server).bearer(token).code().await;
            assert_eq!(code == 201, *known, "{version} {token} {status}");
            assert_eq!(webhook.pages.count("/review") - before, *count, "{version} {token} {status}");
        }
    };
    let of_version = async |version| {
        futures_util::future::join3(
            play(version, "t0k3n", &[(500, false, 5), (404, false, 1), (200, true, 1), (500, true, 0)]),
            play(version, "an0th3r_t0k3n", &[(500, false, 5)]),
            play(version, "an0th3r_t0k3n", &[(429, false, 5), (200, true, 1), (500, true, 0)]),
        )
        .await
    };
    futures_util::future::join(of_version("v1"), of_version("v1beta1")).await;
}

/// `Test…TLSConfig`: six cases for each version.
#[tokio::test]
async fn test_tls_config() {
    let now = Env::system().wall();
    let [clients, others] = [(); 2].map(|()| Authority::generate(now).unwrap());
    let client = clients.issue_client("client", &[], Duration::from_secs(3600), now, [7; 16]).unwrap();
    // The name, whether the client has a certificate, whether it trusts the server, whose certificates the server takes, and
    // whether they talk to each other.
    let (own, other) = (clients.certificate(), others.certificate());
    let cases = [
        ("TLS setup between client and server", true, true, own, true),
        ("Server does not require client auth", false, true, "", true),
        ("Server does not require client auth, client provides it", true, true, "", true),
        ("Client does not trust server", true, false, "", false),
        ("Server does not trust client", true, true, other, false),
        ("Server is using insecure connection", false, false, "", false),
    ];
    let client = &client;
    let play = async |version: &str,
                      (name, shows, trusts, takes, expected): (&str, bool, bool, &str, bool)| {
        let webhook = Issuer::with_clients(&[], takes).await;
        let status = json!({"authenticated": true, "user": {"username": "bob"}});
        webhook.pages.set("/review", answer(version, &status));
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            name.to_owned()
        };
        let mut cluster = json!({"server": format!("{}/review", webhook.url)});
        if trusts {
            cluster["certificate-authority"] = file("ca.pem", webhook.authority.certificate()).into();
        }
        let user = match shows {
            true => {
                json!({"client-certificate": file("client.pem", &client.certificate), "client-key": file("client.key", &client.key)})
            }
            false => json!({}),
        };
        let kubeconfig = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "w", "user": "u"}}],
            "clusters": [{"name": "w", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        });
        let path = folder.path().join(file("kubeconfig", &kubeconfig.to_string()));
        let mut options = TokenWebhookOptions::new(&path);
        options.version = version.into();
        let mut server = ServerOptions::default();
        server.authentication.webhook = Some(options);
        let server = server_with(server).await;
        let code = async |token: &str| Client::of(&server).bearer(token).code().await;
        assert_eq!(code("t0k3n").await == 201, expected, "{version} {name}");
        assert_eq!(webhook.pages.count("/review") > 0, expected, "{version} {name}");
        if expected {
            webhook.pages.set("/review", answer(version, &json!({"authenticated": false})));
            assert_eq!(code("another").await, 401, "{version} {name}");
        }
    };
    let all = ["v1", "v1beta1"].into_iter().flat_map(|version| cases.map(|case| (version, case)));
    futures_util::future::join_all(all.map(|(version, case)| play(version, case))).await;
}
