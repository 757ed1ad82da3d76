//! AES-GCM with a random nonce of 96 bits, which limits how often a key may be used: 2³² times.

use std::fmt;

use aes_gcm::{AeadInPlace as _, AesGcm as Generic, KeyInit as _, aead::consts::U12};
use k1s_env::Env;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::{Cipher, random, too_short};
use crate::error::Failure;

const TAG_LEN: usize = 16;

/// Ring has no keys of 192 bits.
type Aes192 = Generic<aes::Aes192, U12>;

pub(crate) struct AesGcm(Key);

enum Key {
    Ring(Box<LessSafeKey>),
    Bits192(Box<Aes192>),
}

impl AesGcm {
    /// A cipher with a key of 16, 24 or 32 bytes; `None` for other lengths.
    pub(crate) fn new(key: &[u8]) -> Option<AesGcm> {
        let ring = |algorithm| {
            UnboundKey::new(algorithm, key).ok().map(|key| Key::Ring(Box::new(LessSafeKey::new(key))))
        };
        let key = match key.len() {
            16 => ring(&AES_128_GCM),
            24 => Aes192::new_from_slice(key).ok().map(|key| Key::Bits192(Box::new(key))),
            32 => ring(&AES_256_GCM),
            _ => None,
        };
        key.map(AesGcm)
    }

    /// A cipher with a key that was derived.
    #[cfg(feature = "kms")]
    pub(super) fn of(key: UnboundKey) -> AesGcm {
        AesGcm(Key::Ring(Box::new(LessSafeKey::new(key))))
    }
}

impl fmt::Debug for AesGcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AesGcm")
    }
}

impl Cipher for AesGcm {
    fn seal(&self, env: &Env, place: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.reserve(NONCE_LEN + plain.len() + TAG_LEN);
        let nonce: [u8; NONCE_LEN] = random(env, out);
        let start = out.len();
        out.extend_from_slice(plain);
        let text = out.get_mut(start..).unwrap_or_default();
        let failed = || Failure::value("the value could not be encrypted");
        match &self.0 {
            Key::Ring(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag =
                    key.seal_in_place_separate_tag(nonce, Aad::from(place), text).map_err(|_| failed())?;
                out.extend_from_slice(tag.as_ref());
            }
            Key::Bits192(key) => {
                let tag = key.encrypt_in_place_detached(&nonce.into(), place, text).map_err(|_| failed())?;
                out.extend_from_slice(&tag);
            }
        }
        Ok(())
    }

    fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let failed = || Failure::value("cipher: message authentication failed");
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(too_short)?;
        let length = text.len().checked_sub(TAG_LEN).ok_or_else(failed)?;
        let mut plain = match &self.0 {
            Key::Ring(key) => {
                let mut plain = text.to_vec();
                let nonce = Nonce::assume_unique_for_key(*nonce);
                key.open_in_place(nonce, Aad::from(place), &mut plain).map_err(|_| failed())?;
                plain
            }
            Key::Bits192(key) => {
                let (text, tag) = text.split_at_checked(length).ok_or_else(failed)?;
                let mut plain = text.to_vec();
                key.decrypt_in_place_detached(&(*nonce).into(), place, &mut plain, tag.into())
                    .map_err(|_| failed())?;
                plain
            }
        };
        plain.truncate(length);
        Ok(plain)
    }
}
