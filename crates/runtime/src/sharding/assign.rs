//! Which shard a key belongs to, and which member each shard. Pure, and the same on every platform and in every version: the
//! replicas of a fleet decide separately and must agree.

/// The shard of a key.
pub(super) fn shard_of(key: &str, shards: u32) -> u32 {
    let below = hash(&[key.as_bytes()]) % u64::from(shards.max(1));
    u32::try_from(below).unwrap_or(0)
}

/// The member that should own a shard, as an index: weighted rendezvous hashing. `None` if no member has a weight.
///
/// Each member draws a waiting time from an exponential distribution whose rate is its weight; the shortest wins. A draw
/// depends on the member and the shard alone, so a member that comes takes shards from others, one that goes leaves its
/// shards to others, and no other shard moves.
pub(super) fn best<'a>(shard: u32, members: impl IntoIterator<Item = (&'a str, u32)>) -> Option<usize> {
    let mut best: Option<(usize, &str, u64, u32)> = None;
    for (index, (identity, weight)) in members.into_iter().enumerate() {
        if weight == 0 {
            continue;
        }
        let drawn = wait(hash(&[identity.as_bytes(), &shard.to_le_bytes()]));
        let shorter = best.is_none_or(|(_, other, wait, rate)| {
            // `drawn / weight` against `wait / rate`, without rounding; the names decide a tie.
            let (one, two) = (u128::from(drawn) * u128::from(rate), u128::from(wait) * u128::from(weight));
            (one, identity) < (two, other)
        });
        if shorter {
            best = Some((index, identity, drawn, weight));
        }
    }
    best.map(|(index, ..)| index)
}

/// FNV-1a over the parts, each with its length, and a finalizer that spreads similar names.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Fractional bits of a logarithm.
const FRACTION: u32 = 40;

/// `-log2` of a uniform number in (0, 1], as a fixed-point number: exponentially distributed. With integers only, because
/// logarithms of floats differ between platforms in their last bits.
fn wait(uniform: u64) -> u64 {
    let number = uniform.max(1);
    let whole = 63 - number.leading_zeros();
    // In [1, 2), with 63 fractional bits. Each squaring doubles the logarithm, whose next bit is then before the point.
    let mut mantissa = number << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..FRACTION {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let carry = square >> 127;
        mantissa = u64::try_from(square >> (63 + carry)).unwrap_or(u64::MAX);
        log = (log << 1) | u64::try_from(carry).unwrap_or(0);
    }
    (64 << FRACTION) - log
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn owners(shards: u32, members: &[(String, u32)]) -> Vec<Option<String>> {
        let named = |shard| best(shard, members.iter().map(|(name, weight)| (&**name, *weight)));
        (0..shards).map(|shard| named(shard).map(|index| members[index].0.clone())).collect()
    }

    fn fleet() -> impl Strategy<Value = Vec<(String, u32)>> {
        let member = ("[a-z]{1,6}-[0-9]{1,3}", 1_u32..5);
        prop::collection::btree_map(member.0, member.1, 1..12).prop_map(|all| all.into_iter().collect())
    }

    #[test]
    fn shards_and_owners_never_change_between_versions() {
        assert_eq!(["a", "default/web", "project-7"].map(|key| shard_of(key, 64)), GOLDEN_SHARDS);
        let members = [("one".to_owned(), 1), ("two".to_owned(), 1), ("three".to_owned(), 2)];
        let owners: Vec<usize> = (0..8)
            .map(|shard| best(shard, members.iter().map(|(name, weight)| (&**name, *weight))).unwrap())
            .collect();
        assert_eq!(owners, GOLDEN_OWNERS);
    }

    const GOLDEN_SHARDS: [u32; 3] = [63, 19, 14];
    const GOLDEN_OWNERS: [usize; 8] = [2, 2, 1, 2, 2, 2, 0, 0];

    #[test]
    fn the_logarithm_is_right() {
        for (number, log) in
            [(1_u64, 0.0_f64), (2, 1.0), (3, 3_f64.log2()), (u64::MAX, 64.0), (1 << 40, 40.0)]
        {
            #[expect(clippy::cast_precision_loss, reason = "compared with a tolerance")]
            let waited = wait(number) as f64 / (1_u64 << FRACTION) as f64;
            assert!((waited - (64.0 - log)).abs() < 1e-9, "{number}: {waited}");
        }
    }

    #[test]
    fn without_weight_nobody_owns_anything() {
        assert_eq!(best(0, []), None);
        assert_eq!(best(0, [("a", 0), ("b", 0)]), None);
        assert_eq!(best(0, [("a", 0), ("b", 1)]), Some(1));
    }

    #[test]
    fn keys_are_spread_over_all_shards() {
        let mut counts = [0_u32; 64];
        for number in 0..64_000 {
            counts[shard_of(&format!("namespace-{}/object-{number}", number % 7), 64) as usize] += 1;
        }
        // 1,000 expected, standard deviation 32.
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_distribution_follows_the_weights() {
        let members = [("a", 1), ("b", 2), ("c", 5)];
        let mut counts = [0_u32; 3];
        for shard in 0..16_000 {
            counts[best(shard, members).unwrap()] += 1;
        }
        // 2,000, 4,000 and 10,000 expected, standard deviations up to 62.
        for (count, expected) in counts.into_iter().zip([2_000, 4_000, 10_000_u32]) {
            assert!(count.abs_diff(expected) < 320, "{counts:?}");
        }
    }

    proptest! {
        #[test]
        fn a_member_that_comes_or_goes_moves_only_its_own_shards(fleet in fleet(), weight in 1_u32..5) {
            let before = owners(256, &fleet);
            let mut larger = fleet;
            larger.push(("newcomer".to_owned(), weight));
            let after = owners(256, &larger);
            for (old, new) in before.iter().zip(&after) {
                prop_assert!(old == new || new.as_deref() == Some("newcomer"));
            }
        }

        #[test]
        fn a_higher_weight_only_attracts(fleet in fleet(), more in 1_u32..5) {
            let before = owners(256, &fleet);
            let mut heavier = fleet.clone();
            heavier[0].1 += more;
            for (old, new) in before.iter().zip(&owners(256, &heavier)) {
                prop_assert!(old == new || new.as_ref() == Some(&fleet[0].0));
            }
        }

        #[test]
        fn the_order_of_members_does_not_matter(fleet in fleet()) {
            let mut reversed = fleet.clone();
            reversed.reverse();
            prop_assert_eq!(owners(64, &fleet), owners(64, &reversed));
        }

        #[test]
        fn moves_are_bounded(fleet in fleet()) {
            let shards = 1024;
            let before = owners(shards, &fleet);
            let mut larger = fleet;
            larger.push(("newcomer".to_owned(), 1));
            let moved = owners(shards, &larger).iter().zip(&before).filter(|(new, old)| new != old).count();
            let weights: u32 = larger.iter().map(|(_, weight)| weight).sum();
            // The newcomer's share, and five standard deviations.
            let share = f64::from(shards) / f64::from(weights);
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let moved = moved as f64;
            prop_assert!(moved <= share + 5.0 * share.sqrt(), "{moved} of {share}");
        }

        #[test]
        fn every_shard_has_one_owner(fleet in fleet()) {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for owner in owners(512, &fleet) {
                *counts.entry(owner.unwrap()).or_default() += 1;
            }
            prop_assert_eq!(counts.values().sum::<usize>(), 512);
        }
    }
}
