//! The ciphers of the providers. A sealed value begins with what is random in it; the formats are those of Kubernetes.

mod aes_cbc;
mod aes_gcm;
#[cfg(feature = "kms")]
mod extended;
mod secretbox;

use std::fmt;

use k1s_env::Env;

#[cfg(feature = "kms")]
pub(crate) use self::extended::{Extended, SEED_LEN};
pub(crate) use self::{aes_cbc::AesCbc, aes_gcm::AesGcm, secretbox::Secretbox};
use crate::error::Failure;

/// Seals and opens values with one key. `place` is the key of the value in the store: where the cipher authenticates it, a value
/// that was copied to another key cannot be opened.
pub(crate) trait Cipher: fmt::Debug + Send + Sync {
    /// Appends the sealed value.
    fn seal(&self, env: &Env, place: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;

    /// The plain value.
    fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure>;
}

fn too_short() -> Failure {
    Failure::value("the stored data was shorter than the required size")
}

/// Appends random bytes, and returns them.
fn random<const N: usize>(env: &Env, out: &mut Vec<u8>) -> [u8; N] {
    let mut bytes = [0; N];
    env.fill_random(&mut bytes);
    out.extend_from_slice(&bytes);
    bytes
}
