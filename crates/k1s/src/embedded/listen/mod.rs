//! Listening: the address, the certificates and token that identify a control plane to clients, and the kubeconfig.

mod authority;
mod endpoint;
mod front_proxy;
mod identity;
mod pki;
mod reach;
mod reload;
mod signer;
mod users;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use k1s_server::{TlsFiles, TlsProtocol};

pub use self::{
    authority::{KnownCertificate, Pki},
    endpoint::write_kubeconfig,
    reach::folder_kubeconfig,
    users::{NewUser, issue_kubeconfig},
};
use self::{endpoint::Transport, reload::CertificateFiles};
pub(super) use self::{
    endpoint::{Bound, Endpoint, ListenOptions},
    identity::Keep,
};
use super::{Runtime, RuntimeBuilder, StartError};

/// Listening, with the feature `server-tls`.
impl RuntimeBuilder {
    /// Also serves HTTPS at this address; port 0 chooses a free one. The certificate is generated, unless
    /// [`tls`](Self::tls) is used.
    ///
    /// The certificate authority and the administrator's token are kept with the data: a kubeconfig stays
    /// valid after a restart, and for every runtime on the same etcd. In memory they are created at each
    /// start. The certificate itself is renewed before it expires.
    ///
    /// The token gives full access. Other users get a certificate with [`Runtime::kubeconfig_of`], and rights by roles.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> RuntimeBuilder {
        self.listen.address = Some(address.into());
        self
    }

    /// The serving certificate, its key, and its certificate authority.
    pub fn tls(mut self, files: TlsFiles) -> RuntimeBuilder {
        self.listen.transport = Transport::Https(files);
        self
    }

    /// The serving certificate and its key from these files (PEM), which are read again when they change: connections from
    /// then on get the new certificate, and open ones are not affected. Files that cannot be used leave the previous
    /// certificate in use.
    pub fn tls_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> RuntimeBuilder {
        let files = CertificateFiles { certificate: certificate.into(), key: key.into() };
        self.listen.files.serving = Some(files);
        self
    }

    /// Another certificate, for clients that ask for one of these names, which may begin with `*.`; without names, for those in
    /// the certificate. The files are read again as those of [`tls_files`](Self::tls_files). Can be called more than once.
    pub fn tls_files_for(
        mut self,
        names: impl IntoIterator<Item = impl Into<String>>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> RuntimeBuilder {
        let files = CertificateFiles { certificate: certificate.into(), key: key.into() };
        self.listen.files.named.push((files, names.into_iter().map(Into::into).collect()));
        self
    }

    /// The versions of TLS and the cipher suites; by default TLS 1.2 and 1.3, with all suites that are secure.
    pub fn tls_protocol(mut self, protocol: TlsProtocol) -> RuntimeBuilder {
        self.listen.protocol = protocol;
        self
    }

    /// How often certificates and authorities in files are read again: every 5 s by default.
    pub fn tls_reload_interval(mut self, interval: Duration) -> RuntimeBuilder {
        self.listen.reload_interval = Some(interval);
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

    /// Also trusts the client certificates of these authorities (PEM): a client is the user named by the `CN` of its
    /// certificate, in the groups named by its `O`s. The certificates of the runtime's own authority are always trusted.
    /// Ignored for plain HTTP.
    pub fn client_authorities(mut self, pem: impl Into<String>) -> RuntimeBuilder {
        self.listen.client_authorities = pem.into();
        self
    }

    /// The same from a file, which is read again when it changes.
    pub fn client_authorities_file(mut self, path: impl Into<PathBuf>) -> RuntimeBuilder {
        self.listen.files.client_authorities = Some(path.into());
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

    /// A kubeconfig of another user, with a certificate of the runtime's own authority, as YAML. What the user may do, roles and
    /// bindings decide.
    ///
    /// # Errors
    /// If the runtime does not serve HTTPS with its own authority, or a name cannot be in a certificate.
    pub fn kubeconfig_of(&self, user: &NewUser) -> Result<String, StartError> {
        let endpoint = self.endpoint.as_ref();
        let issuer = endpoint.and_then(|endpoint| endpoint.own.get().map(|issuer| (endpoint, issuer)));
        let Some((endpoint, issuer)) = issuer else {
            return Err(StartError::Certificate(
                "there is no authority that issues certificates to clients".into(),
            ));
        };
        let authority = issuer.trusted(self.env.wall());
        users::kubeconfig_of(&self.env, &issuer, &endpoint.url, Some(&authority), user)
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

    /// The authority (PEM) of the certificate that the runtime shows to aggregated API servers, if it listens and was not given
    /// one. A server that trusts it, and the name `front-proxy-client`, can take the user from the headers of a request.
    #[must_use]
    pub fn front_proxy_authority(&self) -> Option<&str> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.front_proxies.as_deref())
    }

    /// Removes the kubeconfig from the data folder: nobody is to connect any more.
    pub(super) fn withdraw(&self) {
        if let Some(reach) = self.endpoint.as_ref().and_then(|endpoint| endpoint.reach.as_ref()) {
            reach.remove();
        }
    }

    /// The certificate authority that clients should trust, as PEM, if it serves HTTPS.
    #[must_use]
    pub fn certificate_authority(&self) -> Option<&str> {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.authority.as_deref())
    }
}
