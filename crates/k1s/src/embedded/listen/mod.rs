//! Listening: the address, the certificates and token that identify a control plane to clients, and the kubeconfig.

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
    /// Also serves HTTPS at this address; port 0 chooses a free one. The certificate is generated, unless
    /// [`tls`](Self::tls) is used.
    ///
    /// The certificate authority and the administrator's token are kept with the data: a kubeconfig stays
    /// valid after a restart, and for every runtime on the same etcd. In memory they are created at each
    /// start. The certificate itself is renewed before it expires.
    ///
    /// Anyone who reaches the address and has the token has full access: prefer loopback.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> RuntimeBuilder {
        self.listen.address = Some(address.into());
        self
    }

    /// The serving certificate, its key, and its certificate authority.
    pub fn tls(mut self, files: TlsFiles) -> RuntimeBuilder {
        self.listen.transport = Transport::Https(files);
        self
    }

    /// Additional names and addresses for the generated certificate.
    pub fn tls_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> RuntimeBuilder {
        self.listen.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Keeps the generated certificates and the administrator's token in this folder, for any store:
    /// `ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key` and `admin.token`. Existing files are used;
    /// missing ones are created. Runtimes that share a certificate authority may have copies of `ca.crt` and
    /// `ca.key`. An `apiserver.crt` and `apiserver.key` issued by another authority are used, and never
    /// replaced.
    pub fn cert_dir(mut self, folder: impl Into<PathBuf>) -> RuntimeBuilder {
        self.listen.cert_dir = Some(folder.into());
        self
    }

    /// Serves plain HTTP instead of HTTPS.
    pub fn plain_http(mut self) -> RuntimeBuilder {
        self.listen.transport = Transport::Http;
        self
    }

    /// The administrator's bearer token. By default the stored one, or else a random one.
    pub fn token(mut self, token: impl Into<String>) -> RuntimeBuilder {
        self.listen.token = Some(token.into());
        self
    }
}

/// Accessors of a runtime that listens.
impl Runtime {
    /// A kubeconfig of the administrator, as YAML; `None` if it does not listen.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| &*endpoint.kubeconfig)
    }

    /// The address it listens at, if it does.
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
