//! AES-CBC with padding as in PKCS #7. It authenticates nothing: for data that was written with it.

use std::fmt;

use aes::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _, block_padding::Pkcs7};
use k1s_env::Env;

use super::{Cipher, random, too_short};
use crate::error::Failure;

const BLOCK: usize = 16;

/// A key of 16, 24 or 32 bytes.
pub(crate) struct AesCbc(Vec<u8>);

impl AesCbc {
    pub(crate) fn new(key: &[u8]) -> Option<AesCbc> {
        matches!(key.len(), 16 | 24 | 32).then(|| AesCbc(key.to_vec()))
    }
}

impl fmt::Debug for AesCbc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AesCbc")
    }
}

impl Cipher for AesCbc {
    fn seal(&self, env: &Env, _: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let iv: [u8; BLOCK] = random(env, out);
        let failed = |_| Failure::value("the value could not be encrypted");
        let sealed = match self.0.len() {
            16 => cbc::Encryptor::<aes::Aes128>::new_from_slices(&self.0, &iv)
                .map_err(failed)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
            24 => cbc::Encryptor::<aes::Aes192>::new_from_slices(&self.0, &iv)
                .map_err(failed)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
            _ => cbc::Encryptor::<aes::Aes256>::new_from_slices(&self.0, &iv)
                .map_err(failed)?
                .encrypt_padded_vec_mut::<Pkcs7>(plain),
        };
        out.extend_from_slice(&sealed);
        Ok(())
    }

    fn open(&self, _: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let (iv, text) = sealed.split_first_chunk::<BLOCK>().ok_or_else(too_short)?;
        if text.is_empty() {
            return Err(too_short());
        }
        if text.len() % BLOCK != 0 {
            return Err(Failure::value("the stored data is not a multiple of the block size"));
        }
        let failed = |_| Failure::value("the value could not be decrypted");
        let opened = match self.0.len() {
            16 => cbc::Decryptor::<aes::Aes128>::new_from_slices(&self.0, iv)
                .map_err(failed)?
                .decrypt_padded_vec_mut::<Pkcs7>(text),
            24 => cbc::Decryptor::<aes::Aes192>::new_from_slices(&self.0, iv)
                .map_err(failed)?
                .decrypt_padded_vec_mut::<Pkcs7>(text),
            _ => cbc::Decryptor::<aes::Aes256>::new_from_slices(&self.0, iv)
                .map_err(failed)?
                .decrypt_padded_vec_mut::<Pkcs7>(text),
        };
        opened.map_err(|_| Failure::value("invalid padding on input"))
    }
}
