//! An etcd with mutual TLS.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path};

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Store, WatchRequest};
use k1s_store_etcd::{
    ConnectError, EtcdOptions, EtcdStore, TlsIdentity, TlsOptions,
    testing::{EtcdServer, ServerOptions},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> TlsIdentity {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    TlsIdentity { certificate: certificate.pem().into(), key: key.serialize_pem().into() }
}

/// A server that accepts only clients of `authority`, with the name `etcd.test`.
async fn server(
    env: &Env,
    dir: &Path,
    authority: &CertifiedIssuer<'static, KeyPair>,
    client: &TlsOptions,
) -> Option<EtcdServer> {
    let identity = issue(authority, "etcd.test");
    let file = |name: &str, content: &[u8]| {
        let path = dir.join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let args = vec![
        format!("--cert-file={}", file("cert.pem", &identity.certificate)),
        format!("--key-file={}", file("key.pem", &identity.key)),
        format!("--trusted-ca-file={}", file("ca.pem", authority.pem().as_bytes())),
        "--client-cert-auth".to_owned(),
    ];
    EtcdServer::start_with(env, ServerOptions { args, tls: Some(client.clone()) }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_authenticate_by_certificates() {
    let env = Env::system();
    let dir = tempfile::tempdir().unwrap();
    let authority = authority();
    let client = TlsOptions {
        ca: authority.pem().into(),
        identity: Some(issue(&authority, "client.test")),
        domain: Some("etcd.test".into()),
    };
    let Some(server) = server(&env, dir.path(), &authority, &client).await else { return };
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let written = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written);
    store.close().await.unwrap();

    let refused = async |tls: TlsOptions| {
        let options = hasty(EtcdOptions { tls: Some(tls), ..server.options() });
        EtcdStore::connect(env.clone(), options).await.unwrap_err()
    };
    let nobody = refused(TlsOptions { identity: None, ..client.clone() }).await;
    assert!(matches!(nobody, ConnectError::Store(Error::Unavailable { .. })), "{nobody}");
    let stranger = refused(TlsOptions { ca: self::authority().pem().into(), ..client.clone() }).await;
    assert!(stranger.to_string().contains("certificate"), "{stranger}");
    let other_name = refused(TlsOptions { domain: Some("other.test".into()), ..client.clone() }).await;
    assert!(other_name.to_string().contains("certificate"), "{other_name}");
    let nonsense = refused(TlsOptions { ca: b"no certificate".to_vec(), ..client.clone() }).await;
    assert!(matches!(nonsense, ConnectError::Tls { .. } | ConnectError::Store(_)), "{nonsense}");
}
