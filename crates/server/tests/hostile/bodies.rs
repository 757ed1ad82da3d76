//! Every body of the corpus is answered in bounded time, by a process with bounded memory.

use std::{process::Command, time::Duration};

use k1s_env::Env;

use crate::{
    common,
    corpus::{self, Hostile},
};

/// Set in the process that runs the corpus, to the part that it runs.
const CHILD: &str = "K1S_HOSTILE_CORPUS";

/// Maximum CPU time of one body in a debug build; only quadratic algorithms exceed it. Not wall time, so that a busy machine
/// does not matter.
const DEADLINE: Duration = Duration::from_secs(10);

/// Maximum peak memory of the process, in KiB. An apply holds the object three times (stored, merged, pruned), and the fields of
/// its managers as sets.
fn most_memory(part: usize) -> u64 {
    if part == 2 { 1600 << 10 } else { 1200 << 10 }
}

/// Runs a part of the corpus in a separate process, so that a hang or running out of memory is detected. Memory limits and
/// `/proc` need Linux; elsewhere only the time is checked.
fn run(part: &str) {
    let program = std::env::current_exe().unwrap();
    // The address space is limited as well, so that a huge allocation fails at once.
    let script = "ulimit -v 6000000 2>/dev/null; exec \"$0\" --exact bodies::the_corpus --nocapture";
    let output =
        Command::new("sh").arg("-c").arg(script).arg(&program).env(CHILD, part).output().expect("sh runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status);
    assert!(out.contains("all are answered"), "{out}");
}

#[test]
fn bodies_of_built_in_kinds_and_definitions_are_answered_in_bounded_time_and_memory() {
    run("0");
}

#[test]
fn custom_resources_documents_and_patches_are_answered_in_bounded_time_and_memory() {
    run("1");
}

#[test]
fn configurations_are_applied_in_bounded_time_and_memory() {
    run("2");
}

/// Sends the corpus to a server in this process. Does nothing unless started by `run`.
#[test]
fn the_corpus() {
    let Some(part) = std::env::var(CHILD).ok().map(|part| part.parse::<usize>().unwrap()) else { return };
    // The thread of a test has the same stack size as a worker.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let only = std::env::var("K1S_HOSTILE_ONLY").unwrap_or_default();
    runtime.block_on(async {
        let env = Env::system();
        let client = common::client(&common::server().await);
        let mut wrong: Vec<String> = Vec::new();
        for (path, body) in corpus::prepared() {
            let started = cpu_time(&env);
            let answer = client.send("POST", path, &[("content-type", "application/json")], body).await;
            let took = cpu_time(&env) - started;
            say(&format!("prepared {path} in {took:?}"));
            assert_eq!(answer.status, 201, "{path}: {}", cut(&answer.text()));
            assert!(took < DEADLINE, "{path} took {took:?}");
        }
        for hostile in corpus::part(part).into_iter().filter(|hostile| hostile.name.contains(&only)) {
            let Hostile { name, method, path, content_type, body, code, says } = hostile;
            assert!(body.len() <= 3 << 20, "{name} has {} bytes", body.len());
            let started = cpu_time(&env);
            let answer = client.send(method, path, &[("content-type", content_type)], body).await;
            let took = cpu_time(&env) - started;
            let (text, memory) = (answer.text(), peak_memory());
            say(&format!(
                "answered {name}: {} in {took:?}, peak {} MiB, {} bytes",
                answer.status,
                memory / 1024,
                text.len()
            ));
            let mut check = |holds: bool, why: &str| {
                if !holds {
                    wrong.push(format!("{name}: {why}: {} {}", answer.status, cut(&text)));
                }
            };
            check(code == 0 || answer.status == code, "another code was expected");
            check(code == 500 || answer.status != 500, "no request makes a server fail");
            check(text.contains(says), says);
            check(took < DEADLINE, "it took too long");
            check(memory < most_memory(part), "it needed too much memory");
        }
        assert_eq!(wrong, Vec::<String>::new());
        // The server still works.
        let (status, _) = client.call("GET", "/apis", serde_json::Value::Null).await;
        assert_eq!(status, 200);
        say("all are answered");
    });
}

#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn say(line: &str) {
    println!("{line}");
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(600)).unwrap_or_default()
}

/// The CPU time of this process, or the elapsed time where it is not available.
fn cpu_time(env: &Env) -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = |place: usize| fields.split(' ').nth(place).and_then(|ticks| ticks.parse::<u64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Duration::from_millis((user + system) * 10),
        _ => env.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default(),
    }
}

/// The peak memory of this process, in KiB; 0 where it is not available.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or_default()
}
