//! Feeds events into the graph and checks the resulting jobs.

use super::*;

fn reference(uid: &str, blocking: bool) -> Reference {
    Reference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: uid.into(),
        uid: uid.into(),
        controller: None,
        block_owner_deletion: Some(blocking),
    }
}

fn meta(uid: &str, owners: &[(&str, bool)]) -> Meta {
    let owner_references = owners.iter().map(|(uid, blocking)| reference(uid, *blocking)).collect();
    Meta { uid: uid.into(), name: uid.into(), namespace: "n".into(), owner_references, ..Meta::default() }
}

fn deleting(finalizer: &str, meta: Meta) -> Meta {
    let finalizers = if finalizer.is_empty() { vec![] } else { vec![finalizer.into(), "other".into()] };
    Meta { deletion_timestamp: Some(jiff::Timestamp::UNIX_EPOCH), finalizers, ..meta }
}

fn put(graph: &mut Graph, meta: &Meta) {
    graph.put(&Resource::new("", "configmaps"), meta);
}

fn loaded() -> Graph {
    let mut graph = Graph::new(true);
    graph.loaded();
    graph
}

/// Runs all jobs, answering every check with `verdict`.
fn work(graph: &mut Graph, verdict: Verdict) -> Vec<(String, Job)> {
    let mut jobs = Vec::new();
    for uid in graph.take_due() {
        while let Some(work) = graph.next(&uid) {
            if let Job::Check(references) = &work.job {
                let verdicts = references.iter().map(|one| (one.clone(), verdict)).collect();
                if graph.judge(&uid, &work, verdicts) {
                    continue;
                }
            } else {
                jobs.push((uid.to_string(), work.job));
            }
            break;
        }
    }
    jobs.sort_by(|a, b| a.0.cmp(&b.0));
    jobs
}

const LIVE: Verdict = Verdict::Live { namespaced: true };

#[test]
fn only_the_first_dependent_checks_its_owner() {
    let mut graph = loaded();
    for uid in ["a", "b", "c"] {
        put(&mut graph, &meta(uid, &[("o", false)]));
        let asked = graph.next(&uid.into());
        assert_eq!(asked.is_some(), uid == "a");
        if let Some(work) = asked {
            assert!(graph.judge(&"a".into(), &work, vec![(reference("o", false), LIVE)]));
        }
    }
    assert_eq!(work(&mut graph, Verdict::Absent), []);
    graph.delete("o");
    let all = work(&mut graph, Verdict::Unknown);
    assert_eq!(all.iter().map(|(uid, _)| &**uid).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(all.iter().all(|(_, job)| *job == Job::Delete(Policy::Background)));
    for uid in ["a", "b", "c"] {
        graph.delete(uid);
    }
    assert_eq!(graph.size(), (0, 0));
}

#[test]
fn an_owner_deleted_while_it_is_checked_is_absent() {
    let mut graph = loaded();
    put(&mut graph, &meta("a", &[("o", false)]));
    let uid: Uid = "a".into();
    let asked = graph.next(&uid).unwrap();
    graph.delete("o");
    assert!(graph.judge(&uid, &asked, vec![(reference("o", false), LIVE)]));
    assert_eq!(work(&mut graph, LIVE), [("a".to_owned(), Job::Delete(Policy::Background))]);
    assert!(graph.checking.is_empty());
}

#[test]
fn blocking_dependents_are_counted_as_their_references_change() {
    let mut graph = loaded();
    put(&mut graph, &meta("a", &[("o", true), ("o", false)]));
    put(&mut graph, &meta("b", &[("o", false)]));
    assert_eq!(graph.owners["o"].blocking, 1);
    put(&mut graph, &meta("b", &[("o", true)]));
    assert_eq!(graph.owners["o"].blocking, 2);
    put(&mut graph, &meta("a", &[("o", false)]));
    assert_eq!(graph.owners["o"].blocking, 1);
    put(&mut graph, &meta("b", &[]));
    assert_eq!((graph.owners["o"].blocking, graph.owners["o"].dependents.len()), (0, 1));
    put(&mut graph, &meta("a", &[]));
    assert_eq!(graph.size(), (0, 0));
}

#[test]
fn a_cycle_of_waiting_objects_is_unblocked_and_a_chain_is_not() {
    let waiting = |uid: &str, owners: &[(&str, bool)]| deleting(FOREGROUND, meta(uid, owners));
    let mut graph = loaded();
    put(&mut graph, &waiting("o", &[]));
    put(&mut graph, &waiting("m", &[("o", true)]));
    put(&mut graph, &waiting("d", &[("m", true)]));
    put(&mut graph, &deleting("", meta("e", &[("d", true)])));
    assert_eq!(work(&mut graph, LIVE), []);
    let mut graph = loaded();
    put(&mut graph, &waiting("a", &[("c", true)]));
    put(&mut graph, &waiting("b", &[("a", true)]));
    put(&mut graph, &waiting("c", &[("b", true)]));
    let unblocked = work(&mut graph, LIVE);
    assert!(unblocked.contains(&("a".to_owned(), Job::Refer(vec![reference("c", false)]))), "{unblocked:?}");
}

#[test]
fn an_object_that_no_longer_waits_loses_only_that_finalizer() {
    let mut graph = loaded();
    put(&mut graph, &deleting(FOREGROUND, meta("o", &[])));
    put(&mut graph, &deleting(ORPHAN, meta("p", &[])));
    let finish = |uid: &str| (uid.to_owned(), Job::Finish(vec!["other".into()]));
    assert_eq!(work(&mut graph, LIVE), [finish("o"), finish("p")]);
}

#[test]
fn a_reference_to_an_unserved_kind_is_checked_again_when_kinds_change() {
    let mut graph = loaded();
    put(&mut graph, &meta("a", &[("o", false)]));
    assert_eq!(work(&mut graph, Verdict::Unserved), []);
    assert_eq!(work(&mut graph, Verdict::Absent), []);
    graph.kinds_changed();
    assert_eq!(work(&mut graph, Verdict::Absent), [("a".to_owned(), Job::Delete(Policy::Background))]);
}

#[test]
fn nothing_is_decided_while_the_graph_is_being_filled() {
    let mut graph = Graph::new(true);
    put(&mut graph, &deleting(FOREGROUND, meta("o", &[])));
    assert_eq!(graph.take_due(), Vec::<Uid>::new());
    assert!(graph.next(&"o".into()).is_none());
    put(&mut graph, &meta("d", &[("o", true)]));
    graph.loaded();
    let jobs = work(&mut graph, LIVE);
    assert_eq!(jobs, [("d".to_owned(), Job::Delete(Policy::Background))], "the owner waits for it");
}

#[test]
fn an_object_processed_while_the_graph_is_being_filled_is_processed_again() {
    let mut graph = loaded();
    put(&mut graph, &deleting(FOREGROUND, meta("o", &[])));
    assert_eq!(graph.take_due().len(), 1);
    graph.begin();
    assert!(graph.next(&"o".into()).is_none());
    graph.loaded();
    assert_eq!(work(&mut graph, LIVE), [("o".to_owned(), Job::Finish(vec!["other".into()]))]);
}

#[test]
fn results_for_a_graph_that_was_reset_are_ignored() {
    let mut graph = loaded();
    put(&mut graph, &meta("a", &[("o", false)]));
    let uid: Uid = "a".into();
    let asked = graph.next(&uid).unwrap();
    graph.reset(true);
    put(&mut graph, &meta("a", &[("o", false)]));
    graph.loaded();
    graph.judge(&uid, &asked, vec![(reference("o", false), LIVE)]);
    assert_eq!(work(&mut graph, Verdict::Absent), [("a".to_owned(), Job::Delete(Policy::Background))]);
}

#[test]
fn with_unordered_events_an_owner_that_was_never_observed_is_checked_again() {
    let mut graph = Graph::new(false);
    graph.loaded();
    put(&mut graph, &meta("a", &[("o", false)]));
    assert_eq!(work(&mut graph, LIVE), []);
    // Its creation and deletion were both missed, so only another check can tell.
    let uid: Uid = "a".into();
    let asked = graph.next(&uid).unwrap();
    assert!(graph.judge(&uid, &asked, vec![(reference("o", false), Verdict::Absent)]));
    assert_eq!(graph.next(&uid).unwrap().job, Job::Delete(Policy::Background));
    // An owner that was observed is not checked again.
    put(&mut graph, &meta("p", &[]));
    put(&mut graph, &meta("b", &[("p", false)]));
    graph.due.retain(|uid| **uid == *"b");
    assert_eq!(work(&mut graph, LIVE), []);
    assert!(graph.next(&"b".into()).is_none());
}
