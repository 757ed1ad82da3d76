//! `events.k8s.io`. Its Event is the one of the core group in another form: see [`crate::rules::core::event`].

use crate::rules::{Rules, core::event};

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Event" => &event::EVENTS,
        _ => return None,
    })
}
