//! Tokens of issuers (OpenID Connect), over HTTPS.

use std::sync::atomic::Ordering;

use k1s_server::{
    AuthenticationConfiguration, ClaimValidationRule, ExtraMapping, JwtAuthenticator, UserValidationRule,
};

use super::{
    issuer::{Issuer, Page, RSA_1, RSA_3, signed},
    *,
};

const DISCOVERY: &str = "/.well-known/openid-configuration";

fn configuration(jwt: Vec<JwtAuthenticator>) -> AuthenticationConfiguration {
    let mut config = AuthenticationConfiguration::default();
    config.jwt = jwt;
    config
}

async fn trusting(jwt: Vec<JwtAuthenticator>) -> ApiServer {
    let mut options = ServerOptions::default();
    options.authentication.configuration = configuration(jwt);
    server_with(options).await
}

/// The answer to a review of a token.
pub(crate) async fn review(server: &ApiServer, token: &str) -> Value {
    Client::admin(server).create(TOKEN_REVIEWS, json!({"spec": {"token": token}})).await["status"].take()
}

/// What is wrong with a token; empty if nothing is.
pub(crate) async fn error(server: &ApiServer, token: &str) -> String {
    let review = review(server, token).await;
    let error = review["error"].as_str().unwrap_or_default();
    let own = error.strip_prefix("[invalid bearer token, ").and_then(|own| own.strip_suffix(']'));
    own.unwrap_or(error).to_owned()
}

/// Waits until a condition holds that another task brings about.
async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let waiting = async {
        while !condition().await {
            Env::system().sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(Env::system().timeout(Duration::from_secs(30), waiting).await.is_ok(), "{what}");
}

/// Waits until the keys of the issuers are known.
pub(crate) async fn initialized(server: &ApiServer, token: &str) {
    until("the issuer is known", || async {
        error(server, token).await != "oidc: authenticator not initialized"
    })
    .await;
}

#[tokio::test]
async fn a_token_of_an_issuer_names_a_user_in_every_tenant() {
    let issuer = Issuer::start(&[("a", RSA_1)]).await;
    let mut jwt = issuer.config();
    jwt.claim_mappings.uid.claim = "uid".into();
    let mut extra = ExtraMapping::default();
    (extra.key, extra.value_expression) =
        ("example.org/teams".into(), "claims.teams.map(t, t.lowerAscii())".into());
    jwt.claim_mappings.extra = vec![extra];
    let mut rule = UserValidationRule::default();
    (rule.expression, rule.message) = ("!user.username.startsWith('system:')".into(), "reserved".into());
    jwt.user_validation_rules = vec![rule];
    let server = trusting(vec![jwt]).await;
    let mut claims = issuer.claims();
    (claims["uid"], claims["teams"], claims["jti"]) = ("u1".into(), json!(["Red", "Blue"]), "t1".into());
    let token = signed("a", RSA_1, &claims);
    initialized(&server, &token).await;
    let jane = Client::of(&server).bearer(&token);
    let user = json!({"username": "oidc:jane", "uid": "u1", "groups": ["oidc:devs", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t1"], "example.org/teams": ["red", "blue"]}});
    assert_eq!(jane.create(SELF, json!({})).await["status"]["userInfo"], user);
    assert_eq!(review(&server, &token).await["user"], user);
    server.tenant("one").await.unwrap();
    let there = jane.call(Method::POST, &format!("/clusters/one{SELF}"), json!({})).await;
    assert_eq!((there.0, &there.1["status"]["userInfo"]), (201, &user));
    // In each tenant its roles decide, and nobody outside of `system:masters` sees which tenants there are.
    assert_eq!(jane.get("/api/v1/namespaces").await.0, 403);
    assert_eq!(jane.get("/clusters/nobody/api").await.0, 403);
    assert_eq!(Client::of(&server).bearer("not.a.token").get("/clusters/nobody/api").await.0, 401);
    let binding = json!({"metadata": {"name": "devs"}, "subjects": [{"kind": "Group", "name": "oidc:devs", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}});
    Client::admin(&server).create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    assert_eq!(jane.get("/api/v1/namespaces").await.0, 200);
    assert_eq!(jane.get("/clusters/one/api/v1/namespaces").await.0, 403);
    // What is wrong is told to reviewers, and to nobody else.
    let with = |field: &str, value: Value| {
        let mut changed = claims.clone();
        changed[field] = value;
        signed("a", RSA_1, &changed)
    };
    for (token, expected) in [
        (with("aud", "other".into()), "oidc: verify token: oidc: expected audience \"k1s\" got [\"other\"]"),
        (
            with("exp", 1.into()),
            "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)",
        ),
        (with("nbf", 9_999_999_999_i64.into()), "oidc: verify token: oidc: current time "),
        (with("iss", "https://other.example".into()), "invalid bearer token"),
        (with("teams", 7.into()), "expression 'claims.teams.map(t, t.lowerAscii())' resulted in error: "),
        (
            signed("a", RSA_3, &claims),
            "oidc: verify token: failed to verify signature: failed to verify id token signature",
        ),
        (format!("AAAA{}", &token[token.find('.').unwrap()..]), "oidc: verify token: oidc: malformed jwt"),
        (
            format!("e30{}", &token[token.find('.').unwrap()..]),
            "oidc: verify token: oidc: id token signed with unsupported algorithm",
        ),
    ] {
        let found = error(&server, &token).await;
        assert!(found.starts_with(expected), "{found}");
        let (code, answer) = Client::of(&server).bearer(&token).get("/api").await;
        assert_eq!((code, &answer["message"]), (401, &json!("Unauthorized")));
    }
}

#[tokio::test]
async fn keys_are_rotated() {
    let issuer = Issuer::start(&[("a", RSA_1)]).await;
    let (env, clock) = Env::simulated(1);
    let store = Arc::new(MemoryStore::new(env.clone(), k1s_store::MemoryOptions::default()));
    let mut options = ServerOptions::default();
    options.authentication.configuration = configuration(vec![issuer.config()]);
    let server = ApiServer::new(env, store, options).await.unwrap();
    let token = |n: u32, id: &str, pem: &str| {
        let mut claims = issuer.claims();
        claims["n"] = n.into();
        signed(id, pem, &claims)
    };
    let first = token(0, "a", RSA_1);
    initialized(&server, &first).await;
    assert_eq!(error(&server, &first).await, "");
    assert_eq!(issuer.pages.count("/keys"), 1);
    // An unknown key soon afterwards causes no fetch, however often it is tried.
    issuer.set_keys(&[("b", RSA_3)]);
    for n in 0..20 {
        assert!(error(&server, &token(n, "b", RSA_3)).await.ends_with("failed to verify id token signature"));
    }
    assert_eq!(issuer.pages.count("/keys"), 1);
    // Later, one does, for all that wait.
    clock.advance(Duration::from_secs(11));
    let waiting: Vec<_> = (0..20).map(|n| token(n, "b", RSA_3)).collect();
    let found = futures_util::future::join_all(waiting.iter().map(|token| error(&server, token))).await;
    assert_eq!(found, vec![String::new(); 20]);
    assert_eq!(issuer.pages.count("/keys"), 2);
    // The key that was withdrawn is accepted no more.
    assert!(error(&server, &token(1, "a", RSA_1)).await.ends_with("failed to verify id token signature"));
    // An issuer that is down makes no known key invalid.
    issuer.pages.set("/keys", Page::Status(500));
    clock.advance(Duration::from_secs(6 * 60));
    until("the keys were asked for", || async { issuer.pages.count("/keys") > 2 }).await;
    assert_eq!(error(&server, &token(50, "b", RSA_3)).await, "");
}

#[tokio::test]
async fn a_dead_issuer_delays_nobody() {
    let (good, dead, garbage) = (
        Issuer::start(&[("a", RSA_1)]).await,
        Issuer::start(&[("a", RSA_1)]).await,
        Issuer::start(&[]).await,
    );
    dead.pages.set(DISCOVERY, Page::Hang);
    garbage.pages.set(DISCOVERY, Page::Body("<html>".into()));
    let server = trusting(vec![dead.config(), garbage.config(), good.config()]).await;
    let token = signed("a", RSA_1, &good.claims());
    initialized(&server, &token).await;
    assert_eq!(Client::of(&server).bearer(&token).code().await, 201);
    until("the dead issuer is asked", || async { dead.pages.in_flight.load(Ordering::SeqCst) == 1 }).await;
    for silent in [&dead, &garbage] {
        let token = signed("a", RSA_1, &silent.claims());
        assert_eq!(error(&server, &token).await, "oidc: authenticator not initialized");
        assert_eq!(Client::of(&server).bearer(&token).code().await, 401);
    }
    // One that says it is another issuer is not believed.
    let liar = Issuer::start(&[("a", RSA_1)]).await;
    liar.pages.set(DISCOVERY, good.document());
    let server = trusting(vec![liar.config()]).await;
    until("the liar is asked", || async { liar.pages.count(DISCOVERY) > 0 }).await;
    assert_eq!(
        error(&server, &signed("a", RSA_1, &liar.claims())).await,
        "oidc: authenticator not initialized"
    );
    // When it answers, it is taken.
    dead.pages.set(DISCOVERY, dead.document());
    let server = trusting(vec![dead.config()]).await;
    let token = signed("a", RSA_1, &dead.claims());
    initialized(&server, &token).await;
    assert_eq!(error(&server, &token).await, "");
}

#[tokio::test]
async fn the_discovery_document_may_be_elsewhere_and_redirect() {
    let (issuer, documents) = (Issuer::start(&[("a", RSA_1)]).await, Issuer::start(&[]).await);
    issuer.pages.set(DISCOVERY, Page::Status(404));
    documents.pages.set("/there", Page::Redirect("/here".into()));
    documents.pages.set(
        "/here",
        Page::Body(json!({"issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url)}).to_string()),
    );
    let mut jwt = issuer.config();
    jwt.issuer.discovery_url = format!("{}/there", documents.url);
    jwt.issuer.certificate_authority += documents.authority.certificate();
    let server = trusting(vec![jwt]).await;
    let token = signed("a", RSA_1, &issuer.claims());
    initialized(&server, &token).await;
    assert_eq!(error(&server, &token).await, "");
    assert_eq!(issuer.pages.count(DISCOVERY), 0);
}

#[tokio::test]
async fn groups_may_be_elsewhere() {
    let issuer = Issuer::start(&[("a", RSA_1)]).await;
    let server = trusting(vec![issuer.config()]).await;
    let mut claims = issuer.claims();
    claims.as_object_mut().unwrap().remove("groups");
    claims["_claim_names"] = json!({"groups": "src"});
    claims["_claim_sources"] =
        json!({"src": {"endpoint": format!("{}/groups", issuer.url), "access_token": "groups_token"}});
    let serve = |claims: &Value| issuer.pages.set("/groups", Page::Body(signed("a", RSA_1, claims)));
    let mut there = issuer.claims();
    there["groups"] = json!(["team1", "team2"]);
    serve(&there);
    let token = signed("a", RSA_1, &claims);
    initialized(&server, &token).await;
    let status = review(&server, &token).await;
    assert_eq!(
        status["user"]["groups"],
        json!(["oidc:team1", "oidc:team2", "system:authenticated"]),
        "{status}"
    );
    assert_eq!(issuer.pages.last.lock().1, "Bearer groups_token");
    // Upstream's cases of what can be wrong with them.
    let changed = |change: &dyn Fn(&mut Value, &mut Value)| {
        let (mut token, mut answer) = (claims.clone(), there.clone());
        change(&mut token, &mut answer);
        token["n"] = format!("{token}{answer}").into();
        serve(&answer);
        signed("a", RSA_1, &token)
    };
    type Change = fn(&mut Value, &mut Value);
    let cases: [(Change, String); 6] = [
        (|token, _| token["_claim_names"] = json!({"groups": "nope"}), "oidc: verify token: oidc: source does not exist".into()),
        (|token, _| token["_claim_sources"] = json!({}), "oidc: verify token: oidc: source does not exist".into()),
        (
            |_, answer| drop(answer.as_object_mut().unwrap().remove("groups")),
            format!("oidc: could not expand distributed claims: jwt returned by distributed claim endpoint \"{}/groups\" did not contain claim: groups", issuer.url),
        ),
        (
            |_, answer| answer["aud"] = "your-client".into(),
            "oidc: could not expand distributed claims: verify distributed claim token: oidc: expected audience \"k1s\" got [\"your-client\"]".into(),
        ),
        (
            |_, answer| answer["exp"] = 1.into(),
            "oidc: could not expand distributed claims: verify distributed claim token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)".into(),
        ),
        (
            |_, answer| answer["iss"] = "http://elsewhere".into(),
            "oidc: could not expand distributed claims: verifying untrusted issuer http://elsewhere failed: verifier not initialized for issuer: \"http://elsewhere\"".into(),
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(error(&server, &changed(&change)).await, expected);
    }
    let groups = async |token: String| review(&server, &token).await["user"]["groups"].take();
    let one = groups(changed(&|_, answer| answer["groups"] = "team1".into())).await;
    assert_eq!(one, json!(["oidc:team1", "system:authenticated"]));
    let normal = groups(changed(&|token, _| token["groups"] = json!(["own"]))).await;
    assert_eq!(normal, json!(["oidc:own", "system:authenticated"]));
    let aggregated =
        groups(changed(&|token, _| token["_claim_sources"] = json!({"src": {"JWT": "x"}}))).await;
    assert_eq!(aggregated, json!(["system:authenticated"]));
}

#[tokio::test]
async fn a_changed_file_is_taken_over_when_its_issuers_answer() {
    let (one, two) = (Issuer::start(&[("a", RSA_1)]).await, Issuer::start(&[("a", RSA_1)]).await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authentication.yaml");
    let file = |issuers: &[&Issuer], more: &str| {
        let jwt: Vec<Value> = issuers.iter().map(|issuer| {
            json!({"issuer": {"url": issuer.url, "audiences": ["k1s"], "certificateAuthority": issuer.authority.certificate()},
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}}})
        }).collect();
        let text = json!({"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": jwt}).to_string();
        let text = format!("{}{more}}}", text.strip_suffix('}').unwrap());
        std::fs::write(&path, &text).unwrap();
        text
    };
    let mut options = ServerOptions::default();
    let text = file(&[&one], "");
    options.authentication.configuration = AuthenticationConfiguration::parse(text.as_bytes()).unwrap();
    options.authentication.configuration_file = Some(path.clone());
    options.authentication.reload_interval = Duration::from_millis(20);
    let server = server_with(options).await;
    let (first, second) = (signed("a", RSA_1, &one.claims()), signed("a", RSA_1, &two.claims()));
    initialized(&server, &first).await;
    assert_eq!(
        (error(&server, &first).await, error(&server, &second).await),
        (String::new(), "invalid bearer token".into())
    );
    // What cannot be used changes nothing, nor does an issuer that does not answer, nor who may be anonymous.
    two.pages.set(DISCOVERY, Page::Hang);
    file(&[&two], "");
    until("the new issuer is asked", || async { two.pages.in_flight.load(Ordering::SeqCst) > 0 }).await;
    assert_eq!(error(&server, &first).await, "");
    two.pages.set(DISCOVERY, two.document());
    until("the new issuer counts", || async { error(&server, &second).await.is_empty() }).await;
    assert_eq!(error(&server, &first).await, "invalid bearer token");
    for broken in [", \"oops\": 1", ", \"anonymous\": {\"enabled\": false}"] {
        file(&[&one], broken);
        Env::system().sleep(Duration::from_millis(100)).await;
        assert_eq!(error(&server, &second).await, "", "{broken}");
    }
    file(&[&one, &two], "");
    until("both issuers count", || async { error(&server, &first).await.is_empty() }).await;
    assert_eq!(error(&server, &second).await, "");
}

#[tokio::test]
async fn configurations_that_break_rules_are_refused() {
    let issuer = Issuer::start(&[]).await;
    let refused = async |change: fn(&mut JwtAuthenticator)| {
        let mut jwt = issuer.config();
        change(&mut jwt);
        let mut options = ServerOptions::default();
        options.authentication.configuration = configuration(vec![jwt]);
        let store = Arc::new(MemoryStore::default());
        ApiServer::new(Env::system(), store, options).await.unwrap_err().message
    };
    let overlap = refused(|jwt| jwt.issuer.url = "https://kubernetes.default.svc.cluster.local".into()).await;
    assert!(overlap.ends_with("invalid authentication configuration: jwt[0].issuer.url: Invalid value: \"https://kubernetes.default.svc.cluster.local\": URL must not overlap with disallowed issuers: [https://kubernetes.default.svc.cluster.local]"), "{overlap}");
    let egress = refused(|jwt| jwt.issuer.egress_selector_type = "cluster".into()).await;
    assert!(
        egress.ends_with("oidc: egress lookup required with egress selector type \"cluster\""),
        "{egress}"
    );
    let two = refused(|jwt| {
        jwt.issuer.audiences.clear();
        let rule = ClaimValidationRule { expression: "claims.a".into(), ..ClaimValidationRule::default() };
        jwt.claim_validation_rules = vec![rule];
    })
    .await;
    assert!(two.ends_with("[jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required, jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.a\": must evaluate to bool]"), "{two}");
}

#[tokio::test]
async fn the_example_of_the_guide_works() {
    let guide = include_str!("../../../../docs/authentication.md");
    let yaml = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let issuer = Issuer::start(&[("a", RSA_1)]).await;
    let mut config = AuthenticationConfiguration::parse(yaml.as_bytes()).unwrap();
    config.jwt[0].issuer.url.clone_from(&issuer.url);
    config.jwt[0].issuer.certificate_authority = issuer.authority.certificate().to_owned();
    let mut options = ServerOptions::default();
    options.authentication.configuration = config;
    let server = server_with(options).await;
    let mut claims = json!({"iss": issuer.url, "aud": ["other", "k1s-ci"], "exp": 9_999_999_999_i64, "sub": "0815",
        "email": "jane@example.org", "email_verified": true, "groups": ["devs"], "team": "red"});
    let token = signed("a", RSA_1, &claims);
    initialized(&server, &token).await;
    assert_eq!(
        review(&server, &token).await["user"],
        json!({"username": "jane", "uid": "0815", "groups": ["corp:devs", "system:authenticated"], "extra": {"example.org/team": ["red"]}})
    );
    claims["email_verified"] = false.into();
    let found = error(&server, &signed("a", RSA_1, &claims)).await;
    assert!(found.ends_with("failed: the address has to be verified"), "{found}");
    claims["email_verified"] = true.into();
    claims["email"] = "system:admin@example.org".into();
    let found = error(&server, &signed("a", RSA_1, &claims)).await;
    assert!(found.ends_with("failed: names of the system are reserved"), "{found}");
    for (path, code) in [("/healthz", 200), ("/readyz", 200), ("/livez", 401), ("/api", 401)] {
        assert_eq!(Client::of(&server).get(path).await.0, code, "{path}");
    }
}
