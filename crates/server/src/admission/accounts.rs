//! `ServiceAccount`: the account of a pod, and the volume with its token. Off by default: no node runs the pod.

use k1s_kinds::admission::pod_references::{self, Used};
use k1s_object::field::quote;
use serde_json::{Value, json};

use super::{Attributes, forbidden, kind, other};
use crate::{errors::Error, objectmeta::meta_text, parts::Part};

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The validity of mounted tokens: an hour, and a margin by which the server recognizes them.
const TOKEN_SECONDS: i64 = 3607;

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

fn items<'a>(of: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    of[list].as_array().into_iter().flatten()
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

/// Gives a new pod its account, the volume with the token, and the account's pull secrets.
pub(super) async fn apply(a: &Attributes<'_>, pod: &mut Value) -> Result<(), Error> {
    if is_mirror(pod) {
        return check_mirror(a, pod);
    }
    if text(&pod["spec"], "serviceAccountName").is_empty() {
        pod["spec"]["serviceAccountName"] = DEFAULT.into();
        pod["spec"]["serviceAccount"] = DEFAULT.into();
    }
    let account = account(a, pod).await?;
    let automount = [&pod["spec"], &account]
        .iter()
        .find_map(|of| of["automountServiceAccountToken"].as_bool())
        .unwrap_or(true);
    if automount {
        let name = format!("{VOLUME}{}", a.cx.tenant.env().name_suffix());
        mount(pod, name);
    }
    if items(&pod["spec"], "imagePullSecrets").next().is_none() {
        let secrets: Vec<Value> =
            items(&account, "imagePullSecrets").map(|secret| json!({"name": secret["name"]})).collect();
        if !secrets.is_empty() {
            pod["spec"]["imagePullSecrets"] = secrets.into();
        }
    }
    restrict(a, pod, &account)
}

/// Checks a new pod, or new ephemeral containers of a pod.
pub(super) async fn check(a: &Attributes<'_>, pod: &Value) -> Result<(), Error> {
    let creates = a.part == Part::Main;
    if creates && is_mirror(pod) {
        return check_mirror(a, pod);
    }
    if text(&pod["spec"], "serviceAccountName").is_empty() {
        let why = format!("no service account specified for pod {}/{}", a.namespace, meta_text(pod, "name"));
        return Err(forbidden(a.cx, pod, why).into());
    }
    let account = account(a, pod).await?;
    restrict(a, pod, &account)
}

/// The account of a pod.
async fn account(a: &Attributes<'_>, pod: &Value) -> Result<Value, Error> {
    let tenant = &a.cx.tenant;
    let name = text(&pod["spec"], "serviceAccountName");
    let resource = kind(tenant, "", "v1", "serviceaccounts")?;
    let found = other(tenant, &resource, &a.namespace, name).await?;
    found.ok_or_else(|| {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {} not found",
            a.namespace,
            quote(name)
        );
        forbidden(a.cx, pod, why).into()
    })
}

fn check_mirror(a: &Attributes<'_>, pod: &Value) -> Result<(), Error> {
    let refuse = |why: &str| Err(forbidden(a.cx, pod, why).into());
    if !text(&pod["spec"], "serviceAccountName").is_empty() {
        return refuse("a mirror pod may not reference service accounts");
    }
    if !pod_references::used(pod, Used::Secrets).is_empty() {
        return refuse("a mirror pod may not reference secrets");
    }
    let mut sources =
        items(&pod["spec"], "volumes").flat_map(|volume| items(&volume["projected"], "sources"));
    match sources.any(|source| source["serviceAccountToken"].is_object()) {
        true => refuse("a mirror pod may not use ServiceAccountToken volume projections"),
        false => Ok(()),
    }
}

/// Rejects secrets that an account does not list, if it has asked for that.
fn restrict(a: &Attributes<'_>, pod: &Value, account: &Value) -> Result<(), Error> {
    let wanted = account["metadata"]["annotations"][ENFORCE].as_str().unwrap_or_default();
    if !matches!(wanted, "1" | "t" | "T" | "TRUE" | "true" | "True") {
        return Ok(());
    }
    let refused = match a.part {
        Part::EphemeralContainers => {
            of_containers(pod, account, "ephemeralContainers", "ephemeral container")
        }
        _ => of_pod(pod, account),
    };
    match refused {
        None => Ok(()),
        Some(why) => Err(forbidden(a.cx, pod, why).into()),
    }
}

fn lists(account: &Value, list: &str, name: &str) -> bool {
    items(account, list).any(|secret| text(secret, "name") == name)
}

fn of_pod(pod: &Value, account: &Value) -> Option<String> {
    let owner = meta_text(account, "name");
    for volume in items(&pod["spec"], "volumes").filter(|volume| volume["secret"].is_object()) {
        let name = text(&volume["secret"], "secretName");
        if !lists(account, "secrets", name) {
            return Some(format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    let containers = of_containers(pod, account, "initContainers", "init container")
        .or_else(|| of_containers(pod, account, "containers", "container"));
    if containers.is_some() {
        return containers;
    }
    let mut pulls = items(&pod["spec"], "imagePullSecrets").enumerate();
    let (at, secret) = pulls.find(|(_, secret)| !lists(account, "imagePullSecrets", text(secret, "name")))?;
    let name = text(secret, "name");
    Some(format!(
        "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {owner} does not reference that imagePullSecret"
    ))
}

fn of_containers(pod: &Value, account: &Value, list: &str, word: &str) -> Option<String> {
    let owner = meta_text(account, "name");
    for container in items(&pod["spec"], list) {
        let variables =
            items(container, "env").filter(|one| one["valueFrom"]["secretKeyRef"].is_object()).map(|one| {
                (format!("envVar {}", text(one, "name")), text(&one["valueFrom"]["secretKeyRef"], "name"))
            });
        let all = items(container, "envFrom")
            .filter(|one| one["secretRef"].is_object())
            .map(|one| ("envFrom".to_owned(), text(&one["secretRef"], "name")));
        for (place, name) in variables.chain(all) {
            if !lists(account, "secrets", name) {
                return Some(format!(
                    "{word} {} with {place} referencing secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret",
                    text(container, "name")
                ));
            }
        }
    }
    None
}

/// Mounts the volume with token, authority and namespace into every container that has nothing at its path. `name` is that of
/// a new volume.
fn mount(pod: &mut Value, name: String) {
    let is_token = |volume: &&Value| text(volume, "name").starts_with(VOLUME);
    let existing =
        items(&pod["spec"], "volumes").find(is_token).map(|volume| text(volume, "name").to_owned());
    let (has, name) = (existing.is_some(), existing.unwrap_or(name));
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            if items(container, "volumeMounts").any(|mount| text(mount, "mountPath") == MOUNT_PATH) {
                continue;
            }
            needed = true;
            append(
                container,
                "volumeMounts",
                json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}),
            );
        }
    }
    if !has && needed {
        let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}});
        append(&mut pod["spec"], "volumes", volume);
    }
}

fn append(to: &mut Value, list: &str, item: Value) {
    match to[list].as_array_mut() {
        Some(items) => items.push(item),
        None => to[list] = vec![item].into(),
    }
}
