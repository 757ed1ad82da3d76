//! Signs `CertificateSigningRequests` with the authority that also issues the server's certificate.

use k1s_controllers::{CertificateRequest, CertificateSigner, SharedSigner, SignError};
use k1s_env::Env;
use k1s_server::{Signing, SigningError, SigningRequest, certificate_end, kubelet_client_name};

use super::authority::OwnAuthority;

#[derive(Debug)]
struct Signer {
    env: Env,
    authority: OwnAuthority,
    /// Names of the server itself.
    names: Vec<String>,
    /// The tenant in which certificates for servers are signed: clients of all tenants trust them.
    host: String,
}

/// A signer for the controllers of a server with these names; `host` is its default tenant.
pub(super) fn shared(env: &Env, authority: OwnAuthority, names: Vec<String>, host: &str) -> SharedSigner {
    SharedSigner::new(Signer { env: env.clone(), authority, names, host: host.to_owned() })
}

fn asked<'a>(request: &CertificateRequest<'a>) -> SigningRequest<'a> {
    SigningRequest {
        signer: request.signer,
        request: request.request,
        usages: request.usages,
        expiration_seconds: request.expiration_seconds,
    }
}

impl CertificateSigner for Signer {
    fn sign(&self, request: &CertificateRequest<'_>) -> Result<Option<String>, SignError> {
        let Some(authority) = self.authority.get() else {
            return Err(SignError::Later("the key of the authority is not here".into()));
        };
        let mut serial = [0; 16];
        self.env.fill_random(&mut serial);
        let mut how = Signing::new(request.tenant, self.env.wall(), serial);
        how.validity = request.validity;
        how.own_names = &self.names;
        how.serving = request.tenant == self.host;
        authority.sign_request(&asked(request), &how).map_err(|error| match error {
            SigningError::Invalid(message) => {
                SignError::Failed { reason: "SignerValidationFailure", message }
            }
            // kube-apiserver's controller tries it again, forever.
            SigningError::Unusable(message) => SignError::Failed { reason: "SigningFailure", message },
            other => SignError::Later(other.to_string()),
        })
    }

    fn kubelet_client_name(&self, request: &CertificateRequest<'_>) -> Option<String> {
        kubelet_client_name(&asked(request))
    }

    fn certificate_end(&self, certificate: &str) -> Option<i64> {
        certificate_end(certificate)
    }
}
