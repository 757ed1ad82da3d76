//! Who authorizes, and in which order: `--authorization-mode`, or an `AuthorizationConfiguration` file.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use k1s_kinds::expressions::AccessConditions;
use k1s_object::{FieldError, field::quote, names, time::Duration as GoDuration, yaml};
use serde_json::Value;

use crate::errors::aggregate;

/// An authorizer that needs no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AuthorizationMode {
    /// The roles and bindings of each tenant.
    #[default]
    Rbac,
    /// What kubelets may do: a node reads what its pods use, and writes its own objects.
    Node,
    /// Everybody who is authenticated may do everything.
    AlwaysAllow,
    /// Allows nothing.
    AlwaysDeny,
}

impl AuthorizationMode {
    const ALL: [AuthorizationMode; 4] = [
        AuthorizationMode::AlwaysAllow,
        AuthorizationMode::AlwaysDeny,
        AuthorizationMode::Node,
        AuthorizationMode::Rbac,
    ];

    /// Its name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            AuthorizationMode::Rbac => "RBAC",
            AuthorizationMode::Node => "Node",
            AuthorizationMode::AlwaysAllow => "AlwaysAllow",
            AuthorizationMode::AlwaysDeny => "AlwaysDeny",
        }
    }

    fn of(name: &str) -> Option<AuthorizationMode> {
        AuthorizationMode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The version of the `SubjectAccessReview`s that a webhook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReviewVersion {
    /// `authorization.k8s.io/v1`
    V1,
    /// `authorization.k8s.io/v1beta1`
    #[default]
    V1Beta1,
}

/// A webhook that is asked with `SubjectAccessReview`s.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationWebhook {
    /// Its name in reasons.
    pub name: String,
    /// A kubeconfig file that leads to it.
    pub kubeconfig: PathBuf,
    /// The version of the reviews.
    pub version: ReviewVersion,
    /// How long an allowing answer is remembered; zero: not at all.
    pub authorized_ttl: Duration,
    /// The same for other answers.
    pub unauthorized_ttl: Duration,
    /// Maximum time of a call.
    pub timeout: Duration,
    /// Whether a request is denied when the webhook cannot be asked. Otherwise the next authorizer decides.
    pub deny_on_failure: bool,
    /// Expressions in CEL, which must all hold for the webhook to be asked.
    pub conditions: Vec<String>,
}

impl AuthorizationWebhook {
    /// A webhook with the defaults of kube-apiserver's flags.
    pub fn new(name: impl Into<String>, kubeconfig: impl Into<PathBuf>) -> AuthorizationWebhook {
        AuthorizationWebhook {
            name: name.into(),
            kubeconfig: kubeconfig.into(),
            version: ReviewVersion::default(),
            authorized_ttl: Duration::from_secs(300),
            unauthorized_ttl: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            deny_on_failure: false,
            conditions: Vec::new(),
        }
    }
}

/// An authorizer of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizerOptions {
    /// One without settings.
    Mode(AuthorizationMode),
    /// A webhook.
    Webhook(Box<AuthorizationWebhook>),
}

impl AuthorizerOptions {
    /// Its name in reasons.
    pub(crate) fn name(&self) -> String {
        match self {
            AuthorizerOptions::Mode(mode) => mode.name().to_ascii_lowercase(),
            AuthorizerOptions::Webhook(webhook) => webhook.name.clone(),
        }
    }
}

/// The chain of authorizers: each allows, denies, or leaves the decision to the next. What none of them allows is forbidden.
/// Members of `system:masters` may do everything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationOptions {
    /// In their order.
    pub authorizers: Vec<AuthorizerOptions>,
    /// The file that they are from, which is followed.
    pub file: Option<PathBuf>,
}

impl Default for AuthorizationOptions {
    fn default() -> AuthorizationOptions {
        AuthorizationMode::default().into()
    }
}

impl From<AuthorizationMode> for AuthorizationOptions {
    fn from(mode: AuthorizationMode) -> AuthorizationOptions {
        AuthorizationOptions { authorizers: vec![AuthorizerOptions::Mode(mode)], file: None }
    }
}

/// Why a chain of authorizers is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// The flags do not fit together.
    #[error("{0}")]
    Flags(String),
    /// The file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// It is no `AuthorizationConfiguration`.
    #[error("failed to load AuthorizationConfiguration from file: {0}")]
    Load(String),
    /// It is not valid.
    #[error("{0}")]
    Invalid(String),
}

impl AuthorizationOptions {
    /// The chain of `--authorization-mode`; `webhook` is that of the mode `Webhook`.
    ///
    /// # Errors
    /// In the words of kube-apiserver.
    pub fn of_modes(
        modes: &[String],
        webhook: Option<&AuthorizationWebhook>,
    ) -> Result<AuthorizationOptions, AuthorizationError> {
        let mut problems = Vec::new();
        if modes.is_empty() {
            problems.push("at least one authorization-mode must be passed".to_owned());
        }
        let mut authorizers = Vec::with_capacity(modes.len());
        for mode in modes {
            match (mode.as_str(), AuthorizationMode::of(mode), webhook) {
                (_, Some(mode), _) => authorizers.push(AuthorizerOptions::Mode(mode)),
                ("Webhook", _, Some(webhook)) => {
                    authorizers
                        .push(AuthorizerOptions::Webhook(Box::new(AuthorizationWebhook::clone(webhook))));
                }
                ("Webhook", _, None) => problems
                    .push("authorization-mode Webhook's authorization config file not passed".to_owned()),
                ("ABAC", ..) => problems.push(NO_ABAC.to_owned()),
                _ => problems.push(format!("authorization-mode {} is not a valid mode", quote(mode))),
            }
        }
        if webhook.is_some() && !modes.iter().any(|mode| mode == "Webhook") {
            problems
                .push("cannot specify --authorization-webhook-config-file without mode Webhook".to_owned());
        }
        let twice = modes.iter().enumerate().any(|(at, mode)| modes.iter().take(at).any(|one| one == mode));
        if twice {
            let shown: Vec<String> = modes.iter().map(|mode| quote(mode)).collect();
            problems
                .push(format!("authorization-mode [{}] has mode specified more than once", shown.join(" ")));
        }
        match problems.is_empty() {
            true => Ok(AuthorizationOptions { authorizers, file: None }),
            false => Err(AuthorizationError::Flags(aggregate(&problems))),
        }
    }

    /// The chain of an `AuthorizationConfiguration` file, which is followed from then on.
    ///
    /// # Errors
    /// If it cannot be read, or is not valid; in the words of kube-apiserver.
    pub fn from_file(path: &Path) -> Result<AuthorizationOptions, AuthorizationError> {
        let text = fs::read_to_string(path)
            .map_err(|error| AuthorizationError::Read { path: path.to_owned(), error })?;
        let authorizers = parse(&text, &[])?;
        Ok(AuthorizationOptions { authorizers, file: Some(path.to_owned()) })
    }
}

const NO_ABAC: &str = "authorization-mode ABAC is not implemented by k1s: write its policies as roles and bindings, and use \
                       RBAC";

/// The authorizers in the text of an `AuthorizationConfiguration`. `required`: modes that must be among them.
pub(crate) fn parse(
    text: &str,
    required: &[AuthorizationMode],
) -> Result<Vec<AuthorizerOptions>, AuthorizationError> {
    let load = |why: String| AuthorizationError::Load(why);
    let decoded = yaml::decode(text.as_bytes()).map_err(|why| load(why.to_string()))?;
    let config = decoded.value;
    let (version, kind) = (&config["apiVersion"], &config["kind"]);
    let supported = ["v1", "v1beta1", "v1alpha1"].map(|version| format!("apiserver.config.k8s.io/{version}"));
    let is_supported = version.as_str().is_some_and(|version| supported.iter().any(|one| one == version));
    if !is_supported || kind != "AuthorizationConfiguration" {
        let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        return Err(load(format!(
            "no kind {} is registered for version {}",
            quote(&shown(kind)),
            quote(&shown(version))
        )));
    }
    let unknown = unknown_fields(&config);
    if !unknown.is_empty() || !decoded.duplicates.is_empty() {
        let problems: Vec<String> = decoded.duplicates.into_iter().chain(unknown).collect();
        return Err(load(format!("strict decoding error: {}", problems.join(", "))));
    }
    let is_v1 = version.as_str().is_some_and(|version| version.ends_with("/v1"));
    let mut errors = Vec::new();
    let authorizers = authorizers(&config, is_v1, &mut errors);
    if !errors.is_empty() {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(AuthorizationError::Invalid(aggregate(&errors)));
    }
    let mut problems = Vec::new();
    let list = config["authorizers"].as_array().into_iter().flatten();
    for (options, one) in authorizers.iter().zip(list) {
        if let AuthorizerOptions::Mode(mode) = options {
            let (name, expected) = (one["name"].as_str().unwrap_or_default(), options.name());
            if name != expected {
                problems.push(format!(
                    "expected name {expected} for authorizer {} instead of {name}",
                    mode.name()
                ));
            }
        }
    }
    let mut missing: Vec<&str> = required
        .iter()
        .filter(|mode| !authorizers.contains(&AuthorizerOptions::Mode(**mode)))
        .map(|mode| mode.name())
        .collect();
    if !missing.is_empty() {
        missing.sort_unstable();
        problems.push(format!("missing required types: [{}]", missing.join(" ")));
    }
    if !problems.is_empty() {
        return Err(AuthorizationError::Invalid(aggregate(&problems)));
    }
    Ok(authorizers)
}

const WEBHOOK_FIELDS: [&str; 11] = [
    "authorizedTTL",
    "cacheAuthorizedRequests",
    "cacheUnauthorizedRequests",
    "connectionInfo",
    "failurePolicy",
    "matchConditionSubjectAccessReviewVersion",
    "matchConditions",
    "subjectAccessReviewVersion",
    "timeout",
    "unauthorizedTTL",
    "name",
];

/// `unknown field "authorizers[0].foo"`
fn unknown_fields(config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |at: &str, value: &Value, known: &[&str]| {
        for key in value.as_object().into_iter().flatten().map(|(key, _)| key) {
            if !known.contains(&key.as_str()) {
                found.push(format!("unknown field \"{at}{key}\""));
            }
        }
    };
    check("", config, &["apiVersion", "kind", "authorizers"]);
    for (place, one) in config["authorizers"].as_array().into_iter().flatten().enumerate() {
        let at = format!("authorizers[{place}].");
        check(&at, one, &["type", "name", "webhook"]);
        let webhook = &one["webhook"];
        check(&format!("{at}webhook."), webhook, &WEBHOOK_FIELDS[..10]);
        check(
            &format!("{at}webhook.connectionInfo."),
            &webhook["connectionInfo"],
            &["type", "kubeConfigFile"],
        );
        for (number, condition) in webhook["matchConditions"].as_array().into_iter().flatten().enumerate() {
            check(&format!("{at}webhook.matchConditions[{number}]."), condition, &["expression"]);
        }
    }
    found
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

fn authorizers(config: &Value, caches: bool, errors: &mut Vec<FieldError>) -> Vec<AuthorizerOptions> {
    let list = config["authorizers"].as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        errors.push(FieldError::required("authorizers", "at least one authorization mode must be defined"));
    }
    const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
    let (mut types, mut seen): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for (place, one) in list.iter().enumerate() {
        let at = format!("authorizers[{place}]");
        let (kind, name) = (text(one, "type"), text(one, "name"));
        if kind.is_empty() {
            errors.push(FieldError::required(format!("{at}.type"), ""));
            continue;
        }
        if !TYPES.contains(&kind) {
            errors.push(FieldError::not_supported(format!("{at}.type"), kind, &TYPES));
            continue;
        }
        if types.contains(&kind) && kind != "Webhook" {
            errors.push(FieldError::duplicate(format!("{at}.type"), kind));
            continue;
        }
        types.push(kind);
        let wrong = names::is_dns1123_subdomain(name);
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(format!("{at}.name"), name));
        } else if !wrong.is_empty() {
            let why = format!("authorizer name is invalid: {}", wrong.join(", "));
            errors.push(FieldError::invalid(format!("{at}.name"), name, why));
        }
        seen.push(name);
        let webhook = &one["webhook"];
        if kind == "Webhook" {
            if webhook.is_null() {
                let why = "required when type=Webhook";
                errors.push(FieldError::required(format!("{at}.webhook"), why));
                continue;
            }
            let webhook = self::webhook(name, webhook, &at, caches, errors);
            found.push(AuthorizerOptions::Webhook(Box::new(webhook)));
            continue;
        }
        if !webhook.is_null() {
            let why = "may only be specified when type=Webhook";
            errors.push(FieldError::invalid(format!("{at}.webhook"), "non-null", why));
        }
        match AuthorizationMode::of(kind) {
            Some(mode) => found.push(AuthorizerOptions::Mode(mode)),
            None => errors.push(FieldError::invalid(format!("{at}.type"), kind, NO_ABAC)),
        }
    }
    found
}

/// A duration; `None` if it is zero or absent.
fn duration(of: &Value, field: &str, at: &str, errors: &mut Vec<FieldError>) -> Option<i64> {
    let text = text(of, field);
    if text.is_empty() {
        return None;
    }
    match GoDuration::parse(text) {
        Ok(parsed) => Some(parsed.0).filter(|nanos| *nanos != 0),
        Err(why) => {
            errors.push(FieldError::invalid(format!("{at}.{field}"), text, why));
            Some(1)
        }
    }
}

/// The settings of a webhook. As kube-apiserver, errors name fields beside `webhook`, not in it.
fn webhook(
    name: &str,
    of: &Value,
    at: &str,
    caches: bool,
    errors: &mut Vec<FieldError>,
) -> AuthorizationWebhook {
    const SECOND: i64 = 1_000_000_000;
    let mut found = AuthorizationWebhook::new(name, text(&of["connectionInfo"], "kubeConfigFile"));
    let span = |nanos: i64| Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
    match duration(of, "timeout", at, errors) {
        None => errors.push(FieldError::required(format!("{at}.timeout"), "")),
        Some(nanos) if !(0..=30 * SECOND).contains(&nanos) => {
            let why = "must be > 0s and <= 30s";
            errors.push(FieldError::invalid(format!("{at}.timeout"), text(of, "timeout"), why));
        }
        Some(nanos) => found.timeout = span(nanos),
    }
    for (field, caching, ttl) in [
        ("authorizedTTL", "cacheAuthorizedRequests", &mut found.authorized_ttl),
        ("unauthorizedTTL", "cacheUnauthorizedRequests", &mut found.unauthorized_ttl),
    ] {
        match duration(of, field, at, errors) {
            None => {}
            Some(nanos) if nanos < 0 => {
                errors.push(FieldError::invalid(format!("{at}.{field}"), text(of, field), "must be > 0s"));
            }
            Some(nanos) => *ttl = span(nanos),
        }
        if caches && of[caching] == false {
            *ttl = Duration::ZERO;
        }
    }
    match text(of, "subjectAccessReviewVersion") {
        "" => errors.push(FieldError::required(format!("{at}.subjectAccessReviewVersion"), "")),
        "v1" => found.version = ReviewVersion::V1,
        "v1beta1" => found.version = ReviewVersion::V1Beta1,
        other => {
            let field = format!("{at}.subjectAccessReviewVersion");
            errors.push(FieldError::not_supported(field, other, &["v1", "v1beta1"]));
        }
    }
    let conditions = of["matchConditions"].as_array().map_or(&[][..], Vec::as_slice);
    let field = format!("{at}.matchConditionSubjectAccessReviewVersion");
    match text(of, "matchConditionSubjectAccessReviewVersion") {
        "" if conditions.is_empty() => {}
        "" => errors.push(FieldError::required(field, "required if match conditions are specified")),
        "v1" => {}
        other => errors.push(FieldError::not_supported(field, other, &["v1"])),
    }
    match text(of, "failurePolicy") {
        "" => errors.push(FieldError::required(format!("{at}.failurePolicy"), "")),
        "NoOpinion" => {}
        "Deny" => found.deny_on_failure = true,
        other => {
            let field = format!("{at}.failurePolicy");
            errors.push(FieldError::not_supported(field, other, &["NoOpinion", "Deny"]));
        }
    }
    connection(&of["connectionInfo"], &format!("{at}.connectionInfo"), errors);
    found.conditions = match_conditions(conditions, &format!("{at}.matchConditions"), errors);
    found
}

fn connection(of: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (kind, file) = (text(of, "type"), text(of, "kubeConfigFile"));
    let field = format!("{at}.kubeConfigFile");
    match kind {
        "" => errors.push(FieldError::required(format!("{at}.type"), "")),
        "InClusterConfig" if !of["kubeConfigFile"].is_null() => {
            let why = "can only be set when type=KubeConfigFile";
            errors.push(FieldError::invalid(field, file, why));
        }
        "InClusterConfig" => {
            let why = "k1s does not run in a pod: use KubeConfigFile";
            errors.push(FieldError::invalid(format!("{at}.type"), kind, why));
        }
        "KubeConfigFile" if file.is_empty() => errors.push(FieldError::required(field, "")),
        "KubeConfigFile" if !Path::new(file).is_absolute() => {
            errors.push(FieldError::invalid(field, file, "must be an absolute path"));
        }
        "KubeConfigFile" => match fs::metadata(file) {
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => format!("stat {file}: no such file or directory"),
                    _ => format!("stat {file}: {error}"),
                };
                errors.push(FieldError::invalid(field, file, format!("error loading file: {why}")));
            }
            Ok(found) if !found.is_file() => {
                errors.push(FieldError::invalid(field, file, "must be a regular file"));
            }
            Ok(_) => {}
        },
        other => {
            let supported = ["InClusterConfig", "KubeConfigFile"];
            errors.push(FieldError::not_supported(format!("{at}.type"), other, &supported));
        }
    }
}

/// The expressions, each of which is compiled.
fn match_conditions(list: &[Value], at: &str, errors: &mut Vec<FieldError>) -> Vec<String> {
    const MOST: usize = 64;
    if list.len() > MOST {
        errors.push(FieldError::too_many(at, list.len(), MOST));
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    for (place, condition) in list.iter().enumerate() {
        let (field, text) = (format!("{at}[{place}].expression"), text(condition, "expression"));
        if text.trim().is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if found.iter().any(|one| one == text) {
            errors.push(FieldError::duplicate(field, text));
        } else {
            found.push(text.to_owned());
            if let Err(why) = AccessConditions::default().add(text) {
                errors.push(FieldError::invalid(field, text, why.0));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text, &[]).unwrap_err().to_string()
    }

    fn with(authorizers: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: {authorizers}"
        )
    }

    #[test]
    fn modes_are_checked_as_by_kube_apiserver() {
        let of = |modes: &[&str], webhook: bool| {
            let modes: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
            let webhook = webhook.then(|| AuthorizationWebhook::new("default", "/x"));
            AuthorizationOptions::of_modes(&modes, webhook.as_ref()).map_err(|error| error.to_string())
        };
        let names = |options: AuthorizationOptions| -> Vec<String> {
            options.authorizers.iter().map(AuthorizerOptions::name).collect()
        };
        assert_eq!(names(of(&["Node", "RBAC"], false).unwrap()), ["node", "rbac"]);
        assert_eq!(names(of(&["Webhook", "AlwaysDeny"], true).unwrap()), ["default", "alwaysdeny"]);
        let cases: [(&[&str], bool, &str); 6] = [
            (&[], false, "at least one authorization-mode must be passed"),
            (&["rbac"], false, "authorization-mode \"rbac\" is not a valid mode"),
            (&["Webhook"], false, "authorization-mode Webhook's authorization config file not passed"),
            (&["RBAC"], true, "cannot specify --authorization-webhook-config-file without mode Webhook"),
            (
                &["RBAC", "RBAC"],
                false,
                "authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once",
            ),
            (&["ABAC"], false, NO_ABAC),
        ];
        for (modes, webhook, expected) in cases {
            assert_eq!(of(modes, webhook).unwrap_err(), expected, "{modes:?}");
        }
    }

    /// Upstream's cases of the validation of a file.
    #[test]
    fn files_are_checked_as_by_kube_apiserver() {
        let webhook = |more: &str| {
            with(&format!(
                "[{{type: Webhook, name: w, webhook: {{timeout: 5s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
                 connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /dev/null}}{more}}}}}]"
            ))
        };
        let cases = [
            (with("[]"), "authorizers: Required value: at least one authorization mode must be defined"),
            (with("[{name: a}]"), "authorizers[0].type: Required value"),
            (
                with("[{type: Bar, name: a}]"),
                "authorizers[0].type: Unsupported value: \"Bar\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
            ),
            (
                with("[{type: RBAC, name: rbac}, {type: RBAC, name: other}]"),
                "authorizers[1].type: Duplicate value: \"RBAC\"",
            ),
            (with("[{type: RBAC}]"), "authorizers[0].name: Required value"),
            (with("[{type: RBAC, name: other}]"), "expected name rbac for authorizer RBAC instead of other"),
            (
                with("[{type: Node, name: node, webhook: {}}]"),
                "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
            ),
            (
                with("[{type: Webhook, name: w}]"),
                "authorizers[0].webhook: Required value: required when type=Webhook",
            ),
            (
                webhook(", foo: 1"),
                "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field \"authorizers[0].webhook.foo\"",
            ),
            (
                webhook("").replace("timeout: 5s, ", ""),
                "[authorizers[0].timeout: Required value, authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/dev/null\": must be a regular file]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(refused(&text), expected);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        fs::write(&path, "").unwrap();
        let webhook = |more: &str| webhook(more).replace("/dev/null", path.to_str().unwrap());
        let cases = [
            (
                webhook("").replace("5s", "31s"),
                "authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s",
            ),
            (
                webhook("").replace("5s", "-1s"),
                "authorizers[0].timeout: Invalid value: \"-1s\": must be > 0s and <= 30s",
            ),
            (
                webhook(", authorizedTTL: -1s"),
                "authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s",
            ),
            (
                webhook("").replace("Version: v1,", "Version: v2,"),
                "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"",
            ),
            (
                webhook("").replace("Deny", "Allow"),
                "authorizers[0].failurePolicy: Unsupported value: \"Allow\": supported values: \"NoOpinion\", \"Deny\"",
            ),
            (
                webhook(", matchConditions: [{expression: 'true'}]"),
                "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
            ),
            (
                webhook(
                    ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: ''}, {expression: request.user}]",
                ),
                "[authorizers[0].matchConditions[0].expression: Required value, authorizers[0].matchConditions[1].expression: Invalid value: \"request.user\": must evaluate to bool but got string]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(refused(&text), expected);
        }
        let good = parse(&webhook(", unauthorizedTTL: 1m, cacheAuthorizedRequests: false"), &[]).unwrap();
        let [AuthorizerOptions::Webhook(good)] = good.as_slice() else { panic!() };
        assert_eq!((good.authorized_ttl, good.unauthorized_ttl), (Duration::ZERO, Duration::from_secs(60)));
        assert!(good.deny_on_failure && good.timeout == Duration::from_secs(5));
        // A reload may not drop an authorizer.
        let dropped = parse(&webhook(""), &[AuthorizationMode::Rbac]).unwrap_err().to_string();
        assert_eq!(dropped, "missing required types: [RBAC]");
    }
}
