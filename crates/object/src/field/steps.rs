//! Recorded steps to positions in a document, from which error paths are built.

use std::fmt::Write as _;

#[derive(Debug, Clone, Copy)]
pub(super) enum Segment<'v> {
    /// No segment.
    Root,
    Field(&'v str),
    Key(&'v str),
    Index(usize),
}

impl<'v> Segment<'v> {
    /// Whether both are identical; equal names at different addresses may count as different.
    fn is(self, other: Segment<'v>) -> bool {
        match (self, other) {
            (Segment::Root, Segment::Root) => true,
            (Segment::Field(one), Segment::Field(other)) | (Segment::Key(one), Segment::Key(other)) => {
                std::ptr::eq(one, other)
            }
            (Segment::Index(one), Segment::Index(other)) => one == other,
            _ => false,
        }
    }

    /// A hash for the cache of recent steps.
    fn hash(self) -> usize {
        match self {
            Segment::Root => 0,
            Segment::Field(name) | Segment::Key(name) => name.as_ptr() as usize,
            Segment::Index(index) => index.wrapping_mul(8),
        }
    }

    pub(super) fn write(self, path: &mut String) {
        match self {
            Segment::Root => {}
            Segment::Field(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Segment::Key(key) => {
                let _ = write!(path, "[{key}]");
            }
            Segment::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
}

/// Maximum number of positions visited in one check. Rules visit a few hundred positions per item, and the
/// largest objects that can be stored have some ten thousand items: only pairwise comparison of items exceeds
/// this.
pub const MAX_LOOKS: usize = 10_000_000;

/// The positions that have visited children. Mostly recorded once, because rules visit many fields of an item in
/// sequence.
#[derive(Debug)]
pub(super) struct Steps<'v> {
    /// The parent (0: none) and the segment. Numbers begin at 1.
    all: Vec<(u32, Segment<'v>)>,
    recent: [u32; RECENT],
    pub(super) looks: usize,
}

/// The number of recent steps that are found again.
const RECENT: usize = 64;

impl Default for Steps<'_> {
    fn default() -> Self {
        Steps { all: Vec::new(), recent: [0; RECENT], looks: 0 }
    }
}

impl<'v> Steps<'v> {
    pub(super) fn get(&self, step: u32) -> Option<(u32, Segment<'v>)> {
        self.all.get((step as usize).checked_sub(1)?).copied()
    }

    /// The number of a step.
    pub(super) fn find_or_add(&mut self, parent: u32, segment: Segment<'v>) -> u32 {
        let place = ((segment.hash() / 8) ^ (parent as usize).wrapping_mul(7)) % RECENT;
        let known = self.recent.get(place).copied().unwrap_or_default();
        if self.get(known).is_some_and(|(of, way)| of == parent && way.is(segment)) {
            return known;
        }
        self.all.push((parent, segment));
        let step = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        if let Some(slot) = self.recent.get_mut(place) {
            *slot = step;
        }
        step
    }
}
