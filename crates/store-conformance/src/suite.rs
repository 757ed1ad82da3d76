//! The list of cases and their runner.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use k1s_env::Env;

use super::{Backend, cases::*, support::Suite};

/// Maximum duration of a case; a longer one hangs.
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
    /// Checks the promise. Must run on a tokio runtime with a timer, preferably multi-threaded.
    ///
    /// # Panics
    /// If the promise is broken; the message describes how.
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

/// Runs `test` on its own multi-threaded tokio runtime, as the suite runs its cases.
///
/// # Panics
/// If `test` panics, or if no runtime can be started.
pub fn run_async<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a tokio runtime can be started")
        .block_on(test)
}

/// Runs the case with this name; [`conformance_tests!`](crate::conformance_tests) expands to calls of it.
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
        /// The argument is an expression of type [`Backend`](crate::Backend); it is evaluated for each case.
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
        creating_an_existing_key_conflicts_and_returns_its_entry,
        a_stale_update_or_delete_conflicts_and_returns_the_current_entry,
        updating_or_deleting_an_absent_key_conflicts_without_an_entry,
        an_unconditional_put_or_delete_always_succeeds,
        a_put_that_must_exist_replaces_and_never_creates,
        deleting_an_absent_key_takes_no_revision,
        an_empty_value_is_not_an_absent_key,
        large_values_are_kept_whole,
        statistics_report_keys_revision_and_oldest,
    }
    transactions {
        a_transaction_is_atomic_and_takes_one_revision,
        a_failed_precondition_writes_nothing,
        a_check_is_a_precondition_without_a_write,
        a_transaction_that_only_checks_takes_no_revision,
        invalid_transactions_are_refused,
        oversized_writes_are_refused,
        the_largest_allowed_transaction_is_accepted,
        racing_creates_have_one_winner,
        racing_counters_lose_no_update,
    }
    ranges {
        keys_are_ordered_as_bytes,
        a_prefix_is_matched_as_bytes,
        a_start_key_and_a_prefix_narrow_a_range_together,
        a_limited_range_reports_whether_there_is_more,
        pages_read_during_writes_are_one_snapshot,
    }
    history {
        every_past_revision_can_be_read,
        a_range_at_a_past_revision_has_the_entries_of_that_revision,
        a_future_revision_cannot_be_read,
    }
    compaction {
        compaction_removes_earlier_revisions,
        compaction_keeps_current_entries,
        a_watch_from_before_the_compaction_is_refused,
        a_watch_from_the_compaction_on_works,
        compacting_to_the_same_or_an_earlier_revision_changes_nothing,
        compacting_to_a_future_revision_is_an_error,
    }
    watching {
        a_watch_from_now_sees_new_changes,
        a_watch_from_a_past_revision_sees_every_later_change,
        a_watch_from_a_future_revision_is_refused,
        events_carry_the_previous_entry,
        events_distinguish_creation_update_and_deletion,
        a_transaction_arrives_as_one_change_filtered_by_prefix,
        watch_prefixes_are_matched_as_bytes,
        a_watch_resumed_after_any_item_sees_the_same_rest,
        tenants_see_only_their_own_changes,
        list_then_watch_misses_nothing_and_repeats_nothing,
        a_change_that_a_watch_yielded_can_be_read,
    }
    progress {
        a_requested_mark_is_not_older_than_the_request,
        a_requested_mark_covers_writes_under_other_prefixes,
        a_mark_is_never_ahead_of_events,
        a_watch_can_resume_from_a_mark,
        a_requested_mark_is_not_older_than_any_earlier_read,
    }
    crowds {
        unread_watches_block_no_writer,
        a_watch_read_late_gets_everything_in_order,
        a_watch_lagging_behind_a_compaction_gets_everything_or_an_error,
        a_watch_lagging_behind_a_short_history_gets_everything_or_an_error,
        a_read_during_writes_sees_whole_transactions,
    }
    lifetime {
        a_closed_store_refuses_everything,
        closing_ends_watches_after_they_yielded_everything,
        closing_wakes_waiting_watches,
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
        assert!(cases().iter().all(|case| seen.insert(case.name)), "two cases have the same name");
    }
}
