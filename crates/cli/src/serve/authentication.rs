//! The flags of `k1s serve` about authentication, with the names and meanings of kube-apiserver's.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args};
use k1s::server::{
    Algorithm, AuthenticationConfiguration, AuthenticationOptions, ClaimValidationRule, JwtAuthenticator,
    KeyError, PublicKeys, RequestHeaderOptions, ServiceAccountOptions, SigningKey, TokenWebhookOptions,
};

use super::{Error, read};

/// Who is authenticated how.
#[derive(Debug, Clone, Args)]
// The group that clap makes of a struct has its name, and those of one command must differ.
#[group(skip)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct Flags {
    /// Whether requests without credentials are by `system:anonymous`, in the group `system:unauthenticated`. Otherwise they
    /// are refused.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    anonymous_auth: Option<bool>,
    /// Whether Secrets of type `bootstrap.kubernetes.io/token` in the namespace `kube-system` are tokens, for machines that ask
    /// for a certificate.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false)]
    enable_bootstrap_token_auth: bool,
    /// Authorities of front proxies, as PEM. A client with a certificate of one of them names the users of the requests that it
    /// forwards in headers. They should issue no other certificates.
    #[arg(long, value_name = "FILE", conflicts_with = "http")]
    requestheader_client_ca_file: Option<PathBuf>,
    /// The names (`CN`) of the certificates of front proxies. Without any, every certificate of those authorities is one.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    requestheader_allowed_names: Vec<String>,
    /// The headers with the name of the user.
    #[arg(long, value_name = "HEADER", value_delimiter = ',', default_value = "X-Remote-User")]
    requestheader_username_headers: Vec<String>,
    /// The headers with the uid of the user.
    #[arg(long, value_name = "HEADER", value_delimiter = ',', default_value = "X-Remote-Uid")]
    requestheader_uid_headers: Vec<String>,
    /// The headers with the groups of the user.
    #[arg(long, value_name = "HEADER", value_delimiter = ',', default_value = "X-Remote-Group")]
    requestheader_group_headers: Vec<String>,
    /// The prefixes of headers with additional attributes of the user.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', default_value = "X-Remote-Extra-")]
    requestheader_extra_headers_prefix: Vec<String>,
    /// The issuer of the tokens of service accounts; that of another tenant's is followed by `/clusters/NAME`. If there are
    /// several, the first issues, and tokens of all are accepted. [default: <https://kubernetes.default.svc.cluster.local>]
    #[arg(long, value_name = "URL")]
    service_account_issuer: Vec<String>,
    /// RSA or ECDSA keys, public or private, as PEM, whose tokens of service accounts are accepted besides the server's own.
    #[arg(long, value_name = "FILE")]
    service_account_key_file: Vec<PathBuf>,
    /// The private key, RSA or ECDSA, as PEM, that signs the tokens of service accounts. [default: one in the store]
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Option<PathBuf>,
    /// The maximum lifetime of a token of a service account. One that is asked for longer gets this.
    #[arg(long, value_name = "DURATION", value_parser = super::duration)]
    service_account_max_token_expiration: Option<Duration>,
    /// Whether tokens with the lifetime that kubelets ask for are valid for a year, for clients that never reload them.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = true)]
    service_account_extend_token_expiration: bool,
    /// The address of the keys in the document at `/.well-known/openid-configuration`. [default: below the issuer]
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    service_account_jwks_uri: String,
    /// The audiences of this server: a token of a service account has to be for one of them. [default: its issuers]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    api_audiences: Vec<String>,
    #[command(flatten)]
    oidc: OidcFlags,
    /// An `AuthenticationConfiguration` (apiserver.config.k8s.io/v1 or v1beta1): issuers of tokens, with expressions for their
    /// claims, and who may be anonymous. Its issuers are read again when it changes. Excludes --oidc-…
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,
    /// A kubeconfig that leads to a webhook which is asked about tokens that nothing else knows, with a `TokenReview`.
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of the `TokenReview` that the webhook takes: `v1` or `v1beta1`.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    authentication_token_webhook_version: String,
    /// How long answers of the webhook count.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = super::duration)]
    authentication_token_webhook_cache_ttl: Duration,
}

/// An issuer of tokens (OpenID Connect).
#[derive(Debug, Clone, Args)]
struct OidcFlags {
    /// The issuer of ID tokens, an https address. Its keys are found at `/.well-known/openid-configuration`.
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,
    /// The audience that ID tokens have to have: the client that asked for them.
    #[arg(long, value_name = "ID")]
    oidc_client_id: Option<String>,
    /// Authorities of the issuer's certificate, as PEM. [default: those of the system]
    #[arg(long, value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,
    /// The claim with the name of the user. [default: sub]
    #[arg(long, value_name = "CLAIM")]
    oidc_username_claim: Option<String>,
    /// A prefix of the names of users; `-` for none. [default: the issuer and `#`, but none for the claim email]
    #[arg(long, value_name = "PREFIX")]
    oidc_username_prefix: Option<String>,
    /// The claim with the groups of the user.
    #[arg(long, value_name = "CLAIM")]
    oidc_groups_claim: Option<String>,
    /// A prefix of the names of groups.
    #[arg(long, value_name = "PREFIX")]
    oidc_groups_prefix: Option<String>,
    /// A claim that ID tokens have to have, with its value. Can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    oidc_required_claim: Vec<String>,
    /// The algorithms with which the issuer may sign. [default: RS256]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    oidc_signing_algs: Vec<String>,
}

impl OidcFlags {
    fn is_set(&self) -> bool {
        let texts = [
            &self.oidc_issuer_url,
            &self.oidc_client_id,
            &self.oidc_username_claim,
            &self.oidc_username_prefix,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
        ];
        texts.into_iter().any(Option::is_some)
            || self.oidc_ca_file.is_some()
            || !self.oidc_required_claim.is_empty()
            || !self.oidc_signing_algs.is_empty()
    }

    /// The issuer that the flags describe, if they do.
    fn issuer(&self) -> Result<Option<JwtAuthenticator>, Error> {
        if !self.is_set() {
            return Ok(None);
        }
        let (Some(url), Some(client)) = (&self.oidc_issuer_url, &self.oidc_client_id) else {
            let why =
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
            return Err(Error::Flags(why.into()));
        };
        let mut jwt = JwtAuthenticator::default();
        jwt.issuer.url.clone_from(url);
        jwt.issuer.audiences = vec![client.clone()];
        if let Some(path) = &self.oidc_ca_file {
            jwt.issuer.certificate_authority = read(path)?;
        }
        let claim = self.oidc_username_claim.clone().unwrap_or_else(|| "sub".into());
        let prefix = match self.oidc_username_prefix.as_deref().unwrap_or_default() {
            "" if claim != "email" => format!("{url}#"),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        jwt.claim_mappings.username.claim = claim;
        jwt.claim_mappings.username.prefix = Some(prefix);
        if let Some(claim) = &self.oidc_groups_claim {
            jwt.claim_mappings.groups.claim.clone_from(claim);
            jwt.claim_mappings.groups.prefix = Some(self.oidc_groups_prefix.clone().unwrap_or_default());
        }
        for pair in &self.oidc_required_claim {
            let Some((claim, value)) = pair.split_once('=') else {
                return Err(Error::Flags(format!(
                    "--oidc-required-claim: malformed pair, expect string=string: {pair}"
                )));
            };
            let rule = ClaimValidationRule {
                claim: claim.trim().to_owned(),
                required_value: value.trim().to_owned(),
                ..ClaimValidationRule::default()
            };
            jwt.claim_validation_rules.push(rule);
        }
        Ok(Some(jwt))
    }

    fn algorithms(&self) -> Result<Vec<Algorithm>, Error> {
        if self.oidc_signing_algs.is_empty() {
            return Ok(vec![Algorithm::RS256]);
        }
        let named = |name: &String| {
            Algorithm::named(name)
                .ok_or_else(|| Error::Flags(format!("oidc: unsupported signing alg: {name:?}")))
        };
        self.oidc_signing_algs.iter().map(named).collect()
    }
}

impl Flags {
    /// The options that the flags ask for. Reads the files they name.
    pub(super) fn options(&self) -> Result<AuthenticationOptions, Error> {
        let mut options = AuthenticationOptions::default();
        options.anonymous.enabled = self.anonymous_auth.unwrap_or(true);
        options.bootstrap_tokens = self.enable_bootstrap_token_auth;
        options.request_header = self.request_header()?;
        options.service_accounts = self.service_accounts()?;
        options.api_audiences.clone_from(&self.api_audiences);
        options.webhook = self.webhook();
        self.issuers(&mut options)?;
        Ok(options)
    }

    fn issuers(&self, options: &mut AuthenticationOptions) -> Result<(), Error> {
        let Some(path) = &self.authentication_config else {
            options.configuration.jwt = self.oidc.issuer()?.into_iter().collect();
            options.signing_algorithms = self.oidc.algorithms()?;
            return Ok(());
        };
        if self.oidc.is_set() {
            let why = "authentication-config file and oidc-* flags are mutually exclusive";
            return Err(Error::Flags(why.into()));
        }
        let read = AuthenticationConfiguration::parse(read(path)?.as_bytes()).map_err(|error| {
            let file = path.display();
            Error::Flags(format!("failed to load authentication configuration from file {file:?}: {error}"))
        })?;
        if read.anonymous.is_some() && self.anonymous_auth.is_some() {
            let why = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file";
            return Err(Error::Flags(why.into()));
        }
        options.configuration = read;
        options.configuration_file = Some(path.clone());
        Ok(())
    }

    fn webhook(&self) -> Option<TokenWebhookOptions> {
        let path = self.authentication_token_webhook_config_file.as_ref()?;
        let mut webhook = TokenWebhookOptions::new(path);
        webhook.version.clone_from(&self.authentication_token_webhook_version);
        webhook.cache_ttl = self.authentication_token_webhook_cache_ttl;
        Some(webhook)
    }

    fn service_accounts(&self) -> Result<ServiceAccountOptions, Error> {
        let wrong = |path: &PathBuf, error: KeyError| Error::Flags(format!("{}: {error}", path.display()));
        let mut options = ServiceAccountOptions::default();
        if !self.service_account_issuer.is_empty() {
            options.issuers.clone_from(&self.service_account_issuer);
        }
        for path in &self.service_account_key_file {
            options.keys.extend(PublicKeys::from_pem(&read(path)?).map_err(|error| wrong(path, error))?);
        }
        if let Some(path) = &self.service_account_signing_key_file {
            options.signing_key =
                Some(SigningKey::from_pem(&read(path)?).map_err(|error| wrong(path, error))?);
        }
        options.max_expiration = self.service_account_max_token_expiration;
        options.extend_expiration = self.service_account_extend_token_expiration;
        options.jwks_uri.clone_from(&self.service_account_jwks_uri);
        options.check().map_err(|error| Error::Flags(error.to_string()))?;
        Ok(options)
    }

    fn request_header(&self) -> Result<Option<RequestHeaderOptions>, Error> {
        let Some(path) = &self.requestheader_client_ca_file else { return Ok(None) };
        let mut options = RequestHeaderOptions::default();
        options.authorities = read(path)?;
        options.allowed_names.clone_from(&self.requestheader_allowed_names);
        options.username_headers.clone_from(&self.requestheader_username_headers);
        options.uid_headers.clone_from(&self.requestheader_uid_headers);
        options.group_headers.clone_from(&self.requestheader_group_headers);
        options.extra_headers_prefix.clone_from(&self.requestheader_extra_headers_prefix);
        options.check().map_err(|error| Error::Flags(error.to_string()))?;
        Ok(Some(options))
    }
}
