//! Rotation: a new authority takes the place of another, and both are trusted for a time.
//!
//! The old authority signs the key of the new one (a *cross certificate*), until the end of the overlap. The server presents
//! it with its own certificate, which the new authority issues at once: clients that know only the old authority find a chain
//! to it, and those that know the new one need none. So nothing has to be done in a certain order, and nobody has to be
//! told before the end of the overlap.

use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{Authority, PkiError, SKEW, authority_params, inspect, name_of, since_epoch};

/// An authority that another one has replaced.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    /// Its certificate, as PEM.
    certificate: String,
    /// The key of the one after it, signed by it, as PEM.
    cross: String,
    /// When the overlap ends, in seconds since 1970.
    until: i64,
}

impl Earlier {
    fn is_trusted(&self, now: SystemTime) -> bool {
        i64::try_from(since_epoch(now).as_secs()).is_ok_and(|now| now < self.until)
    }
}

impl Authority {
    /// A new authority in the place of this one. Certificates of both are valid for this long; without overlap, those of this
    /// one are not valid any more.
    ///
    /// # Errors
    /// If no key can be generated, or this authority cannot sign one.
    pub fn rotate(&self, overlap: Duration, now: SystemTime) -> Result<Authority, PkiError> {
        let seconds = i64::try_from(since_epoch(now).as_secs()).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        // Each has a name of its own: some clients look for an issuer by its name alone.
        let key = KeyPair::generate()?;
        let mut next = Authority::named(&format!("k1s {at}"), key, now)?;
        if overlap.is_zero() {
            return Ok(next);
        }
        let end = since_epoch(now) + overlap;
        let own_end = inspect::inspect(&self.certificate)?.first().map_or(0, |own| own.until);
        let end = end.min(Duration::from_secs(u64::try_from(own_end).unwrap_or_default()));
        let mut params: CertificateParams = authority_params()?;
        params.distinguished_name = name_of(&next.certificate)?;
        params.use_authority_key_identifier_extension = true;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + since_epoch(now).saturating_sub(SKEW);
        params.not_after = epoch + end;
        let cross = params.signed_by(next.issuer.key(), &self.issuer)?.pem();
        next.earlier = vec![Earlier {
            certificate: self.certificate.clone(),
            cross,
            until: i64::try_from(end.as_secs()).unwrap_or(i64::MAX),
        }];
        next.earlier.extend(self.earlier.iter().filter(|one| one.is_trusted(now)).cloned());
        Ok(next)
    }

    /// The authorities before this one, as PEM, to be kept with it; empty if there are none.
    #[must_use]
    pub fn earlier(&self) -> String {
        self.earlier.iter().map(|one| format!("{}{}", one.certificate, one.cross)).collect()
    }

    /// The same authority with those before it.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn with_earlier(mut self, pem: &str) -> Result<Authority, PkiError> {
        let mut all = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| PkiError::Certificate(error.to_string()))?;
            all.push(crate::pem::encode("CERTIFICATE", &certificate));
        }
        let mut earlier = Vec::new();
        for pair in all.chunks(2) {
            let [certificate, cross] = pair else {
                return Err(PkiError::Certificate("one of a pair is missing".into()));
            };
            let until = inspect::inspect(cross)?.first().map_or(0, |cross| cross.until);
            earlier.push(Earlier { certificate: certificate.clone(), cross: cross.clone(), until });
        }
        self.earlier = earlier;
        Ok(self)
    }

    /// The authorities that are trusted now, as PEM, this one first: what clients should know, and whose clients the server
    /// should know.
    #[must_use]
    pub fn trusted(&self, now: SystemTime) -> String {
        let earlier = self.earlier.iter().filter(|one| one.is_trusted(now));
        [self.certificate.as_str()].into_iter().chain(earlier.map(|one| &*one.certificate)).collect()
    }

    /// The certificates that lead from this authority to those before it.
    pub(super) fn crosses(&self, now: SystemTime) -> String {
        self.earlier.iter().filter(|one| one.is_trusted(now)).map(|one| &*one.cross).collect()
    }

    /// When the trust in an earlier authority ends next, in seconds since 1970.
    #[must_use]
    pub fn overlap_ends(&self, now: SystemTime) -> Option<i64> {
        self.earlier.iter().filter(|one| one.is_trusted(now)).map(|one| one.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::TlsFiles;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * 20_000
    }

    fn names() -> Vec<String> {
        vec!["localhost".to_owned()]
    }

    #[test]
    fn clients_of_both_authorities_accept_the_server_during_the_overlap() {
        let old = Authority::generate(now()).unwrap();
        let before = old.issue(&names(), now()).unwrap();
        let new = old.rotate(DAY * 30, now()).unwrap();
        let files = new.issue(&names(), now()).unwrap();
        let trusting =
            |authority: &str, files: &TlsFiles| TlsFiles { authority: authority.to_owned(), ..files.clone() };
        for (day, knows_old) in [(0, true), (29, true), (31, false)] {
            let at = now() + DAY * day;
            files.check(&names(), at).unwrap();
            trusting(new.certificate(), &files).check(&names(), at).unwrap();
            assert_eq!(
                trusting(old.certificate(), &files).check(&names(), at).is_ok(),
                knows_old,
                "day {day}"
            );
            // The other way round: a client that was told of both, and a server that was not restarted.
            let both = trusting(&new.trusted(at), &before);
            assert_eq!(both.check(&names(), at).is_ok(), knows_old, "day {day}");
        }
        assert_eq!(new.overlap_ends(now()), Some(86_400 * 20_030));
        assert_eq!(new.overlap_ends(now() + DAY * 31), None);
    }

    #[test]
    fn clients_are_those_of_both_authorities() {
        let old = Authority::generate(now()).unwrap();
        let alice = old.issue_client("alice", &[], DAY * 365, now(), [1; 16]).unwrap();
        let new = old.rotate(DAY * 30, now()).unwrap();
        let bob = new.issue_client("bob", &[], DAY * 365, now(), [2; 16]).unwrap();
        let known = |files: &TlsFiles, at: SystemTime| {
            TlsFiles { authority: new.trusted(at), ..files.clone() }.check_client(at).is_ok()
        };
        assert!(known(&alice, now()) && known(&bob, now()));
        assert!(!known(&alice, now() + DAY * 31) && known(&bob, now() + DAY * 31));
        // Without overlap, the old one is worth nothing at once.
        let cut = old.rotate(Duration::ZERO, now()).unwrap();
        assert!(cut.earlier().is_empty());
        let cut = TlsFiles { authority: cut.trusted(now()), ..alice };
        assert!(cut.check_client(now()).is_err());
    }

    #[test]
    fn a_rotated_authority_can_be_kept_and_rotated_again() {
        let first = Authority::generate(now()).unwrap();
        let second = first.rotate(DAY * 30, now()).unwrap();
        let kept = Authority::from_pem(second.certificate(), second.key()).unwrap();
        let kept = kept.with_earlier(&second.earlier()).unwrap();
        let third = kept.rotate(DAY * 30, now() + DAY * 10).unwrap();
        let files = third.issue(&names(), now() + DAY * 10).unwrap();
        for (authority, end) in [(&first, 30), (&second, 40)] {
            let files = TlsFiles { authority: authority.certificate().to_owned(), ..files.clone() };
            files.check(&names(), now() + DAY * (end - 1)).unwrap();
            assert!(files.check(&names(), now() + DAY * (end + 1)).is_err());
        }
        let subjects = inspect::inspect(&third.trusted(now() + DAY * 11)).unwrap();
        assert_eq!(subjects.len(), 3);
        assert_ne!(subjects[0].name, subjects[1].name);
        assert!(third.with_earlier(second.certificate()).is_err(), "half of a pair");
    }
}
