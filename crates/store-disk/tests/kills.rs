//! Repeatedly kills a process that writes to a disk store, and checks that nothing was lost.
//!
//! The child runs several clients, each with its own keys, whose operations are derived from a seed. It
//! writes a line to a pipe for each acknowledged operation. After the kill, this process opens the store:
//! each client's keys must be as after its last acknowledged operation, or after the one in flight,
//! completely; revisions, history and the store's own check must agree.
//!
//! `K1S_KILLS=5000 K1S_SEED=7 cargo test -p k1s-store-disk --test kills` runs more rounds.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program with its own main, not a libtest")]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Precondition, Range, Revision, Store, Txn, WatchItem, WatchRequest};
use k1s_store_disk::{DiskOptions, DiskStore};

/// Number of kills; 200 by default.
const KILLS: &str = "K1S_KILLS";

/// Seed of the operations and of the times of the kills; 1 by default.
const SEED: &str = "K1S_SEED";

/// The first argument of the process that is killed.
const CHILD: &str = "child";

/// What was lost, or why the test could not run.
#[derive(Debug)]
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [CHILD, folder, seed, start] => child(folder.into(), seed, start),
        // `cargo test NAME` gives every test program the name.
        [name, ..] if !name.starts_with('-') && !"kills".contains(name) => Ok(()),
        ["--list", ..] => {
            println!("kills: test");
            Ok(())
        }
        _ => test(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(message)) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), Failure> {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text.parse().map_err(|error| Failure(format!("{name} is {text:?}: {error}"))),
        Err(_) => Ok(default),
    };
    let (kills, seed) = (number(KILLS, 200)?, number(SEED, 1)?);
    let folder = tempfile::tempdir()?;
    let outcome = runtime()?.block_on(rounds(kills, seed, folder.path()));
    if outcome.is_err() {
        eprintln!("the store is left in {}", folder.keep().display());
    }
    outcome
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

const CLIENTS: u64 = 24;
const KEYS: u64 = 40;

/// Small segments and a short history, so that compaction, checkpoints and cleaning run all the time.
fn options() -> DiskOptions {
    DiskOptions { segment_bytes: 512 << 10, history_revisions: 3000, ..DiskOptions::default() }
}

/// The keys an operation touches, with their values afterwards.
type Effects = BTreeMap<String, Option<Bytes>>;

/// Operation `number` of a client.
fn operation(seed: u64, client: u64, number: u64) -> Effects {
    let (random, _clock) = Env::simulated(seed ^ (client << 48) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let several = if random.random_below(4) == 0 { 2 + random.random_below(4) } else { 1 };
    (0..several)
        .map(|_| {
            let key = format!("/clients/{client:02}/{:02}", random.random_below(KEYS));
            let value = (random.random_below(5) > 0).then(|| {
                let mut value = vec![0; 20 + random.random_below(3000) as usize];
                random.fill_random(&mut value);
                value.into()
            });
            (key, value)
        })
        .collect()
}

fn transaction(effects: &Effects) -> Txn {
    effects.iter().fold(Txn::new(), |txn, (key, value)| match value {
        Some(value) => txn.put(key.clone(), value.clone(), Precondition::Any),
        None => txn.delete(key.clone(), Precondition::Any),
    })
}

/// The process that is killed. `start` lists each client's next operation number.
fn child(folder: PathBuf, seed: &str, start: &str) -> Result<(), Failure> {
    runtime()?.block_on(write(folder, seed.parse()?, start))
}

async fn write(folder: PathBuf, seed: u64, start: &str) -> Result<(), Failure> {
    let env = Env::system();
    let store = DiskStore::open(env.clone(), &folder, options())?;
    let mut clients = Vec::new();
    for (client, first) in (0..).zip(start.split(',')) {
        let (store, first) = (store.clone(), first.parse::<u64>()?);
        clients.push(env.spawn("client", async move {
            for number in first.. {
                match store.txn(transaction(&operation(seed, client, number))).await {
                    Ok(revision) => acknowledge(client, number, revision)?,
                    Err(error) => {
                        return Err(Failure(format!("client {client}, operation {number}: {error}")));
                    }
                }
            }
            Ok(())
        }));
    }
    for client in clients {
        client.await??;
    }
    Ok(())
}

/// A single short write: the pipe holds all of it or none.
fn acknowledge(client: u64, number: u64, revision: Revision) -> Result<(), Failure> {
    let line = format!("{client} {number} {revision}\n");
    std::io::stdout().lock().write_all(line.as_bytes())?;
    Ok(())
}

/// The acknowledged operations of a client, and the expected values of its keys.
#[derive(Clone, Default)]
struct Client {
    next: u64,
    keys: BTreeMap<String, (Bytes, Revision)>,
    /// The operations acknowledged in this round, with their revisions.
    acknowledged: Vec<(u64, Revision)>,
}

impl Client {
    fn apply(&mut self, seed: u64, id: u64, revision: Revision) {
        for (key, value) in operation(seed, id, self.next) {
            match value {
                Some(value) => drop(self.keys.insert(key, (value, revision))),
                None => drop(self.keys.remove(&key)),
            }
        }
        self.next += 1;
    }
}

async fn rounds(kills: u64, seed: u64, folder: &Path) -> Result<(), Failure> {
    let env = Env::system();
    let (random, _clock) = Env::simulated(seed);
    let mut clients = vec![Client::default(); CLIENTS as usize];
    let (mut acknowledged, mut torn, mut during_start) = (0, 0, 0);
    let mut reported = env.now();
    for round in 1..=kills {
        let start = clients.iter().map(|client| client.next.to_string()).collect::<Vec<_>>().join(",");
        let mut child = Command::new(std::env::current_exe()?)
            .args([CHILD, &folder.display().to_string(), &seed.to_string(), &start])
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = kill(&env, &random, &mut child).await?;
        during_start += u64::from(lines.is_empty());
        for client in &mut clients {
            client.acknowledged.clear();
        }
        for line in &lines {
            let Some((id, number, revision)) = parse(line) else {
                return Err(Failure(format!("round {round}: the child said {line:?}")));
            };
            let client = &mut clients[id as usize];
            if client.next != number {
                return Err(Failure(format!(
                    "round {round}: client {id} acknowledged operation {number} out of order"
                )));
            }
            client.acknowledged.push((number, revision));
            client.apply(seed, id, revision);
            acknowledged += 1;
        }
        torn += verify(folder, seed, &mut clients)
            .await
            .map_err(|what| Failure(format!("round {round}: {}", what.0)))?;
        if env.now() - reported > Duration::from_secs(10) || round == kills {
            reported = env.now();
            eprintln!("{round} of {kills} kills, {acknowledged} acknowledged writes");
        }
    }
    println!(
        "{kills} kills ({during_start} before the first acknowledgement), {acknowledged} acknowledged writes: all \
         there, whole, with their revisions; {torn} writes in flight are there too, whole. Seed {seed}."
    );
    Ok(())
}

/// Lets the child run for a random time, kills it, and returns the operations it acknowledged.
async fn kill(env: &Env, random: &Env, child: &mut Child) -> Result<Vec<String>, Failure> {
    let pipe = child.stdout.take().ok_or_else(|| Failure("the child has no output".to_owned()))?;
    let (first, begun) = tokio::sync::oneshot::channel();
    let reader = env.spawn_blocking("acknowledgements", move || {
        let mut first = Some(first);
        let mut lines = Vec::new();
        for line in BufReader::new(pipe).lines() {
            lines.push(line?);
            if let Some(first) = first.take() {
                let _ = first.send(());
            }
        }
        Ok::<_, std::io::Error>(lines)
    });
    let delay = Duration::from_micros(random.random_below(60_000));
    if random.random_below(8) == 0 {
        // Possibly while the store is being opened.
        env.sleep(delay / 2).await;
    } else {
        // This ends, too, if the child fails before it acknowledges anything.
        let _ = begun.await;
        env.sleep(delay).await;
    }
    if let Some(status) = child.try_wait()? {
        return Err(Failure(format!("the child ended by itself: {status}")));
    }
    child.kill()?;
    child.wait()?;
    Ok(reader.await??)
}

fn parse(line: &str) -> Option<(u64, u64, Revision)> {
    let mut parts = line.split(' ').map(str::parse);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Ok(client)), Some(Ok(number)), Some(Ok(revision)), None) if client < CLIENTS => {
            Some((client, number, Revision::new(revision)))
        }
        _ => None,
    }
}

/// Compares the store with the acknowledged operations. Returns the number of in-flight operations that were
/// applied.
async fn verify(folder: &Path, seed: u64, clients: &mut [Client]) -> Result<u64, Failure> {
    let store = DiskStore::open(Env::system(), folder, options())?;
    let report = store.check().await?;
    if !report.is_sound() {
        return Err(Failure(format!("the store is not sound: {}", report.problems.join("; "))));
    }
    let mut torn = 0;
    for (id, client) in (0..).zip(clients.iter_mut()) {
        let found = store.range(Range::prefix(format!("/clients/{id:02}/"))).await?.entries;
        let found: BTreeMap<String, (Bytes, Revision)> = found
            .into_iter()
            .map(|entry| (String::from_utf8_lossy(&entry.key).into_owned(), (entry.value, entry.revision)))
            .collect();
        if found == client.keys {
            continue;
        }
        // Only the operation in flight may make a difference, and it has one revision.
        let newest = found.values().map(|(_, revision)| *revision).max().unwrap_or_default();
        let mut after = client.clone();
        after.apply(seed, id, newest);
        if found != after.keys {
            let lost =
                client.keys.iter().find(|(key, value)| found.get(*key) != Some(value)).map(|(key, _)| key);
            return Err(Failure(format!(
                "client {id}: after operation {} its keys are not as they should be; look at {lost:?}",
                client.next
            )));
        }
        *client = after;
        torn += 1;
    }
    verify_history(&store, seed, clients).await?;
    store.close().await?;
    Ok(torn)
}

/// Checks that every acknowledged operation that the history reaches is in it, at its revision.
async fn verify_history(store: &DiskStore, seed: u64, clients: &[Client]) -> Result<(), Failure> {
    let stats = store.stats().await?;
    let mut watch = store.watch(WatchRequest::default().after(stats.oldest)).await?;
    watch.request_progress();
    let mut history = BTreeMap::new();
    loop {
        match watch.next().await {
            Some(Ok(WatchItem::Change(change))) => drop(history.insert(change.revision(), change)),
            Some(Ok(WatchItem::Progress(_))) => break,
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Failure("the watch ended".to_owned())),
        }
    }
    for (id, client) in (0..).zip(clients) {
        for (number, revision) in client.acknowledged.iter().filter(|(_, revision)| *revision > stats.oldest)
        {
            let effects = operation(seed, id, *number);
            let seen = history.get(revision).map(|change| change.events()).unwrap_or_default();
            // Deleting a missing key is not an event; a transaction that does nothing else has no revision.
            let whole = effects.iter().all(|(key, value)| {
                let event = seen.iter().find(|event| event.key == key.as_bytes());
                event.map_or(value.is_none(), |event| event.value == *value)
            });
            if !whole {
                return Err(Failure(format!(
                    "client {id}: operation {number} is not whole in the history at revision {revision}"
                )));
            }
        }
    }
    Ok(())
}
