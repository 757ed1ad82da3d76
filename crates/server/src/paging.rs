//! Adaptive page sizes for reading a whole tenant.

use k1s_store::KeyValue;

/// The number of entries per page. It adapts to their size: values can be megabytes, and a page is in memory as a whole.
pub(crate) struct Page(usize);

impl Default for Page {
    fn default() -> Page {
        Page(16)
    }
}

impl Page {
    pub(crate) fn entries(&self) -> usize {
        self.0
    }

    /// Grows or shrinks the next page.
    pub(crate) fn adapt(&mut self, read: &[KeyValue]) {
        let bytes: usize = read.iter().map(|entry| entry.value.len()).sum();
        self.0 = if bytes > 4 << 20 { (self.0 / 2).max(1) } else { (self.0 * 2).min(1024) };
    }
}
