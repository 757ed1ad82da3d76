//! Front proxies, and headers that nobody else may send.

use bytes::Bytes;
use http::HeaderName;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use k1s_server::{Authority, ClientTrust, Listener, RequestHeaderOptions, TlsFiles, serve};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A server over HTTPS that trusts two authorities: one for users, one for front proxies.
struct Secure {
    server: ApiServer,
    port: u16,
    serving: TlsFiles,
    users: Authority,
    proxies: Authority,
}

/// A request, by its headers in the form in which they are sent.
type Headers<'a> = &'a [(&'a str, &'a str)];

impl Secure {
    async fn start(change: impl FnOnce(&mut ServerOptions, &mut ClientTrust)) -> Secure {
        let env = Env::system();
        let [users, proxies] = [(); 2].map(|()| Authority::generate(env.wall()).unwrap());
        let serving = Authority::generate(env.wall()).unwrap();
        let serving = serving.issue(&["localhost".into()], env.wall()).unwrap();
        let mut trust = ClientTrust::default();
        trust.users = users.certificate().to_owned();
        trust.front_proxies = proxies.certificate().to_owned();
        let mut options = ServerOptions::default();
        options.authentication.client_authorities.clone_from(&trust.users);
        let mut headers = RequestHeaderOptions::default();
        headers.authorities.clone_from(&trust.front_proxies);
        options.authentication.request_header = Some(headers);
        options.tokens = Tokens::parse("t,alice,7,devs").unwrap();
        change(&mut options, &mut trust);
        let server = server_with(options).await;
        let listener = Listener::http(([127, 0, 0, 1], 0).into()).await.unwrap();
        let listener = listener.with_client_authorities(&serving, &trust).unwrap();
        let port = listener.address().unwrap().port();
        drop(env.spawn("listener", serve(server.clone(), listener)));
        Secure { server, port, serving, users, proxies }
    }

    fn certificate(&self, authority: &Authority, name: &str) -> TlsFiles {
        authority.issue_client(name, &["team".into()], DAY, Env::system().wall(), [7; 16]).unwrap()
    }

    /// The code of a request, and its body.
    async fn call(
        &self,
        method: Method,
        path: &str,
        certificate: Option<&TlsFiles>,
        headers: Headers<'_>,
        body: &Value,
    ) -> (u16, Value) {
        let mut roots = RootCertStore::empty();
        let pem = |text: &str| {
            CertificateDer::pem_slice_iter(text.as_bytes()).map(Result::unwrap).collect::<Vec<_>>()
        };
        for root in pem(&self.serving.authority) {
            roots.add(root).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            Some(files) => {
                let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
                config.with_client_auth_cert(pem(&files.certificate), key).unwrap()
            }
            None => config.with_no_client_auth(),
        };
        let tcp = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::Builder::new().handshake(TokioIo::new(tls)).await.unwrap();
        drop(Env::system().spawn("client", async move {
            let _ = connection.await;
        }));
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(HeaderName::from_bytes(name.as_bytes()).unwrap(), *value);
        }
        let body: Full<Bytes> = if body.is_null() { Full::default() } else { Full::from(body.to_string()) };
        let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// Who the server says one is; the code if it is an error.
    async fn user(&self, certificate: Option<&TlsFiles>, headers: Headers<'_>) -> Result<Value, u16> {
        let (code, mut answer) = self.call(Method::POST, SELF, certificate, headers, &json!({})).await;
        if code == 201 { Ok(answer["status"]["userInfo"].take()) } else { Err(code) }
    }

    async fn name(&self, certificate: Option<&TlsFiles>, headers: Headers<'_>) -> Result<String, u16> {
        let user = self.user(certificate, headers).await?;
        Ok(user["username"].as_str().unwrap().to_owned())
    }
}

#[tokio::test]
async fn a_front_proxy_names_the_user_in_headers() {
    let secure = Secure::start(|_, _| {}).await;
    let proxy = secure.certificate(&secure.proxies, "front");
    let user = secure.user(
        Some(&proxy),
        &[
            ("X-Remote-User", "bob"),
            ("X-Remote-Uid", "u1"),
            ("X-Remote-Group", "devs"),
            ("x-remote-group", "ops"),
            ("X-Remote-Extra-Scopes", "view"),
            ("X-REMOTE-EXTRA-example.com%2Fteam", "red"),
        ],
    );
    assert_eq!(
        user.await.unwrap(),
        json!({"username": "bob", "uid": "u1", "groups": ["devs", "ops", "system:authenticated"],
            "extra": {"example.com/team": ["red"], "scopes": ["view"]}})
    );
    // Rights are those of the user that is named.
    let nodes = "/api/v1/nodes";
    let (code, answer) =
        secure.call(Method::GET, nodes, Some(&proxy), &[("X-Remote-User", "bob")], &Value::Null).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "nodes is forbidden: User \"bob\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    );
    let master = [("X-Remote-User", "root"), ("X-Remote-Group", "system:masters")];
    assert_eq!(secure.call(Method::GET, nodes, Some(&proxy), &master, &Value::Null).await.0, 200);
    // The one that the proxy names counts before a token, and may impersonate as anybody else.
    let both = [("X-Remote-User", "bob"), ("Authorization", "Bearer t")];
    assert_eq!(secure.name(Some(&proxy), &both).await.as_deref(), Ok("bob"));
    let on_behalf =
        [("X-Remote-User", "root"), ("X-Remote-Group", "system:masters"), ("Impersonate-User", "carol")];
    assert_eq!(secure.name(Some(&proxy), &on_behalf).await.as_deref(), Ok("carol"));
}

#[tokio::test]
async fn nobody_else_may_send_the_headers() {
    let secure = Secure::start(|_, _| {}).await;
    let (user, proxy) =
        (secure.certificate(&secure.users, "alice"), secure.certificate(&secure.proxies, "front"));
    let stranger = Authority::generate(Env::system().wall()).unwrap();
    let stranger = secure.certificate(&stranger, "front");
    let sent = [("X-Remote-User", "root"), ("x-remote-GROUP", "system:masters"), ("X-Remote-Extra-A", "b")];
    let with = |header: (&'static str, &'static str)| [&sent[..], &[header]].concat();
    let bearer = ("Authorization", "Bearer t");
    // Whose certificate, which headers, and who that is.
    type Case<'a> = (Option<&'a TlsFiles>, Vec<(&'a str, &'a str)>, Result<&'a str, u16>);
    let cases: [Case<'_>; 14] = [
        // Anonymous users may not ask who they are.
        (None, sent.to_vec(), Err(403)),
        (None, with(bearer), Ok("alice")),
        (None, with(("Authorization", "Bearer wrong")), Err(401)),
        (Some(&user), sent.to_vec(), Ok("alice")),
        (Some(&stranger), sent.to_vec(), Err(401)),
        (Some(&stranger), with(bearer), Ok("alice")),
        // A proxy that names nobody is nobody: its certificate is not that of a user.
        (Some(&proxy), vec![], Err(401)),
        (Some(&proxy), vec![("X-Remote-User", "")], Err(401)),
        (Some(&proxy), vec![("X-Remote-Group", "system:masters")], Err(401)),
        (Some(&proxy), vec![("X-Remote-User-Name", "root")], Err(401)),
        (Some(&proxy), vec![bearer], Ok("alice")),
        // Several tokens: the first counts, and no other is tried.
        (None, vec![bearer, ("authorization", "Bearer wrong")], Ok("alice")),
        (None, vec![("AUTHORIZATION", "Bearer wrong"), bearer], Err(401)),
        (None, vec![("Authorization", "Basic cm9vdDo="), bearer], Err(403)),
    ];
    for (certificate, headers, expected) in cases {
        let name = secure.name(certificate, &headers).await;
        assert_eq!(name.as_deref().map_err(|code| *code), expected, "{headers:?}");
    }
    // Impersonation needs the right to, whatever the case of the headers.
    for headers in [
        [("impersonate-user", "root"), ("IMPERSONATE-GROUP", "system:masters")],
        [("Impersonate-User", "root"), ("X-Remote-Group", "system:masters")],
    ] {
        assert_eq!(secure.name(Some(&user), &headers).await, Err(403), "{headers:?}");
        assert_eq!(secure.name(None, &headers).await, Err(403), "{headers:?}");
    }
    assert_eq!(secure.name(Some(&user), &[("Impersonate-Group", "system:masters")]).await, Err(400));
}

#[tokio::test]
async fn only_proxies_with_an_allowed_name_count() {
    let secure =
        Secure::start(|_, trust| trust.front_proxy_names = vec!["front".into(), "other".into()]).await;
    let bob = [("X-Remote-User", "bob")];
    for (name, expected) in [("front", Ok("bob")), ("other", Ok("bob")), ("third", Err(401))] {
        let certificate = secure.certificate(&secure.proxies, name);
        let found = secure.name(Some(&certificate), &bob).await;
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{name}");
    }
}

#[tokio::test]
async fn without_front_proxies_the_headers_count_for_nobody() {
    let secure = Secure::start(|options, trust| {
        options.authentication.request_header = None;
        trust.front_proxies = String::new();
    })
    .await;
    let certificate = secure.certificate(&secure.users, "alice");
    let root = [("X-Remote-User", "root"), ("X-Remote-Group", "system:masters")];
    assert_eq!(secure.name(Some(&certificate), &root).await.as_deref(), Ok("alice"));
    let certificate = secure.certificate(&secure.proxies, "front");
    assert_eq!(secure.name(Some(&certificate), &root).await, Err(401));
}

#[tokio::test]
async fn one_authority_may_issue_users_and_front_proxies() {
    let secure = Secure::start(|options, trust| {
        trust.front_proxies.clone_from(&trust.users);
        trust.front_proxy_names = vec!["front".into()];
        options.authentication.anonymous.paths = vec!["/healthz".into()];
    })
    .await;
    let (alice, front) =
        (secure.certificate(&secure.users, "alice"), secure.certificate(&secure.users, "front"));
    let bob = [("X-Remote-User", "bob")];
    assert_eq!(secure.name(Some(&alice), &bob).await.as_deref(), Ok("alice"));
    assert_eq!(secure.name(Some(&front), &bob).await.as_deref(), Ok("bob"));
    assert_eq!(secure.name(Some(&front), &[]).await.as_deref(), Ok("front"));
    // Anonymous requests are limited to a path.
    for (path, code) in
        [("/healthz", 200), ("/livez", 401), ("/healthz/", 401), ("/clusters/default/healthz", 200)]
    {
        assert_eq!(secure.call(Method::GET, path, None, &[], &Value::Null).await.0, code, "{path}");
    }
}

#[tokio::test]
async fn a_server_without_anonymous_requests_refuses_whoever_has_no_credentials() {
    let mut options = ServerOptions::default();
    options.authentication.anonymous.enabled = false;
    options.tokens = Tokens::parse("t,alice,7,devs").unwrap();
    let server = server_with(options).await;
    for path in ["/healthz", "/version", "/api", "/api/v1/nodes", "/clusters/nobody/api", "/k1s/v1/tenants"] {
        assert_eq!(Client::of(&server).get(path).await.0, 401, "{path}");
    }
    assert_eq!(Client::of(&server).bearer("t").get("/healthz").await.0, 200);
    assert_eq!(Client::admin(&server).get("/healthz").await.0, 200);
}

#[tokio::test]
async fn what_is_trusted_is_published_for_extension_servers() {
    const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let secure = Secure::start(|options, _| {
        options.authentication.request_header.as_mut().unwrap().allowed_names = vec!["front".into()];
    })
    .await;
    let admin = Client::admin(&secure.server);
    let expected = json!({
        "client-ca-file": secure.users.certificate(),
        "requestheader-client-ca-file": secure.proxies.certificate(),
        "requestheader-allowed-names": "[\"front\"]",
        "requestheader-username-headers": "[\"X-Remote-User\"]",
        "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
        "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
    });
    let (code, map) = admin.get(PATH).await;
    assert_eq!((code, &map["data"]), (200, &expected));
    // It comes back, and what is missing is added. What is there stays, as from another server over the same store.
    assert_eq!(admin.call(Method::DELETE, PATH, Value::Null).await.0, 200);
    assert_eq!(admin.get(PATH).await.1["data"], expected);
    let changed = json!({"metadata": {"name": "extension-apiserver-authentication"}, "data": {"requestheader-allowed-names": "[\"other\"]"}});
    assert_eq!(admin.call(Method::PUT, PATH, changed).await.0, 200);
    let mut both = expected.clone();
    both["requestheader-allowed-names"] = "[\"other\",\"front\"]".into();
    assert_eq!(admin.get(PATH).await.1["data"], both);
    // In each tenant, and in its lists; those who are bound to the role for it may read it.
    let one = secure.server.tenant("one").await.unwrap();
    let list = Client::admin(&one).get("/api/v1/namespaces/kube-system/configmaps").await.1;
    assert!(list["items"].as_array().unwrap().iter().any(|map| map["data"] == expected), "{list}");
    let alice = admin.with("impersonate-user", "alice");
    assert_eq!(alice.get(PATH).await.0, 403);
    let binding = json!({
        "metadata": {"name": "extensions"}, "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "extension-apiserver-authentication-reader", "apiGroup": "rbac.authorization.k8s.io"},
    });
    admin.create("/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", binding).await;
    assert_eq!(alice.get(PATH).await.0, 200);
    // A server that trusts nobody publishes nothing.
    assert_eq!(Client::admin(&super::server().await).get(PATH).await.0, 404);
}
