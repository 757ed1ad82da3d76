//! The `ConfigMap` `kube-system/extension-apiserver-authentication`: the authorities of client certificates and of front proxies,
//! for extension servers that authenticate their clients as this server does.
//!
//! It is written when it may be read: most tenants have no extension servers. As in kube-apiserver, what other servers over the
//! same store have added stays, except for certificates that have expired.

use std::sync::Arc;

use k1s_object::gvk::GroupVersionResource;
use k1s_store::{Error as StoreError, Precondition, Txn};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Map, Value, json};

use crate::{
    errors,
    errors::Error,
    identity,
    managed::{self, SERVER},
    request::ResourcePath,
    tenant::Tenant,
};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// How long a certificate is kept after it has expired, in seconds.
const GRACE: i64 = 5 * 60;
/// Maximum attempts while other servers write it as well.
const ATTEMPTS: usize = 10;

/// Whether a request can be for it.
pub(crate) fn shows_trust(path: &ResourcePath) -> bool {
    path.group.is_empty()
        && path.resource == "configmaps"
        && matches!(&*path.namespace, "" | NAMESPACE)
        && matches!(&*path.name, "" | NAME)
}

/// Writes it, if there is anything to publish. `name` is the object that a request is for, empty for all: a list looks once,
/// but whoever asks for it by name gets one that somebody has changed or deleted in the meantime.
pub(crate) async fn ensure_trust(tenant: &Arc<Tenant>, name: &str) -> Result<(), Error> {
    use std::sync::atomic::Ordering;
    let authentication = &tenant.options().authentication;
    if authentication.client_authorities.is_empty() && authentication.request_header.is_none() {
        return Ok(());
    }
    if name.is_empty() && tenant.trust_is_published.load(Ordering::Relaxed) {
        return Ok(());
    }
    let resource = tenant.shared.catalog.require(GroupVersionResource::new("", "v1", "configmaps"))?;
    let key = tenant.key(&resource, NAMESPACE, NAME);
    for _ in 0..ATTEMPTS {
        let stored = tenant.get(&key).await?;
        let written = match stored {
            Some(stored) => {
                let old = resource.read(&stored).map_err(|why| resource.unreadable(NAME, &why))?;
                let data = combined(tenant, &old["data"]);
                if old["data"] == data {
                    tenant.trust_is_published.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                let mut object = old;
                object["data"] = data;
                resource.finish(&mut object);
                tenant.update(key.clone(), resource.encode(&object)?, stored.revision).await
            }
            None => {
                let mut object = json!({
                    "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": combined(tenant, &Value::Null),
                });
                managed::on_own_create(&resource, tenant.env(), SERVER, &mut object);
                let value = resource.encode_new(tenant.env(), object)?;
                tenant.txn(Txn::new().put(key.clone(), value, Precondition::Absent)).await
            }
        };
        match written {
            Ok(_) => {
                tenant.trust_is_published.store(true, Ordering::Relaxed);
                return Ok(());
            }
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(tenant.refusal(error)),
        }
    }
    Err(errors::modified("", "configmaps", NAME).into())
}

/// What is published: what this server trusts, and what is there already.
fn combined(tenant: &Tenant, old: &Value) -> Value {
    let now = crate::time::now(tenant.env()).as_second();
    data(&tenant.options().authentication, old, now)
}

fn data(options: &identity::AuthenticationOptions, old: &Value, now: i64) -> Value {
    let text = |key: &str| old[key].as_str().unwrap_or_default();
    let mut data = Map::new();
    let clients = certificates(&[text("client-ca-file"), &options.client_authorities], now);
    if !clients.is_empty() {
        data.insert("client-ca-file".into(), clients.into());
    }
    let none = identity::RequestHeaderOptions {
        username_headers: Vec::new(),
        uid_headers: Vec::new(),
        group_headers: Vec::new(),
        extra_headers_prefix: Vec::new(),
        ..identity::RequestHeaderOptions::default()
    };
    let own = options.request_header.as_ref().unwrap_or(&none);
    let proxies = certificates(&[text("requestheader-client-ca-file"), &own.authorities], now);
    if !proxies.is_empty() {
        let lists = [
            ("requestheader-username-headers", &own.username_headers),
            ("requestheader-uid-headers", &own.uid_headers),
            ("requestheader-group-headers", &own.group_headers),
            ("requestheader-extra-headers-prefix", &own.extra_headers_prefix),
            ("requestheader-allowed-names", &own.allowed_names),
        ];
        for (key, names) in lists {
            let mut all: Vec<String> = serde_json::from_str(text(key)).unwrap_or_default();
            for name in names {
                if !all.contains(name) {
                    all.push(name.clone());
                }
            }
            if !(all.is_empty() && key == "requestheader-uid-headers") {
                data.insert(key.into(), json!(all).to_string().into());
            }
        }
        data.insert("requestheader-client-ca-file".into(), proxies.into());
    }
    Value::Object(data)
}

/// The certificates in PEM files, each once, without those that have expired.
fn certificates(files: &[&str], now: i64) -> String {
    let mut all: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in files.iter().flat_map(|file| CertificateDer::pem_slice_iter(file.as_bytes())).flatten()
    {
        let valid = identity::valid_until(&certificate).is_some_and(|until| until + GRACE > now);
        if valid && !all.contains(&certificate) {
            all.push(certificate);
        }
    }
    all.iter().map(|certificate| crate::pem::encode("CERTIFICATE", certificate)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::pki::Authority;

    #[test]
    fn what_is_there_and_what_is_trusted_is_combined() {
        const DAY: u64 = 24 * 3600;
        let at = |day: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(day * DAY);
        let [new, proxy] = [20_000, 20_001].map(|day| Authority::generate(at(day)).unwrap());
        let old = new.issue_client("old", &[], Duration::from_secs(DAY), at(20_000), [1; 16]).unwrap();
        let now = 20_002 * i64::try_from(DAY).unwrap();
        let mut options = identity::AuthenticationOptions {
            client_authorities: format!("{}\n{}", new.certificate(), new.certificate()),
            ..identity::AuthenticationOptions::default()
        };
        let first = data(&options, &Value::Null, now);
        assert_eq!(first, json!({"client-ca-file": new.certificate()}));
        assert_eq!(data(&options, &json!({"client-ca-file": old.certificate, "mine": "x"}), now), first);
        options.request_header = Some(identity::RequestHeaderOptions {
            authorities: proxy.certificate().to_owned(),
            allowed_names: vec!["front".into()],
            ..identity::RequestHeaderOptions::default()
        });
        options.client_authorities = String::new();
        let there = json!({
            "client-ca-file": new.certificate(),
            "requestheader-allowed-names": "[\"other\",\"front\"]",
            "requestheader-group-headers": "not JSON",
        });
        let second = data(&options, &there, now);
        let expected = json!({
            "client-ca-file": new.certificate(),
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-allowed-names": "[\"other\",\"front\"]",
            "requestheader-client-ca-file": proxy.certificate(),
        });
        assert_eq!(second, expected);
        assert_eq!(data(&options, &second, now), second);
    }
}
