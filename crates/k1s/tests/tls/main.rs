//! TLS of a listener: certificates and authorities that are reloaded from files, names, versions, cipher suites. With real
//! handshakes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod rotation;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k1s::{
    NewUser, Runtime, RuntimeBuilder,
    env::Env,
    issue_kubeconfig,
    k8s_openapi::api::authentication::v1::SelfSubjectReview,
    kube::{
        self, Api, Config,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    },
    server::{Authority, TlsFiles, TlsProtocol, TlsVersion},
};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const HANG: Duration = Duration::from_secs(60);
const QUICK: Duration = Duration::from_millis(20);

/// A certificate for these names, of an authority of its own.
fn issue(names: &[&str]) -> TlsFiles {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let now = Env::system().wall();
    Authority::generate(now).unwrap().issue(&names, now).unwrap()
}

/// Files that a server reads.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, files: &TlsFiles) {
        fs::write(self.path(&format!("{name}.key")), &files.key).unwrap();
        fs::write(self.path(&format!("{name}.crt")), &files.certificate).unwrap();
    }
}

fn builder() -> RuntimeBuilder {
    Runtime::builder().memory().listen(ANY_PORT).tls_reload_interval(QUICK)
}

/// A client that trusts these authorities.
fn connector(authorities: &[&TlsFiles], change: impl FnOnce(&mut ClientConfig)) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for files in authorities {
        roots.add(CertificateDer::from_pem_slice(files.authority.as_bytes()).unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    change(&mut config);
    TlsConnector::from(Arc::new(config))
}

async fn connect(
    connector: &TlsConnector,
    address: SocketAddr,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    connector.connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
}

/// The certificate that a server presents.
fn presented(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn der(files: &TlsFiles) -> Vec<u8> {
    CertificateDer::from_pem_slice(files.certificate.as_bytes()).unwrap().to_vec()
}

/// A request on an open connection.
async fn ask(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\nok") {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        text.extend_from_slice(&buffer[..count]);
    }
    Ok(())
}

async fn eventually<F: Future<Output = bool>>(env: &Env, what: &str, mut holds: impl FnMut() -> F) {
    let until = env.now() + HANG;
    while !holds().await {
        assert!(env.now() < until, "it never happened that {what}");
        env.sleep(QUICK).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_certificate_is_served_and_no_connection_is_dropped() {
    let (env, place) = (Env::system(), Place::new());
    let (old, new, other) = (issue(&["localhost"]), issue(&["localhost"]), issue(&["localhost"]));
    place.put("tls", &old);
    let runtime = builder().tls_files(place.path("tls.crt"), place.path("tls.key")).start().await.unwrap();
    let address = runtime.address().unwrap();
    let connector = connector(&[&old, &new, &other], |_| {});
    let mut kept = connect(&connector, address, "localhost").await.unwrap();
    assert_eq!(presented(&kept), der(&old));
    // Clients that connect and ask all the time.
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (connector, stop, asked) = (connector.clone(), stop.clone(), asked.clone());
            env.spawn("client", async move {
                while !stop.load(Ordering::Relaxed) {
                    let mut stream = connect(&connector, address, "localhost").await?;
                    for _ in 0..3 {
                        ask(&mut stream).await?;
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, std::io::Error>(())
            })
        })
        .collect();
    let served = async || presented(&connect(&connector, address, "localhost").await.unwrap());
    place.put("tls", &new);
    eventually(&env, "the new certificate is served", || async { served().await == der(&new) }).await;
    ask(&mut kept).await.unwrap();
    // Half of a file, and a certificate whose key is not there yet: the old one stays.
    for (name, text) in [
        ("tls.crt", &other.certificate[..other.certificate.len() / 2]),
        ("tls.key", "not a key"),
        ("tls.crt", &*other.certificate),
    ] {
        fs::write(place.path(name), text).unwrap();
        let before = asked.load(Ordering::Relaxed);
        env.sleep(QUICK * 5).await;
        eventually(&env, "clients are served", || async { asked.load(Ordering::Relaxed) > before }).await;
        assert_eq!(served().await, der(&new), "{name}");
    }
    fs::remove_file(place.path("tls.key")).unwrap();
    env.sleep(QUICK * 3).await;
    assert_eq!(served().await, der(&new));
    fs::write(place.path("tls.key"), &other.key).unwrap();
    eventually(&env, "the third certificate is served", || async { served().await == der(&other) }).await;
    ask(&mut kept).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap().expect("no request fails");
    }
    runtime.stop().await.unwrap();
}

/// A client with a kubeconfig, at the address of a runtime.
async fn client(kubeconfig: &str, runtime: &Runtime) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.cluster_url = runtime.url().unwrap().parse().unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn user_of(client: kube::Client) -> Result<String, kube::Error> {
    let review: SelfSubjectReview =
        Api::all(client).create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(review.status.unwrap().user_info.unwrap().username.unwrap())
}

/// Who a client with a kubeconfig of another authority is, which trusts the runtime.
async fn whoami(kubeconfig: &str, runtime: &Runtime) -> Result<String, kube::Error> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let authority = runtime.certificate_authority().unwrap();
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(authority.as_bytes()).unwrap().to_vec()]);
    user_of(kube::Client::try_from(config).unwrap()).await
}

/// A folder with an authority, and a kubeconfig of a user of it.
async fn authority_of(folder: &Path, user: &str, url: &str) -> String {
    let made = Runtime::builder().memory().cert_dir(folder).listen(ANY_PORT).start().await.unwrap();
    made.stop().await.unwrap();
    issue_kubeconfig(&Env::system(), folder, url, &NewUser::new(user)).unwrap()
}

#[tokio::test]
async fn authorities_of_clients_are_reloaded() {
    let (env, place) = (Env::system(), Place::new());
    fs::write(place.path("clients.crt"), issue(&["x"]).authority).unwrap();
    let runtime = builder().client_authorities_file(place.path("clients.crt")).start().await.unwrap();
    let alice = authority_of(&place.path("theirs"), "alice", runtime.url().unwrap()).await;
    assert!(whoami(&alice, &runtime).await.is_err());
    fs::copy(place.path("theirs/ca.crt"), place.path("clients.crt")).unwrap();
    eventually(&env, "she is known", || async {
        whoami(&alice, &runtime).await.is_ok_and(|user| user == "alice")
    })
    .await;
    // An empty file does not lock everybody out, and the own authority is always trusted.
    fs::write(place.path("clients.crt"), "-----BEGIN CERT").unwrap();
    env.sleep(QUICK * 3).await;
    assert_eq!(whoami(&alice, &runtime).await.unwrap(), "alice");
    let bob = runtime.kubeconfig_of(&NewUser::new("bob")).unwrap();
    assert_eq!(whoami(&bob, &runtime).await.unwrap(), "bob");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn the_certificate_is_that_of_the_name_asked_for() {
    let (env, place) = (Env::system(), Place::new());
    let (own, given, newer) =
        (issue(&["a.example.com"]), issue(&["*.example.org"]), issue(&["a.example.com"]));
    place.put("a", &own);
    place.put("b", &given);
    let none: [&str; 0] = [];
    let runtime = builder()
        .tls_files_for(none, place.path("a.crt"), place.path("a.key"))
        .tls_files_for(["*.example.org"], place.path("b.crt"), place.path("b.key"))
        .start()
        .await
        .unwrap();
    let address = runtime.address().unwrap();
    let main = TlsFiles { authority: runtime.certificate_authority().unwrap().to_owned(), ..own.clone() };
    let connector = connector(&[&own, &given, &newer, &main], |_| {});
    let served = async |name: &str| presented(&connect(&connector, address, name).await.unwrap());
    assert_eq!(served("a.example.com").await, der(&own));
    assert_eq!(served("z.example.org").await, der(&given));
    let default = served("localhost").await;
    assert!(default != der(&own) && default != der(&given));
    // A name that no certificate is for gets the default, which the client refuses.
    assert!(connect(&connector, address, "b.example.com").await.is_err());
    place.put("a", &newer);
    eventually(&env, "it is reloaded", || async { served("a.example.com").await == der(&newer) }).await;
    assert_eq!(served("localhost").await, default);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn versions_and_cipher_suites_are_those_allowed() {
    let place = Place::new();
    place.put("tls", &issue(&["localhost"]));
    let start = async |protocol: TlsProtocol| {
        let files = builder().tls_files(place.path("tls.crt"), place.path("tls.key"));
        files.tls_protocol(protocol).start().await.unwrap()
    };
    let trusted =
        TlsFiles { authority: fs::read_to_string(place.path("tls.crt")).unwrap(), ..issue(&["localhost"]) };
    // Whether the certificate is trusted does not matter here.
    let only = |version: &'static rustls::SupportedProtocolVersion| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    };
    let outcome = async |runtime: &Runtime, version: &'static rustls::SupportedProtocolVersion| {
        let connected = connect(&only(version), runtime.address().unwrap(), "localhost").await;
        connected.map_err(|error| error.to_string()).map(|stream| {
            let session = stream.get_ref().1;
            (session.protocol_version().unwrap(), session.negotiated_cipher_suite().unwrap().suite())
        })
    };
    let (tls12, tls13) = (&rustls::version::TLS12, &rustls::version::TLS13);
    let refused = |outcome: Result<(ProtocolVersion, rustls::CipherSuite), String>| {
        let error = outcome.unwrap_err();
        error.contains("ProtocolVersion") || error.contains("HandshakeFailure")
    };
    let runtime = start(TlsProtocol::new(TlsVersion::Tls13, [""; 0]).unwrap()).await;
    assert!(refused(outcome(&runtime, tls12).await));
    assert!(!refused(outcome(&runtime, tls13).await), "only its certificate is refused");
    runtime.stop().await.unwrap();
    // The generated certificates are ECDSA.
    let suite = ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
    let runtime = start(TlsProtocol::new(TlsVersion::Tls12, suite).unwrap()).await;
    assert!(!refused(outcome(&runtime, tls12).await));
    runtime.stop().await.unwrap();
    let runtime =
        start(TlsProtocol::new(TlsVersion::Tls12, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]).unwrap()).await;
    assert!(refused(outcome(&runtime, tls12).await), "no suite for its key");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_the_start() {
    let place = Place::new();
    let start = async |certificate: &str, key: &str| {
        let files = builder().tls_files(place.path(certificate), place.path(key));
        files.start().await.map(drop).unwrap_err().to_string()
    };
    let missing = start("none.crt", "none.key").await;
    assert!(missing.contains("none.crt"), "{missing}");
    place.put("one", &issue(&["localhost"]));
    place.put("two", &issue(&["localhost"]));
    let mixed = start("one.crt", "two.key").await;
    assert!(mixed.contains("the certificate cannot be used"), "{mixed}");
}
