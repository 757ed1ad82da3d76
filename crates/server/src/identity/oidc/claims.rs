//! The claims of a token: whether they are good, and the user they make.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k1s_object::field::quote;
use serde_json::{Map, Value, json};

use super::{
    config::{JwtAuthenticator, PrefixedClaimOrExpression},
    expressions::{Expression, Input, strings},
    validate::Mappers,
};
use crate::identity::User;

/// How long before the time in `nbf` a token is accepted, in seconds.
const NOT_BEFORE_LEEWAY: i64 = 5 * 60;

/// Google's issuer, and the form of it that old tokens have.
const GOOGLE: &str = "https://accounts.google.com";
const GOOGLE_WITHOUT_SCHEME: &str = "accounts.google.com";

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// The issuer that a token names.
pub(super) fn issuer(claims: &Claims) -> &str {
    match claims.get("iss").and_then(Value::as_str).unwrap_or_default() {
        GOOGLE_WITHOUT_SCHEME => GOOGLE,
        issuer => issuer,
    }
}

/// Texts formatted as by Go's `%q`.
pub(super) fn go_list<S: AsRef<str>>(texts: &[S]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

/// The audiences of a token.
fn audiences(claims: &Claims) -> Result<Vec<String>, String> {
    match claims.get("aud") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(many)) => {
            let text = |one: &Value| one.as_str().map(str::to_owned).ok_or_else(|| unmarshal(one, "string"));
            many.iter().map(text).collect::<Result<_, _>>().map_err(|why| unreadable(&why))
        }
        Some(other) => Err(unreadable(&unmarshal(other, "[]string"))),
    }
}

fn unreadable(why: &str) -> String {
    format!("oidc: failed to unmarshal claims: {why}")
}

/// A time in seconds since 1970, which may have fractions; `None` if there is none.
fn time(claims: &Claims, name: &str) -> Result<Option<i64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        #[allow(clippy::cast_possible_truncation, reason = "fractions of a second do not count")]
        Some(Value::Number(number)) => {
            Ok(number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64)))
        }
        Some(other) => Err(unreadable(&unmarshal(other, "json.Number"))),
    }
}

/// Go's way to show a time.
fn go_time(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => format!("{} +0000 UTC", time.strftime("%Y-%m-%d %H:%M:%S")),
        Err(_) => seconds.to_string(),
    }
}

/// The seconds of Go's zero time.
const GO_ZERO: i64 = -62_135_596_800;

/// Checks audience and times. The claims have to be by the issuer already.
pub(super) fn check(claims: &Claims, wanted: &[String], now: i64) -> Result<(), String> {
    distributed_sources(claims)?;
    let found = audiences(claims)?;
    let expired = time(claims, "exp")?;
    let not_before = time(claims, "nbf")?;
    if !found.iter().any(|audience| wanted.contains(audience))
        && let [only] = wanted
    {
        return Err(format!("oidc: expected audience {} got {}", quote(only), go_list(&found)));
    }
    let expires = expired.unwrap_or(GO_ZERO);
    if expires < now {
        return Err(format!("oidc: token is expired (Token Expiry: {})", go_time(expires)));
    }
    if let Some(not_before) = not_before.filter(|at| *at > now + NOT_BEFORE_LEEWAY) {
        return Err(format!(
            "oidc: current time {} before the nbf (not before) time: {}",
            go_time(now),
            go_time(not_before)
        ));
    }
    Ok(())
}

/// Checks that a token has one of several audiences, after its signature.
pub(super) fn check_audience(claims: &Claims, wanted: &[String]) -> Result<(), String> {
    let found = audiences(claims)?;
    if found.iter().any(|audience| wanted.contains(audience)) {
        return Ok(());
    }
    let mut wanted = wanted.to_vec();
    wanted.sort();
    Err(format!("oidc: expected audience in {} got {}", go_list(&wanted), go_list(&found)))
}

/// Checks that every distributed claim has a source.
fn distributed_sources(claims: &Claims) -> Result<(), String> {
    let Some(names) = claims.get("_claim_names").and_then(Value::as_object) else { return Ok(()) };
    let sources = claims.get("_claim_sources").and_then(Value::as_object);
    for source in names.values() {
        let name = source.as_str().unwrap_or_default();
        if name.is_empty() {
            return Err("oidc: failed to obtain source from claim name".into());
        }
        if !sources.is_some_and(|all| all.contains_key(name)) {
            return Err("oidc: source does not exist".into());
        }
    }
    Ok(())
}

/// Where a claim is, if it is not in the token itself.
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) token: String,
}

/// The endpoint of a claim that a token only refers to.
pub(super) fn endpoint(claims: &Claims, claim: &str) -> Result<Option<Endpoint>, String> {
    if claims.contains_key(claim) {
        return Ok(None);
    }
    let Some(names) = claims.get("_claim_names") else { return Ok(None) };
    let Some(names) = names.as_object() else {
        let why = unmarshal(names, "map[string]string");
        return Err(format!("oidc: error parsing distributed claim names: {why}"));
    };
    let Some(sources) = claims.get("_claim_sources") else { return Err("oidc: no claim sources".into()) };
    let Some(sources) = sources.as_object() else {
        let why = unmarshal(sources, "map[string]oidc.endpoint");
        return Err(format!("oidc: could not parse claim sources: {why}"));
    };
    let Some(source) = names.get(claim).and_then(Value::as_str) else { return Ok(None) };
    let Some(found) = sources.get(source) else {
        return Err(format!("id token _claim_names contained a source {source} missing in _claims_sources"));
    };
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let endpoint = Endpoint { url: text("endpoint"), token: text("access_token") };
    // Without an address, it is an aggregated claim.
    Ok((!endpoint.url.is_empty()).then_some(endpoint))
}

/// Go's error for JSON of another type.
fn unmarshal(found: &Value, wanted: &str) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// A claim that is a string. Null is an empty one, as in Go.
fn text(claims: &Claims, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".into()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => Ok(String::new()),
        Some(other) => Err(unmarshal(other, "string")),
    }
}

/// What makes users of claims.
#[derive(Debug)]
pub(super) struct Mapping {
    config: JwtAuthenticator,
    mappers: Mappers,
}

impl Mapping {
    pub(super) fn new(config: JwtAuthenticator, mappers: Mappers) -> Mapping {
        Mapping { config, mappers }
    }

    /// The claim of groups, which may be elsewhere.
    pub(super) fn groups_claim(&self) -> &str {
        &self.config.claim_mappings.groups.claim
    }

    /// The user of claims.
    pub(super) fn user(&self, claims: Claims) -> Result<User, String> {
        let wrong = |what: &str, why: String| format!("oidc: error evaluating {what}: {why}");
        let input = Input::new(Value::Object(claims));
        let name = self.username(&input)?;
        let groups = self.groups(&input)?;
        let uid = self.uid(&input)?;
        let extra = self.extra(&input)?;
        let user = User { name, uid, groups, extra: extra.into_iter().collect() };
        let claims = input.claims();
        for rule in self.config.claim_validation_rules.iter().filter(|rule| !rule.claim.is_empty()) {
            let (claim, wanted) = (&rule.claim, &rule.required_value);
            if !claims.contains_key(claim) {
                return Err(format!("oidc: required claim {claim} not present in ID token"));
            }
            let found = text(claims, claim).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
            if found != *wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
                ));
            }
        }
        holds(&self.mappers.claim_rules, &input).map_err(|why| wrong("claim validation expression", why))?;
        if !self.mappers.user_rules.is_empty() {
            let extra: BTreeMap<&str, &Vec<String>> =
                user.extra.iter().map(|(key, values)| (key.as_str(), values)).collect();
            let input = Input::new(
                json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": extra}),
            );
            holds(&self.mappers.user_rules, &input).map_err(|why| wrong("user info validation rule", why))?;
        }
        Ok(user)
    }

    fn username(&self, input: &Input) -> Result<String, String> {
        if let Some(expression) = &self.mappers.username {
            let wrong = |why: String| format!("oidc: error evaluating username claim expression: {why}");
            let value = expression.evaluate(input).map_err(wrong)?;
            let Some(name) = value.as_str() else {
                return Err(wrong("username claim expression must return a string".into()));
            };
            if name.is_empty() {
                return Err("oidc: empty username via CEL expression is not allowed".into());
            }
            return Ok(name.to_owned());
        }
        let claims = input.claims();
        let PrefixedClaimOrExpression { claim, prefix, .. } = &self.config.claim_mappings.username;
        let name = text(claims, claim)
            .map_err(|why| format!("oidc: parse username claims {}: {why}", quote(claim)))?;
        if claim == "email" {
            match claims.get("email_verified") {
                None | Some(Value::Bool(true)) => {}
                Some(Value::Bool(false) | Value::Null) => return Err("oidc: email not verified".into()),
                Some(other) => {
                    return Err(format!("oidc: parse 'email_verified' claim: {}", unmarshal(other, "bool")));
                }
            }
        }
        Ok(prefix.clone().unwrap_or_default() + &name)
    }

    fn groups(&self, input: &Input) -> Result<Vec<String>, String> {
        let PrefixedClaimOrExpression { claim, prefix, .. } = &self.config.claim_mappings.groups;
        if !claim.is_empty()
            && let Some(found) = input.claims().get(claim)
        {
            let one = |value: &Value| match value {
                Value::String(text) => Some(text.clone()),
                _ => None,
            };
            // Some issuers have a string where there is one group.
            let groups = match found {
                Value::Null => Some(Vec::new()),
                Value::Array(many) => many.iter().map(one).collect(),
                other => one(other).map(|group| vec![group]),
            };
            let Some(groups) = groups else {
                let why = unmarshal(found, "string");
                return Err(format!("oidc: parse groups claim {}: {why}", quote(claim)));
            };
            let prefix = prefix.as_deref().unwrap_or_default();
            return Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect());
        }
        let Some(expression) = &self.mappers.groups else { return Ok(Vec::new()) };
        let wrong = |why: String| format!("oidc: error evaluating group claim expression: {why}");
        let value = expression.evaluate(input).map_err(wrong)?;
        strings(&value).map_err(|why| wrong(why.into()))
    }

    fn uid(&self, input: &Input) -> Result<String, String> {
        let claim = &self.config.claim_mappings.uid.claim;
        if !claim.is_empty() {
            return text(input.claims(), claim)
                .map_err(|why| format!("oidc: parse uid claim {}: {why}", quote(claim)));
        }
        let Some(expression) = &self.mappers.uid else { return Ok(String::new()) };
        let wrong = |why: String| format!("oidc: error evaluating uid claim expression: {why}");
        let value = expression.evaluate(input).map_err(wrong)?;
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| wrong("uid claim expression must return a string".into()))
    }

    fn extra(&self, input: &Input) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(Value::String(id)) = input.claims().get("jti").filter(|id| **id != "") {
            let key = "authentication.kubernetes.io/credential-id".to_owned();
            extra.insert(key, vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.mappers.extra {
            let value = expression.evaluate(input)?;
            let values = strings(&value).map_err(|why| {
                format!("oidc: error evaluating extra claim expression: {}: {why}", expression.text)
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }
}

/// Whether all rules hold.
fn holds(rules: &[(Expression, String)], input: &Input) -> Result<(), String> {
    for (rule, message) in rules {
        match rule.evaluate(input)? {
            k1s_cel::Value::Bool(true) => {}
            k1s_cel::Value::Bool(false) => {
                return Err(format!("validation expression '{}' failed: {message}", rule.text));
            }
            _ => return Err("validation expression must return a boolean".into()),
        }
    }
    Ok(())
}
