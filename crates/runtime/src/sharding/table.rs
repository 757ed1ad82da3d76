//! The record of all shards: who owns them, and their fencing tokens. No I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The annotation that holds the record, in the table's Lease.
pub(super) const TABLE: &str = "sharding.k1s.dev/table";

/// One entry per shard.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The session that owns the shard.
    pub(super) owner: Option<String>,
    /// The token of the last owner.
    pub(super) token: u64,
}

/// The record as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Recorded {
    shards: u32,
    tokens: Vec<u64>,
    /// The shards of each session.
    owners: BTreeMap<String, Vec<u32>>,
}

/// The record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {TABLE} is invalid: {0}")]
pub(super) struct InvalidTable(String);

impl Table {
    /// Shards without owners. Their next tokens are higher than `token`.
    pub(super) fn new(shards: u32, token: u64) -> Table {
        Table { entries: (0..shards).map(|_| Entry { owner: None, token }).collect() }
    }

    pub(super) fn shards(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn highest_token(&self) -> u64 {
        self.entries.iter().map(|entry| entry.token).max().unwrap_or(0)
    }

    /// The sessions that own something.
    pub(super) fn owners(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| entry.owner.as_deref())
    }

    pub(super) fn parse(text: &str) -> Result<Table, InvalidTable> {
        let recorded: Recorded =
            serde_json::from_str(text).map_err(|error| InvalidTable(error.to_string()))?;
        if recorded.tokens.len() != recorded.shards as usize || recorded.shards == 0 {
            let (shards, tokens) = (recorded.shards, recorded.tokens.len());
            return Err(InvalidTable(format!("{shards} shards with {tokens} tokens")));
        }
        let mut table = Table {
            entries: recorded.tokens.into_iter().map(|token| Entry { owner: None, token }).collect(),
        };
        for (session, shards) in recorded.owners {
            for shard in shards {
                match table.entries.get_mut(shard as usize) {
                    Some(entry) if entry.owner.is_none() => entry.owner = Some(session.clone()),
                    Some(_) => return Err(InvalidTable(format!("shard {shard} has two owners"))),
                    None => return Err(InvalidTable(format!("there is no shard {shard}"))),
                }
            }
        }
        Ok(table)
    }

    pub(super) fn encode(&self) -> String {
        let mut recorded = Recorded { shards: self.shards(), ..Recorded::default() };
        for (shard, entry) in (0..).zip(&self.entries) {
            recorded.tokens.push(entry.token);
            if let Some(owner) = &entry.owner {
                recorded.owners.entry(owner.clone()).or_default().push(shard);
            }
        }
        // Maps with string keys are always encoded.
        serde_json::to_string(&recorded).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let mut table = Table::new(4, 7);
        table.entries[1] = Entry { owner: Some("a".to_owned()), token: 9 };
        table.entries[3] = Entry { owner: Some("a".to_owned()), token: 8 };
        let text = table.encode();
        assert_eq!(text, r#"{"shards":4,"tokens":[7,9,7,8],"owners":{"a":[1,3]}}"#);
        assert_eq!(Table::parse(&text), Ok(table.clone()));
        assert_eq!(table.highest_token(), 9);
    }

    #[test]
    fn a_table_that_was_edited_by_mistake_is_refused() {
        let refused = |text: &str| Table::parse(text).unwrap_err().to_string();
        assert!(refused("{").contains("sharding.k1s.dev/table is invalid"));
        assert!(refused(r#"{"shards":2,"tokens":[1],"owners":{}}"#).contains("2 shards with 1 tokens"));
        assert!(refused(r#"{"shards":1,"tokens":[1],"owners":{"a":[1]}}"#).contains("no shard 1"));
        assert!(refused(r#"{"shards":1,"tokens":[1],"owners":{"a":[0],"b":[0]}}"#).contains("two owners"));
    }
}
