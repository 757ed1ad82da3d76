//! AES-GCM with a key of its own for every value, derived from a seed: no limit on how often the seed is used.

use std::fmt;

use k1s_env::Env;
use ring::{
    aead::{AES_256_GCM, UnboundKey},
    hkdf::{HKDF_SHA256, Prk},
};

use super::{AesGcm, Cipher, random, too_short};
use crate::error::Failure;

/// Bytes from which, with the seed, the key of a value is derived.
const INFO_LEN: usize = 32;

/// Minimum length of a seed.
pub(crate) const SEED_LEN: usize = 32;

pub(crate) struct Extended(Prk);

impl Extended {
    /// A cipher with a seed of at least 32 bytes; `None` for shorter ones.
    pub(crate) fn new(seed: &[u8]) -> Option<Extended> {
        // The seed is random: HKDF's first step, which would extract randomness, is left out.
        (seed.len() >= SEED_LEN).then(|| Extended(Prk::new_less_safe(HKDF_SHA256, seed)))
    }

    fn derived(&self, info: &[u8]) -> Result<AesGcm, Failure> {
        let parts = [info];
        let okm = self
            .0
            .expand(&parts, &AES_256_GCM)
            .map_err(|_| Failure::value("failed to derive key from KDF"))?;
        Ok(AesGcm::of(UnboundKey::from(okm)))
    }
}

impl fmt::Debug for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extended")
    }
}

impl Cipher for Extended {
    fn seal(&self, env: &Env, place: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let info: [u8; INFO_LEN] = random(env, out);
        self.derived(&info)?.seal(env, place, plain, out)
    }

    fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let (info, rest) = sealed.split_at_checked(INFO_LEN).ok_or_else(too_short)?;
        self.derived(info)?.open(place, rest)
    }
}
