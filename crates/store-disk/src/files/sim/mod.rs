//! A simulated disk, for tests: it tracks what was written and what was synced, and can lose, tear and
//! reorder unsynced changes.
//!
//! - **A power cut** ([`SimDisk::cut_after`], [`SimDisk::restart`]): any unsynced sector may be on disk,
//!   absent, zeros or garbage; a write may be torn at any byte; created, renamed or removed names may be
//!   there or not, in any order. Only a rename within one directory is atomic.
//! - **Failing calls** ([`Fault`], [`Rates`]): a failed write may have been made in part. After a failed
//!   sync, the data may be on disk or not, and a later successful sync does not write it.
//! - **A full disk** ([`SimDisk::set_capacity`], [`Fault::Full`]).
//!
//! All randomness comes from a seed. With several threads, the outcome also depends on the order of their
//! calls.

mod node;

use std::{
    collections::VecDeque,
    ffi::OsString,
    fmt, fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use k1s_env::Env;
use parking_lot::{Condvar, Mutex, MutexGuard};

use self::node::{Contents, Kind, Node};
use super::{DirAccess, File, Files, Metadata, Mode};

/// Number of calls kept in the trace that a failing test prints.
const TRACE: usize = 2000;

/// A fault of all calls, until it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// Writes fail with "no space left", and nothing of them is stored.
    Full,
    /// Writes fail with "no space left", and half of them is stored.
    FullMidway,
    /// Syncs fail.
    SyncFails,
    /// Syncs block until the fault is changed.
    SyncHangs,
    /// Nothing can be opened for writing.
    ReadOnly,
}

/// Failing calls per thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Writes and changes of length.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Creating, renaming and removing names.
    pub names: u64,
}

/// What a restart of the simulated machine loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process was killed: all its writes are kept, synced or not.
    Process,
    /// The power was cut: unsynced changes may be lost.
    Power,
}

/// A simulated disk. Cheap to clone; clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    nodes: Vec<Node>,
    /// Number of restarts. Handles from before a restart are dead.
    boot: u64,
    handles: u64,
    off: bool,
    /// Number of calls so far that change something.
    calls: u64,
    /// The call during which the power is cut.
    cut_at: Option<u64>,
    fault: Fault,
    rates: Rates,
    capacity: Option<u64>,
    /// Number of calls blocked by [`Fault::SyncHangs`].
    hanging: usize,
    random: Env,
    trace: VecDeque<String>,
}

/// The outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Succeed,
    /// Fail, perhaps with part of it done.
    Fail,
    /// The power is cut in the middle of it.
    Cut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Sync,
    Name,
}

const ROOT: usize = 0;

fn power_is_off() -> io::Error {
    io::Error::other("the power is off (simulated)")
}

fn broken() -> io::Error {
    io::Error::other("Input/output error (simulated)")
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "No space left on device (simulated)")
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(vec![Node::dir()], seed)
    }

    fn with(nodes: Vec<Node>, seed: u64) -> Self {
        let state = State {
            nodes,
            boot: 0,
            handles: 0,
            off: false,
            calls: 0,
            cut_at: None,
            fault: Fault::None,
            rates: Rates::default(),
            capacity: None,
            hanging: 0,
            random: Env::simulated(seed).0,
            trace: VecDeque::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Another disk with the same contents and no faults.
    #[must_use]
    pub fn copied(&self, seed: u64) -> Self {
        let mut nodes = self.state().nodes.clone();
        nodes.iter_mut().for_each(|node| node.locked_by = None);
        Self::with(nodes, seed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    /// Sets the fault of all calls.
    pub fn set_fault(&self, fault: Fault) {
        self.state().fault = fault;
        self.shared.changed.notify_all();
    }

    /// Sets the rates of failing calls.
    pub fn set_rates(&self, rates: Rates) {
        self.state().rates = rates;
    }

    /// Limits the bytes in all files.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Blocks until a call hangs: see [`Fault::SyncHangs`].
    pub fn wait_until_hanging(&self) {
        let mut state = self.state();
        while state.hanging == 0 && !state.off {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Cuts the power in the middle of a later call that changes something: the next one if `calls` is 0. All
    /// later calls fail.
    pub fn cut_after(&self, calls: u64) {
        let mut state = self.state();
        state.cut_at = Some(state.calls + 1 + calls);
    }

    /// Cuts the power now, unless it is off already.
    pub fn cut(&self) {
        self.state().off = true;
        self.shared.changed.notify_all();
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state().off
    }

    /// Number of calls so far that changed something.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The last calls that changed something.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.state().trace.iter().cloned().collect()
    }

    /// Restarts the machine: handles are closed, and unsynced changes may be lost.
    pub fn restart(&self, loss: Loss) {
        let mut state = self.state();
        let State { nodes, random, .. } = &mut *state;
        for node in nodes {
            node.locked_by = None;
            match (&mut node.kind, loss) {
                (_, Loss::Process) => {}
                (Kind::File(contents), Loss::Power) => contents.cut(random),
                (Kind::Dir(names), Loss::Power) => names.cut(random),
            }
        }
        state.boot += 1;
        state.off = false;
        state.cut_at = None;
        let line = format!("restart, {loss:?}");
        state.note(line);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let state = self.state();
        let node = state.find(path.as_ref())?;
        state.contents(node).map(|contents| contents.cached.clone())
    }

    /// Writes a file, durably.
    ///
    /// # Errors
    /// If its directory does not exist.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        self.place(path.as_ref(), Kind::File(Contents::durable(bytes.into())))
    }

    /// Creates a directory, durably.
    ///
    /// # Errors
    /// If its parent does not exist.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.place(path.as_ref(), Node::dir().kind)
    }

    fn place(&self, path: &Path, kind: Kind) -> io::Result<()> {
        let mut state = self.state();
        if let Ok(node) = state.find(path) {
            state.nodes[node].kind = kind;
            return Ok(());
        }
        let (dir, name) = state.parent(path)?;
        let node = state.add(Node { kind, locked_by: None });
        if let Kind::Dir(names) = &mut state.nodes[dir].kind {
            names.bind_durably(name, node);
        }
        Ok(())
    }

    /// Removes a file or directory, durably.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.state();
        state.find(path.as_ref())?;
        let (dir, name) = state.parent(path.as_ref())?;
        if let Kind::Dir(names) = &mut state.nodes[dir].kind {
            names.unbind(name);
            names.sync();
        }
        Ok(())
    }

    /// The paths of all files, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let state = self.state();
        let mut found = Vec::new();
        state.walk(ROOT, &mut PathBuf::from("/"), &mut |path, _| found.push(path.to_owned()));
        found
    }

    /// Total bytes in all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state().used()
    }
}

impl State {
    fn note(&mut self, line: String) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        let mut node = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            match &self.nodes[node].kind {
                Kind::Dir(names) => node = *names.cached.get(name).ok_or(io::ErrorKind::NotFound)?,
                Kind::File(_) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(node)
    }

    fn parent(&self, path: &Path) -> io::Result<(usize, OsString)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        Ok((self.find(path.parent().unwrap_or(Path::new("/")))?, name))
    }

    fn contents(&self, node: usize) -> io::Result<&Contents> {
        match &self.nodes[node].kind {
            Kind::File(contents) => Ok(contents),
            Kind::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn contents_mut(&mut self, node: usize) -> io::Result<&mut Contents> {
        match &mut self.nodes[node].kind {
            Kind::File(contents) => Ok(contents),
            Kind::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn names_mut(&mut self, node: usize) -> io::Result<&mut node::Names> {
        match &mut self.nodes[node].kind {
            Kind::Dir(names) => Ok(names),
            Kind::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn walk(&self, node: usize, path: &mut PathBuf, each: &mut dyn FnMut(&Path, usize)) {
        match &self.nodes[node].kind {
            Kind::File(_) => each(path, node),
            Kind::Dir(names) => {
                for (name, node) in &names.cached {
                    path.push(name);
                    self.walk(*node, path, each);
                    path.pop();
                }
            }
        }
    }

    fn used(&self) -> u64 {
        let mut bytes = 0;
        self.walk(ROOT, &mut PathBuf::new(), &mut |_, node| {
            bytes += self.contents(node).map_or(0, |contents| contents.cached.len() as u64);
        });
        bytes
    }

    /// Counts a call that changes something, and decides its outcome.
    fn call(&mut self, call: Call, what: impl FnOnce() -> String) -> io::Result<Verdict> {
        if self.off {
            return Err(power_is_off());
        }
        self.calls += 1;
        let rate = match call {
            Call::Write => self.rates.writes,
            Call::Sync => self.rates.syncs,
            Call::Name => self.rates.names,
        };
        let verdict = if self.cut_at == Some(self.calls) {
            self.off = true;
            Verdict::Cut
        } else if rate > 0 && self.random.random_below(1000) < rate {
            Verdict::Fail
        } else {
            Verdict::Succeed
        };
        let ending = match verdict {
            Verdict::Succeed => "",
            Verdict::Fail => ": FAILS",
            Verdict::Cut => ": POWER CUT",
        };
        let line = format!("{} {}{ending}", self.calls, what());
        self.note(line);
        Ok(verdict)
    }

    /// A change of names, which is applied completely or not at all.
    fn name(
        &mut self,
        what: impl FnOnce() -> String,
        change: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.call(Call::Name, what)? {
            Verdict::Succeed => change(self),
            Verdict::Fail => Err(broken()),
            Verdict::Cut => {
                if self.random.random_below(2) == 0 {
                    change(self)?;
                }
                Err(power_is_off())
            }
        }
    }

    fn metadata(&self, node: usize) -> Metadata {
        let (is_dir, len) = match &self.nodes[node].kind {
            Kind::File(contents) => (false, contents.cached.len() as u64),
            Kind::Dir(_) => (true, 0),
        };
        Metadata { is_dir, len, allocated: len, id: (1, node as u64) }
    }

    fn remove_tree(&mut self, path: &Path) -> io::Result<()> {
        let node = self.find(path)?;
        if let Kind::Dir(names) = &self.nodes[node].kind {
            for name in names.cached.keys().cloned().collect::<Vec<_>>() {
                self.remove_tree(&path.join(name))?;
            }
        }
        self.remove(path)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        let (dir, name) = self.parent(path)?;
        self.name(
            || format!("remove {}", path.display()),
            |state| {
                state.names_mut(dir)?.unbind(name);
                Ok(())
            },
        )
    }
}

impl Files for SimDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>> {
        let mut state = self.state();
        if state.off {
            return Err(power_is_off());
        }
        if mode != Mode::Read && state.fault == Fault::ReadOnly {
            return Err(io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                "Read-only file system (simulated)",
            ));
        }
        let node = match (state.find(path), mode) {
            (Ok(node), Mode::Truncate) => {
                state.contents(node)?;
                state.name(
                    || format!("truncate {}", path.display()),
                    |state| {
                        state.contents_mut(node)?.set_len(0);
                        Ok(())
                    },
                )?;
                node
            }
            (Ok(node), _) => node,
            (Err(error), Mode::Create | Mode::Truncate) if error.kind() == io::ErrorKind::NotFound => {
                let (dir, name) = state.parent(path)?;
                let node = state.add(Node::file());
                state.name(
                    || format!("create {}", path.display()),
                    |state| {
                        state.names_mut(dir)?.bind(name, node);
                        Ok(())
                    },
                )?;
                node
            }
            (Err(error), _) => return Err(error),
        };
        state.handles += 1;
        let (id, boot) = (state.handles, state.boot);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Box::new(Handle { disk: self.clone(), name, node, id, boot, writes: mode != Mode::Read }))
    }

    fn create_dir(&self, path: &Path, _: DirAccess) -> io::Result<()> {
        let mut state = self.state();
        if state.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (dir, name) = state.parent(path)?;
        let node = state.add(Node::dir());
        state.name(
            || format!("create directory {}", path.display()),
            |state| {
                state.names_mut(dir)?.bind(name, node);
                Ok(())
            },
        )
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let state = self.state();
        if state.off {
            return Err(power_is_off());
        }
        Ok(state.metadata(state.find(path)?))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        if state.off {
            return Err(power_is_off());
        }
        match &state.nodes[state.find(path)?].kind {
            Kind::Dir(names) => Ok(names.cached.keys().cloned().collect()),
            Kind::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(from)?;
        let ((from_dir, from_name), (to_dir, to_name)) = (state.parent(from)?, state.parent(to)?);
        state.name(
            || format!("rename {} to {}", from.display(), to.display()),
            |state| {
                if from_dir == to_dir {
                    state.names_mut(from_dir)?.rename(from_name, to_name, node);
                } else {
                    state.names_mut(to_dir)?.bind(to_name, node);
                    state.names_mut(from_dir)?.unbind(from_name);
                }
                Ok(())
            },
        )
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        state.contents(node)?;
        state.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.state().remove_tree(path)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.state().find(path)?;
        Ok(path.to_owned())
    }

    fn chown_like(&self, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// An open file of the simulated disk.
struct Handle {
    disk: SimDisk,
    name: String,
    node: usize,
    id: u64,
    boot: u64,
    writes: bool,
}

impl Handle {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.off || state.boot != self.boot {
            return Err(power_is_off());
        }
        Ok(state)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state()?;
        state.hanging += 1;
        self.disk.shared.changed.notify_all();
        while state.fault == Fault::SyncHangs && !state.off && state.boot == self.boot {
            self.disk.shared.changed.wait(&mut state);
        }
        state.hanging -= 1;
        if state.boot != self.boot {
            return Err(power_is_off());
        }
        let verdict = state.call(Call::Sync, || format!("sync {}", self.name))?;
        let fails = verdict == Verdict::Fail || state.fault == Fault::SyncFails;
        let State { nodes, random, .. } = &mut *state;
        match (&mut nodes[self.node].kind, verdict) {
            (_, Verdict::Cut) => Err(power_is_off()),
            (Kind::File(contents), _) if fails => {
                contents.fail_sync(random);
                Err(broken())
            }
            // Names are in the file system's journal: a failed write of it is retried by the next sync.
            (Kind::Dir(_), _) if fails => Err(broken()),
            (Kind::File(contents), _) => {
                contents.sync();
                Ok(())
            }
            (Kind::Dir(names), _) => {
                names.sync();
                Ok(())
            }
        }
    }
}

impl File for Handle {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.state()?;
        let contents = state.contents(self.node)?;
        let begin = offset as usize;
        let there = contents.cached.get(begin..begin + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(there);
        Ok(())
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let at = offset as usize;
        let mut state = self.state()?;
        let what = || format!("write {} at {at}, {} bytes", self.name, bytes.len());
        let verdict = state.call(Call::Write, what)?;
        let part = state.random.random_below(bytes.len() as u64 + 1) as usize;
        let grows = (at + bytes.len()).saturating_sub(state.contents(self.node)?.cached.len()) as u64;
        let no_room = grows > 0 && state.capacity.is_some_and(|capacity| state.used() + grows > capacity);
        let (stored, answer) = match (verdict, state.fault) {
            (Verdict::Cut, _) => (part, Err(power_is_off())),
            (Verdict::Fail, _) => (part, Err(broken())),
            (_, Fault::Full) => (0, Err(full())),
            (_, Fault::FullMidway) => (bytes.len() / 2, Err(full())),
            _ if no_room => (0, Err(full())),
            _ => (bytes.len(), Ok(())),
        };
        if stored > 0 {
            state.contents_mut(self.node)?.write(at, &bytes[..stored]);
        }
        answer
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if !self.writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut state = self.state()?;
        let verdict = state.call(Call::Write, || format!("set length of {} to {len}", self.name))?;
        let done = verdict == Verdict::Succeed || state.random.random_below(2) == 0;
        if done {
            state.contents_mut(self.node)?.set_len(len as usize);
        }
        match verdict {
            Verdict::Succeed => Ok(()),
            Verdict::Fail => Err(broken()),
            Verdict::Cut => Err(power_is_off()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let state = self.state()?;
        Ok(state.metadata(self.node))
    }

    fn try_lock(&self) -> Result<(), fs::TryLockError> {
        let mut state = self.state().map_err(fs::TryLockError::Error)?;
        let node = &mut state.nodes[self.node];
        match node.locked_by {
            Some(other) if other != self.id => Err(fs::TryLockError::WouldBlock),
            _ => {
                node.locked_by = Some(self.id);
                Ok(())
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        let node = &mut state.nodes[self.node];
        if node.locked_by == Some(self.id) {
            node.locked_by = None;
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
