//! From etcd's watch responses to changes: fragments are joined, and events grouped by revision.

use k1s_store::{Change, Event, KeyValue, Previous, Revision};

use crate::{
    keys::{Keyspace, revision},
    proto,
};

/// Joins the fragments of large responses.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    events: Vec<proto::Event>,
}

impl Pieces {
    /// The events of a response, once its last fragment has arrived.
    pub(crate) fn add(&mut self, response: proto::WatchResponse) -> Option<Vec<proto::Event>> {
        self.events.extend(response.events);
        if response.fragment { None } else { Some(std::mem::take(&mut self.events)) }
    }
}

/// The changes of one revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) revision: Revision,
    /// Changes to the users' keys; `None` if there are none.
    pub(crate) change: Option<Change>,
    /// Whether its events have previous values.
    ///
    /// etcd looks these up when it sends an event, and leaves them out if they are compacted by then.
    pub(crate) previous: bool,
}

/// The revisions in the events of a whole response, in order. A response never has a part of a revision.
///
/// Previous values are taken from `recall`, by key and revision, if it has them in memory.
///
/// Fails with the reason if these are not the events of an etcd that keeps its promises.
pub(crate) fn steps(
    keys: &Keyspace,
    events: Vec<proto::Event>,
    recall: &dyn Fn(&[u8], Revision) -> Option<KeyValue>,
) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut current: Vec<Event> = Vec::new();
    let mut events = events.into_iter().peekable();
    let mut previous = true;
    while let Some(event) = events.next() {
        let at = at(&event)?;
        if let Some(converted) = convert(keys, event, recall)? {
            previous &= has_previous(&converted);
            current.push(converted);
        }
        let next = events.peek().map(self::at).transpose()?;
        if next == Some(at) {
            continue;
        }
        if steps.last().is_some_and(|last| last.revision >= at) {
            return Err(format!("etcd sent the events of revision {at} out of order"));
        }
        let events = std::mem::take(&mut current);
        let change = (!events.is_empty()).then(|| Change::new(at, events));
        steps.push(Step { revision: at, change, previous });
        previous = true;
    }
    Ok(steps)
}

fn at(event: &proto::Event) -> Result<Revision, String> {
    match &event.kv {
        Some(kv) if kv.mod_revision > 0 => Ok(revision(kv.mod_revision)),
        _ => Err("etcd sent an event without a revision".into()),
    }
}

/// An event in the user's terms, if it is about one of their keys.
fn convert(
    keys: &Keyspace,
    event: proto::Event,
    recall: &dyn Fn(&[u8], Revision) -> Option<KeyValue>,
) -> Result<Option<Event>, String> {
    let deleted = match event.r#type() {
        proto::EventType::Delete => true,
        proto::EventType::Put => false,
    };
    let Some(kv) = event.kv else { return Err("etcd sent an event without a key".into()) };
    let Some(entry) = keys.entry(&kv) else { return Ok(None) };
    let previous = event
        .prev_kv
        .as_ref()
        .and_then(|kv| recall(&entry.key, revision(kv.mod_revision)).or_else(|| keys.entry(kv)));
    Ok(Some(Event {
        key: entry.key,
        value: (!deleted).then_some(entry.value),
        created: !deleted && kv.create_revision == kv.mod_revision,
        previous: previous.map(|entry| Previous { value: entry.value, revision: entry.revision }),
    }))
}

/// Whether an event has the previous value, if there was one.
fn has_previous(event: &Event) -> bool {
    event.created || event.previous.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &'static str, created: i64, written: i64) -> proto::KeyValue {
        proto::KeyValue {
            key: key.into(),
            value: "v".into(),
            create_revision: created,
            mod_revision: written,
        }
    }

    fn put(key: &'static str, created: i64, written: i64) -> proto::Event {
        proto::Event { r#type: 0, kv: Some(kv(key, created, written)), prev_kv: None }
    }

    fn response(events: Vec<proto::Event>, fragment: bool) -> proto::WatchResponse {
        proto::WatchResponse { events, fragment, ..proto::WatchResponse::default() }
    }

    #[test]
    fn a_response_in_pieces_is_one() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.add(response(vec![put("/k1s/kv/a", 5, 5)], true)), None);
        let whole = pieces.add(response(vec![put("/k1s/kv/b", 5, 5)], false)).unwrap();
        let steps = steps(&Keyspace::new("/k1s"), whole, &|_, _| None).unwrap();
        assert_eq!(steps.len(), 1);
        assert_eq!(steps[0].change.as_ref().unwrap().events().len(), 2);
        assert_eq!(pieces.add(response(vec![], false)), Some(vec![]));
    }

    #[test]
    fn revisions_are_told_apart_and_other_keys_only_count() {
        let events = vec![
            put("/k1s/kv/a", 5, 5),
            put("/k1s/fence", 2, 6),
            put("/k1s/kv/a", 5, 7),
            put("/k1s/kv/b", 7, 7),
        ];
        let steps = steps(&Keyspace::new("/k1s"), events, &|_, _| None).unwrap();
        let seen: Vec<_> = steps
            .iter()
            .map(|step| {
                let events = step.change.as_ref().map_or(0, |change| change.events().len());
                (step.revision.get(), events, step.previous)
            })
            .collect();
        // The update at 7 has no previous value.
        assert_eq!(seen, [(5, 1, true), (6, 0, true), (7, 2, false)]);
    }

    #[test]
    fn a_deletion_has_no_value_and_was_not_a_creation() {
        let event = proto::Event {
            r#type: 1,
            kv: Some(proto::KeyValue {
                key: "/k1s/kv/a".into(),
                mod_revision: 9,
                ..proto::KeyValue::default()
            }),
            prev_kv: Some(kv("/k1s/kv/a", 3, 4)),
        };
        let steps = steps(&Keyspace::new("/k1s"), vec![event], &|_, _| None).unwrap();
        let expected = Event {
            key: "a".into(),
            value: None,
            created: false,
            previous: Some(Previous { value: "v".into(), revision: Revision::new(4) }),
        };
        assert_eq!(steps[0].change.as_ref().unwrap().events(), [expected]);
        assert!(steps[0].previous);
    }

    #[test]
    fn events_out_of_order_are_not_believed() {
        let events = vec![put("/k1s/kv/a", 5, 5), put("/k1s/kv/b", 4, 4)];
        assert!(steps(&Keyspace::new("/k1s"), events, &|_, _| None).unwrap_err().contains("out of order"));
    }
}
