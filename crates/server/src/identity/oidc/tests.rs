//! Upstream's cases, as data: `tests/auth/upstream/`.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD, prelude::BASE64_STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, RsaEncoding, RsaKeyPair},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    expressions::{About, Expression, Yields},
    *,
};
use crate::identity::{PublicKeys, keys::KeySet};

/// The time of upstream's tests: 2009-11-10T23:00:00Z.
const NOW: i64 = 1_257_894_000;

#[derive(Debug, Deserialize)]
struct Key {
    key: String,
    alg: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    jwt: JwtAuthenticator,
    #[serde(default)]
    algs: Vec<String>,
    #[serde(default)]
    disallowed: Vec<String>,
    signing: Option<Key>,
    #[serde(default)]
    keys: Vec<Key>,
    #[serde(default)]
    claims: String,
    user: Option<Value>,
    #[serde(default)]
    skip: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    refused: String,
    #[serde(default)]
    unhealthy: String,
    #[serde(default)]
    responses: BTreeMap<String, String>,
    #[serde(default)]
    #[allow(dead_code, reason = "these cases are run over HTTPS")]
    discovery: String,
    #[serde(default)]
    remote: bool,
}

fn pem(name: &str) -> &'static str {
    match name {
        "rsa_1" => include_str!("../../../tests/auth/keys/rsa_1.pem"),
        "rsa_2" => include_str!("../../../tests/auth/keys/rsa_2.pem"),
        "rsa_3" => include_str!("../../../tests/auth/keys/rsa_3.pem"),
        "ecdsa_1" => include_str!("../../../tests/auth/keys/ecdsa_1.pem"),
        "ecdsa_2" => include_str!("../../../tests/auth/keys/ecdsa_2.pem"),
        _ => include_str!("../../../tests/auth/keys/ecdsa_3.pem"),
    }
}

/// A token with these claims.
fn sign(key: &Key, claims: &str) -> Option<String> {
    let head = json!({"alg": key.alg, "kid": key.key});
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(head.to_string()), URL_SAFE_NO_PAD.encode(claims));
    let (_, der) = crate::pem::blocks(pem(&key.key)).next().unwrap();
    let encoding: &'static dyn RsaEncoding = match key.alg.as_str() {
        "RS256" => &signature::RSA_PKCS1_SHA256,
        "PS256" => &signature::RSA_PSS_SHA256,
        "ES256" => {
            let with = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = EcdsaKeyPair::from_pkcs8(with, &der, &SystemRandom::new()).unwrap();
            let made = pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
            return Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(made)));
        }
        _ => return None,
    };
    let pair = RsaKeyPair::from_der(&der).or_else(|_| RsaKeyPair::from_pkcs8(&der)).unwrap();
    let mut made = vec![0; pair.public().modulus_len()];
    pair.sign(encoding, &SystemRandom::new(), text.as_bytes(), &mut made).unwrap();
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(made)))
}

/// The public keys, named as upstream's are by their digests.
fn key_set(keys: &[Key]) -> KeySet {
    let jwk = |key: &Key| {
        let PublicKeys(public) = PublicKeys::from_pem(pem(&key.key)).unwrap();
        let mut jwk = public[0].to_jwk();
        jwk["kid"] = key.key.as_str().into();
        jwk["alg"] = key.alg.as_str().into();
        jwk
    };
    let keys: Vec<Value> = keys.iter().map(jwk).collect();
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn user_json(user: &User) -> Value {
    let mut out = json!({"name": user.name});
    if !user.uid.is_empty() {
        out["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        out["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        out["extra"] =
            Value::Object(user.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect());
    }
    out
}

/// What comes of a case.
async fn outcome(env: &Env, case: &Case) -> Result<Value, String> {
    let mut algorithms = Vec::new();
    for name in &case.algs {
        let Some(algorithm) = Algorithm::named(name) else {
            return Err(format!("oidc: unsupported signing alg: {name:?}"));
        };
        algorithms.push(algorithm);
    }
    if algorithms.is_empty() {
        algorithms.push(Algorithm::RS256);
    }
    let algorithms: Arc<[Algorithm]> = algorithms.into();
    let prepared = Authenticator::prepare(env, &case.jwt, &case.disallowed);
    let (mapping, client) = match prepared {
        Ok(prepared) => prepared,
        Err(JwtError::Invalid(errors)) => return Err(aggregate(&errors)),
        Err(other) => return Err(other.to_string()),
    };
    let keys = Keys::Given(Arc::new(key_set(&case.keys)));
    let stop = CancellationToken::new();
    let one = Authenticator::new(env, &case.jwt, mapping, keys, client, &algorithms, &stop);
    let issuers = Issuers { all: vec![Arc::new(one)], _stop: stop.drop_guard() };
    let signing = case.signing.as_ref().ok_or("the case has no token")?;
    let token = sign(signing, &case.claims).ok_or("the algorithm is not supported")?;
    Ok(issuers.authenticate(&token, NOW).await?.map_or(json!("skipped"), |user| user_json(&user)))
}

#[tokio::test]
async fn tokens_as_upstream_takes_them() {
    let (env, _clock) = Env::simulated(1);
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../tests/auth/upstream/oidc.json")).unwrap();
    let (mut held, mut elsewhere, mut broken) = (0, Vec::new(), Vec::new());
    // What does not hold, and why not.
    let differences = [
        ("es512", "the key is on P-521, which is not supported"),
        ("client and ca mutually exclusive", "a mistake of a program that nobody can make here"),
        ("keyset and discovery URL mutually exclusive", "likewise"),
        ("valid egress type with error", "there are no egress selectors: all types are refused"),
        ("valid egress type with error - again", "likewise"),
        ("valid egress type with no egress config for the given type", "likewise"),
    ];
    for case in &cases {
        // These need an issuer: they are played in tests/auth/upstream/issuers.rs.
        if case.remote
            || !case.responses.is_empty()
            || !case.unhealthy.is_empty()
            || case.jwt.issuer.url.contains("{{")
        {
            elsewhere.push(&case.name);
            continue;
        }
        if differences.iter().any(|(name, _)| *name == case.name) {
            continue;
        }
        let found = outcome(&env, case).await;
        let error = [&case.error, &case.refused].into_iter().find(|error| !error.is_empty());
        let expected = match (error, case.skip) {
            (Some(error), _) => Err(error.replace("{{.Expired}}", "2009-11-10 22:00:00 +0000 UTC")),
            (None, true) => Ok(json!("skipped")),
            (None, false) => Ok(case.user.clone().unwrap_or_else(|| json!({"name": ""}))),
        };
        if found == expected {
            held += 1;
        } else {
            broken.push(format!("{}: expected {expected:?}, found {found:?}", case.name));
        }
    }
    assert!(broken.is_empty(), "{} do not hold:\n{}", broken.len(), broken.join("\n"));
    assert_eq!((cases.len(), held, elsewhere.len(), differences.len()), (93, 68, 19, 6));
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    of: String,
    name: String,
    #[serde(default, rename = "in")]
    input: Value,
    #[serde(default)]
    disallowed: Vec<String>,
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    verified: bool,
    #[serde(default)]
    about: String,
    #[serde(default)]
    bool: bool,
    #[serde(default)]
    want: String,
}

#[test]
fn configurations_as_upstream_checks_them() {
    let rules: Vec<Rule> =
        serde_json::from_str(include_str!("../../../tests/auth/upstream/authentication_configuration.json"))
            .unwrap();
    let from = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let certificate = {
        let der = crate::der::write(
            crate::der::SEQUENCE,
            &[&crate::der::write(
                crate::der::SEQUENCE,
                &[
                    &crate::der::write(crate::der::INTEGER, &[&[1]]),
                    &crate::der::write(crate::der::SEQUENCE, &[]),
                    &crate::der::write(crate::der::SEQUENCE, &[]),
                ],
            )],
        );
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", BASE64_STANDARD.encode(der))
    };
    let mut broken = Vec::new();
    let mut held = 0;
    for rule in &rules {
        let mut errors = Vec::new();
        match rule.of.as_str() {
            "configuration" => {
                let jwt = serde_json::from_value(rule.input["jwt"].clone()).unwrap_or_default();
                let config = AuthenticationConfiguration { jwt, ..AuthenticationConfiguration::default() };
                errors = validate::configuration(&config, &rule.disallowed);
            }
            "issuerURL" => errors = validate::issuer_url(&from(&rule.input), &rule.disallowed, "issuer.url"),
            "discoveryURL" => {
                errors = validate::discovery_url(&rule.issuer, &from(&rule.input), "issuer.discoveryURL");
            }
            "audiences" => {
                let audiences: Vec<String> = serde_json::from_value(rule.input.clone()).unwrap_or_default();
                errors = validate::audiences(
                    &audiences,
                    &rule.policy,
                    "issuer.audiences",
                    "issuer.audienceMatchPolicy",
                );
            }
            "certificateAuthority" => {
                let pem = from(&rule.input).replace("{{certificate}}", &certificate);
                errors = validate::authority(&pem, "issuer.certificateAuthority");
            }
            "claimValidationRules" => {
                let rules: Vec<ClaimValidationRule> = serde_json::from_value(rule.input.clone()).unwrap();
                let compiled = validate::claim_rules(&rules, "issuer.claimValidationRules", &mut errors);
                assert_eq!(
                    compiled.iter().any(|(one, _)| one.email_verified),
                    rule.verified,
                    "{}",
                    rule.name
                );
            }
            "claimMappings" => {
                let mappings: ClaimMappings = serde_json::from_value(rule.input.clone()).unwrap();
                let mut mappers = validate::Mappers::default();
                validate::claim_mappings(
                    &mappings,
                    rule.verified,
                    "issuer.claimMappings",
                    &mut mappers,
                    &mut errors,
                );
            }
            "userValidationRules" => {
                let rules: Vec<UserValidationRule> = serde_json::from_value(rule.input.clone()).unwrap();
                validate::user_rules(&rules, "issuer.userValidationRules", &mut errors);
            }
            _ => {
                let about = if rule.about == "user" { About::User } else { About::Claims };
                let yields = if rule.bool { Yields::Bool } else { Yields::Anything };
                let found = Expression::compile(&from(&rule.input), about, yields).err().unwrap_or_default();
                if found.starts_with(rule.want.as_str()) && found.is_empty() == rule.want.is_empty() {
                    held += 1;
                } else {
                    broken.push(format!("{}: expected {:?}, found {found:?}", rule.name, rule.want));
                }
                continue;
            }
        }
        let found = if errors.is_empty() { String::new() } else { aggregate(&errors) };
        if found == rule.want {
            held += 1;
        } else {
            broken.push(format!("{} {}: expected {}\nfound {found}", rule.of, rule.name, rule.want));
        }
    }
    // Upstream's type `any` is `dyn` here, which shows in a message about the wrong type.
    broken.retain(|one: &String| !one.starts_with("invalid ClaimMappingCondition: "));
    assert!(broken.is_empty(), "{} do not hold:\n{}", broken.len(), broken.join("\n"));
    assert_eq!((rules.len(), held), (117, 116));
}
