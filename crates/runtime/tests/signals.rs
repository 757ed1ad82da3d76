//! A process with a manager and the signals that end it: gracefully in three logged phases, or immediately.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the child process reports to the test")]

mod common;

use std::{
    io::{BufReader, Read as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::World;
use k1s_runtime::{
    Action, BoxError, Context, Controller, Manager, ObjectKey, Request, shutdown_on_signals, source,
};
use rustix::process::{Pid, Signal, kill_process};

/// Set in the child process: the duration of its reconcile in milliseconds.
const CHILD: &str = "K1S_TEST_SIGNALS";

fn child(test: &str, reconcile: Duration) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, reconcile.as_millis().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Reads lines until one contains `text`.
fn wait_for(output: &mut impl std::io::BufRead, text: &str) {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if line.contains(text) {
            return;
        }
        line.clear();
    }
    panic!("the process ended without printing {text:?}");
}

async fn be_the_child() {
    let Ok(millis) = std::env::var(CHILD) else { return };
    let reconcile = Duration::from_millis(millis.parse().unwrap());
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let world = World::new().await;
    let manager = Manager::new(world.kube.clone(), world.options()).unwrap();
    let stop = shutdown_on_signals(manager.env());
    let env = world.env.clone();
    let controller = Controller::managed_by(&manager)
        .named("slow")
        .watches_raw_source(source::func("none", |_: source::SourceContext| async {}))
        .build(move |_: Request, _: Context| {
            let env = env.clone();
            async move {
                println!("reconciling");
                env.sleep(reconcile).await;
                println!("reconciled");
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    controller.queue().add(ObjectKey::namespaced("default", "a"));
    let ended = manager.start(stop).await;
    println!("ended: {ended:?}");
    std::process::exit(i32::from(ended.is_err()));
}

#[tokio::test]
async fn one_signal_ends_the_manager_in_three_phases() {
    be_the_child().await;
    let mut child = child("one_signal_ends_the_manager_in_three_phases", Duration::from_millis(300));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut output, "reconciling");
    signal(&child, Signal::TERM);
    wait_for(&mut output, "reconciled");
    wait_for(&mut output, "ended: Ok(())");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let mut rest = &log[..];
    for phase in [
        "Received shutdown signal, initiating graceful shutdown",
        "Phase 1: Stopping acceptance of new reconcile requests",
        "Phase 2: Waiting for active reconciliation to complete",
        "All reconciliation work completed",
        "Phase 3: Force stopping all controllers",
        "All controllers shut down gracefully",
    ] {
        let at = rest.find(phase).unwrap_or_else(|| panic!("{phase:?} is missing or out of order:\n{log}"));
        rest = &rest[at..];
    }
    let waiting = log.lines().find(|line| line.contains("Phase 2")).unwrap();
    assert!(waiting.contains("controller=slow") && waiting.contains("remaining=Some("), "{waiting}");
}

#[tokio::test]
async fn a_second_signal_ends_the_process_immediately() {
    be_the_child().await;
    let mut child = child("a_second_signal_ends_the_process_immediately", Duration::from_secs(600));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut log = BufReader::new(child.stderr.take().unwrap());
    wait_for(&mut output, "reconciling");
    signal(&child, Signal::INT);
    wait_for(&mut log, "Phase 2");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
