//! Connections that clients for the same server share.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use k1s_env::Env;
use kube::Config;
use parking_lot::Mutex;
use serde_json::json;

use super::Shared;

/// Makes clients over HTTP/2 that share connections: those for the same server with the same credentials do, at whichever path of
/// it. A fleet whose clusters are behind one server needs one connection.
#[derive(Clone, Default)]
pub struct Http2Connections {
    /// By server and credentials. They are gone together with the last client that uses them.
    shared: Arc<Mutex<HashMap<String, Weak<Shared>>>>,
}

impl Http2Connections {
    /// No connections.
    #[must_use]
    pub fn new() -> Http2Connections {
        Http2Connections::default()
    }

    /// As [`http2`](super::http2), over the connections of an earlier client for the same server with the same credentials, if
    /// there is one.
    ///
    /// # Errors
    /// Credentials or certificates that cannot be used.
    pub fn client(&self, env: &Env, config: Config) -> Result<kube::Client, kube::Error> {
        let (Some(name), Some(key)) = (super::address(&config), key(&config)) else {
            return super::http2(env, config);
        };
        let mut all = self.shared.lock();
        let shared = match all.get(&key).and_then(Weak::upgrade) {
            Some(shared) => shared,
            None => {
                let shared = super::connect(env, name, &config)?;
                all.retain(|_, other| other.strong_count() > 0);
                all.insert(key, Arc::downgrade(&shared));
                shared
            }
        };
        drop(all);
        super::client(env, &shared, config)
    }
}

impl std::fmt::Debug for Http2Connections {
    /// Without the keys, which contain credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Connections").field("servers", &self.shared.lock().len()).finish()
    }
}

/// What a connection depends on. `None` for certificates in files and from plugins, which may be others the next time.
///
/// Tokens are part of it, although they are sent with each request: a server may close a connection whose client was not
/// authenticated, and that must not end the requests of others.
fn key(config: &Config) -> Option<String> {
    let auth = &config.auth_info;
    if auth.client_certificate.is_some() || auth.client_key.is_some() || auth.exec.is_some() {
        return None;
    }
    let server = (config.cluster_url.authority()?.as_str(), &config.tls_server_name);
    let trust = (&config.root_cert, &config.root_cert_file, config.accept_invalid_certs);
    let key = json!([server, trust, config.connect_timeout, serde_json::to_value(auth).ok()?]);
    Some(key.to_string())
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;

    fn config(url: &'static str, token: &str) -> Config {
        let mut config = Config::new(Uri::from_static(url));
        config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
        config
    }

    #[test]
    fn connections_belong_to_a_server_and_credentials() {
        let of = |url, token| key(&config(url, token)).unwrap();
        let one = of("https://api.example:6443/clusters/a", "one");
        assert_eq!(of("https://api.example:6443/clusters/b", "one"), one);
        assert_ne!(of("https://api.example:6443/clusters/a", "two"), one);
        assert_ne!(of("https://api.example:6444/clusters/a", "one"), one);
        let mut other = config("https://api.example:6443", "one");
        other.accept_invalid_certs = true;
        assert_ne!(key(&other).unwrap(), one);
    }

    #[test]
    fn a_certificate_in_a_file_is_read_for_each_client() {
        let mut config = config("https://api.example:6443", "one");
        config.auth_info.client_certificate = Some("/etc/client.crt".to_owned());
        assert_eq!(key(&config), None);
    }

    #[tokio::test]
    async fn connections_are_gone_with_the_last_client_that_uses_them() {
        let (connections, env) = (Http2Connections::new(), Env::system());
        let client = |url, token| connections.client(&env, config(url, token)).unwrap();
        let alive = || connections.shared.lock().values().filter(|one| one.strong_count() > 0).count();
        let one = client("https://api.example:6443/clusters/a", "one");
        let two = client("https://api.example:6443/clusters/b", "one");
        assert_eq!(alive(), 1);
        drop((one, two));
        // The task of a client ends when it is polled once more.
        while alive() > 0 {
            env.yield_now().await;
        }
        let _three = client("https://api.example:6443", "two");
        assert_eq!(connections.shared.lock().len(), 1);
    }
}
