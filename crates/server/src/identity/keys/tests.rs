//! Keys in all forms in which they come, and what they verify.

use ring::{rand::SystemRandom, signature as with};

use super::{
    parse::{Private, first_private},
    *,
};

const RSA_1: &str = include_str!("../../../tests/auth/keys/rsa_1.pem");
const RSA_2: &str = include_str!("../../../tests/auth/keys/rsa_2.pem");
const EC_1: &str = include_str!("../../../tests/auth/keys/ecdsa_1.pem");
const EC_2: &str = include_str!("../../../tests/auth/keys/ecdsa_2.pem");
const EC_384: &str = include_str!("../../../tests/auth/keys/ecdsa_384.pem");

#[test]
fn private_keys_sign_and_their_public_parts_verify() {
    for (pem, algorithm) in [
        (RSA_1, Algorithm::RS256),
        (RSA_2, Algorithm::RS256),
        (EC_1, Algorithm::ES256),
        (EC_2, Algorithm::ES256),
        (EC_384, Algorithm::ES384),
    ] {
        let key = SigningKey::from_pem(pem).unwrap();
        assert_eq!(key.algorithm(), algorithm);
        let signature = key.sign(b"message").unwrap();
        let PublicKeys(public) = PublicKeys::from_pem(pem).unwrap();
        assert_eq!(public, [key.public().clone()]);
        for tried in Algorithm::ALL {
            assert_eq!(public[0].verifies(tried, b"message", &signature), tried == algorithm, "{tried:?}");
        }
        assert!(!public[0].verifies(algorithm, b"massage", &signature));
        // The public key alone has the same id.
        let spki = crate::pem::encode("PUBLIC KEY", &key.public().to_der());
        let PublicKeys(again) = PublicKeys::from_pem(&spki).unwrap();
        assert_eq!((again[0].id(), &again[0]), (key.id().to_owned(), key.public()));
        assert!(SigningKey::from_pem(&spki).is_err());
    }
}

#[test]
fn rsa_signatures_of_all_algorithms_are_verified() {
    let Private::Rsa { der, public } = first_private(RSA_1).unwrap() else { panic!() };
    let pair = with::RsaKeyPair::from_der(&der).unwrap();
    let all: [(Algorithm, &'static dyn with::RsaEncoding); 6] = [
        (Algorithm::RS256, &with::RSA_PKCS1_SHA256),
        (Algorithm::RS384, &with::RSA_PKCS1_SHA384),
        (Algorithm::RS512, &with::RSA_PKCS1_SHA512),
        (Algorithm::PS256, &with::RSA_PSS_SHA256),
        (Algorithm::PS384, &with::RSA_PSS_SHA384),
        (Algorithm::PS512, &with::RSA_PSS_SHA512),
    ];
    for (algorithm, encoding) in all {
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), b"message", &mut signature).unwrap();
        for tried in Algorithm::ALL {
            assert_eq!(public.verifies(tried, b"message", &signature), tried == algorithm, "{tried:?}");
        }
    }
}

#[test]
fn files_with_several_keys_and_without_any() {
    let PublicKeys(all) = PublicKeys::from_pem(&[RSA_1, "text", EC_1, RSA_2].concat()).unwrap();
    assert_eq!(format!("{all:?}"), "[RSA-2048, P-256, RSA-2048]");
    let authority = crate::pem::encode("CERTIFICATE", b"no certificate");
    for text in ["", "text", &authority, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
        assert_eq!(
            PublicKeys::from_pem(text).unwrap_err().to_string(),
            "data does not contain any valid RSA or ECDSA public keys"
        );
        assert_eq!(
            SigningKey::from_pem(text).unwrap_err().to_string(),
            "data does not contain a valid RSA or ECDSA private key"
        );
    }
    let key = SigningKey::from_pem(EC_1).unwrap();
    assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.id()));
}

#[test]
#[cfg(feature = "tls")]
fn the_key_of_a_certificate_is_found() {
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let authority = crate::pki::Authority::generate(now).unwrap();
    let PublicKeys(of_certificate) = PublicKeys::from_pem(authority.certificate()).unwrap();
    let PublicKeys(of_key) = PublicKeys::from_pem(authority.key()).unwrap();
    assert_eq!(of_certificate, of_key);
}
