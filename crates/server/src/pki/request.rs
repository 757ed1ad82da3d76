//! Certificates for `CertificateSigningRequest`s: what Kubernetes' own signers accept, and what they put into a certificate.

use std::{
    borrow::Cow,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k1s_kinds::rules::certificates::certificate_signing_request::{self as csr, Request};
use k1s_object::field::quote;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{
    Authority, PkiError,
    client::{CLIENT_AUTH, Content, extended_key_usage, extension, key_usage, no_authority},
    since_epoch,
};
use crate::{
    der::{OBJECT_ID, SEQUENCE, TENANT, UTF8, element, expect, write},
    identity::valid_until,
    pem,
};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// Certificates are valid from this long before they are signed.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Certificates of a shorter validity end later by [`BACKDATE`].
const SHORT: Duration = Duration::from_secs(8 * 3600);
/// Minimum validity.
const SHORTEST: Duration = Duration::from_secs(10 * 60);

const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// What is in a `CertificateSigningRequest`.
#[derive(Debug, Clone, Copy)]
pub struct SigningRequest<'a> {
    /// `spec.signerName`.
    pub signer: &'a str,
    /// `spec.request`: PEM in base64.
    pub request: &'a str,
    /// `spec.usages`.
    pub usages: &'a [String],
    /// `spec.expirationSeconds`.
    pub expiration_seconds: Option<i64>,
}

/// How to sign.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Signing<'a> {
    /// The tenant of the request, the only one in which the certificate is valid.
    pub tenant: &'a str,
    /// The time.
    pub now: SystemTime,
    /// Random bytes.
    pub serial: [u8; 16],
    /// Maximum validity, and that of requests that ask for none.
    pub validity: Duration,
    /// Names and addresses of the server itself, which no other server gets a certificate for.
    pub own_names: &'a [String],
    /// Whether servers get certificates: clients of all tenants trust them.
    pub serving: bool,
}

impl<'a> Signing<'a> {
    /// Signs for a tenant, for a year, for clients.
    pub fn new(tenant: &'a str, now: SystemTime, serial: [u8; 16]) -> Signing<'a> {
        let validity = Duration::from_secs(365 * 24 * 3600);
        Signing { tenant, now, serial, validity, own_names: &[], serving: false }
    }
}

/// Why a request is not signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// Its signer does not sign such requests.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be signed.
    #[error("{0}")]
    Unusable(String),
    /// The authority cannot sign.
    #[error(transparent)]
    Authority(#[from] PkiError),
}

impl Authority {
    /// Signs an approved request. Returns the certificate as `status.certificate` has it; `None` if the signer is not one of
    /// those that the authority is.
    ///
    /// # Errors
    /// Why it does not sign it.
    pub fn sign_request(
        &self,
        asked: &SigningRequest<'_>,
        how: &Signing<'_>,
    ) -> Result<Option<String>, SigningError> {
        let invalid = |why: String| Err(SigningError::Invalid(why));
        if !matches!(asked.signer, CLIENT | KUBELET_CLIENT | KUBELET_SERVING | LEGACY)
            || asked.signer == KUBELET_SERVING && !how.serving
        {
            return Ok(None);
        }
        let unusable = |why: String| SigningError::Unusable(why);
        let request =
            csr::parse(asked.request).map_err(|why| unusable(format!("unable to parse csr: {why}")))?;
        let checked = match asked.signer {
            CLIENT => client_usages(asked.usages),
            KUBELET_CLIENT => kubelet_client(&request, asked.usages),
            KUBELET_SERVING => kubelet_serving(&request, asked.usages),
            _ => Ok(()),
        };
        if let Err(why) = checked {
            return invalid(why.into_owned());
        }
        // Its members may do everything in every tenant.
        if request.subject.organizations().contains(&"system:masters") {
            return invalid(format!(
                "use of {} signer with system:masters group is not allowed",
                asked.signer
            ));
        }
        let addresses = request.addresses.iter().map(|address| address.to_canonical().to_string());
        let mut names = request.dns_names.iter().cloned().chain(addresses);
        if let Some(name) = names.find(|name| how.own_names.iter().any(|own| overlap(own, name))) {
            return invalid(format!("{} is a name of this server", quote(&name)));
        }
        let usages = usages(asked.usages)
            .map_err(|unknown| unusable(format!("unrecognized usage values: [{}]", unknown.join(" "))))?;
        verify(&request)
            .map_err(|why| unusable(format!("unable to verify certificate request signature: {why}")))?;
        let der = self.certify(Content {
            subject: request
                .subject
                .attributes
                .iter()
                .map(|(id, text)| (id.as_slice(), text.as_str()))
                .collect(),
            key: &request.key,
            times: self.times(asked.expiration_seconds, how)?,
            extensions: extensions(&request, &usages, how.tenant),
            serial: how.serial,
        })?;
        Ok(Some(STANDARD.encode(pem::encode("CERTIFICATE", &der))))
    }

    /// From when until when a certificate is valid.
    fn times(&self, asked: Option<i64>, how: &Signing<'_>) -> Result<(Duration, Duration), SigningError> {
        let asked = asked.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        let validity = asked.map_or(how.validity, |asked| asked.max(SHORTEST).min(how.validity));
        let now = since_epoch(how.now);
        let end = if validity < SHORT { now + validity } else { now + validity - BACKDATE };
        let last = Duration::from_secs(u64::try_from(self.until()?).unwrap_or_default());
        if now >= last {
            let at = jiff::Timestamp::from_second(self.until()?).unwrap_or_default();
            return Err(SigningError::Unusable(format!("the signer has expired: NotAfter={at}")));
        }
        Ok((now.saturating_sub(BACKDATE), end.min(last)))
    }
}

/// Whether a request is for the client certificate of a kubelet, which may be approved automatically. Returns its `CN`.
#[must_use]
pub fn kubelet_client_name(asked: &SigningRequest<'_>) -> Option<String> {
    let request = csr::parse(asked.request).ok().filter(|_| asked.signer == KUBELET_CLIENT)?;
    kubelet_client(&request, asked.usages).ok().map(|()| request.subject.common_name().to_owned())
}

/// When a certificate in `status.certificate` expires, in seconds since 1970.
#[must_use]
pub fn certificate_end(certificate: &str) -> Option<i64> {
    let pem = STANDARD.decode(certificate).ok()?;
    valid_until(&CertificateDer::from_pem_slice(&pem).ok()?)
}

/// Whether a certificate for one of these names is valid for the other, or for a name that both stand for.
fn overlap(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let stands_for = |wildcard: &str, name: &str| {
        let rest = |name: &str| name.split_once('.').map(|(_, rest)| rest.to_owned());
        wildcard.starts_with("*.") && rest(wildcard) == rest(name)
    };
    one == other || stands_for(&one, &other) || stands_for(&other, &one)
}

type Fault = Cow<'static, str>;

fn client_usages(usages: &[String]) -> Result<(), Fault> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(other) = usages.iter().find(|usage| !allowed.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {other}").into());
    }
    match usages.iter().any(|usage| usage == "client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".into()),
    }
}

/// Whether the usages are the last one, digital signature and, at most, key encipherment.
fn are_exactly(usages: &[String], last: &str) -> Result<(), Fault> {
    let has = |wanted: &str| usages.iter().any(|usage| usage == wanted);
    let allowed = ["digital signature", "key encipherment", last];
    match has(last)
        && has("digital signature")
        && usages.iter().all(|usage| allowed.contains(&usage.as_str()))
    {
        true => Ok(()),
        false => {
            let mut wanted = allowed;
            wanted.sort_unstable();
            Err(format!("usages did not match [{}]", wanted.join(" ")).into())
        }
    }
}

fn is_node(request: &Request) -> Result<(), Fault> {
    match request.subject.common_name().starts_with("system:node:") {
        true => Ok(()),
        false => Err("subject common name does not begin with system:node:".into()),
    }
}

fn kubelet_client(request: &Request, usages: &[String]) -> Result<(), Fault> {
    if request.subject.organizations() != ["system:nodes"] {
        return Err("subject organization is not system:nodes".into());
    }
    for (kind, is_empty) in [
        ("DNS", request.dns_names.is_empty()),
        ("Email", request.emails.is_empty()),
        ("IP", request.addresses.is_empty()),
        ("URI", request.uris.is_empty()),
    ] {
        if !is_empty {
            return Err(format!("{kind} subjectAltNames are not allowed").into());
        }
    }
    is_node(request)?;
    are_exactly(usages, "client auth")
}

fn kubelet_serving(request: &Request, usages: &[String]) -> Result<(), Fault> {
    if request.subject.organizations() != ["system:nodes"] {
        return Err("subject organization is not system:nodes".into());
    }
    if request.dns_names.is_empty() && request.addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".into());
    }
    for (kind, is_empty) in [("Email", request.emails.is_empty()), ("URI", request.uris.is_empty())] {
        if !is_empty {
            return Err(format!("{kind} subjectAltNames are not allowed").into());
        }
    }
    are_exactly(usages, "server auth")?;
    is_node(request)
}

/// What a key may be used for.
#[derive(Debug, PartialEq, Eq)]
struct Usages {
    /// The bits of the key usage, from the highest.
    bits: u16,
    /// The object ids of the extended key usage.
    extended: Vec<&'static [u8]>,
}

/// The extended usages, in the order in which Go writes them.
const EXTENDED: [(&[&str], &[u8]); 12] = [
    (&["any"], &[0x55, 0x1d, 0x25, 0x00]),
    (&["server auth"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]),
    (&["client auth"], CLIENT_AUTH),
    (&["code signing"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03]),
    (&["email protection", "s/mime"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04]),
    (&["ipsec end system"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x05]),
    (&["ipsec tunnel"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x06]),
    (&["ipsec user"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x07]),
    (&["timestamping"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08]),
    (&["ocsp signing"], &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09]),
    (&["microsoft sgc"], &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x03]),
    (&["netscape sgc"], &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x04, 0x01]),
];

/// The usages by their names in a request, or those that are not known.
fn usages(names: &[String]) -> Result<Usages, Vec<String>> {
    let mut bits = 0;
    let mut unknown = Vec::new();
    for name in names {
        bits |= match name.as_str() {
            "signing" | "digital signature" => 0x8000,
            "content commitment" => 0x4000,
            "key encipherment" => 0x2000,
            "data encipherment" => 0x1000,
            "key agreement" => 0x0800,
            "cert sign" => 0x0400,
            "crl sign" => 0x0200,
            "encipher only" => 0x0100,
            "decipher only" => 0x0080,
            other => {
                if !EXTENDED.iter().any(|(names, _)| names.contains(&other)) {
                    unknown.push(quote(other));
                }
                0
            }
        };
    }
    let is_wanted = |of: &&[&str]| of.iter().any(|one| names.iter().any(|name| name == one));
    let extended = EXTENDED.iter().filter(|(of, _)| is_wanted(of)).map(|(_, id)| *id).collect();
    if unknown.is_empty() { Ok(Usages { bits, extended }) } else { Err(unknown) }
}

fn extensions(request: &Request, usages: &Usages, tenant: &str) -> Vec<Vec<u8>> {
    let mut extensions = Vec::new();
    let bytes = usages.bits.to_be_bytes();
    match bytes {
        [0, 0] => {}
        [_, 0] => extensions.push(key_usage(&bytes[..1])),
        _ => extensions.push(key_usage(&bytes)),
    }
    if !usages.extended.is_empty() {
        extensions.push(extended_key_usage(&usages.extended));
    }
    extensions.push(no_authority());
    let mut names = Vec::new();
    for name in &request.dns_names {
        names.extend(write(0x82, &[name.as_bytes()]));
    }
    for name in &request.emails {
        names.extend(write(0x81, &[name.as_bytes()]));
    }
    for address in &request.addresses {
        names.extend(match address {
            IpAddr::V4(address) => write(0x87, &[&address.octets()]),
            IpAddr::V6(address) => write(0x87, &[&address.octets()]),
        });
    }
    for uri in &request.uris {
        names.extend(write(0x86, &[uri.as_bytes()]));
    }
    if !names.is_empty() {
        extensions.push(extension(ALTERNATIVE_NAMES, false, &write(SEQUENCE, &[&names])));
    }
    extensions.push(extension(TENANT, false, &write(UTF8, &[tenant.as_bytes()])));
    extensions
}

/// Verifies that the sender has the key.
fn verify(request: &Request) -> Result<(), Fault> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    let malformed = || Fault::from("x509: malformed public key");
    let (info, _) = expect(&request.key, SEQUENCE).ok_or_else(malformed)?;
    let (algorithm, rest) = expect(info, SEQUENCE).ok_or_else(malformed)?;
    let (kind, parameters) = expect(algorithm, OBJECT_ID).ok_or_else(malformed)?;
    let (bits, _) = expect(rest, 0x03).ok_or_else(malformed)?;
    let Some((0, key)) = bits.split_first() else { return Err(malformed()) };
    let curve = element(parameters).map(|(_, curve, _)| curve);
    let [is_256, is_384] =
        [&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07][..], &[0x2b, 0x81, 0x04, 0x00, 0x22]]
            .map(|known| kind == [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01] && curve == Some(known));
    let is_rsa = kind == [RSA, &[0x01]].concat();
    let with = match request.algorithm.strip_prefix(RSA) {
        Some(rest) => (rest, true),
        None => (&*request.algorithm, false),
    };
    let algorithm: &dyn VerificationAlgorithm = match with {
        ([0x0b], true) if is_rsa => &signature::RSA_PKCS1_2048_8192_SHA256,
        ([0x0c], true) if is_rsa => &signature::RSA_PKCS1_2048_8192_SHA384,
        ([0x0d], true) if is_rsa => &signature::RSA_PKCS1_2048_8192_SHA512,
        ([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], _) if is_256 => &signature::ECDSA_P256_SHA256_ASN1,
        ([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], _) if is_384 => &signature::ECDSA_P384_SHA256_ASN1,
        ([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], _) if is_256 => &signature::ECDSA_P256_SHA384_ASN1,
        ([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], _) if is_384 => &signature::ECDSA_P384_SHA384_ASN1,
        ([0x2b, 0x65, 0x70], _) if kind == [0x2b, 0x65, 0x70] => &signature::ED25519,
        _ => {
            return Err(
                "x509: cannot verify signature: algorithm unimplemented; use RSA of 2048 bits or more, \
                        ECDSA P-256 or P-384, or Ed25519, with SHA-2"
                    .into(),
            );
        }
    };
    let verified = UnparsedPublicKey::new(algorithm, key).verify(&request.signed, &request.signature);
    verified.map_err(|_| "x509: the signature is not by the key of the request".into())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;
    use crate::{identity::Certificate, pki::TlsFiles};

    /// `openssl req -new -newkey rsa:2048 -subj "/O=devs/O=qa/CN=alice/UID=7"`
    const RSA: &str = include_str!("testdata/rsa.csr");
    const DAY: u64 = 24 * 3600;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(DAY * 20_000)
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A request of a node, in base64.
    fn node(name: &str, group: &str, alternative_names: Vec<SanType>) -> String {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = alternative_names;
        STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap())
    }

    fn dns(name: &str) -> Vec<SanType> {
        vec![SanType::DnsName(name.try_into().unwrap())]
    }

    /// The certificate, as PEM, or why there is none.
    fn sign(
        authority: &Authority,
        signer: &str,
        request: &str,
        usages: &[&str],
        seconds: Option<i64>,
    ) -> Result<String, String> {
        let usages = texts(usages);
        let asked = SigningRequest { signer, request, usages: &usages, expiration_seconds: seconds };
        let own = texts(&["localhost", "127.0.0.1", "kubernetes.default.svc"]);
        let how = Signing { own_names: &own, serving: true, ..Signing::new("t1", now(), [1; 16]) };
        match authority.sign_request(&asked, &how) {
            Ok(Some(signed)) => Ok(String::from_utf8(STANDARD.decode(signed).unwrap()).unwrap()),
            Ok(None) => Err("not ours".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_signed_request_names_its_user_in_its_tenant_alone() {
        let authority = Authority::generate(now()).unwrap();
        let request = STANDARD.encode(RSA);
        let usages = ["digital signature", "key encipherment", "client auth"];
        let certificate = sign(&authority, CLIENT, &request, &usages, Some(3600)).unwrap();
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let Certificate { user, until, tenant } = Certificate::read(&der, "ab").unwrap();
        let user = user.unwrap();
        assert_eq!((&*user.name, &*user.uid, tenant.as_deref()), ("alice", "", Some("t1")));
        assert_eq!(user.groups, ["devs", "qa", "system:authenticated"]);
        assert_eq!(until, i64::try_from(DAY).unwrap() * 20_000 + 3600);
        assert_eq!(certificate_end(&STANDARD.encode(&certificate)), Some(until));
        // A server accepts it, a client of a server does not.
        let files =
            TlsFiles { certificate, key: String::new(), authority: authority.certificate().to_owned() };
        files.check_client(now()).unwrap();
        files.check_client(now() + Duration::from_secs(3601)).unwrap_err();
        assert!(files.check(&["localhost".into()], now()).is_err());
    }

    #[test]
    fn requests_are_checked_in_the_words_of_kubernetes() {
        let authority = Authority::generate(now()).unwrap();
        let (alice, bob) = (STANDARD.encode(RSA), node("system:node:b", "system:nodes", Vec::new()));
        let named = |name| node("system:node:b", "system:nodes", dns(name));
        let client = ["digital signature", "client auth"];
        let serving = ["digital signature", "key encipherment", "server auth"];
        let masters = node("root", "system:masters", Vec::new());
        let ip = |address: &str| {
            node("system:node:b", "system:nodes", vec![SanType::IpAddress(address.parse().unwrap())])
        };
        let cases: &[(&str, &str, &[&str], &str)] = &[
            (CLIENT, &alice, &client, ""),
            (
                CLIENT,
                &alice,
                &["digital signature"],
                "missing required usage for client certificate: client auth",
            ),
            (CLIENT, &alice, &["server auth"], "invalid usage for client certificate: server auth"),
            (
                CLIENT,
                &masters,
                &client,
                "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
            ),
            (KUBELET_CLIENT, &bob, &client, ""),
            (KUBELET_CLIENT, &bob, &["digital signature", "key encipherment", "client auth"], ""),
            (KUBELET_CLIENT, &alice, &client, "subject organization is not system:nodes"),
            (KUBELET_CLIENT, &named("a"), &client, "DNS subjectAltNames are not allowed"),
            (KUBELET_CLIENT, &ip("10.0.0.1"), &client, "IP subjectAltNames are not allowed"),
            (
                KUBELET_CLIENT,
                &node("b", "system:nodes", Vec::new()),
                &client,
                "subject common name does not begin with system:node:",
            ),
            (
                KUBELET_CLIENT,
                &bob,
                &serving,
                "usages did not match [client auth digital signature key encipherment]",
            ),
            (KUBELET_SERVING, &bob, &serving, "DNS or IP subjectAltName is required"),
            (KUBELET_SERVING, &named("b.example"), &serving, ""),
            (KUBELET_SERVING, &ip("10.0.0.1"), &["digital signature", "server auth"], ""),
            (
                KUBELET_SERVING,
                &ip("10.0.0.1"),
                &client,
                "usages did not match [digital signature key encipherment server auth]",
            ),
            (KUBELET_SERVING, &named("localhost"), &serving, "\"localhost\" is a name of this server"),
            (
                KUBELET_SERVING,
                &named("*.default.svc"),
                &serving,
                "\"*.default.svc\" is a name of this server",
            ),
            (KUBELET_SERVING, &ip("::ffff:127.0.0.1"), &serving, "\"127.0.0.1\" is a name of this server"),
            ("example.com/s", &alice, &client, "not ours"),
            (LEGACY, &alice, &["cert sign", "any"], ""),
            (
                LEGACY,
                &masters,
                &client,
                "use of kubernetes.io/legacy-unknown signer with system:masters group is not allowed",
            ),
        ];
        for (signer, request, usages, expected) in cases {
            let said = sign(&authority, signer, request, usages, None).err().unwrap_or_default();
            assert_eq!(said, *expected, "{signer} {usages:?}");
        }
    }

    #[test]
    fn a_request_that_its_key_has_not_signed_is_not_signed() {
        let authority = Authority::generate(now()).unwrap();
        // Another name, of the same length.
        let mut forged = pem_bytes(RSA);
        let at = memchr::memmem::find(&forged, b"alice").unwrap();
        forged[at..at + 5].copy_from_slice(b"admin");
        let forged = STANDARD.encode(pem::encode("CERTIFICATE REQUEST", &forged));
        let said = sign(&authority, CLIENT, &forged, &["client auth"], None).unwrap_err();
        assert_eq!(
            said,
            "unable to verify certificate request signature: x509: the signature is not by the key of the request"
        );
    }

    fn pem_bytes(text: &str) -> Vec<u8> {
        let base64: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        STANDARD.decode(base64).unwrap()
    }

    #[test]
    fn validity_is_limited_by_what_is_asked_and_by_the_authority() {
        let authority = Authority::generate(now()).unwrap();
        let request = STANDARD.encode(RSA);
        let seconds = |asked: Option<i64>| {
            let certificate = sign(&authority, CLIENT, &request, &["client auth"], asked).unwrap();
            certificate_end(&STANDARD.encode(certificate)).unwrap() - i64::try_from(DAY).unwrap() * 20_000
        };
        let year = 365 * 86_400;
        assert_eq!(seconds(None), year - 300);
        assert_eq!(seconds(Some(2 * year)), year - 300);
        assert_eq!(seconds(Some(600)), 600);
        assert_eq!(seconds(Some(1)), 600);
        assert_eq!(seconds(Some(8 * 3600 - 1)), 8 * 3600 - 1);
        assert_eq!(seconds(Some(8 * 3600)), 8 * 3600 - 300);
        let key = KeyPair::generate().unwrap();
        let mut params = super::super::authority_params().unwrap();
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(DAY * 20_001);
        let short = Authority::signed(params, key).unwrap();
        let certificate = sign(&short, CLIENT, &request, &["client auth"], None).unwrap();
        assert_eq!(
            certificate_end(&STANDARD.encode(certificate)),
            Some(i64::try_from(DAY).unwrap() * 20_001)
        );
    }

    #[test]
    fn usages_are_written_as_go_writes_them() {
        let both =
            usages(&texts(&["client auth", "server auth", "digital signature", "decipher only"])).unwrap();
        assert_eq!(both.bits, 0x8080);
        assert_eq!(both.extended.len(), 2);
        assert_eq!(usages(&texts(&["s/mime", "email protection"])).unwrap().extended.len(), 1);
        assert_eq!(usages(&texts(&["juggling"])).unwrap_err(), ["\"juggling\""]);
    }
}
