//! What field management wants converted.
//!
//! Merging computes with objects in several versions, and has no place where it could wait for a webhook. So it asks here: what
//! is not there yet is noted, and the computation, which then fails, is repeated when it has been converted.

use parking_lot::Mutex;
use serde_json::Value;

/// The conversions of one request.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: Vec<(Wanted, Value)>,
    wanted: Vec<Wanted>,
}

/// An object, and the version that it is wanted in: `example.com/v1`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) object: Value,
    pub(crate) version: String,
}

impl Memo {
    /// The converted object, if it has been converted; otherwise it is from now on wanted.
    pub(crate) fn find(&self, object: &Value, version: &str) -> Result<Value, String> {
        let mut state = self.0.lock();
        let known =
            state.known.iter().find(|(wanted, _)| wanted.version == version && wanted.object == *object);
        if let Some((_, converted)) = known {
            return Ok(converted.clone());
        }
        state.wanted.push(Wanted { object: object.clone(), version: version.to_owned() });
        Err(format!("it is not converted to {version} yet"))
    }

    /// What was asked for and is not known.
    pub(crate) fn take_wanted(&self) -> Vec<Wanted> {
        std::mem::take(&mut self.0.lock().wanted)
    }

    pub(crate) fn add(&self, wanted: Wanted, converted: Value) {
        self.0.lock().known.push((wanted, converted));
    }
}
