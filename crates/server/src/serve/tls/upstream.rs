//! The cases of Kubernetes' own tests of client certificates, under the names of these tests. Requests without TLS or without
//! a certificate, two cases of each, never come here: they are in `tests/auth`.

#![allow(clippy::type_complexity, reason = "tables")]

use std::time::{Duration, SystemTime};

use rcgen::{KeyPair, PublicKeyData as _};

use super::*;
use crate::{
    der::{COMMON_NAME, ORGANIZATION},
    pki::{Authority, CLIENT_AUTH, Content, extended_key_usage, extension},
};

const UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const DAY: Duration = Duration::from_secs(24 * 3600);

/// From and until when a certificate is valid, in days from now.
type Days = (i32, i32);
const NOW: Days = (-1, 1);

fn since_1970(days: i32) -> Duration {
    let now = Env::system().wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    if days < 0 { now - DAY * days.unsigned_abs() } else { now + DAY * days.unsigned_abs() }
}

fn authority() -> Authority {
    Authority::generate(Env::system().wall()).unwrap()
}

fn issue(
    by: &Authority,
    subject: &[(&[u8], &str)],
    key: &KeyPair,
    extensions: Vec<Vec<u8>>,
    days: Days,
) -> CertificateDer<'static> {
    let key = key.subject_public_key_info();
    let times = (since_1970(days.0), since_1970(days.1));
    by.certify(Content { subject: subject.to_vec(), key: &key, times, extensions, serial: [1; 16] })
        .unwrap()
        .into()
}

/// A certificate with a usage.
fn leaf(by: &Authority, subject: &[(&[u8], &str)], usage: &[u8], days: Days) -> CertificateDer<'static> {
    issue(by, subject, &KeyPair::generate().unwrap(), vec![extended_key_usage(&[usage])], days)
}

/// An authority below another one, and its certificate.
fn intermediate(by: &Authority) -> (Authority, CertificateDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let is_authority = extension(&[0x55, 0x1d, 0x13], true, &[0x30, 0x03, 0x01, 0x01, 0xff]);
    let certificate = issue(by, &[(COMMON_NAME, "intermediate")], &key, vec![is_authority], NOW);
    let pem = crate::pem::encode("CERTIFICATE", &certificate);
    (Authority::from_pem(&pem, &key.serialize_pem()).unwrap(), certificate)
}

const CLIENT: &[(&[u8], &str)] = &[
    (ORGANIZATION, "My Org"),
    (&[0x55, 0x04, 0x0b], "My Unit"),
    (COMMON_NAME, "client_cn2"),
    (COMMON_NAME, "client_cn"),
    (UID, "client_id"),
];
const SERVER: &[(&[u8], &str)] = &[(ORGANIZATION, "My Org"), (COMMON_NAME, "127.0.0.1")];

/// A certificate, and those between it and the root.
type Chain = (CertificateDer<'static>, Vec<CertificateDer<'static>>);

/// The certificates that both tests show, by the names of the cases.
fn chains(root: &Authority) -> Vec<(&'static str, Chain)> {
    let (below, between) = intermediate(root);
    let subject: &[(&[u8], &str)] = &[(COMMON_NAME, "My Client")];
    let self_signed = CertificateDer::from_pem_slice(authority().certificate().as_bytes()).unwrap();
    vec![
        ("self signed", (self_signed, vec![])),
        ("server cert", (leaf(root, SERVER, SERVER_AUTH, NOW), vec![])),
        ("common name and UID", (leaf(root, CLIENT, CLIENT_AUTH, NOW), vec![])),
        ("future cert", (leaf(root, CLIENT, CLIENT_AUTH, (1, 2)), vec![])),
        ("expired cert", (leaf(root, CLIENT, CLIENT_AUTH, (-2, -1)), vec![])),
        ("multi-level, valid", (leaf(&below, subject, CLIENT_AUTH, NOW), vec![between.clone()])),
        ("multi-level, expired", (leaf(&below, subject, CLIENT_AUTH, (-2, -1)), vec![between])),
    ]
}

fn trust(root: &Authority, front_proxy_names: &[&str]) -> ClientAuthorities {
    let pem = root.certificate().to_owned();
    let names = front_proxy_names.iter().map(|name| (*name).to_owned()).collect();
    ClientAuthorities::new(&ClientTrust { users: pem.clone(), front_proxies: pem, front_proxy_names: names })
        .unwrap()
}

fn peer(authorities: &ClientAuthorities, (certificate, between): &Chain) -> Peer {
    authorities.verify(&Env::system(), certificate, between)
}

/// Name, uid, groups besides `system:authenticated`, and the digest that is the id of the credential.
fn described(user: &User) -> (String, String, Vec<String>, String) {
    let groups = user.groups.iter().filter(|group| *group != "system:authenticated").cloned().collect();
    let [(key, id)] = &user.extra[..] else { panic!("{user:?}") };
    assert_eq!(key, "authentication.kubernetes.io/credential-id");
    (user.name.clone(), user.uid.clone(), groups, id.join(","))
}

fn digest(certificate: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(certificate).into();
    digest.iter().fold("X509SHA256=".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Four of its 17 cases have no equivalent here: a server certificate is never one of a client, a uid is always read, and there are
/// no other ways from a certificate to a user, in two cases.
#[test]
fn test_x509() {
    let root = authority();
    let authorities = trust(&root, &[]);
    let mut played = 0;
    let mut check = |name: &str, chain: &Chain, expected: Option<(&str, &str, &[&str])>| {
        played += 1;
        match (peer(&authorities, chain).user, expected) {
            (Verified::Good { value: user, .. }, Some((user_name, uid, groups))) => {
                let groups = groups.iter().map(|group| (*group).to_owned()).collect();
                assert_eq!(
                    described(&user),
                    (user_name.into(), uid.into(), groups, digest(&chain.0)),
                    "{name}"
                );
            }
            (Verified::Refused, None) => {}
            (found, _) => panic!("{name}: {found:?}"),
        }
    };
    for (name, chain) in chains(&root) {
        let expected = match name {
            "common name and UID" => Some(("client_cn", "client_id", &["My Org"][..])),
            "multi-level, valid" => Some(("My Client", "", &[][..])),
            _ => None,
        };
        check(name, &chain, expected);
    }
    let with = |more: &[(&'static [u8], &'static str)]| {
        let subject = [&[(COMMON_NAME, "ROOT CA WITH GROUPS")], more].concat();
        (leaf(&root, &subject, CLIENT_AUTH, NOW), vec![])
    };
    check("ca with empty UID", &with(&[(UID, "")]), None);
    check("ca with multiple UIDs", &with(&[(UID, "client_uid1"), (UID, "client_uid2")]), None);
    let groups = ["My Org", "My Org 1", "My Org 2"];
    let several = with(&groups.map(|group| (ORGANIZATION, group)));
    check("ca with multiple organizations", &several, Some(("ROOT CA WITH GROUPS", "", &groups)));
    // Another tag than that of a text would break the signature: so only what is read of it is compared.
    let (certificate, _) = with(&[(UID, "custom_value")]);
    let mut bytes = certificate.to_vec();
    assert!(Certificate::read(&bytes, "").is_some());
    let place = bytes.windows(12).position(|window| window == b"custom_value").unwrap();
    bytes[place - 2] = 0x30;
    assert_eq!(Certificate::read(&bytes, ""), None, "ca with non-string UID");
    assert!(matches!(user_of(Some(true), None), Verified::Refused));
    assert_eq!(played + 1, 11);
}

/// One of its 12 cases has no equivalent here: a server certificate is never one of a client.
#[test]
fn test_x509_verifier() {
    let root = authority();
    let everybody = trust(&root, &[]);
    for (name, chain) in chains(&root) {
        let valid = matches!(name, "common name and UID" | "multi-level, valid");
        match peer(&everybody, &chain).proxy {
            Verified::Good { .. } if valid => {}
            Verified::Refused if !valid => {}
            found => panic!("{name}: {found:?}"),
        }
    }
    let client = (leaf(&root, CLIENT, CLIENT_AUTH, NOW), vec![]);
    let named = |names: &[&str]| peer(&trust(&root, names), &client).proxy;
    assert!(matches!(named(&["foo", "bar"]), Verified::Refused), "valid client cert with wrong CN");
    assert!(matches!(named(&["client_cn"]), Verified::Good { .. }), "valid client cert with right CN");
}
