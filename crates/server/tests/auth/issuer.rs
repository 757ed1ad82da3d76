//! An issuer of tokens over HTTPS, which behaves as a test wants.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD, prelude::BASE64_STANDARD};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use k1s_server::{Authority, PublicKeys, SigningKey};
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use tokio::{net::TcpListener, sync::Notify};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::WebPkiClientVerifier,
    },
};

use super::*;

pub(crate) const RSA_1: &str = include_str!("keys/rsa_1.pem");
pub(crate) const RSA_3: &str = include_str!("keys/rsa_3.pem");

/// What is at a path.
#[derive(Debug, Clone)]
pub(crate) enum Page {
    /// A body, with status 200.
    Body(String),
    Status(u16),
    Redirect(String),
    /// Never answers.
    Hang,
}

/// The state of an issuer, which a test changes.
pub(crate) struct Pages {
    pages: Mutex<HashMap<String, Page>>,
    /// Requests by path.
    counts: Mutex<HashMap<String, usize>>,
    /// The body and the `Authorization` of the last request that had one.
    pub(crate) last: Mutex<(Value, String)>,
    pub(crate) in_flight: AtomicUsize,
    changed: Notify,
}

pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) authority: Authority,
    pub(crate) pages: Arc<Pages>,
}

impl Pages {
    pub(crate) fn set(&self, path: &str, page: Page) {
        self.pages.lock().insert(path.to_owned(), page);
        self.changed.notify_waiters();
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.counts.lock().get(path).copied().unwrap_or_default()
    }

    async fn answer(
        &self,
        request: http::Request<hyper::body::Incoming>,
    ) -> http::Response<Full<bytes::Bytes>> {
        let path = request.uri().path().to_owned();
        *self.counts.lock().entry(path.clone()).or_default() += 1;
        let authorization =
            request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        if let Some(authorization) = authorization {
            *self.last.lock() = (serde_json::from_slice(&body).unwrap_or_default(), authorization);
        }
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let response =
            |status: u16| http::Response::builder().status(status).header("content-type", "application/json");
        let answer = loop {
            let changed = self.changed.notified();
            let page = self.pages.lock().get(&path).cloned().unwrap_or(Page::Status(404));
            break match page {
                Page::Hang => {
                    changed.await;
                    continue;
                }
                Page::Body(text) => response(200).body(Full::from(text)),
                Page::Status(status) => response(status).body(Full::default()),
                Page::Redirect(to) => response(302).header("location", to).body(Full::default()),
            };
        };
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        answer.unwrap()
    }
}

impl Issuer {
    /// An issuer whose keys are these.
    pub(crate) async fn start(keys: &[(&str, &str)]) -> Issuer {
        Issuer::with_clients(keys, "").await
    }

    /// One whose clients must have a certificate of this authority, unless that is empty.
    pub(crate) async fn with_clients(keys: &[(&str, &str)], clients: &str) -> Issuer {
        let env = Env::system();
        let authority = Authority::generate(env.wall()).unwrap();
        let files = authority.issue(&["localhost".into()], env.wall()).unwrap();
        let chain =
            CertificateDer::pem_slice_iter(files.certificate.as_bytes()).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match CertificateDer::from_pem_slice(clients.as_bytes()) {
            Ok(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients).unwrap();
                let roots = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(roots.build().unwrap())
            }
            Err(_) => config.with_no_client_auth(),
        };
        let config = config.with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let pages = Arc::new(Pages {
            pages: Mutex::default(),
            counts: Mutex::default(),
            last: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            changed: Notify::new(),
        });
        let issuer = Issuer { url, authority, pages: pages.clone() };
        issuer.pages.set("/.well-known/openid-configuration", issuer.document());
        issuer.set_keys(keys);
        drop(env.spawn("issuer", async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, pages) = (acceptor.clone(), pages.clone());
                drop(Env::system().spawn("connection of an issuer", async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    let service = hyper::service::service_fn(move |request| {
                        let pages = pages.clone();
                        async move { Ok::<_, std::convert::Infallible>(pages.answer(request).await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(tls), service)
                        .await;
                }));
            }
        }));
        issuer
    }

    /// Its discovery document.
    pub(crate) fn document(&self) -> Page {
        Page::Body(json!({"issuer": self.url, "jwks_uri": format!("{}/keys", self.url)}).to_string())
    }

    /// Its keys: names and PEM files.
    pub(crate) fn set_keys(&self, keys: &[(&str, &str)]) {
        let all: Vec<Value> = keys.iter().map(|(id, pem)| jwk(id, pem)).collect();
        self.pages.set("/keys", Page::Body(json!({ "keys": all }).to_string()));
    }

    /// Good claims.
    pub(crate) fn claims(&self) -> Value {
        json!({"iss": self.url, "aud": "k1s", "exp": 9_999_999_999_i64, "sub": "jane", "groups": ["devs"]})
    }

    pub(crate) fn config(&self) -> k1s_server::JwtAuthenticator {
        let text = format!(
            "{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [{{issuer: {{url: '{}', audiences: [k1s]}}, claimMappings: {{username: {{claim: sub, prefix: 'oidc:'}}, groups: {{claim: groups, prefix: 'oidc:'}}}}}}]}}",
            self.url
        );
        let mut config = k1s_server::AuthenticationConfiguration::parse(text.as_bytes()).unwrap();
        let mut jwt = config.jwt.remove(0);
        jwt.issuer.certificate_authority = self.authority.certificate().to_owned();
        jwt
    }
}

/// The public part of an RSA key, by a server that publishes it.
fn jwk(id: &str, pem: &str) -> Value {
    assert!(!PublicKeys::from_pem(pem).unwrap().is_empty() && SigningKey::from_pem(pem).is_ok());
    let public = pair(pem).public().clone();
    // A sequence of modulus and exponent.
    let der = public.as_ref();
    let (n, e) = numbers(der);
    json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": URL_SAFE_NO_PAD.encode(n), "e": URL_SAFE_NO_PAD.encode(e)})
}

fn numbers(der: &[u8]) -> (Vec<u8>, Vec<u8>) {
    fn element(bytes: &[u8]) -> (&[u8], &[u8]) {
        let (length, head) = match bytes[1] {
            short if short < 0x80 => (usize::from(short), 2),
            0x81 => (usize::from(bytes[2]), 3),
            _ => (usize::from(bytes[2]) << 8 | usize::from(bytes[3]), 4),
        };
        (&bytes[head..head + length], &bytes[head + length..])
    }
    let (inside, _) = element(der);
    let (n, rest) = element(inside);
    (n.to_vec(), element(rest).0.to_vec())
}

fn pair(pem: &str) -> RsaKeyPair {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = BASE64_STANDARD.decode(body).unwrap();
    RsaKeyPair::from_der(&der).or_else(|_| RsaKeyPair::from_pkcs8(&der)).unwrap()
}

/// A token with these claims, by this key.
pub(crate) fn signed(id: &str, pem: &str, claims: &Value) -> String {
    let part = |json: String| URL_SAFE_NO_PAD.encode(json);
    let head = json!({"alg": "RS256", "kid": id});
    let text = format!("{}.{}", part(head.to_string()), part(claims.to_string()));
    let pair = pair(pem);
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
