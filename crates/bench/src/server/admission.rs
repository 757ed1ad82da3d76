//! What admission costs a create: rules of a definition, policies, webhooks.
//!
//! Inside, in CPU time: the server in this process, and whatever it calls. A create costs some twenty microseconds, so the server
//! without anything and those with something take turns, and all rounds are summed. Over HTTP, creates per second: the same
//! requests to k1s and to a peer, so that their rows can be compared.

use std::{convert::Infallible, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use k1s_env::Env;
use k1s_runtime::webhook::{Webhook, WebhookOptions, WebhookServer, paths};
use k1s_server::{Authority, LocalServices, ServerOptions};
use k8s_openapi::api::core::v1::ConfigMap;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{
    GROUP, Measured, Notes, Run,
    client::{Client, Content, Target},
    inside::Inside,
    objects, process, work,
};
use crate::{Failure, report::Unit};

const POLICIES: u64 = 100;
const RULES: u64 = 10;
const ROUNDS: u64 = 9;
const CLIENTS: usize = 32;
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The answer of a webhook that allows everything.
fn allow(review: &[u8]) -> Bytes {
    let review: Value = serde_json::from_slice(review).unwrap_or_default();
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
        .into()
}

/// A validating webhook for the creates of a kind.
fn webhook(name: &str, client_config: &Value, resource: &str, namespace: Option<&str>) -> String {
    let selector = namespace.map(|name| json!({"matchLabels": {"kubernetes.io/metadata.name": name}}));
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{"name": "bench.k1s.dev", "clientConfig": client_config,
            "namespaceSelector": selector, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}]}]})
    .to_string()
}

/// Policies and their bindings: paths and bodies. `resource`: what they are for; `namespace`: whose objects only.
fn policies(prefix: &str, resource: &str, namespace: Option<&str>) -> Vec<(String, String)> {
    let selector = namespace.map(|name| json!({"matchLabels": {"kubernetes.io/metadata.name": name}}));
    let mut all = Vec::new();
    for number in 0..POLICIES {
        let name = format!("{prefix}-{number}");
        let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": {
                "matchConstraints": {"namespaceSelector": selector, "resourceRules": [{"operations": ["CREATE"],
                    "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}]},
                "validations": [{"expression": "has(object.metadata.labels)"}]}});
        let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]}});
        all.push((format!("{REGISTRATION}/validatingadmissionpolicies"), policy.to_string()));
        all.push((format!("{REGISTRATION}/validatingadmissionpolicybindings"), binding.to_string()));
    }
    all
}

/// The definition of a kind, with simple rules or without any.
fn definition(group: &str, kind: &str, with_rules: bool) -> Result<String, Failure> {
    let mut definition: Value = serde_json::from_str(&objects::definition(group, kind))?;
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    if with_rules {
        let rules: Vec<Value> = (0..RULES)
            .map(|number| match number % 2 {
                0 => json!({"rule": format!("!has(self.replicas) || self.replicas != {}", 100 + number)}),
                _ => json!({"rule": format!("!has(self.section0{0}) || self.section0{0}.size >= 0", number % 8)}),
            })
            .collect();
        spec["x-kubernetes-validations"] = rules.into();
    }
    Ok(definition.to_string())
}

/// The webhook of a user in this process, as `Runtime::serve_webhooks` connects it: the object is decoded into its type.
fn serve_local(env: &Env) -> Result<LocalServices, Failure> {
    let webhooks = WebhookServer::new(env, WebhookOptions::default());
    Webhook::for_::<ConfigMap>()
        .validate_with(|_, _| Ok(Vec::new()))
        .complete(&webhooks)
        .map_err(|why| Failure(why.to_string()))?;
    let local = LocalServices::default();
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let webhooks = webhooks.clone();
        async move { Ok::<_, Infallible>(webhooks.handle(request).await) }
    });
    local.serve("default", "hook.k1s.dev", service);
    Ok(local)
}

/// A webhook over HTTPS in this process: its `clientConfig`.
async fn serve_https(env: &Env) -> Result<Value, Failure> {
    let authority = Authority::generate(env.wall()).map_err(|why| Failure(why.to_string()))?;
    let files =
        authority.issue(&["127.0.0.1".to_owned()], env.wall()).map_err(|why| Failure(why.to_string()))?;
    let chain = CertificateDer::pem_slice_iter(files.certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes());
    let (chain, key) =
        (chain.map_err(|why| Failure(why.to_string()))?, key.map_err(|why| Failure(why.to_string()))?);
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let spawner = env.clone();
    drop(env.spawn("webhooks", async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            drop(spawner.spawn("webhook", async move {
                let Ok(stream) = acceptor.accept(tcp).await else { return };
                let answer = service_fn(|request: Request<Incoming>| async move {
                    let body = request.into_body().collect().await?.to_bytes();
                    Ok::<_, hyper::Error>(Response::new(Full::new(allow(&body))))
                });
                // A connection that ends is the end of the measurement.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            }));
        }
    }));
    Ok(
        json!({"url": format!("https://127.0.0.1:{port}/hook"), "caBundle": BASE64_STANDARD.encode(authority.certificate())}),
    )
}

/// Serves a server of this process over HTTP.
async fn serve_http(env: &Env, inside: &Inside) -> Result<Target, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let target = Target { address: listener.local_addr()?, tls: false, token: String::new() };
    let (spawner, server) = (env.clone(), inside.server());
    drop(env.spawn("server", async move {
        while let Ok((tcp, _)) = listener.accept().await {
            // As `k1s serve` does.
            let _ = tcp.set_nodelay(true);
            let server = TowerToHyperService::new(server.clone());
            drop(spawner.spawn("connection", async move {
                // A connection that ends is the end of the measurement.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(tcp), server).await;
            }));
        }
    }));
    Ok(target)
}

/// A server in this process, and the path and bodies of what it creates.
struct Subject {
    inside: Inside,
    path: String,
    body: Box<dyn Fn(u64) -> String>,
    made: u64,
    cpu: f64,
}

impl Subject {
    /// `ConfigMaps` of 2 KB.
    async fn config_maps(env: &Env, local: Option<LocalServices>) -> Result<Subject, Failure> {
        let mut options = ServerOptions::default();
        options.services.local = local.unwrap_or_default();
        let bodies = objects::ConfigMaps::new();
        let body = Box::new(move |number| bodies.get(&objects::name("cm", number), number));
        let path = work::config_maps("default");
        Ok(Subject { inside: Inside::with(env, options).await?, path, body, made: 0, cpu: 0.0 })
    }

    async fn widgets(env: &Env, with_rules: bool) -> Result<Subject, Failure> {
        let mut inside = Inside::with(env, ServerOptions::default()).await?;
        let definition = definition(GROUP, "Widget", with_rules)?;
        inside.call(Method::POST, DEFINITIONS.into(), definition.into()).await?;
        let body = Box::new(|number| objects::widget(GROUP, "Widget", &objects::name("w", number)));
        let path = format!("/apis/{GROUP}/v1/namespaces/default/widgets");
        Ok(Subject { inside, path, body, made: 0, cpu: 0.0 })
    }

    async fn with(mut self, objects: Vec<(String, String)>) -> Result<Subject, Failure> {
        for (path, body) in objects {
            self.inside.call(Method::POST, path, body.into()).await?;
        }
        Ok(self)
    }

    async fn create(&mut self, count: u64) -> Result<(), Failure> {
        let bodies: Vec<String> = (self.made..self.made + count).map(&self.body).collect();
        let before = process::own_cpu_seconds()?;
        for body in bodies {
            self.inside.call(Method::POST, self.path.clone(), body.into()).await?;
        }
        self.cpu += process::own_cpu_seconds()? - before;
        self.made += count;
        Ok(())
    }

    /// Microseconds per create of the rounds that count.
    fn cost(&self) -> f64 {
        self.cpu * 1e6 / (self.made * ROUNDS / (ROUNDS + 1)) as f64
    }
}

/// Lets servers create in turns, after a round that does not count.
async fn in_turns(subjects: &mut [&mut Subject], count: u64) -> Result<(), Failure> {
    for round in 0..=ROUNDS {
        for subject in subjects.iter_mut() {
            subject.create(count).await?;
            if round == 0 {
                subject.cpu = 0.0;
            }
        }
        // Whoever comes after another finds the memory that it has given back: that is each of them in turn.
        subjects.rotate_left(1);
    }
    Ok(())
}

impl Run<'_> {
    /// Inside this process.
    pub(super) async fn admission(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let env = self.env;
        let count = self.sizes.writes * 10;
        let mut plain = Subject::config_maps(env, None).await?;
        let mut other_kind =
            Subject::config_maps(env, None).await?.with(policies("p", "secrets", None)).await?;
        let elsewhere = policies("p", "configmaps", Some("elsewhere"));
        let mut other_namespace = Subject::config_maps(env, None).await?.with(elsewhere).await?;
        let local = serve_local(env)?;
        let hook = |config: Value| {
            vec![(
                format!("{REGISTRATION}/validatingwebhookconfigurations"),
                webhook("hook", &config, "configmaps", None),
            )]
        };
        let config = json!({"url": format!("https://hook.k1s.dev{}", paths::validate::<ConfigMap>())});
        let mut in_process = Subject::config_maps(env, Some(local)).await?.with(hook(config)).await?;
        let mut over_https =
            Subject::config_maps(env, None).await?.with(hook(serve_https(env).await?)).await?;
        let all = &mut [&mut plain, &mut other_kind, &mut other_namespace, &mut in_process, &mut over_https];
        in_turns(all, count).await?;
        let none = plain.cost();
        let share = |subject: &Subject| (subject.cost() / none - 1.0) * 100.0;
        notes.add("admission.create-none", none, Unit::Microseconds, None);
        notes.add("admission.policies-100-other-kind", share(&other_kind), Unit::Percent, Some(5.0));
        let other_namespace = share(&other_namespace);
        notes.add("admission.policies-100-other-namespace", other_namespace, Unit::Percent, Some(5.0));
        notes.add("admission.webhook-in-process", in_process.cost() - none, Unit::Microseconds, Some(30.0));
        notes.add("admission.webhook-https", over_https.cost() - none, Unit::Microseconds, None);

        let mut without = Subject::widgets(env, false).await?;
        let mut with = Subject::widgets(env, true).await?;
        in_turns(&mut [&mut without, &mut with], count).await?;
        notes.add("admission.custom-none", without.cost(), Unit::Microseconds, None);
        let share = (with.cost() / without.cost() - 1.0) * 100.0;
        notes.add("admission.custom-rules-10", share, Unit::Percent, Some(25.0));
        Ok(())
    }

    /// Creates per second over HTTP of a server in this process, which shares it with its clients: with a webhook that is called
    /// without a socket, beside none.
    pub(super) async fn admission_here(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let (env, limit) = (self.env, self.sizes.limit);
        let mut options = ServerOptions::default();
        options.services.local = serve_local(env)?;
        let mut inside = Inside::with(env, options).await?;
        let target = serve_http(env, &inside).await?;
        let config = json!({"url": format!("https://hook.k1s.dev{}", paths::validate::<ConfigMap>())});
        for what in ["here-none", "webhook-in-process"] {
            if what == "webhook-in-process" {
                let path = format!("{REGISTRATION}/validatingwebhookconfigurations");
                let body = webhook("hook", &config, "configmaps", None);
                inside.call(Method::POST, path, body.into()).await?;
            }
            let namespace = self.namespace(&mut Client::connect(env, &target).await?, what).await?;
            let done = work::create(env, &target, CLIENTS, &namespace, u64::MAX, limit).await?;
            notes.rate(&format!("admission.create.c32-{what}"), done, None);
        }
        Ok(())
    }

    /// Over HTTP, of k1s as of any other server.
    pub(super) async fn admission_of(
        &self,
        server: Measured<'_>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let (env, limit, target) = (self.env, self.sizes.limit, server.target);
        let mut client = Client::connect(env, target).await?;
        let group = format!("{}.{GROUP}", env.name_suffix());
        let namespace = self.namespace(&mut client, "admission").await?;
        for (kind, with_rules) in [("Plain", false), ("Ruled", true)] {
            let body = definition(&group, kind, with_rules)?;
            work::define_as(env, &mut client, &group, kind, body).await?;
            let path = format!("/apis/{group}/v1/namespaces/{namespace}/{}", objects::plural(kind));
            let group = group.clone();
            let done = work::spread(env, target, CLIENTS, u64::MAX, limit, move |number| {
                let body = objects::widget(&group, kind, &objects::name("w", number));
                (Method::POST, path.clone(), Content::json(body))
            });
            let what = if with_rules { "custom-rules-10" } else { "custom-none" };
            notes.rate(&format!("admission.create.c32-{what}"), done.await?, None);
        }
        let prefix = format!("bench-{}", env.name_suffix());
        let config = serve_https(env).await?;
        for (number, what) in ["none", "policies-100-other-kind", "webhook-https"].into_iter().enumerate() {
            let namespace = self.namespace(&mut client, &format!("admission{number}")).await?;
            let added = match what {
                "none" => Vec::new(),
                "webhook-https" => vec![(
                    format!("{REGISTRATION}/validatingwebhookconfigurations"),
                    webhook(&prefix, &config, "configmaps", Some(&namespace)),
                )],
                _ => policies(&prefix, "secrets", None),
            };
            for (path, body) in &added {
                client.call(Method::POST, path, Content::json(body.clone())).await?;
            }
            // Other servers follow their configuration through a watch.
            env.sleep(super::SETTLE).await;
            let done = work::create(env, target, CLIENTS, &namespace, u64::MAX, limit).await?;
            notes.rate(&format!("admission.create.c32-{what}"), done, None);
            for (path, body) in &added {
                let object: Value = serde_json::from_str(body)?;
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                client.call(Method::DELETE, &format!("{path}/{name}"), Content::none()).await?;
            }
        }
        for kind in ["Plain", "Ruled"] {
            let path = format!("{DEFINITIONS}/{}.{group}", objects::plural(kind));
            client.call(Method::DELETE, &path, Content::none()).await?;
        }
        Ok(())
    }
}
