//! Leader election among processes that are killed and paused at random, over HTTP, in real time.
//!
//! The test binary starts itself again as its candidates, which the variable [`SERVER`] selects.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed is needed to reproduce a failure")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use k1s_env::Env;
use k1s_runtime::leader::{LeaderElectionOptions, LeaderElector};
use k1s_server::{ApiServer, Listener, ServerOptions, User, serve};
use k1s_store::MemoryStore;
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The name of the test, used to start it again, and the variable that makes it a candidate.
const TEST: &str = "processes_that_are_killed_and_stopped_never_lead_at_the_same_time";
const SERVER: &str = "K1S_TEST_LEADER_SERVER";

const CANDIDATES: usize = 3;
const ROUNDS: usize = 7;
const RETRY: Duration = Duration::from_millis(250);
/// 1.5 s, rounded up as in a Lease.
const LEASE: Duration = Duration::from_secs(2);
/// Maximum time until a new leader acts: the lease duration, a retry period with jitter, and a margin for two
/// busy cores.
const FOLLOWED: Duration =
    LEASE.saturating_add(Duration::from_millis(550)).saturating_add(Duration::from_secs(2));

fn options() -> LeaderElectionOptions {
    let mut options = LeaderElectionOptions::new("processes", "default");
    options.lease_duration = Duration::from_millis(1500);
    options.renew_deadline = Duration::from_secs(1);
    options.retry_period = RETRY;
    options
}

/// Nanoseconds on the monotonic clock shared by all processes of the machine.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// An action of a leader: at some time between `before` and `after` it held the leadership.
#[derive(Debug, Clone, Copy)]
struct Act {
    process: usize,
    term: u64,
    before: u64,
    after: u64,
}

#[test]
fn processes_that_are_killed_and_stopped_never_lead_at_the_same_time() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var(SERVER) {
        Ok(server) => runtime.block_on(candidate(&server)),
        Err(_) => runtime.block_on(chaos()),
    }
}

/// Leads whenever it can, and prints each act.
async fn candidate(server: &str) {
    let env = Env::system();
    // Ends with the test, even if that crashes.
    let _parent = env.spawn_thread("parent", || {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let client = kube::Client::try_from(kube::Config::new(server.parse().unwrap())).unwrap();
    let never = CancellationToken::new();
    for term in 0_u64.. {
        let elector = LeaderElector::new(client.clone(), env.clone(), options()).unwrap();
        let leadership = elector.acquire(&never).await.unwrap();
        loop {
            let before = now();
            let valid = leadership.is_valid();
            let after = now();
            if !valid {
                break;
            }
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nACT {term} {before} {after}").unwrap();
            out.flush().unwrap();
            drop(out);
            env.sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The test's handle to a candidate's process.
struct Process {
    number: usize,
    child: Child,
}

impl Process {
    fn start(env: &Env, number: usize, server: &str, acts: mpsc::UnboundedSender<Act>) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(SERVER, server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let reading = env.spawn_thread("acts", move || {
            for line in out.lines().map_while(Result::ok) {
                let Some(act) = line.strip_prefix("ACT ") else { continue };
                let numbers: Vec<u64> = act.split(' ').filter_map(|number| number.parse().ok()).collect();
                // The last line of a killed process may be truncated.
                if let [term, before, after] = numbers[..]
                    && before <= after
                    && acts.send(Act { process: number, term, before, after }).is_err()
                {
                    return;
                }
            }
        });
        drop(reading.unwrap());
        Process { number, child }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All acts and the processes that did them.
struct Log {
    env: Env,
    incoming: mpsc::UnboundedReceiver<Act>,
    acts: Vec<Act>,
}

impl Log {
    /// Waits for an act after `since` by a process not in `except`.
    async fn acting_since(&mut self, since: u64, except: &[usize]) -> Act {
        loop {
            let act = self.incoming.recv().await.unwrap();
            self.acts.push(act);
            if act.before > since && !except.contains(&act.process) {
                return act;
            }
        }
    }

    /// Waits for a new leader, within `FOLLOWED`.
    async fn followed(&mut self, since: u64, except: &[usize], what: &str) -> Act {
        let env = self.env.clone();
        let act = env.timeout(FOLLOWED, self.acting_since(since, except)).await;
        act.unwrap_or_else(|_| panic!("{what}: no leader within {FOLLOWED:?}"))
    }

    /// Records acts for a while.
    async fn pass(&mut self, d: Duration) {
        let until = self.env.sleep(d);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                act = self.incoming.recv() => self.acts.push(act.unwrap()),
            }
        }
    }
}

async fn chaos() {
    let env = Env::system();
    let seed = std::env::var("K1S_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("K1S_TEST_SEED={seed}");
    let (dice, _) = Env::simulated(seed);
    let millis = |from: u64, to: u64| Duration::from_millis(from + dice.random_below(to - from));

    let server = ApiServer::new(env.clone(), Arc::new(MemoryStore::default()), ServerOptions::default())
        .await
        .unwrap()
        .as_user(User::admin());
    let listener = Listener::http("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}", listener.address().unwrap());
    let serving = env.spawn("server", serve(server.clone(), listener));

    let (sender, incoming) = mpsc::unbounded_channel();
    let mut log = Log { env: env.clone(), incoming, acts: Vec::new() };
    let mut started = 0;
    let mut start = || {
        started += 1;
        Process::start(&env, started, &url, sender.clone())
    };
    let mut processes: Vec<Process> = (0..CANDIDATES).map(|_| start()).collect();
    let (mut killed, mut stopped) = (0, 0);
    for round in 0..ROUNDS {
        let leader = log.followed(now(), &[], &format!("round {round}")).await.process;
        log.pass(millis(50, 600)).await;
        // Mostly the leader, whose failure is under test.
        let victim = if dice.random_below(5) == 0 {
            usize::try_from(dice.random_below(CANDIDATES as u64)).unwrap()
        } else {
            processes.iter().position(|process| process.number == leader).unwrap()
        };
        if round % 2 == 0 {
            killed += 1;
            let number = processes[victim].number;
            processes[victim].child.kill().unwrap();
            let died = now();
            processes[victim] = start();
            log.followed(died, &[number], &format!("round {round}, {number} killed")).await;
        } else {
            stopped += 1;
            let process = &processes[victim];
            process.signal(Signal::STOP);
            let since = now();
            let long = dice.random_below(4) > 0;
            if long {
                // Another process takes over; then this one resumes unaware of the pause.
                let number = process.number;
                log.followed(since, &[number], &format!("round {round}, {number} stopped")).await;
                log.pass(millis(0, 300)).await;
            } else {
                log.pass(millis(100, 700)).await;
            }
            processes[victim].signal(Signal::CONT);
        }
    }
    log.pass(Duration::from_millis(500)).await;
    drop(processes);
    while let Ok(act) = log.incoming.try_recv() {
        log.acts.push(act);
    }
    server.shutdown();
    serving.await.unwrap().unwrap();

    let terms = check_terms(&log.acts);
    println!("{} acts in {terms} terms; {killed} killed, {stopped} stopped", log.acts.len());
    assert!(terms >= 4, "the leader changed");
}

/// Checks that no two terms overlap. A term lasted at least from the end of its first act to the beginning of
/// its last; that holds even if the process was paused in the middle of an act.
fn check_terms(acts: &[Act]) -> usize {
    let mut terms: BTreeMap<(usize, u64), (u64, u64)> = BTreeMap::new();
    for act in acts {
        let (from, to) = terms.entry((act.process, act.term)).or_insert((act.after, act.before));
        *from = act.after.min(*from);
        *to = act.before.max(*to);
    }
    let mut certain: Vec<_> = terms.iter().filter(|(_, (from, to))| from < to).collect();
    certain.sort_by_key(|(_, (from, _))| *from);
    for pair in certain.windows(2) {
        let ((one, (_, to)), (other, (from, _))) = (pair[0], pair[1]);
        assert!(
            to < from,
            "{one:?} and {other:?} led at the same time: {:?}",
            Duration::from_nanos(to - from)
        );
    }
    terms.len()
}

#[test]
fn the_check_finds_overlapping_terms() {
    let act = |process, before, after| Act { process, term: 0, before, after };
    assert_eq!(check_terms(&[act(1, 0, 1), act(1, 10, 11), act(2, 12, 13), act(2, 20, 21)]), 2);
    // The first one was paused in the middle of its last act, which may have been before or after the pause.
    assert_eq!(check_terms(&[act(1, 0, 1), act(1, 10, 50), act(2, 12, 13), act(2, 20, 21)]), 2);
    let both = [act(1, 0, 1), act(1, 30, 31), act(2, 12, 13), act(2, 20, 21)];
    assert!(std::panic::catch_unwind(|| check_terms(&both)).is_err());
}
