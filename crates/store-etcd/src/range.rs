//! Ranges, which are read in pages at one revision.

use bytes::{BufMut, BytesMut};
use k1s_store::{Error, KeyValue, Range, RangeResult, Result, Revision};

use crate::{proto::RangeRequest, shared::Shared};

/// Target size of a page in bytes: large enough for the round trip to matter little, small enough to be in memory twice.
const PAGE_BYTES: usize = 4 << 20;

/// Maximum size of a page, as a multiple of the first. etcd counts all keys of the range for every page,
/// so a few large pages are better than many small ones.
const PAGE_GROWTH: usize = 10;

/// Maximum attempts at an unpinned range whose revision is compacted before its last page is read.
const ATTEMPTS: usize = 5;

impl Shared {
    /// All entries of `range` up to its limit, at one revision.
    pub(crate) async fn range(&self, range: &Range) -> Result<RangeResult> {
        self.check_moment(range.revision)?;
        let mut attempt = 1;
        loop {
            match self.range_pages(range).await {
                // The caller asked for the newest state, not for that revision.
                Err(Error::Compacted { .. }) if range.revision.is_none() && attempt < ATTEMPTS => {
                    attempt += 1
                }
                outcome => return outcome,
            }
        }
    }

    async fn range_pages(&self, range: &Range) -> Result<RangeResult> {
        let range_end = self.keys.outer_end(&range.prefix);
        let mut key = self.keys.outer(range.first_key());
        // The first page decides the revision of all.
        let mut moment = range.revision;
        let mut page = self.options.page;
        let mut entries: Vec<KeyValue> = Vec::new();
        loop {
            let wanted = page.min(range.max_entries() - entries.len());
            let request = RangeRequest {
                key,
                range_end: range_end.clone(),
                limit: i64::try_from(wanted).unwrap_or(i64::MAX),
                ..RangeRequest::default()
            };
            let (newest, response) = self.range_once(request, moment).await?;
            let revision = *moment.get_or_insert(newest);
            entries.reserve(response.kvs.len());
            entries.extend(response.kvs.iter().filter_map(|kv| {
                // Long ranges are read to be kept: entries that are in the feed's ring share its memory.
                let recalled =
                    self.feed.recall(self.keys.inner(&kv.key)?, crate::keys::revision(kv.mod_revision));
                recalled.or_else(|| self.keys.entry(kv))
            }));
            let Some(last) = response.kvs.last() else {
                return Ok(RangeResult { revision, entries, more: response.more });
            };
            if !response.more || entries.len() >= range.max_entries() {
                return Ok(RangeResult { revision, entries, more: response.more });
            }
            let mut next = BytesMut::with_capacity(last.key.len() + 1);
            next.extend_from_slice(&last.key);
            next.put_u8(0);
            key = next.freeze();
            let bytes: usize = response.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
            page = next_page(self.options.page, bytes / response.kvs.len());
        }
    }

    /// Refuses revision 0, which to etcd means "the newest".
    pub(crate) fn check_moment(&self, at: Option<Revision>) -> Result<()> {
        match at {
            Some(requested) if requested.get() == 0 => {
                Err(Error::Compacted { requested, oldest: self.feed.oldest() })
            }
            _ => Ok(()),
        }
    }
}

/// How many entries to ask for, if one has about `entry_bytes`.
fn next_page(first_page: usize, entry_bytes: usize) -> usize {
    (PAGE_BYTES / entry_bytes.max(1)).clamp(1, first_page.saturating_mul(PAGE_GROWTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_with_small_entries_and_shrink_with_large_ones() {
        assert_eq!(next_page(1000, 100), 10_000);
        assert_eq!(next_page(1000, 4 << 10), 1024);
        assert_eq!(next_page(1000, 1 << 20), 4);
        assert_eq!(next_page(1000, 100 << 20), 1);
    }
}
