//! Listening: the address, the certificates and token that clients know a control plane by, and the kubeconfig.

mod endpoint;
mod identity;
mod pki;

use std::{net::SocketAddr, path::PathBuf};

use k1s_server::TlsFiles;

use self::endpoint::Transport;
pub use self::endpoint::write_kubeconfig;
pub(super) use self::{
    endpoint::{Bound, Endpoint, ListenOptions},
    identity::Keep,
};
use super::{Runtime, RuntimeBuilder};

/// Listening, with the feature `server-tls`.
impl RuntimeBuilder {
    /// Serves HTTPS at this address, too; port 0 is any that is free. The certificate is made for it, unless
    /// [`tls`](Self::tls) says otherwise.
    ///
    /// The authority that signs it, and the administrator's token, are kept with everything else: a kubeconfig works after a
    /// restart, and with every runtime over the same etcd. In memory they are made anew at each start. The certificate itself
    /// is renewed before it expires.
    ///
    /// Whoever reaches the address and has the token may do everything: choose loopback, if there is no reason not to.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> RuntimeBuilder {
        self.listen.address = Some(address.into());
        self
    }

    /// The certificate that is served, its key, and its authority.
    pub fn tls(mut self, files: TlsFiles) -> RuntimeBuilder {
        self.listen.transport = Transport::Https(files);
        self
    }

    /// More names and addresses that the generated certificate is for.
    pub fn tls_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> RuntimeBuilder {
        self.listen.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Keeps the generated certificates and the administrator's token in this folder, whatever the store: `ca.crt`, `ca.key`,
    /// `apiserver.crt`, `apiserver.key` and `admin.token`. What is there is used; what is not is made. Runtimes that share an
    /// authority may have copies of `ca.crt` and `ca.key`. `apiserver.crt` and `apiserver.key` by another authority are used, and
    /// never replaced.
    pub fn cert_dir(mut self, folder: impl Into<PathBuf>) -> RuntimeBuilder {
        self.listen.cert_dir = Some(folder.into());
        self
    }

    /// Serves plain HTTP instead of HTTPS.
    pub fn plain_http(mut self) -> RuntimeBuilder {
        self.listen.transport = Transport::Http;
        self
    }

    /// The administrator's bearer token. If it is not said, the one that was kept, or a random one.
    pub fn token(mut self, token: impl Into<String>) -> RuntimeBuilder {
        self.listen.token = Some(token.into());
        self
    }
}

/// Of a runtime that listens.
impl Runtime {
    /// A kubeconfig of an administrator, as YAML; `None` if it does not listen.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| &*endpoint.kubeconfig)
    }

    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(|endpoint| endpoint.address)
    }

    /// The address as clients on this machine write it: `https://127.0.0.1:6443`.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| &*endpoint.url)
    }

    /// The administrator's bearer token, if it listens.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| &*endpoint.token)
    }

    /// The certificate authority that clients should trust, as PEM, if it serves HTTPS.
    #[must_use]
    pub fn certificate_authority(&self) -> Option<&str> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.authority.as_deref())
    }
}
