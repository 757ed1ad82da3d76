//! The model: every state that was acknowledged or observed, and the transactions with an unknown outcome.

use std::collections::BTreeMap;

use bytes::Bytes;
use k1s_store::{Change, Precondition, Revision, Txn};

/// The keys and values at a revision, each with the revision that wrote it.
pub(crate) type State = BTreeMap<Bytes, (Bytes, u64)>;

/// The operations of a transaction: a value, or `None` to delete the key. Keys are unique.
pub(crate) type Steps = Vec<(Bytes, Option<Bytes>)>;

pub(crate) fn txn(steps: &Steps) -> Txn {
    steps.iter().fold(Txn::new(), |txn, (key, value)| match value {
        Some(value) => txn.put(key.clone(), value.clone(), Precondition::Any),
        None => txn.delete(key.clone(), Precondition::Any),
    })
}

pub(crate) struct Model {
    pub(crate) newest: u64,
    /// By revision.
    states: BTreeMap<u64, State>,
    /// What each revision changed.
    changes: BTreeMap<u64, Steps>,
    /// Transactions with an unknown outcome since the last acknowledged one, in order.
    pub(crate) unknown: Vec<Steps>,
}

impl Model {
    pub(crate) fn new() -> Self {
        let newest = Revision::FIRST.get();
        Self {
            newest,
            states: [(newest, State::new())].into(),
            changes: BTreeMap::new(),
            unknown: Vec::new(),
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.states[&self.newest]
    }

    pub(crate) fn state_at(&self, revision: u64) -> &State {
        &self.states[&revision]
    }

    /// Applies a transaction that was acknowledged with this revision.
    pub(crate) fn acknowledged(&mut self, steps: &Steps, revision: u64) {
        let changes = effect(self.state(), steps);
        let expected = self.newest + u64::from(!changes.is_empty());
        assert_eq!(revision, expected, "the revision of an acknowledged transaction");
        // Earlier unknown ones did not happen: their revisions were reused.
        if !changes.is_empty() {
            self.unknown.clear();
        }
        self.apply(changes);
    }

    fn apply(&mut self, changes: Steps) {
        if changes.is_empty() {
            return;
        }
        let state = next(self.state(), &changes, self.newest + 1);
        self.newest += 1;
        self.states.insert(self.newest, state);
        self.changes.insert(self.newest, changes);
    }

    /// Checks the entries of a reopened store, and resolves unknown transactions from them.
    pub(crate) fn found(&mut self, revision: u64, entries: &State) -> Result<(), String> {
        let unknown = std::mem::take(&mut self.unknown);
        if revision < self.newest {
            return Err(format!("it is at revision {revision}, but {} was acknowledged", self.newest));
        }
        let missing = (revision - self.newest) as usize;
        let Some(chosen) = explain(self.state(), self.newest, &unknown, missing, entries) else {
            return Err(format!(
                "what is there at revision {revision} was never acknowledged, and is not explained by {} of the {} transactions \
                 whose outcome is unknown:\n  acknowledged: {}\n  there: {}\n  unknown: {}",
                missing,
                unknown.len(),
                show(self.state()),
                show(entries),
                unknown.iter().map(show_steps).collect::<Vec<_>>().join("; "),
            ));
        };
        for changes in chosen {
            self.apply(changes);
        }
        Ok(())
    }

    /// Whether a watch may deliver this change.
    pub(crate) fn explains(&self, change: &Change) -> bool {
        let revision = change.revision().get();
        let events = change.events().iter().map(|event| (event.key.clone(), event.value.clone()));
        self.changes.get(&revision).is_some_and(|changes| changes.iter().cloned().eq(events))
    }
}

/// The operations that change something.
fn effect(state: &State, steps: &Steps) -> Steps {
    steps.iter().filter(|(key, value)| value.is_some() || state.contains_key(key)).cloned().collect()
}

fn next(state: &State, changes: &Steps, revision: u64) -> State {
    let mut state = state.clone();
    for (key, value) in changes {
        match value {
            Some(value) => drop(state.insert(key.clone(), (value.clone(), revision))),
            None => drop(state.remove(key)),
        }
    }
    state
}

/// A subset of the `unknown` transactions, in order, that leads from `state` to `found`.
fn explain(
    state: &State,
    revision: u64,
    unknown: &[Steps],
    missing: usize,
    found: &State,
) -> Option<Vec<Steps>> {
    if missing == 0 {
        return (state == found).then(Vec::new);
    }
    for (number, steps) in unknown.iter().enumerate() {
        let changes = effect(state, steps);
        if changes.is_empty() {
            continue;
        }
        let state = next(state, &changes, revision + 1);
        if let Some(rest) = explain(&state, revision + 1, &unknown[number + 1..], missing - 1, found) {
            return Some([vec![changes], rest].concat());
        }
    }
    None
}

pub(crate) fn show(state: &State) -> String {
    let entry = |(key, (value, revision)): (&Bytes, &(Bytes, u64))| {
        format!(
            "{}@{revision} ({} bytes, {:02x?})",
            key.escape_ascii(),
            value.len(),
            &value[..value.len().min(4)]
        )
    };
    state.iter().map(entry).collect::<Vec<_>>().join(", ")
}

pub(crate) fn show_steps(steps: &Steps) -> String {
    let step = |(key, value): &(Bytes, Option<Bytes>)| match value {
        Some(value) => {
            format!("{}={} bytes {:02x?}", key.escape_ascii(), value.len(), &value[..value.len().min(4)])
        }
        None => format!("{} deleted", key.escape_ascii()),
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}
