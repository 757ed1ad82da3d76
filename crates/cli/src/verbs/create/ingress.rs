//! `create ingress`

use clap::Args;
use serde_json::{Map, Value, json};

use super::{Common, generate::pairs};
use crate::api::Error;

#[derive(Debug, Clone, Args)]
pub(super) struct IngressArgs {
    /// Its name.
    name: String,
    /// A rule; a path that ends with `*` is a prefix; can be repeated.
    #[arg(long, value_name = "HOST/PATH=SERVICE:PORT[,tls[=SECRET]]")]
    rule: Vec<String>,
    /// Where everything else goes.
    #[arg(long, value_name = "SERVICE:PORT")]
    default_backend: Option<String>,
    /// The class of the controller.
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// An annotation; can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    annotation: Vec<String>,
    #[command(flatten)]
    pub(super) common: Box<Common>,
}

pub(super) fn ingress(args: &IngressArgs) -> Result<Value, Error> {
    if args.default_backend.is_none() && args.rule.is_empty() {
        return Err(Error::failed(
            "not enough information provided: every ingress has to either specify a default-backend (which catches all \
             traffic) or a list of rules (which catch specific paths)",
        ));
    }
    let mut spec = Map::new();
    if let Some(class) = &args.class {
        spec.insert("ingressClassName".to_owned(), class.as_str().into());
    }
    if let Some(text) = &args.default_backend {
        let found = backend(text)
            .ok_or_else(|| Error::failed("default-backend should be in format servicename:serviceport"))?;
        spec.insert("defaultBackend".to_owned(), found);
    }
    // Both in the order of the command line.
    let (mut rules, mut secrets) = (Vec::<Value>::new(), Vec::<Value>::new());
    for text in &args.rule {
        let parsed = Rule::parse(text).ok_or_else(|| {
            Error::failed(format!(
                "rule {text} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]"
            ))
        })?;
        parsed.add_to(&mut rules);
        parsed.add_tls_to(&mut secrets);
    }
    if !secrets.is_empty() {
        spec.insert("tls".to_owned(), secrets.into());
    }
    if !rules.is_empty() {
        spec.insert("rules".to_owned(), rules.into());
    }
    let mut metadata = json!({"name": args.name});
    if !args.annotation.is_empty() {
        metadata["annotations"] = pairs(args.annotation.iter().map(String::as_str), "annotation")?.into();
    }
    Ok(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec,
        "status": {"loadBalancer": {}},
    }))
}

/// `service:port`
fn backend(text: &str) -> Option<Value> {
    let (name, port) = text.split_once(':')?;
    if name.is_empty() || port.is_empty() || port.contains(':') {
        return None;
    }
    let port = match port.parse::<i32>() {
        Ok(number) => json!({"number": number}),
        Err(_) => json!({"name": port}),
    };
    Some(json!({"service": {"name": name, "port": port}}))
}

/// `host/path=service:port,tls=secret`
struct Rule<'t> {
    host: &'t str,
    path: Value,
    /// `None` without `tls`; an empty name is the controller's own certificate.
    secret: Option<&'t str>,
}

impl<'t> Rule<'t> {
    fn parse(text: &'t str) -> Option<Rule<'t>> {
        let (rule, tls) = match text.split_once(',') {
            Some((rule, tls)) => (rule, Some(tls)),
            None => (text, None),
        };
        let secret = match tls {
            None => None,
            Some("tls") => Some(""),
            Some(tls) => Some(tls.strip_prefix("tls=")?),
        };
        let (host, rest) = rule.split_once('/')?;
        let (path, service) = rest.split_once('=')?;
        let (path, type_) = match path.strip_suffix('*') {
            Some(path) => (path, "Prefix"),
            None => (path, "Exact"),
        };
        let path = json!({"path": format!("/{path}"), "pathType": type_, "backend": backend(service)?});
        Some(Rule { host, path, secret })
    }

    /// The rules of a host are one.
    fn add_to(&self, rules: &mut Vec<Value>) {
        let host = |rule: &Value| rule["host"].as_str().unwrap_or_default() == self.host;
        if let Some(Value::Array(paths)) =
            rules.iter_mut().find(|rule| host(rule)).map(|rule| &mut rule["http"]["paths"])
        {
            paths.push(self.path.clone());
            return;
        }
        let mut rule = json!({"http": {"paths": [self.path]}});
        if !self.host.is_empty() {
            rule["host"] = self.host.into();
        }
        rules.push(rule);
    }

    /// The hosts of a secret are together; each host has one secret.
    fn add_tls_to(&self, secrets: &mut Vec<Value>) {
        let Some(secret) = self.secret else { return };
        let has_host = |one: &Value| {
            one["hosts"].as_array().is_some_and(|hosts| hosts.iter().any(|host| host == self.host))
        };
        if (self.host.is_empty() && secret.is_empty()) || secrets.iter().any(has_host) {
            return;
        }
        let same = |one: &Value| one["secretName"].as_str().unwrap_or_default() == secret;
        if let Some(one) = secrets.iter_mut().find(|one| same(one)) {
            if let Some(Value::Array(hosts)) = one.get_mut("hosts").filter(|_| !self.host.is_empty()) {
                hosts.push(self.host.into());
            }
            return;
        }
        let mut one = json!({});
        if !self.host.is_empty() {
            one["hosts"] = json!([self.host]);
        }
        if !secret.is_empty() {
            one["secretName"] = secret.into();
        }
        secrets.push(one);
    }
}
