//! The list of cases, and how one is run.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use k1s_env::Env;

use super::{Backend, cases::*, support::Suite};

/// No case takes this long unless something in it hangs.
const CASE_LIMIT: Duration = Duration::from_secs(300);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One promise and the code that checks it.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise, as a sentence in `snake_case`.
    pub name: &'static str,
    run: fn(Arc<dyn Backend>) -> Running,
}

impl Case {
    /// Checks the promise. Must run on a tokio runtime with a timer, better with several threads.
    ///
    /// # Panics
    /// If the promise is broken, with a message that says how.
    pub async fn run(&self, backend: Arc<dyn Backend>) {
        let ended = Env::system().timeout(CASE_LIMIT, (self.run)(backend)).await;
        assert!(ended.is_ok(), "`{}` did not end within {CASE_LIMIT:?}: something hangs", self.name);
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs `test` on a tokio runtime of its own with several threads, as the suite runs its cases.
///
/// # Panics
/// If `test` does, or if there is no runtime to be had.
pub fn run_async<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a tokio runtime can be started")
        .block_on(test)
}

/// Runs the case of this name; what [`conformance_tests!`](crate::conformance_tests) expands to.
///
/// # Panics
/// If the promise is broken, and if there is no such case.
pub fn run(name: &str, backend: impl Backend) {
    let case = cases().into_iter().find(|case| case.name == name).expect("the case is in the list");
    run_async(case.run(Arc::new(backend)));
}

macro_rules! suite {
    ($dollar:tt $($module:ident { $($name:ident,)* })*) => {
        /// Every case of the suite.
        pub fn cases() -> Vec<Case> {
            vec![$($(
                Case {
                    name: stringify!($name),
                    run: |backend| Box::pin(async move { $module::$name(&Suite::new(backend)).await }),
                },
            )*)*]
        }

        /// Expands to a `#[test]` for each case of the [suite](crate).
        ///
        /// The argument is an expression that makes a [`Backend`](crate::Backend); it is
        /// evaluated for each case.
        #[macro_export]
        macro_rules! conformance_tests {
            ($dollar backend:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        $crate::run(stringify!($name), $dollar backend);
                    }
                )*)*
            };
        }
    };
}

suite! { $
    writes {
        an_empty_store_has_a_revision_that_grows_with_writes,
        a_value_is_created_read_updated_and_deleted,
        creating_what_exists_conflicts_with_what_is_there,
        a_stale_update_or_delete_conflicts_with_what_is_there,
        updating_or_deleting_what_is_absent_conflicts_with_nothing,
        an_unconditional_put_and_delete_ask_nothing,
        a_put_that_must_exist_replaces_and_never_creates,
        deleting_what_is_absent_takes_no_revision,
        an_empty_value_is_not_absence,
        large_values_are_kept_whole,
        statistics_tell_keys_revision_and_oldest,
    }
    transactions {
        a_transaction_is_atomic_and_takes_one_revision,
        a_failed_precondition_leaves_nothing_behind,
        a_check_guards_without_writing,
        a_transaction_that_only_checks_takes_no_revision,
        what_makes_no_sense_is_refused,
        what_is_too_large_is_refused,
        the_largest_transaction_is_taken,
        racing_creates_have_one_winner,
        racing_counters_lose_no_update,
    }
    ranges {
        keys_are_ordered_as_bytes,
        a_prefix_is_matched_as_bytes,
        a_start_key_and_a_prefix_narrow_a_range_together,
        a_limit_says_whether_there_is_more,
        pages_read_under_writes_are_one_moment,
    }
    history {
        the_past_can_be_read_at_every_revision,
        a_range_of_the_past_has_what_was_there,
        the_future_cannot_be_read,
    }
    compaction {
        compaction_forgets_what_is_before_it,
        compaction_keeps_what_is_there_now,
        a_watch_from_before_the_compaction_is_refused,
        a_watch_from_the_compaction_on_works,
        compacting_again_or_less_changes_nothing,
        compacting_the_future_is_an_error,
    }
    watching {
        a_watch_from_now_sees_what_comes,
        a_watch_from_the_past_sees_what_was,
        a_watch_from_the_future_is_refused,
        events_tell_what_was_there_before,
        events_tell_creation_update_and_deletion,
        a_transaction_arrives_as_one_change_cut_to_the_prefix,
        prefixes_of_a_watch_are_bytes,
        a_watch_resumed_after_any_item_sees_the_same_rest,
        tenants_see_only_their_own,
        list_then_watch_misses_nothing_and_repeats_nothing,
        what_a_watch_has_yielded_can_be_read,
    }
    progress {
        a_mark_on_request_is_as_new_as_the_request,
        a_mark_comes_though_only_others_wrote,
        a_mark_is_never_ahead_of_events,
        a_mark_can_be_resumed_from,
        a_mark_on_request_is_as_new_as_any_read_before_it,
    }
    crowds {
        watches_that_nobody_reads_block_no_writer,
        a_watch_read_late_gets_everything_in_order,
        a_watch_behind_the_compaction_hears_of_it,
        a_watch_behind_a_short_history_hears_of_it,
        a_reader_during_writes_sees_whole_transactions,
    }
    lifetime {
        a_closed_store_refuses_everything,
        closing_ends_watches_after_everything_was_yielded,
        closing_wakes_watches_that_wait,
        reopening_keeps_entries_and_revisions,
        reopening_keeps_history_and_compaction,
        a_watch_resumes_across_a_reopening,
    }
    searches {
        random_operations_agree_with_a_model,
        watch_promises_hold_under_load,
        watch_promises_hold_under_load_and_compaction,
        concurrent_histories_are_linearizable,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::cases;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        assert!(cases().iter().all(|case| seen.insert(case.name)), "two cases have one name");
    }
}
