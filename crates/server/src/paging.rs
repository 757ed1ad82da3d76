//! Page sizes for reading all of a tenant.

use k1s_store::KeyValue;

/// How many entries are read at a time, when all of a tenant is: values can be megabytes, and are in memory together.
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

    /// Makes the next page larger or smaller than this one.
    pub(crate) fn adapt(&mut self, read: &[KeyValue]) {
        let bytes: usize = read.iter().map(|entry| entry.value.len()).sum();
        self.0 = if bytes > 4 << 20 { (self.0 / 2).max(1) } else { (self.0 * 2).min(1024) };
    }
}
