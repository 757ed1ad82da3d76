//! The state of a manager as text, for `/debug/pprof/goroutine`.

use std::{fmt::Write as _, time::Duration};

use super::{Inner, describe};

/// Tasks, work in flight with its age, queues and informers.
pub(super) fn describe_state(inner: &Inner) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_state(inner, &mut text);
    text
}

fn write_state(inner: &Inner, text: &mut String) -> std::fmt::Result {
    let tasks = inner.cluster.env().tasks();
    let running: usize = tasks.iter().map(k1s_env::TaskInfo::running).sum();
    writeln!(text, "tasks: {running} running")?;
    for task in &tasks {
        writeln!(text, "  {:>6} {}", task.running(), task.name)?;
    }

    let work = inner.cluster.work().running();
    writeln!(text, "\nwork: {} in flight, the oldest first", work.len())?;
    for unit in &work {
        writeln!(text, "  {unit}")?;
    }

    writeln!(text, "\nwork by component:")?;
    for stats in inner.cluster.work().stats() {
        let oldest =
            stats.oldest.map_or_else(String::new, |age| format!(", the oldest for {}", format_age(age)));
        let refusing = if stats.accepting { "" } else { ", accepts no more" };
        writeln!(
            text,
            "  {}: {} in flight{oldest} (at most {} at once); {} started, {} succeeded, {} failed, {} panicked, {} refused{refusing}",
            stats.name,
            stats.in_flight,
            stats.peak,
            stats.started,
            stats.succeeded,
            stats.failed,
            stats.panicked,
            stats.refused
        )?;
    }

    let controllers: Vec<_> = inner.controllers.lock().values().cloned().collect();
    writeln!(text, "\nqueues:")?;
    for controller in controllers {
        let (state, stats) = (controller.state(), controller.stats());
        let due = state.next_due.map_or_else(String::new, |due| {
            format!(", the next one in {}", format_age(due - inner.cluster.env().now()))
        });
        writeln!(
            text,
            "  {}: {} ready, {} processing, {} retrying, {} delayed{due}; {} reconciles, {} errors, {} panics",
            controller.name(),
            state.ready,
            state.processing,
            state.retrying,
            state.delayed,
            stats.reconciles,
            stats.errors,
            stats.panics
        )?;
        for waiting in controller.waiting_for() {
            writeln!(text, "    waits for {}", describe(waiting))?;
        }
    }

    writeln!(text, "\ninformers:")?;
    for informer in inner.cluster.cache().informer_states() {
        let synced = if informer.synced { "synced" } else { "not synced yet" };
        let ahead = if informer.ahead { ", own writes not observed yet" } else { "" };
        let problem = informer.problem.map_or_else(String::new, |problem| format!("; {problem}"));
        writeln!(text, "  {}: {synced}, {} objects{ahead}{problem}", informer.name, informer.objects)?;
    }

    let leader = match &inner.options.leader_election {
        None => "none",
        Some(_) if inner.is_leader.is_cancelled() => "this replica leads",
        Some(_) => "this replica does not lead",
    };
    writeln!(text, "\nelection: {leader}")
}

fn format_age(age: Duration) -> String {
    if age < Duration::from_secs(1) {
        format!("{}ms", age.as_millis())
    } else {
        format!("{:.1}s", age.as_secs_f64())
    }
}
