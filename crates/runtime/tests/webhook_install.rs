//! Development certificates, webhook configurations, and injection of the CA bundle.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod webhook_common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k1s_env::Env;
use k1s_runtime::webhook::{
    Endpoint, FailurePolicy, InjectInto, Webhook, WebhookConfiguration, WebhookOptions, WebhookRules,
    WebhookServer,
    admission::Operation,
    certs::{DevCertificate, DevCertificateOptions, service_names},
    inject::InjectError,
    inject_ca,
};
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::MemoryStore;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Pod,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, CustomResourceExt, api::PostParams};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use webhook_common::Widget;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn api_server() -> Client {
    let store = Arc::new(MemoryStore::default());
    let server = ApiServer::new(Env::system(), store, ServerOptions::default()).await.unwrap();
    Client::new(server.as_user(User::admin()), "default")
}

fn webhooks() -> WebhookServer {
    let server = WebhookServer::new(&Env::system(), WebhookOptions::default());
    Webhook::for_::<Widget>()
        .default_with(|_, _| Ok(()))
        .validate_with(|_, _| Ok(vec![]))
        .validator_rules(WebhookRules {
            failure_policy: FailurePolicy::Ignore,
            sub_resources: vec!["status".into()],
            timeout: Duration::from_secs(3),
            ..WebhookRules::default()
        })
        .complete(&server)
        .unwrap();
    let rules = WebhookRules {
        name: Some("pods.hooks.example.com".into()),
        operations: Some(vec![Operation::Create]),
        ..WebhookRules::default()
    };
    Webhook::for_::<Pod>().default_with(|_, _| Ok(())).defaulter_rules(rules).complete(&server).unwrap();
    server
}

#[test]
fn configurations_describe_the_registered_webhooks() {
    let server = webhooks();
    let by_service = WebhookConfiguration::new("shop", Endpoint::service("system", "hooks")).ca_bundle("PEM");
    let mutating = serde_json::to_value(by_service.mutating(&server).unwrap()).unwrap();
    assert_eq!(mutating["metadata"]["name"], "shop");
    let [pods, widgets] = mutating["webhooks"].as_array().unwrap().as_slice() else { panic!("{mutating}") };
    assert_eq!(pods["name"], "pods.hooks.example.com");
    assert_eq!(
        pods["rules"],
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}])
    );
    assert_eq!(widgets["name"], "mutate.v1.widgets.shop.example.com");
    assert_eq!(
        widgets["clientConfig"],
        json!({"caBundle": "UEVN", "service":
            {"namespace": "system", "name": "hooks", "path": "/mutate-shop-example-com-v1-widget"}})
    );
    assert_eq!(widgets["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
    assert_eq!(widgets["failurePolicy"], "Fail");
    assert_eq!(widgets["sideEffects"], "None");
    assert_eq!(widgets["timeoutSeconds"], 10);
    assert_eq!(widgets["admissionReviewVersions"], json!(["v1"]));

    let by_url = WebhookConfiguration::new("shop", Endpoint::url("https://localhost:9443/"));
    let validating = serde_json::to_value(by_url.validating(&server).unwrap()).unwrap();
    let widgets = &validating["webhooks"][0];
    assert_eq!(
        widgets["clientConfig"],
        json!({"url": "https://localhost:9443/validate-shop-example-com-v1-widget"})
    );
    assert_eq!(widgets["rules"][0]["operations"], json!(["CREATE", "UPDATE", "DELETE"]));
    assert_eq!(widgets["rules"][0]["resources"], json!(["widgets", "widgets/status"]));
    assert_eq!(widgets["failurePolicy"], "Ignore");
    assert_eq!(widgets["timeoutSeconds"], 3);

    let conversion = serde_json::to_value(by_url.conversion()).unwrap();
    assert_eq!(
        conversion,
        json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://localhost:9443/convert"}, "conversionReviewVersions": ["v1"]}})
    );
    let empty = WebhookServer::new(&Env::system(), WebhookOptions::default());
    assert!(by_url.mutating(&empty).is_none() && by_url.validating(&empty).is_none());
}

#[tokio::test]
async fn configurations_can_be_installed_repeatedly() {
    let (client, server) = (api_server().await, webhooks());
    let (mutating, validating): (Api<MutatingWebhookConfiguration>, Api<ValidatingWebhookConfiguration>) =
        (Api::all(client.clone()), Api::all(client.clone()));
    let configuration = WebhookConfiguration::new("shop", Endpoint::service("system", "hooks"));
    configuration.install(&client, &server).await.unwrap();
    let first = mutating.get("shop").await.unwrap();
    assert_eq!(first.webhooks.unwrap().len(), 2);
    assert_eq!(validating.get("shop").await.unwrap().webhooks.unwrap().len(), 1);

    let configuration = WebhookConfiguration::new("shop", Endpoint::url("https://localhost:9443"));
    configuration.install(&client, &server).await.unwrap();
    let second = mutating.get("shop").await.unwrap();
    assert_eq!(second.metadata.uid, first.metadata.uid);
    let config = &second.webhooks.unwrap()[1].client_config;
    assert_eq!(config.url.as_deref(), Some("https://localhost:9443/mutate-shop-example-com-v1-widget"));
    assert!(config.service.is_none());
}

#[tokio::test]
async fn a_ca_bundle_is_injected_into_configurations() {
    let (client, server) = (api_server().await, webhooks());
    WebhookConfiguration::new("shop", Endpoint::service("system", "hooks"))
        .install(&client, &server)
        .await
        .unwrap();
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let options = DevCertificateOptions::new(dir.path(), service_names("system", "hooks"));
    let certificate = DevCertificate::open(&env, options).unwrap();
    let ca = certificate.ca_bundle();

    for into in [InjectInto::MutatingWebhookConfiguration, InjectInto::ValidatingWebhookConfiguration] {
        assert!(inject_ca(&client, into, "shop", ca).await.unwrap(), "{into:?}");
        assert!(!inject_ca(&client, into, "shop", ca).await.unwrap(), "nothing is left to change");
        let missing = inject_ca(&client, into, "missing", ca).await.unwrap_err();
        assert!(matches!(missing, InjectError::Api(kube::Error::Api(status)) if status.is_not_found()));
    }
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get("shop").await.unwrap();
    for webhook in mutating.webhooks.unwrap() {
        assert_eq!(webhook.client_config.ca_bundle.unwrap().0, ca.as_bytes());
        assert!(webhook.client_config.service.is_some());
    }
    let validating = Api::<ValidatingWebhookConfiguration>::all(client).get("shop").await.unwrap();
    assert_eq!(validating.webhooks.unwrap()[0].client_config.ca_bundle.as_ref().unwrap().0, ca.as_bytes());
}

#[tokio::test]
async fn a_concurrent_change_is_not_reverted() {
    let store = Arc::new(MemoryStore::default());
    let api_server = ApiServer::new(Env::system(), store, ServerOptions::default()).await.unwrap();
    let api_server = api_server.as_user(User::admin());
    let other = Client::new(api_server.clone(), "default");
    let configuration = WebhookConfiguration::new("shop", Endpoint::service("system", "hooks"));
    configuration.install(&other, &webhooks()).await.unwrap();

    // The list gets shorter before the first patch arrives.
    let first = Arc::new(AtomicBool::new(true));
    let patches = Arc::new(AtomicUsize::new(0));
    let interfering = tower::service_fn({
        let (other, patches) = (other.clone(), patches.clone());
        move |request: http::Request<kube::client::Body>| {
            let patch = request.method() == http::Method::PATCH;
            patches.fetch_add(patch.into(), Ordering::SeqCst);
            let interfere = patch && first.swap(false, Ordering::SeqCst);
            let (api_server, other) = (api_server.clone(), other.clone());
            async move {
                if interfere {
                    let api: Api<MutatingWebhookConfiguration> = Api::all(other);
                    let mut object = api.get("shop").await.unwrap();
                    object.webhooks.as_mut().unwrap().remove(0);
                    api.replace("shop", &PostParams::default(), &object).await.unwrap();
                }
                api_server.oneshot(request).await
            }
        }
    });
    let client = Client::new(interfering, "default");
    let into = InjectInto::MutatingWebhookConfiguration;
    assert!(inject_ca(&client, into, "shop", "PEM").await.unwrap());
    assert_eq!(patches.load(Ordering::SeqCst), 2);
    let webhooks =
        Api::<MutatingWebhookConfiguration>::all(other).get("shop").await.unwrap().webhooks.unwrap();
    assert_eq!(webhooks.len(), 1);
    assert_eq!(webhooks[0].client_config.ca_bundle.as_ref().unwrap().0, b"PEM");
}

#[tokio::test]
async fn a_ca_bundle_is_injected_into_a_crd_with_conversion() {
    let client = api_server().await;
    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let certificate =
        DevCertificate::open(&env, DevCertificateOptions::new(dir.path(), ["localhost"])).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut definition = definitions.create(&PostParams::default(), &Widget::crd()).await.unwrap();
    let name = definition.metadata.name.clone().unwrap();
    let ca = certificate.ca_bundle();
    let into = InjectInto::CustomResourceDefinition;
    let error = inject_ca(&client, into, &name, ca).await.unwrap_err();
    assert!(matches!(error, InjectError::NoConversionWebhook(_)), "{error}");

    definition = definitions.get(&name).await.unwrap();
    let endpoint = Endpoint::url("https://localhost:9443");
    definition.spec.conversion = Some(WebhookConfiguration::new("shop", endpoint).conversion());
    definitions.replace(&name, &PostParams::default(), &definition).await.unwrap();
    assert!(inject_ca(&client, into, &name, ca).await.unwrap());
    assert!(!inject_ca(&client, into, &name, ca).await.unwrap());
    let conversion = definitions.get(&name).await.unwrap().spec.conversion.unwrap();
    let config = conversion.webhook.unwrap().client_config.unwrap();
    assert_eq!(config.ca_bundle.unwrap().0, ca.as_bytes());
    assert_eq!(config.url.as_deref(), Some("https://localhost:9443/convert"));
}

#[test]
fn an_existing_certificate_is_reused_until_it_is_about_to_expire() {
    let (dir, (env, clock)) = (TempDir::new().unwrap(), Env::simulated(1));
    let open = |names: &[&str]| {
        let options = DevCertificateOptions::new(dir.path(), names.iter().copied());
        DevCertificate::open(&env, options).unwrap()
    };
    let file = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let ca = open(&["localhost", "127.0.0.1"]).ca_bundle().to_owned();
    let first = file("tls.crt");
    assert_eq!(file("ca.crt"), ca);

    clock.advance(59 * DAY);
    assert_eq!(open(&["localhost", "127.0.0.1"]).ca_bundle(), ca);
    assert_eq!(open(&["localhost"]).ca_bundle(), ca);
    assert_eq!(file("tls.crt"), first);

    clock.advance(2 * DAY);
    let mut certificate = open(&["localhost"]);
    let second = file("tls.crt");
    assert_ne!(second, first, "it had less than 30 days to go");
    assert_eq!(certificate.ca_bundle(), ca, "the authority stays");
    assert!(!certificate.renew_if_due().unwrap());

    open(&["localhost", "hooks.system.svc"]);
    let third = file("tls.crt");
    assert_ne!(third, second, "it was for other names");

    // A key that does not match the certificate, and a missing CA.
    std::fs::copy(dir.path().join("ca.key"), dir.path().join("tls.key")).unwrap();
    open(&["localhost"]);
    assert_ne!(file("tls.crt"), third);
    std::fs::remove_file(dir.path().join("ca.key")).unwrap();
    assert_eq!(open(&["localhost"]).ca_bundle(), ca, "nothing has to be signed");
    std::fs::remove_file(dir.path().join("tls.crt")).unwrap();
    assert_ne!(open(&["localhost"]).ca_bundle(), ca);
}

#[cfg(unix)]
#[test]
fn keys_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let (env, dir) = (Env::system(), TempDir::new().unwrap());
    let folder = dir.path().join("deep").join("folder");
    DevCertificate::open(&env, DevCertificateOptions::new(&folder, ["localhost"])).unwrap();
    let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tls.key"), mode("ca.key")), (0o600, 0o600));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4);
    let error = DevCertificate::open(&env, DevCertificateOptions::new(&folder, ["not a näme"])).unwrap_err();
    assert!(error.to_string().starts_with("cannot generate the certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_renewed_while_the_program_runs() {
    let (dir, (env, clock)) = (TempDir::new().unwrap(), Env::simulated(1));
    let certificate =
        DevCertificate::open(&env, DevCertificateOptions::new(dir.path(), ["localhost"])).unwrap();
    let file = || std::fs::read_to_string(dir.path().join("tls.crt")).unwrap();
    let first = file();
    let cancel = CancellationToken::new();
    let renewing = env.spawn("renewing", certificate.run(cancel.clone()));
    clock.advance_and_settle(59 * DAY).await;
    assert_eq!(file(), first);
    clock.advance_and_settle(3 * DAY).await;
    let second = file();
    assert_ne!(second, first);
    clock.advance_and_settle(62 * DAY).await;
    assert_ne!(file(), second);
    cancel.cancel();
    renewing.await.unwrap();
}
