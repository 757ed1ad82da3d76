//! The API over HTTPS, for the front proxy of a control plane alone.
//!
//! The user of a request is in its headers. They are believed because of the client's certificate: it is issued by the
//! authority of front proxies, and so by nobody but the control plane. (On a cluster, that authority and the names of its
//! proxies are in the `ConfigMap` `kube-system/extension-apiserver-authentication`.)

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use k1s::{
    BoxError,
    env::{Env, Task},
    server::{Authority, TlsFiles},
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server that has a port and a certificate.
pub(crate) struct Secured {
    env: Env,
    listener: TcpListener,
    files: TlsFiles,
}

impl Secured {
    /// Takes a port, and issues a certificate for the name of the Service.
    pub(crate) async fn bind() -> Result<Secured, BoxError> {
        let env = Env::system();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let authority = Authority::generate(env.wall())?;
        let files = authority.issue(&["remote.usage.svc".to_owned()], env.wall())?;
        Ok(Secured { env, listener, files })
    }

    pub(crate) fn address(&self) -> io::Result<String> {
        Ok(self.listener.local_addr()?.to_string())
    }

    /// The authority of its certificate, for `caBundle`.
    pub(crate) fn authority(&self) -> String {
        BASE64_STANDARD.encode(&self.files.authority)
    }

    /// Serves clients with certificates of this authority, which is that of front proxies.
    pub(crate) fn serve<S>(self, service: S, proxies: &str) -> Result<Task<()>, BoxError>
    where
        S: tower::Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let Secured { env, listener, files } = self;
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(proxies.as_bytes()) {
            roots.add(authority?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        let chain =
            CertificateDer::pem_slice_iter(files.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let tasks = env.clone();
        Ok(env.spawn("aggregated API server", async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(service.clone()));
                drop(tasks.spawn("connection", async move {
                    // Without the right certificate, the handshake fails.
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let http = auto::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                }));
            }
        }))
    }
}
