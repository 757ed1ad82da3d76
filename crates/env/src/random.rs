//! Random numbers and the ids derived from them.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// The alphabet of `generateName` suffixes in Kubernetes: no vowels or similar digits, so that no words are formed.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: u32 = 5;

/// The source of random bits.
#[derive(Debug)]
pub(crate) enum Random {
    /// A per-thread generator, reseeded regularly by the operating system.
    System,
    /// A generator with a fixed seed.
    Seeded(Box<Mutex<StdRng>>),
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random::Seeded(Box::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    #[expect(clippy::disallowed_methods, reason = "only this crate uses the system's randomness")]
    pub(crate) fn fill(&self, buf: &mut [u8]) {
        match self {
            Random::System => rand::rng().fill_bytes(buf),
            Random::Seeded(rng) => rng.lock().fill_bytes(buf),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "only this crate uses the system's randomness")]
    pub(crate) fn next(&self) -> u64 {
        match self {
            Random::System => rand::rng().next_u64(),
            Random::Seeded(rng) => rng.lock().next_u64(),
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        below(bound, || self.next())
    }

    pub(crate) fn unit(&self) -> f64 {
        unit(self.next())
    }

    pub(crate) fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    pub(crate) fn name_suffix(&self) -> String {
        let base = SUFFIX_ALPHABET.len() as u64;
        // One draw for all characters: they are the digits of a single number.
        let mut digits = self.below(base.pow(SUFFIX_LENGTH));
        let mut suffix = String::with_capacity(SUFFIX_LENGTH as usize);
        for _ in 0..SUFFIX_LENGTH {
            suffix.push(char::from(SUFFIX_ALPHABET[(digits % base) as usize]));
            digits /= base;
        }
        suffix
    }
}

/// A uniformly distributed number in `0..bound`; 0 for a bound of 0.
///
/// Lemire's method: the upper half of `draw * bound` is the number. If the lower half is below
/// `2^64 mod bound`, the draw would bias the result and is repeated.
fn below(bound: u64, mut draw: impl FnMut() -> u64) -> u64 {
    if bound == 0 {
        return 0;
    }
    let mut product = u128::from(draw()) * u128::from(bound);
    if (product as u64) < bound {
        let threshold = bound.wrapping_neg() % bound; // 2^64 mod bound
        while (product as u64) < threshold {
            product = u128::from(draw()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// The upper 53 bits as a fraction: the precision of a double, so rounding never yields 1.
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_biased_draw_is_repeated() {
        // With a bound of 3, 2^64 mod 3 = 1 draw is rejected: the draw 0.
        let mut draws = [0, 0, u64::MAX].into_iter();
        assert_eq!(below(3, || draws.next().unwrap()), 2);
        assert_eq!(draws.next(), None);
    }

    #[test]
    fn a_bound_of_zero_or_one_leaves_only_zero() {
        assert_eq!(below(0, || unreachable!("nothing to draw for")), 0);
        assert_eq!(below(1, || u64::MAX), 0);
    }

    #[test]
    fn the_largest_bound_reaches_its_last_number() {
        assert_eq!(below(u64::MAX, || u64::MAX), u64::MAX - 1);
    }

    #[test]
    fn a_unit_number_stays_below_one() {
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(unit(0), 0.0);
        assert_eq!(unit(1 << 63), 0.5);
    }
}
