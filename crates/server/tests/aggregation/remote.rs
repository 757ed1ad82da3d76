//! Extensions over HTTPS, with the certificate of the front proxy.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use k1s_server::Authority;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::WebPkiClientVerifier,
    },
};

use super::{extension::GROUP, *};
use crate::extension::Way;

const USAGES: &str = "/apis/usage.example.com/v1/namespaces/default/usages";

/// An extension that listens.
struct Remote {
    port: u16,
    authority: Authority,
    /// The tasks of the listener and of its connections.
    tasks: Arc<Mutex<Vec<k1s_env::Task<()>>>>,
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

impl Remote {
    /// `clients`: the authority of clients, if they need a certificate.
    async fn start(
        name: &str,
        extension: Extension,
        clients: Option<&Authority>,
        protocols: &[&str],
    ) -> Remote {
        Remote::start_at([127, 0, 0, 1].into(), name, extension, clients, protocols).await
    }

    async fn start_at(
        address: Ipv4Addr,
        name: &str,
        extension: Extension,
        clients: Option<&Authority>,
        protocols: &[&str],
    ) -> Remote {
        let authority = Authority::generate(Env::system().wall()).unwrap();
        let files = authority.issue(&[name.to_owned()], Env::system().wall()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = match clients {
            None => builder.unwrap().with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                certificates(clients.certificate()).into_iter().for_each(|one| roots.add(one).unwrap());
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.unwrap().with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder.with_single_cert(certificates(&files.certificate), key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tasks: Arc<Mutex<Vec<k1s_env::Task<()>>>> = Arc::default();
        let open = tasks.clone();
        let serving = Env::system().spawn("extension", async move {
            let scope = Env::system();
            loop {
                let Ok((tcp, _)) = listener.accept().await else { return };
                let (acceptor, extension) = (acceptor.clone(), extension.clone());
                open.lock().push(scope.spawn("connection", async move {
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let service = TowerToHyperService::new(extension);
                    let http = auto::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
                }));
            }
        });
        tasks.lock().push(serving);
        Remote { port, authority, tasks }
    }

    /// Ends it with all of its connections.
    fn stop(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }

    fn options(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        options.services.addresses.insert("ns/ext".into(), format!("127.0.0.1:{}", self.port));
        options
    }

    /// An `APIService` that trusts its authority.
    fn service(&self) -> Value {
        let mut service = service(GROUP);
        let spec = service["spec"].as_object_mut().unwrap();
        spec.remove("insecureSkipTLSVerify");
        spec.insert("caBundle".into(), BASE64_STANDARD.encode(self.authority.certificate()).into());
        service
    }
}

#[tokio::test]
async fn an_extension_trusts_the_front_proxys_certificate() {
    let proxies = Authority::generate(Env::system().wall()).unwrap();
    for protocols in [&["h2", "http/1.1"][..], &["http/1.1"], &[]] {
        let extension = Extension::new(Way::Well);
        let remote = Remote::start("ext.ns.svc", extension.clone(), Some(&proxies), protocols).await;
        let options = remote.options();
        let client = options.aggregation.proxy_client.clone();
        let stage = Stage::with(options).await;
        stage.client.post(SERVICES, remote.service()).await;
        // Without a certificate, it hangs up.
        let (status, message) = stage.reason(GROUP, "FailedDiscoveryCheck").await;
        assert_eq!(status, "False", "{message}");
        let issued = proxies.issue_client(
            "front-proxy-client",
            &[],
            std::time::Duration::from_secs(3600),
            Env::system().wall(),
            [7; 16],
        );
        let issued = issued.unwrap();
        client.set(&issued.certificate, &issued.key).unwrap();
        stage.reason(GROUP, "Passed").await;
        let answer = stage.client.send("POST", USAGES, &[], vec![b' '; 4 << 20]).await;
        assert_eq!(
            (answer.status, answer.json()["body"].as_u64()),
            (201, Some(4 << 20)),
            "{}",
            answer.text()
        );
        let mut watch = stage.client.watch(USAGES).await;
        assert_eq!(watch.event().await["type"], "ADDED");
        assert_eq!(watch.event().await["type"], "MODIFIED");
        drop(watch);
        eventually("the extension's watch ends", || async {
            !extension.watched.load(std::sync::atomic::Ordering::SeqCst)
        })
        .await;
        assert_eq!(stage.discovered(GROUP).await.unwrap()["versions"][0]["freshness"], "Current");
    }
}

/// The cases of upstream's `TestProxyHandler` that are about certificates and connections.
#[tokio::test]
async fn certificates_are_verified_unless_they_are_not() {
    let well = || Extension::new(Way::Well);
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    // Another authority.
    let remote = Remote::start("ext.ns.svc", well(), None, &[]).await;
    let stage = Stage::with(remote.options()).await;
    let mut service = remote.service();
    let other = Authority::generate(Env::system().wall()).unwrap();
    service["spec"]["caBundle"] = BASE64_STANDARD.encode(other.certificate()).into();
    stage.client.post(SERVICES, service).await;
    let (_, message) = stage.reason(GROUP, "FailedDiscoveryCheck").await;
    let url = format!("https://127.0.0.1:{}/apis/{GROUP}/v1", remote.port);
    assert_eq!(message, format!("failing or missing response from {url}: Get \"{url}\": {unknown}"));
    // The right one, by a change of the APIService: it is checked at once.
    let bundle = BASE64_STANDARD.encode(remote.authority.certificate());
    let path = format!("{SERVICES}/v1.{GROUP}");
    assert_eq!(stage.client.call("PATCH", &path, json!({"spec": {"caBundle": bundle}})).await.0, 200);
    assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 200);
    // A certificate for another name.
    let remote = Remote::start("other.ns.svc", well(), None, &[]).await;
    let stage = Stage::with(remote.options()).await;
    stage.client.post(SERVICES, remote.service()).await;
    let (_, message) = stage.reason(GROUP, "FailedDiscoveryCheck").await;
    assert!(message.contains("tls: failed to verify certificate: x509: "), "{message}");
    // It does not matter if it is not verified.
    let skip = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    assert_eq!(stage.client.call("PATCH", &path, skip).await.0, 200);
    assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 200);
}

#[tokio::test]
async fn a_server_that_goes_away() {
    let remote = Remote::start("ext.ns.svc", Extension::new(Way::Well), None, &["http/1.1"]).await;
    let mut options = remote.options();
    options.aggregation.check_interval = std::time::Duration::from_secs(2);
    let stage = Stage::with(options).await;
    stage.client.post(SERVICES, remote.service()).await;
    assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 200);
    remote.stop();
    let refused = format!("dial tcp 127.0.0.1:{}: connect: connection refused", remote.port);
    eventually("the connection is refused", || async {
        let answer = stage.client.send("GET", USAGES, &[], "").await;
        assert!(answer.status == 503 || answer.status == 200, "{}", answer.text());
        answer.text() == format!("error trying to reach service: {refused}\n")
            || answer.text() == "service unavailable\n"
    })
    .await;
    let (status, message) = stage.reason(GROUP, "FailedDiscoveryCheck").await;
    assert!(status == "False" && message.ends_with(&refused), "{message}");
    let answer = stage.client.send("GET", USAGES, &[], "").await;
    assert_eq!((answer.status, &*answer.text()), (503, "service unavailable\n"));
}

/// What a tenant writes does not make the server connect anywhere.
#[tokio::test]
async fn tenants_choose_no_addresses() {
    let extension = Extension::new(Way::Well);
    let remote = Remote::start("ext.ns.svc", extension.clone(), None, &[]).await;
    for routing in [false, true] {
        let mut options = ServerOptions::default();
        options.aggregation.routing = routing;
        // For the default tenant alone.
        options.services.addresses.insert("ns/mapped".into(), format!("127.0.0.1:{}", remote.port));
        let stage = Stage::with(options).await;
        let other = common::client(&stage.server.tenant("other").await.unwrap());
        for (client, name) in [(&stage.client, "default"), (&other, "other")] {
            client.post("/api/v1/namespaces", json!({"metadata": {"name": "ns"}})).await;
            let spec = json!({"type": "ExternalName", "externalName": "localhost"});
            client
                .post("/api/v1/namespaces/ns/services", json!({"metadata": {"name": "ext"}, "spec": spec}))
                .await;
            let mut external = service(GROUP);
            external["spec"]["service"]["port"] = remote.port.into();
            client.post(SERVICES, external).await;
            let answer = client.send("GET", USAGES, &[], "").await;
            assert_eq!((answer.status, &*answer.text()), (503, "service unavailable\n"), "{name} {routing}");
        }
        let reason = if routing { "FailedDiscoveryCheck" } else { "ServiceNotReachable" };
        let (_, message) = stage.reason(GROUP, reason).await;
        assert_eq!(message.contains("the address is not allowed"), routing, "{message}");
        let found = other.get(&format!("{SERVICES}/v1.{GROUP}")).await;
        assert_eq!(found["status"]["conditions"][0]["reason"], "ServiceNotReachable");
        let mut mapped = service("mapped.example.com");
        mapped["spec"]["service"]["name"] = "mapped".into();
        other.post(SERVICES, mapped).await;
        assert_eq!(other.send("GET", "/apis/mapped.example.com/v1/x", &[], "").await.status, 503);
    }
    assert_eq!(extension.requests.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// An address of this machine that is not a loopback one. Nothing is sent to find it.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(own) if !own.is_loopback() && !own.is_link_local() => Some(own),
        _ => None,
    }
}

/// With routing, Services of the default tenant are followed to where they are, and their certificates are still checked.
#[tokio::test]
async fn services_are_followed_to_their_addresses_where_that_is_enabled() {
    let Some(own) = own_address() else {
        // As in CI.
        assert!(std::env::var_os("K1S_REQUIRE_ETCD").is_none(), "this test needs a network");
        println!("SKIPPED: this machine has no address beyond loopback");
        return;
    };
    for kind in ["ExternalName", "EndpointSlice"] {
        let extension = Extension::new(Way::Well);
        let remote = Remote::start_at(own, "ext.ns.svc", extension.clone(), None, &[]).await;
        let mut options = ServerOptions::default();
        options.aggregation.routing = true;
        let stage = Stage::with(options).await;
        let other = common::client(&stage.server.tenant("other").await.unwrap());
        for client in [&stage.client, &other] {
            client.post("/api/v1/namespaces", json!({"metadata": {"name": "ns"}})).await;
            let mut to = remote.service();
            let spec = if kind == "ExternalName" {
                to["spec"]["service"]["port"] = remote.port.into();
                json!({"type": "ExternalName", "externalName": own.to_string()})
            } else {
                // Nobody listens at the endpoint that is not ready.
                let endpoints = json!([
                    {"addresses": ["203.0.113.9"], "conditions": {"ready": false}},
                    {"addresses": [own.to_string()], "conditions": {"ready": true}}]);
                let slice = json!({"metadata": {"name": "ext-1", "labels": {"kubernetes.io/service-name": "ext"}},
                    "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "https", "port": remote.port}]});
                client.post("/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices", slice).await;
                json!({"ports": [{"name": "https", "port": 443}]})
            };
            client
                .post("/api/v1/namespaces/ns/services", json!({"metadata": {"name": "ext"}, "spec": spec}))
                .await;
            client.post(SERVICES, to).await;
        }
        let passed = ("True".to_owned(), "all checks passed".to_owned());
        assert_eq!(stage.reason(GROUP, "Passed").await, passed, "{kind}");
        let answer = stage.client.send("GET", USAGES, &[], "").await;
        assert_eq!((answer.status, answer.json()["path"].clone()), (200, USAGES.into()), "{kind}");
        assert_eq!(stage.discovered(GROUP).await.unwrap()["versions"][0]["freshness"], "Current", "{kind}");
        // The objects of other tenants are not followed.
        let refused = other.send("GET", USAGES, &[], "").await;
        assert_eq!((refused.status, &*refused.text()), (503, "service unavailable\n"), "{kind}");
        // A certificate for another name is refused there as well.
        let wrong = Remote::start_at(own, "other.ns.svc", Extension::new(Way::Well), None, &[]).await;
        let mut to = wrong.service();
        to["metadata"]["name"] = "v2.usage.example.com".into();
        to["spec"]["version"] = "v2".into();
        to["spec"]["service"] = json!({"namespace": "ns", "name": "wrong", "port": wrong.port});
        let spec = json!({"type": "ExternalName", "externalName": own.to_string()});
        let service = json!({"metadata": {"name": "wrong"}, "spec": spec});
        stage.client.post("/api/v1/namespaces/ns/services", service).await;
        stage.client.post(SERVICES, to).await;
        eventually("it is checked", || async {
            let found = stage.client.get(&format!("{SERVICES}/v2.{GROUP}")).await;
            let message = found["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
            message.contains("tls: failed to verify certificate: x509: ")
        })
        .await;
    }
}
