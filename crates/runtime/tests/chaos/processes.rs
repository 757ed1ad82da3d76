//! The same with a server in its own process, on disk, killed with `SIGKILL` while users and operator continue.
//!
//! The test binary starts itself again as the server, which the variable [`FOLDER`] selects.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use k1s_env::{Env, Task};
use k1s_runtime::{
    ControllerOptions, IdleOptions, Manager, ManagerOptions,
    client::{Client, ClientOptions},
};
use k1s_server::{ApiServer, Listener, ServerOptions, User, serve};
use k1s_store_disk::{DiskOptions, DiskStore};
use kube::CustomResourceExt as _;
use tokio_util::sync::CancellationToken;

use crate::{
    operator::{Tree, add_controllers, collector},
    own::{Complaints, Own},
    script::Script,
    simulated, state,
};

/// The name of the test, used to start it again, and the variables that make it a server.
const TEST: &str = "processes::trees_converge_if_the_server_is_killed";
const FOLDER: &str = "K1S_TEST_CHAOS_FOLDER";
const ADDRESS: &str = "K1S_TEST_CHAOS_ADDRESS";

/// Maximum duration of any wait.
const HANG: Duration = Duration::from_secs(120);

#[test]
fn trees_converge_if_the_server_is_killed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(folder) = std::env::var(FOLDER) {
        runtime.block_on(server(folder.as_ref(), std::env::var(ADDRESS).unwrap().parse().unwrap()));
        return;
    }
    let seed = std::env::var("K1S_TEST_SEED").ok().map(|text| text.parse().unwrap());
    for seed in seed.map_or(vec![1, 8], |seed| vec![seed]) {
        println!("K1S_TEST_SEED={seed}");
        let script = Script::of(seed, Duration::from_millis(500));
        let (complaints, state) = runtime.block_on(chaos(seed, &script));
        let mut complaints = complaints;
        complaints.extend(state::differences(&simulated::without_faults(seed, &script), &state));
        assert!(complaints.is_empty(), "K1S_TEST_SEED={seed}\n{}", complaints.join("\n"));
    }
}

/// The server's process.
async fn server(folder: &Path, address: SocketAddr) {
    let env = Env::system();
    // Ends with the test, even if that crashes.
    let _parent = env.spawn_thread("parent", || {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let store = DiskStore::open(env.clone(), folder, DiskOptions::default()).unwrap();
    let server = ApiServer::new(env, Arc::new(store), ServerOptions::default()).await.unwrap();
    let listener = Listener::http(address).await.unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nREADY").unwrap();
    out.flush().unwrap();
    drop(out);
    serve(server.as_user(User::admin()), listener).await.unwrap();
}

/// The test's handle to the server's process, which is killed on drop.
struct Process(Child);

impl Process {
    fn start(folder: &Path, address: SocketAddr) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(FOLDER, folder)
            .env(ADDRESS, address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = Process(child);
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "READY"), "the server did not start");
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn chaos(seed: u64, script: &Script) -> (Vec<String>, state::State) {
    let env = Env::system();
    let (dice, _) = Env::simulated(seed);
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut process = Process::start(folder.path(), address);
    let kube =
        || kube::Client::try_from(kube::Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let direct = Client::new(kube(), ClientOptions { env: env.clone(), ..Default::default() });
    direct.create(&Tree::crd()).await.unwrap();

    let mut options = ManagerOptions { env: Some(env.clone()), ..ManagerOptions::local() };
    options.cache.retry_max = Duration::from_secs(1);
    let manager = Manager::new(kube(), options).unwrap();
    let complaints = Complaints::default();
    let own = Own::new(manager.client(), &complaints);
    add_controllers(&manager, &own, &ControllerOptions::concurrent(2));
    let (stop, started) = (CancellationToken::new(), manager.clone());
    let token = stop.clone();
    let operator = env.spawn("operator", async move { started.start(token).await });

    let garbage = collector(&env, kube());
    let (token, started) = (stop.clone(), garbage.clone());
    let collector = env.spawn("collector", async move { started.start(token).await });

    let users: Vec<Task<()>> = script
        .users
        .iter()
        .map(|user| env.spawn("user", user.clone().act(env.clone(), direct.clone())))
        .collect();
    let mut kills = 0;
    while users.iter().any(|user| !user.is_finished()) {
        env.sleep(Duration::from_millis(dice.random_below(400))).await;
        kills += 1;
        assert!(kills < 500, "the users do not finish");
        drop(process);
        env.sleep(Duration::from_millis(dice.random_below(100))).await;
        process = Process::start(folder.path(), address);
    }
    println!("killed {kills} times");
    for user in users {
        user.await.unwrap();
    }
    for user in &script.last {
        user.clone().act(env.clone(), direct.clone()).await;
    }
    let mut complaints_at_end = Vec::new();
    // Garbage collection is not part of the operator, and may cause more work for it.
    for manager in [&manager, &garbage, &manager, &garbage] {
        match manager.wait_until_idle(IdleOptions::within(HANG)).await {
            Ok(report) if report.problems.is_empty() => {}
            Ok(report) => complaints_at_end.push(format!("idle, but: {report}")),
            Err(error) => complaints_at_end.push(error.to_string()),
        }
    }
    let state = state::read(&direct, &mut complaints_at_end).await.unwrap();
    complaints_at_end.extend(state::compare_with_script(&state, &script.trees()));
    stop.cancel();
    operator.await.unwrap().unwrap();
    collector.await.unwrap().unwrap();
    complaints_at_end.append(&mut complaints.lock());
    (complaints_at_end, state)
}
