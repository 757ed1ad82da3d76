//! A list of errors that does not grow without end.

use super::{ErrorKind, FieldError, MAX_ERROR_BYTES, MAX_ERRORS, Shown};

/// Errors as they are found: so many are kept as are told, the others are counted.
#[derive(Debug, Default)]
pub struct Errors {
    pub(super) told: Vec<FieldError>,
    bytes: usize,
    pub(super) omitted: usize,
}

impl Errors {
    /// None yet.
    pub fn new() -> Errors {
        Errors::default()
    }

    /// Whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.told.len() >= MAX_ERRORS || self.bytes >= MAX_ERROR_BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.told.len() + self.omitted
    }

    /// Adds one.
    pub fn push(&mut self, error: FieldError) {
        match (error.kind, &error.value) {
            // Not one of its own, but how many there are elsewhere.
            (ErrorKind::Omitted, Shown::Json(count)) => {
                self.omitted += count.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
            }
            _ => self.push_with(|| error),
        }
    }

    /// Adds one, which is made only if it is told.
    pub fn push_with(&mut self, make: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        let error = make();
        self.bytes += error.size();
        self.told.push(error);
    }

    /// Adds a number of errors of which nothing else is known.
    pub fn omit(&mut self, count: usize) {
        self.omitted += count;
    }

    /// Sorts those that are told.
    pub fn sort_by_text(&mut self) {
        self.told.sort_by_cached_key(ToString::to_string);
    }

    /// Those that are told, and one that says how many more there are.
    pub fn into_vec(self) -> Vec<FieldError> {
        let mut errors = self.told;
        if self.omitted > 0 {
            errors.push(FieldError::omitted(self.omitted));
        }
        errors
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}
