//! Files and directories of the simulated disk: what programs see, what is durable, and what survives a power
//! cut.

use std::{collections::BTreeMap, ffi::OsString};

use k1s_env::Env;

/// The unit in which a disk writes. Parts of a sector may be lost, too: see [`Contents::lose_unsynced`].
const SECTOR: usize = 512;

/// A file or directory.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The handle that has locked it.
    pub(super) locked_by: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    File(Contents),
    Dir(Names),
}

impl Node {
    pub(super) fn file() -> Self {
        Self { kind: Kind::File(Contents::default()), locked_by: None }
    }

    pub(super) fn dir() -> Self {
        Self { kind: Kind::Dir(Names::default()), locked_by: None }
    }
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// What programs read.
    pub(super) cached: Vec<u8>,
    /// What is on disk.
    durable: Vec<u8>,
    /// Unsynced changes, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write(to, *at, bytes),
            Self::SetLen(len) => to.resize(*len, 0),
        }
    }
}

fn write(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[at..end].copy_from_slice(bytes);
}

impl Contents {
    /// Contents that are durable.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self { cached: bytes.clone(), durable: bytes, pending: Vec::new() }
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        write(&mut self.cached, at, bytes);
        self.pending.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.cached.resize(len, 0);
        self.pending.push(Change::SetLen(len));
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// A failed sync: some of the changes are on disk, and a later sync does not retry the others. Readers
    /// may not even see them any more, if the system drops dirty pages and reads the file again.
    pub(super) fn fail_sync(&mut self, random: &Env) {
        self.lose_unsynced(random);
        if random.random_below(2) == 0 {
            let len = self.cached.len();
            self.cached.clone_from(&self.durable);
            self.cached.resize(len, 0);
        }
    }

    /// Decides which unsynced changes reach the disk: each may be there, absent, or there in part.
    fn lose_unsynced(&mut self, random: &Env) {
        let changes = std::mem::take(&mut self.pending);
        if changes.is_empty() {
            return;
        }
        match random.random_below(5) {
            // None of them.
            0 => {}
            // All of them.
            1 => changes.iter().for_each(|change| change.apply(&mut self.durable)),
            // In order, up to some byte.
            2 => {
                let whole = random.random_below(changes.len() as u64) as usize;
                changes[..whole].iter().for_each(|change| change.apply(&mut self.durable));
                if let Change::Write { at, bytes } = &changes[whole] {
                    let kept = random.random_below(bytes.len() as u64 + 1) as usize;
                    write(&mut self.durable, *at, &bytes[..kept]);
                }
            }
            // Any sectors of any changes.
            _ => {
                let kept = 1 + random.random_below(3);
                // What a sector holds that was allocated, but not written.
                let unwritten = random.random_below(3);
                for change in &changes {
                    match change {
                        Change::SetLen(_) if random.random_below(2) == 0 => change.apply(&mut self.durable),
                        Change::SetLen(_) => {}
                        Change::Write { at, bytes } => {
                            for (at, sector) in sectors(*at, bytes) {
                                if random.random_below(4) < kept {
                                    write(&mut self.durable, at, sector);
                                } else if self.durable.get(at..at + sector.len()) == Some(sector) {
                                    // The sector has its final contents already.
                                } else if unwritten == 0 {
                                    let mut garbage = vec![0; sector.len()];
                                    random.fill_random(&mut garbage);
                                    write(&mut self.durable, at, &garbage);
                                } else if unwritten == 1 {
                                    write(&mut self.durable, at, &vec![0; sector.len()]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// After a power cut, only what is on disk remains.
    pub(super) fn cut(&mut self, random: &Env) {
        self.lose_unsynced(random);
        self.cached.clone_from(&self.durable);
    }
}

/// Splits a write at sector boundaries.
fn sectors(at: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = (SECTOR - at % SECTOR).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    std::iter::once((at, head)).chain(
        rest.chunks(SECTOR).enumerate().map(move |(number, part)| (at + first + number * SECTOR, part)),
    )
}

/// The names in a directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// What programs see.
    pub(super) cached: BTreeMap<OsString, usize>,
    /// What is on disk.
    durable: BTreeMap<OsString, usize>,
    /// Unsynced changes, in order.
    pending: Vec<Naming>,
}

#[derive(Clone, Debug)]
enum Naming {
    Bind(OsString, usize),
    Unbind(OsString),
    Rename { from: OsString, to: OsString, node: usize },
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<OsString, usize>) {
        match self {
            Self::Bind(name, node) => {
                names.insert(name.clone(), *node);
            }
            Self::Unbind(name) => {
                names.remove(name);
            }
            Self::Rename { from, to, node } => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

impl Names {
    fn change(&mut self, naming: Naming) {
        naming.apply(&mut self.cached);
        self.pending.push(naming);
    }

    pub(super) fn bind(&mut self, name: OsString, node: usize) {
        self.change(Naming::Bind(name, node));
    }

    /// The same, but durable at once: for files that a test puts there.
    pub(super) fn bind_durably(&mut self, name: OsString, node: usize) {
        self.cached.insert(name.clone(), node);
        self.durable.insert(name, node);
    }

    pub(super) fn unbind(&mut self, name: OsString) {
        self.change(Naming::Unbind(name));
    }

    pub(super) fn rename(&mut self, from: OsString, to: OsString, node: usize) {
        self.change(Naming::Rename { from, to, node });
    }

    pub(super) fn sync(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.cached);
    }

    /// After a power cut: any subset of the unsynced changes, or a prefix of them.
    pub(super) fn cut(&mut self, random: &Env) {
        let changes = std::mem::take(&mut self.pending);
        let in_order = random.random_below(2) == 0;
        let kept = random.random_below(changes.len() as u64 + 1) as usize;
        for (number, change) in changes.iter().enumerate() {
            let is_kept = if in_order { number < kept } else { random.random_below(2) == 0 };
            if is_kept {
                change.apply(&mut self.durable);
            }
        }
        self.cached.clone_from(&self.durable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_data_survives_every_cut_and_unsynced_data_is_there_in_part() {
        let (random, _clock) = Env::simulated(1);
        let (mut whole, mut absent, mut torn) = (0, 0, 0);
        for _ in 0..500 {
            let mut file = Contents::default();
            file.write(0, &[1; 1000]);
            file.sync();
            file.write(1000, &[2; 2000]);
            file.cut(&random);
            assert_eq!(file.cached[..1000], [1; 1000]);
            match &file.cached[1000..] {
                [] => absent += 1,
                rest if *rest == [2; 2000] => whole += 1,
                _ => torn += 1,
            }
        }
        assert!(whole > 50 && absent > 50 && torn > 50, "{whole} {absent} {torn}");
    }

    #[test]
    fn data_lost_by_a_failed_sync_is_not_synced_later() {
        let (random, _clock) = Env::simulated(2);
        let mut lost = 0;
        for _ in 0..100 {
            let mut file = Contents::default();
            file.write(0, &[1; 100]);
            file.fail_sync(&random);
            file.sync();
            file.cut(&random);
            lost += usize::from(file.cached != [1; 100]);
        }
        assert!(lost > 30, "{lost}");
    }

    #[test]
    fn unsynced_names_may_become_durable_in_any_order() {
        let (random, _clock) = Env::simulated(3);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut names = Names::default();
            names.bind("a".into(), 1);
            names.sync();
            names.bind("b.new".into(), 2);
            names.rename("b.new".into(), "b".into(), 2);
            names.unbind("a".into());
            names.cut(&random);
            seen.insert(names.cached.into_keys().collect::<Vec<_>>());
        }
        // Nothing, everything, the removal alone, and so on.
        assert_eq!(seen.len(), 6, "{seen:?}");
    }
}
