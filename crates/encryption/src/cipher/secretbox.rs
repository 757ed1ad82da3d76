//! `XSalsa20` and `Poly1305`, as `secretbox` of `NaCl`. The place is not authenticated.

use std::fmt;

use crypto_secretbox::{KeyInit as _, XSalsa20Poly1305, aead::AeadInPlace as _};
use k1s_env::Env;

use super::{Cipher, random, too_short};
use crate::error::Failure;

const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;

pub(crate) struct Secretbox(XSalsa20Poly1305);

impl Secretbox {
    /// A cipher with a key of 32 bytes; `None` for other lengths.
    pub(crate) fn new(key: &[u8]) -> Option<Secretbox> {
        XSalsa20Poly1305::new_from_slice(key).ok().map(Secretbox)
    }
}

impl fmt::Debug for Secretbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secretbox")
    }
}

impl Cipher for Secretbox {
    fn seal(&self, env: &Env, _: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.reserve(NONCE_LEN + TAG_LEN + plain.len());
        let nonce: [u8; NONCE_LEN] = random(env, out);
        // The tag comes first.
        let start = out.len();
        out.extend_from_slice(&[0; TAG_LEN]);
        out.extend_from_slice(plain);
        let failed = || Failure::value("the value could not be encrypted");
        let (tag_at, text) = out
            .get_mut(start..)
            .and_then(|rest| rest.split_first_chunk_mut::<TAG_LEN>())
            .ok_or_else(failed)?;
        let tag = self.0.encrypt_in_place_detached(&nonce.into(), b"", text).map_err(|_| failed())?;
        tag_at.copy_from_slice(&tag);
        Ok(())
    }

    fn open(&self, _: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(too_short)?;
        let (tag, text) = rest.split_first_chunk::<TAG_LEN>().ok_or_else(too_short)?;
        let mut plain = text.to_vec();
        self.0
            .decrypt_in_place_detached(&(*nonce).into(), b"", &mut plain, &(*tag).into())
            .map_err(|_| Failure::value("secretbox: message authentication failed"))?;
        Ok(plain)
    }
}
