//! The rules for a configuration. What passes them is compiled on the way.

use std::collections::HashSet;

use k1s_cel::library::url::Url;
use k1s_object::{FieldError, names};
use serde_json::{Value, json};

use super::{
    config::{
        AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer, JwtAuthenticator,
        PrefixedClaimOrExpression, UserValidationRule,
    },
    expressions::{About, Expression, Yields},
};

/// Maximum number of issuers.
const MAX_ISSUERS: usize = 64;

/// The expressions of an issuer.
#[derive(Debug, Default)]
pub(super) struct Mappers {
    pub(super) username: Option<Expression>,
    pub(super) groups: Option<Expression>,
    pub(super) uid: Option<Expression>,
    /// With their keys.
    pub(super) extra: Vec<(String, Expression)>,
    /// With their messages.
    pub(super) claim_rules: Vec<(Expression, String)>,
    pub(super) user_rules: Vec<(Expression, String)>,
}

type Errors = Vec<FieldError>;

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// All that is wrong with a configuration. `disallowed` are the issuers of service accounts.
pub(super) fn configuration(config: &AuthenticationConfiguration, disallowed: &[String]) -> Errors {
    let mut errors = Vec::new();
    if config.jwt.len() > MAX_ISSUERS {
        return vec![FieldError::too_many("jwt", config.jwt.len(), MAX_ISSUERS)];
    }
    let (mut urls, mut discovery) = (HashSet::new(), HashSet::new());
    for (at, jwt) in config.jwt.iter().enumerate() {
        let path = format!("jwt[{at}]");
        errors.extend(authenticator(jwt, disallowed, &path).1);
        if !urls.insert(&jwt.issuer.url) {
            errors.push(FieldError::duplicate(format!("{path}.issuer.url"), jwt.issuer.url.as_str()));
        }
        let url = &jwt.issuer.discovery_url;
        if !url.is_empty() && !discovery.insert(url) {
            errors.push(FieldError::duplicate(format!("{path}.issuer.discoveryURL"), url.as_str()));
        }
    }
    if let Some(anonymous) = &config.anonymous
        && !anonymous.enabled
        && !anonymous.paths.is_empty()
    {
        let conditions: Vec<Value> = anonymous.paths.iter().map(|path| json!({ "path": path })).collect();
        let why = "enabled should be set to true when conditions are defined";
        errors.push(FieldError::invalid("anonymous.conditions", conditions, why));
    }
    errors
}

/// What is wrong with an issuer at a path, and its expressions.
pub(super) fn authenticator(jwt: &JwtAuthenticator, disallowed: &[String], path: &str) -> (Mappers, Errors) {
    let mut mappers = Mappers::default();
    let mut errors = issuer(&jwt.issuer, disallowed, &child(path, "issuer"));
    let rules = &child(path, "claimValidationRules");
    mappers.claim_rules = claim_rules(&jwt.claim_validation_rules, rules, &mut errors);
    let verified = mappers.claim_rules.iter().any(|(rule, _)| rule.email_verified);
    claim_mappings(&jwt.claim_mappings, verified, &child(path, "claimMappings"), &mut mappers, &mut errors);
    let rules = &child(path, "userValidationRules");
    mappers.user_rules = user_rules(&jwt.user_validation_rules, rules, &mut errors);
    (mappers, errors)
}

pub(super) fn issuer(issuer: &Issuer, disallowed: &[String], path: &str) -> Errors {
    let mut errors = issuer_url(&issuer.url, disallowed, &child(path, "url"));
    errors.extend(discovery_url(&issuer.url, &issuer.discovery_url, &child(path, "discoveryURL")));
    errors.extend(audiences(
        &issuer.audiences,
        &issuer.audience_match_policy,
        &child(path, "audiences"),
        &child(path, "audienceMatchPolicy"),
    ));
    errors.extend(authority(&issuer.certificate_authority, &child(path, "certificateAuthority")));
    let egress = &issuer.egress_selector_type;
    if !matches!(egress.as_str(), "" | "controlplane" | "cluster") {
        let why = "egress selector must be either controlplane or cluster";
        errors.push(FieldError::invalid(child(path, "egressSelectorType"), egress.as_str(), why));
    }
    errors
}

pub(super) fn issuer_url(url: &str, disallowed: &[String], path: &str) -> Errors {
    match url {
        "" => vec![FieldError::required(path, "")],
        url => check_url(url, disallowed, path),
    }
}

pub(super) fn discovery_url(issuer: &str, url: &str, path: &str) -> Errors {
    if url.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if !issuer.is_empty() && issuer.trim_end_matches('/') == url.trim_end_matches('/') {
        errors.push(FieldError::invalid(path, url, "discoveryURL must be different from URL"));
    }
    errors.extend(check_url(url, &[], path));
    errors
}

fn check_url(text: &str, disallowed: &[String], path: &str) -> Errors {
    let mut errors = Vec::new();
    let mut wrong = |why: String| errors.push(FieldError::invalid(path, text, why));
    if disallowed.iter().any(|one| one == text) {
        let mut sorted: Vec<&str> = disallowed.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        wrong(format!("URL must not overlap with disallowed issuers: [{}]", sorted.join(" ")));
    }
    match Url::parse_reference(text) {
        Err(why) => wrong(why),
        Ok(url) => {
            let checks = [
                (url.scheme() != "https", "URL scheme must be https"),
                (url.has_user(), "URL must not contain a username or password"),
                (url.has_query(), "URL must not contain a query"),
                (url.has_fragment(), "URL must not contain a fragment"),
            ];
            checks.into_iter().filter(|(is_wrong, _)| *is_wrong).for_each(|(_, why)| wrong(why.to_owned()));
        }
    }
    errors
}

pub(super) fn audiences(audiences: &[String], policy: &str, path: &str, policy_path: &str) -> Errors {
    if audiences.is_empty() {
        return vec![FieldError::required(path, format!("at least one {path} is required"))];
    }
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (at, audience) in audiences.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if audience.is_empty() {
            errors.push(FieldError::required(path.clone(), ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(path, audience.as_str()));
        }
    }
    let why = match (audiences.len(), policy) {
        (_, "MatchAny") | (1, "") => return errors,
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(FieldError::invalid(policy_path, policy, why));
    errors
}

pub(super) fn authority(pem: &str, path: &str) -> Errors {
    let is_certificate =
        |(kind, der): (&str, Vec<u8>)| kind == "CERTIFICATE" && crate::der::from_validity(&der).is_some();
    if pem.is_empty() || crate::pem::blocks(pem).any(is_certificate) {
        return Vec::new();
    }
    let why = "data does not contain any valid RSA or ECDSA certificates";
    vec![FieldError::invalid(path, "<omitted>", why)]
}

fn compile(
    text: &str,
    about: About,
    yields: Yields,
    path: impl Into<String>,
    errors: &mut Errors,
) -> Option<Expression> {
    Expression::compile(text, about, yields)
        .map_err(|why| errors.push(FieldError::invalid(path, text, why)))
        .ok()
}

pub(super) fn claim_rules(
    rules: &[ClaimValidationRule],
    path: &str,
    errors: &mut Errors,
) -> Vec<(Expression, String)> {
    let (mut claims, mut expressions) = (HashSet::new(), HashSet::new());
    let mut compiled = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let ClaimValidationRule { claim, required_value, expression, message } = rule;
        match (claim.as_str(), expression.as_str()) {
            ("", "") => errors.push(FieldError::required(path, "claim or expression is required")),
            (claim, "") => {
                if !message.is_empty() {
                    let why = "may not be specified when claim is set";
                    errors.push(FieldError::invalid(child(&path, "message"), message.as_str(), why));
                }
                if !claims.insert(claim) {
                    errors.push(FieldError::duplicate(child(&path, "claim"), claim));
                }
            }
            ("", expression) => {
                if !required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    let path = child(&path, "requiredValue");
                    errors.push(FieldError::invalid(path, required_value.as_str(), why));
                }
                let path = child(&path, "expression");
                if !expressions.insert(expression) {
                    errors.push(FieldError::duplicate(path, expression));
                    continue;
                }
                let rule = compile(expression, About::Claims, Yields::Bool, path, errors);
                compiled.extend(rule.map(|rule| (rule, message.clone())));
            }
            (claim, _) => {
                errors.push(FieldError::invalid(path, claim, "claim and expression can't both be set"));
            }
        }
    }
    compiled
}

/// `verified`: whether a rule reads the claim `email_verified`.
pub(super) fn claim_mappings(
    mappings: &ClaimMappings,
    verified: bool,
    path: &str,
    mappers: &mut Mappers,
    errors: &mut Errors,
) {
    mappers.username = mapping(&mappings.username, &child(path, "username"), true, errors);
    mappers.groups = mapping(&mappings.groups, &child(path, "groups"), false, errors);
    let uid = &mappings.uid;
    let uid_path = child(path, "uid");
    match (uid.claim.as_str(), uid.expression.as_str()) {
        (_, "") => {}
        ("", expression) => {
            let path = child(&uid_path, "expression");
            mappers.uid = compile(expression, About::Claims, Yields::Anything, path, errors);
        }
        _ => errors.push(FieldError::invalid(uid_path, "", "claim and expression can't both be set")),
    }
    let mut seen = HashSet::new();
    for (at, mapping) in mappings.extra.iter().enumerate() {
        let path = format!("{}[{at}]", child(path, "extra"));
        let key_path = child(&path, "key");
        errors.extend(domain_prefixed_path(&mapping.key, &key_path));
        if mapping.key != mapping.key.to_lowercase() {
            errors.push(FieldError::invalid(key_path.as_str(), mapping.key.as_str(), "must be lowercase"));
        }
        if is_reserved(&mapping.key) {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            errors.push(FieldError::invalid(key_path.as_str(), mapping.key.as_str(), why));
        }
        if !seen.insert(&mapping.key) {
            errors.push(FieldError::duplicate(key_path, mapping.key.as_str()));
            continue;
        }
        let path = child(&path, "valueExpression");
        if mapping.value_expression.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let compiled = compile(&mapping.value_expression, About::Claims, Yields::Anything, path, errors);
        mappers.extra.extend(compiled.map(|expression| (mapping.key.clone(), expression)));
    }
    let all = mappers.username.iter().chain(mappers.extra.iter().map(|(_, expression)| expression));
    let verified = verified || all.into_iter().any(|expression| expression.email_verified);
    if mappers.username.as_ref().is_some_and(|username| username.email) && !verified {
        errors.push(FieldError::invalid(
            child(path, "username.expression"),
            mappings.username.expression.as_str(),
            "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
        ));
    }
}

fn mapping(
    mapping: &PrefixedClaimOrExpression,
    path: &str,
    required: bool,
    errors: &mut Errors,
) -> Option<Expression> {
    let before = errors.len();
    let mut compiled = None;
    match (mapping.claim.as_str(), mapping.expression.as_str()) {
        ("", "") if required => {
            errors.push(FieldError::required(path, "claim or expression is required"));
        }
        ("", "") => {}
        (_, "") if mapping.prefix.is_none() => {
            let why =
                "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            errors.push(FieldError::required(child(path, "prefix"), why));
        }
        (_, "") => {}
        ("", expression) => {
            if let Some(prefix) = &mapping.prefix {
                let why = "may not be specified when expression is set";
                errors.push(FieldError::invalid(child(path, "prefix"), prefix.as_str(), why));
            }
            let path = child(path, "expression");
            compiled = compile(expression, About::Claims, Yields::Anything, path, errors);
        }
        _ => errors.push(FieldError::invalid(path, "", "claim and expression can't both be set")),
    }
    compiled.filter(|_| errors.len() == before)
}

fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    ["kubernetes.io", "k8s.io"].into_iter().any(|reserved| {
        domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// `acme.io/foo`
fn domain_prefixed_path(text: &str, path: &str) -> Errors {
    const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((host, rest)) = text.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(path, text, why)];
    };
    let mut errors: Errors = names::is_dns1123_subdomain(host)
        .into_iter()
        .map(|why| FieldError::invalid(path, host, why))
        .collect();
    if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        let why = format!("Invalid path (regex used for validation is '{PATH}')");
        errors.push(FieldError::invalid(path, rest, why));
    }
    errors
}

pub(super) fn user_rules(
    rules: &[UserValidationRule],
    path: &str,
    errors: &mut Errors,
) -> Vec<(Expression, String)> {
    let mut seen = HashSet::new();
    let mut compiled = Vec::new();
    for (at, UserValidationRule { expression, message }) in rules.iter().enumerate() {
        let path = format!("{path}[{at}].expression");
        if expression.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        if !seen.insert(expression) {
            errors.push(FieldError::duplicate(path, expression.as_str()));
            continue;
        }
        let rule = compile(expression, About::User, Yields::Bool, path, errors);
        compiled.extend(rule.map(|rule| (rule, message.clone())));
    }
    compiled
}
