//! The authority of front proxies: its certificates prove to aggregated API servers that a request comes from this control
//! plane, whose word about the user they take.
//!
//! It is another one than that of clients, whose certificates must not say that. It is kept in the store, so that all servers
//! over one store have the same.

use std::time::Duration;

use k1s_env::Env;
use k1s_server::{Authority, ProxyClient, RequestHeaderOptions};
use k1s_store::Store;
use serde_json::{Value, json};

use super::super::StartError;

/// The key in the store. Tenant names cannot start like this.
const PLACE: &str = "/_k1s/front-proxy";

/// The name in the certificate, as in clusters of kubeadm.
const NAME: &str = "front-proxy-client";

/// The certificate is issued at every start, and is nowhere but in memory.
const VALIDITY: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Issues a certificate, and returns the certificate of its authority.
pub(super) async fn issue(env: &Env, store: &dyn Store, client: &ProxyClient) -> Result<String, StartError> {
    let wrong = |why: &dyn std::fmt::Display| {
        StartError::Certificate(format!("the authority of front proxies (at {PLACE}) cannot be used: {why}"))
    };
    let kept = load_or_make(env, store).await.map_err(|why| wrong(&why))?;
    let text = |name: &str| kept.get(name).and_then(Value::as_str).unwrap_or_default();
    let authority = Authority::from_pem(text("ca.crt"), text("ca.key")).map_err(|why| wrong(&why))?;
    let mut serial = [0; 16];
    env.fill_random(&mut serial);
    let files = authority.issue_client(NAME, &[], VALIDITY, env.wall(), serial).map_err(|why| wrong(&why))?;
    client.set(&files.certificate, &files.key).map_err(|why| wrong(&why))?;
    Ok(authority.certificate().to_owned())
}

/// How aggregated API servers recognize the certificate.
pub(super) fn published(authorities: &str) -> RequestHeaderOptions {
    let mut options = RequestHeaderOptions::default();
    options.authorities = authorities.to_owned();
    options.allowed_names = vec![NAME.to_owned()];
    options
}

/// The authority in the store; of several concurrent starts, one creates it.
async fn load_or_make(env: &Env, store: &dyn Store) -> Result<Value, String> {
    let read = async || {
        let found = store.get(PLACE.as_bytes(), None).await.map_err(|error| error.to_string())?;
        let parse = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|error| error.to_string());
        found.entry.map(|entry| parse(&entry.value)).transpose()
    };
    if let Some(kept) = read().await? {
        return Ok(kept);
    }
    let authority = Authority::generate(env.wall()).map_err(|error| error.to_string())?;
    let made = json!({"ca.crt": authority.certificate(), "ca.key": authority.key()});
    let created = store.create(PLACE.into(), made.to_string().into()).await;
    match read().await? {
        // Created by this or another start.
        Some(kept) => Ok(kept),
        None => Err(created.err().map_or_else(|| "it is missing".to_owned(), |error| error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use k1s_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn servers_over_one_store_have_one_authority() {
        let (env, store) = (Env::system(), MemoryStore::default());
        let one = issue(&env, &store, &ProxyClient::default()).await.unwrap();
        assert_eq!(issue(&env, &store, &ProxyClient::default()).await.unwrap(), one);
        let damaged = MemoryStore::default();
        damaged.create(PLACE.into(), "{}".into()).await.unwrap();
        let refused = issue(&env, &damaged, &ProxyClient::default()).await.unwrap_err();
        assert!(refused.to_string().contains(PLACE), "{refused}");
    }
}
