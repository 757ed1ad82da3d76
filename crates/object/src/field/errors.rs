//! A bounded list of errors.

use super::{ErrorKind, FieldError, MAX_ERROR_BYTES, MAX_ERRORS, Shown};

/// Field errors up to the limits; further ones are only counted.
#[derive(Debug, Default)]
pub struct Errors {
    pub(super) reported: Vec<FieldError>,
    bytes: usize,
    pub(super) omitted: usize,
}

impl Errors {
    /// An empty list.
    pub fn new() -> Errors {
        Errors::default()
    }

    /// Whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.reported.len() >= MAX_ERRORS || self.bytes >= MAX_ERROR_BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.reported.len() + self.omitted
    }

    /// Adds one.
    pub fn push(&mut self, error: FieldError) {
        match (error.kind, &error.value) {
            // Not an error itself, but a number of errors.
            (ErrorKind::Omitted, Shown::Json(count)) => {
                self.omitted += count.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
            }
            _ => self.push_with(|| error),
        }
    }

    /// Adds one, which is built only if it is reported.
    pub fn push_with(&mut self, make: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        let error = make();
        self.bytes += error.size();
        self.reported.push(error);
    }

    /// Adds a number of errors without details.
    pub fn omit(&mut self, count: usize) {
        self.omitted += count;
    }

    /// Sorts the reported ones.
    pub fn sort_by_text(&mut self) {
        self.reported.sort_by_cached_key(ToString::to_string);
    }

    /// The reported errors, and one with the number of others.
    pub fn into_vec(self) -> Vec<FieldError> {
        let mut errors = self.reported;
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
