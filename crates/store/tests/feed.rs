//! Tests of the feed: where a watch finds its changes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::{
    Change, Error, Event, Previous, Result, Revision, Watch, WatchItem, WatchRequest,
    feed::{Backfill, Backfilled, Feed, FeedOptions},
};
use k1s_store_conformance::run_async;

/// A backend's history: all changes, and the number of requests for them.
#[derive(Default)]
struct Log {
    changes: Mutex<Vec<Arc<Change>>>,
    oldest: Mutex<Revision>,
    asked: AtomicUsize,
}

#[async_trait]
impl Backfill for Log {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let after = request.after.expect("a feed always says where to begin");
        let oldest = *self.oldest.lock().unwrap();
        if after < oldest {
            return Err(Error::Compacted { requested: after, oldest });
        }
        let changes = self.changes.lock().unwrap();
        let later: Vec<_> = changes.iter().filter(|change| change.revision() > after).take(3).collect();
        Ok(Backfilled {
            changes: later.iter().filter_map(|change| change.under(&request.prefix)).collect(),
            through: later.last().map_or(after, |change| change.revision()),
        })
    }
}

/// A feed with a small ring, and the history behind it.
struct Bench {
    env: Env,
    feed: Feed,
    log: Arc<Log>,
}

impl Bench {
    fn new() -> Self {
        Self::with_ring(4)
    }

    fn with_ring(changes: usize) -> Self {
        let (env, _clock) = Env::simulated(1);
        let options = FeedOptions { changes, ..FeedOptions::default() };
        let feed = Feed::new(env.clone(), options, Revision::FIRST, Revision::FIRST);
        Self { env, feed, log: Arc::default() }
    }

    /// Writes to history only.
    fn log(&self, change: &Arc<Change>) {
        self.log.changes.lock().unwrap().push(change.clone());
    }

    /// Writes to history and feed, as a backend does.
    fn write(&self, revision: u64, key: &'static str) {
        let change = change(revision, key, true);
        self.log(&change);
        self.feed.publish(change, true);
    }

    fn watch(&self, prefix: &'static str, after: u64) -> Watch {
        let request = WatchRequest::prefix(prefix).after(Revision::new(after)).previous(true);
        self.feed.watch(request, self.log.clone()).unwrap()
    }

    fn asked(&self) -> usize {
        self.log.asked.load(Ordering::Relaxed)
    }
}

fn change(revision: u64, key: &'static str, previous: bool) -> Arc<Change> {
    let previous =
        previous.then(|| Previous { value: "before".into(), revision: Revision::new(revision - 1) });
    let event = Event { key: key.into(), value: Some("now".into()), created: false, previous };
    Arc::new(Change::new(Revision::new(revision), [event]))
}

/// The revisions that the watch yields before a progress mark at `until` or later.
async fn read(watch: &mut Watch, until: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    watch.request_progress();
    loop {
        match next(watch).await {
            Some(Ok(WatchItem::Change(change))) => {
                assert!(change.events()[0].previous.is_some(), "asked for previous values: {change:?}");
                seen.push(change.revision().get());
            }
            Some(Ok(WatchItem::Progress(mark))) if mark.get() >= until => return seen,
            other => panic!("the watch ended with {other:?} after {seen:?}"),
        }
    }
}

async fn next(watch: &mut Watch) -> Option<Result<WatchItem>> {
    Env::system().timeout(Duration::from_secs(30), watch.next()).await.expect("timed out")
}

#[test]
fn changes_in_the_ring_need_no_history() {
    run_async(async {
        let bench = Bench::new();
        for revision in 2..=5 {
            bench.write(revision, "/a");
        }
        assert_eq!(read(&mut bench.watch("/a", 1), 5).await, [2, 3, 4, 5]);
        assert_eq!(read(&mut bench.watch("/a", 3), 5).await, [4, 5]);
        assert_eq!(bench.asked(), 0);
    });
}

#[test]
fn a_watch_from_before_the_ring_reads_history_page_by_page() {
    run_async(async {
        let bench = Bench::new();
        for revision in 2..=12 {
            bench.write(revision, if revision % 2 == 0 { "/a" } else { "/b" });
        }
        assert_eq!(read(&mut bench.watch("/a", 1), 12).await, [2, 4, 6, 8, 10, 12]);
        // The ring has 9 to 12; history gave 2 to 4, 5 to 7 and 8 to 10.
        assert_eq!(bench.asked(), 3);
    });
}

#[test]
fn a_watch_that_falls_off_the_ring_comes_back_through_history() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/a", 1);
        bench.write(2, "/a");
        assert_eq!(read(&mut watch, 2).await, [2]);
        for revision in 3..=20 {
            bench.write(revision, "/a");
        }
        assert_eq!(read(&mut watch, 20).await, (3..=20).collect::<Vec<_>>());
        assert!(bench.asked() > 0);
        // And it reads from the ring again.
        let asked = bench.asked();
        bench.write(21, "/a");
        assert_eq!(read(&mut watch, 21).await, [21]);
        assert_eq!(bench.asked(), asked);
    });
}

#[test]
fn a_quiet_watch_does_not_fall_off_the_ring() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/quiet", 1);
        assert_eq!(read(&mut watch, 1).await, [0; 0]);
        for revision in 2..=40 {
            bench.write(revision, "/busy");
        }
        bench.write(41, "/quiet");
        assert_eq!(read(&mut watch, 41).await, [41]);
        assert_eq!(bench.asked(), 0, "changes under one prefix do not affect watches of another");
    });
}

#[test]
fn a_watch_that_falls_off_the_history_fails_with_compacted() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/a", 1);
        bench.write(2, "/a");
        assert_eq!(read(&mut watch, 2).await, [2]);
        for revision in 3..=20 {
            bench.write(revision, "/a");
        }
        *bench.log.oldest.lock().unwrap() = Revision::new(10);
        bench.feed.compact(Revision::new(10));
        let end = next(&mut watch).await;
        assert_eq!(
            end,
            Some(Err(Error::Compacted { requested: Revision::new(2), oldest: Revision::new(10) }))
        );
        assert_eq!(next(&mut watch).await, None, "an error is the last item");
        let refused = bench.feed.watch(WatchRequest::prefix("/a").after(Revision::new(9)), bench.log.clone());
        assert!(matches!(refused, Err(Error::Compacted { .. })), "{refused:?}");
        assert_eq!(read(&mut bench.watch("/a", 10), 20).await, (11..=20).collect::<Vec<_>>());
    });
}

#[test]
fn history_that_is_ahead_of_the_feed_is_not_repeated() {
    run_async(async {
        let bench = Bench::with_ring(1);
        for revision in 2..=9 {
            bench.write(revision, "/a");
        }
        // The backend has 10 already, but has not published it. The ring has only 9, so a watch after 7
        // reads a page of history: 8, 9 and 10.
        let tenth = change(10, "/a", true);
        bench.log(&tenth);
        let mut watch = bench.watch("/a", 7);
        let mut seen = read(&mut watch, 10).await;
        assert_eq!(seen, [8, 9, 10]);
        // Now the watch waits for publications.
        bench.feed.publish(tenth, true);
        // While it is still in the ring, which has room for one.
        seen.extend(read(&mut watch, 10).await);
        bench.write(11, "/a");
        seen.extend(read(&mut watch, 11).await);
        assert_eq!(seen, [8, 9, 10, 11], "each once");
    });
}

#[test]
fn a_change_published_without_previous_values_is_read_from_history_by_watches_that_need_them() {
    run_async(async {
        let bench = Bench::new();
        let mut wants = bench.watch("/a", 1);
        let plain = WatchRequest::prefix("/a").after(Revision::FIRST);
        let mut plain = bench.feed.watch(plain, bench.log.clone()).unwrap();
        assert!(bench.feed.wants_previous(b"/a/1") && !bench.feed.wants_previous(b"/b"));
        assert_eq!(read(&mut wants, 1).await, [0; 0]);
        for revision in 2..=4 {
            bench.log(&change(revision, "/a", true));
            bench.feed.publish(change(revision, "/a", false), false);
        }
        for revision in 2..=4 {
            let item = next(&mut plain).await;
            assert!(
                matches!(&item, Some(Ok(WatchItem::Change(change))) if change.revision().get() == revision),
                "{item:?}"
            );
        }
        assert_eq!(bench.asked(), 0, "a watch without previous values needs no history");
        assert_eq!(read(&mut wants, 4).await, [2, 3, 4]);
        assert!(bench.asked() > 0);
        drop(wants);
        assert!(!bench.feed.wants_previous(b"/a/1"));
    });
}

#[test]
fn after_a_restart_watches_read_unpublished_changes_from_history() {
    run_async(async {
        let bench = Bench::new();
        let mut reading = bench.watch("/a", 1);
        let mut unread = bench.watch("/a", 1);
        bench.write(2, "/a");
        assert_eq!(read(&mut reading, 2).await, [2]);
        for revision in 3..=6 {
            bench.log(&change(revision, "/a", true)); // lost on the way
        }
        bench.feed.restart(Revision::new(6));
        bench.write(7, "/a");
        assert_eq!(read(&mut reading, 7).await, [3, 4, 5, 6, 7]);
        assert_eq!(read(&mut unread, 7).await, [2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn a_restart_wakes_watches_that_wait() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/a", 1);
        assert_eq!(read(&mut watch, 1).await, [0; 0]);
        let waiting = bench.env.spawn("reader", async move { next(&mut watch).await });
        bench.log(&change(2, "/a", true));
        bench.feed.restart(Revision::new(2));
        let item = waiting.await.unwrap();
        assert!(
            matches!(&item, Some(Ok(WatchItem::Change(change))) if change.revision().get() == 2),
            "{item:?}"
        );
    });
}

#[test]
fn advancing_moves_marks_without_a_change() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/a", 1);
        bench.feed.advance(Revision::new(9));
        assert_eq!(read(&mut watch, 9).await, [0; 0]);
        bench.write(10, "/a");
        assert_eq!(read(&mut watch, 10).await, [10]);
        bench.feed.advance(Revision::new(5));
        assert_eq!(bench.feed.revision(), Revision::new(10), "an old revision does not move it back");
    });
}

#[test]
fn the_dispatcher_ends_with_the_feed() {
    run_async(async {
        let Bench { env, feed, log } = Bench::new();
        let watch = feed.watch(WatchRequest::prefix("/a"), log.clone()).unwrap();
        assert_eq!(env.tasks().len(), 1, "{:?}", env.tasks());
        drop(watch);
        drop(feed);
        ended(&env).await;
    });
}

#[test]
fn the_dispatcher_ends_when_the_feed_is_closed_and_the_last_watch_is_gone() {
    run_async(async {
        let bench = Bench::new();
        let mut watch = bench.watch("/a", 1);
        bench.write(2, "/a");
        bench.feed.close();
        assert!(matches!(next(&mut watch).await, Some(Ok(WatchItem::Change(_)))));
        assert_eq!(next(&mut watch).await, None);
        drop(watch);
        ended(&bench.env).await;
        let refused = bench.feed.watch(WatchRequest::prefix("/a"), bench.log.clone());
        assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        assert!(bench.env.tasks().is_empty());
    });
}

async fn ended(env: &Env) {
    let ended = Env::system().timeout(Duration::from_secs(30), env.tasks_ended()).await;
    assert!(ended.is_ok(), "still running: {:?}", env.tasks());
}

#[test]
fn watches_are_woken_even_if_the_runtime_of_the_first_one_is_gone() {
    let bench = Bench::new();
    // The task that wakes watches was started here, and dies here.
    let early = run_async(async { bench.watch("/a", 1) });
    run_async(async {
        let mut watch = bench.watch("/a", 1);
        assert_eq!(read(&mut watch, 1).await, [0; 0]);
        let waiting = bench.env.spawn("reader", async move { next(&mut watch).await });
        bench.write(2, "/a");
        assert!(matches!(waiting.await.unwrap(), Some(Ok(WatchItem::Change(_)))));
    });
    run_async(async move {
        let mut early = early;
        bench.write(3, "/a");
        assert_eq!(read(&mut early, 3).await, [2, 3]);
    });
}

#[test]
fn values_in_the_ring_share_their_memory_with_callers() {
    let bench = Bench::with_ring(2);
    for (revision, key) in [(2, "/a/1"), (4, "/a/2"), (7, "/a/1")] {
        bench.write(revision, key);
    }
    let recalled = bench.feed.recall(b"/a/1", Revision::new(7)).unwrap();
    let log = bench.log.changes.lock().unwrap();
    let written = log[2].events()[0].value.as_ref().unwrap();
    assert_eq!((&recalled.key[..], &recalled.value, recalled.revision.get()), (&b"/a/1"[..], written, 7));
    assert_eq!(recalled.value.as_ptr(), written.as_ptr(), "the memory is not shared");
    // Dropped, of another key, never written.
    for (key, revision) in [("/a/1", 2), ("/a/1", 4), ("/a/2", 5), ("/a/1", 8)] {
        assert_eq!(bench.feed.recall(key.as_bytes(), Revision::new(revision)), None, "{key} at {revision}");
    }
}

#[test]
fn watches_are_woken_even_if_the_runtime_of_the_first_one_is_idle() {
    let bench = Bench::new();
    let idle = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // The task that wakes watches was started here, where nothing runs now.
    let _early = idle.block_on(async { bench.watch("/a", 1) });
    run_async(async {
        let mut watch = bench.watch("/a", 1);
        assert_eq!(read(&mut watch, 1).await, [0; 0]);
        let mut waiting = std::pin::pin!(next(&mut watch));
        let first = std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context)));
        assert!(first.await.is_pending());
        bench.write(2, "/a");
        assert!(matches!(waiting.await, Some(Ok(WatchItem::Change(_)))));
    });
}
