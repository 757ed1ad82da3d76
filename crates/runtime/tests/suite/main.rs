//! One suite for every control plane: in this process on memory, on a disk and on etcd, and by HTTPS over a network that
//! drops connections all the time. What a controller is promised does not depend on where its objects are.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod plane;
mod proxy;
mod scenarios;

use plane::{Backend, Plane};

/// Runs each scenario on a backend, as a test of its own.
macro_rules! suite {
    ($backend:ident, $variant:expr; $($scenario:ident),* $(,)?) => {
        mod $backend {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let Some(mut plane) = crate::Plane::start($variant).await else { return };
                    crate::scenarios::$scenario(&mut plane).await;
                    plane.end().await;
                }
            )*
        }
    };
}

macro_rules! suites {
    ($($backend:ident = $variant:expr),* $(,)?) => {
        $(
            suite! {
                $backend, $variant;
                objects_are_reconciled_and_told_why,
                children_that_are_spoiled_are_put_right,
                a_client_reads_its_own_writes,
                finalizers_hold_objects_until_they_are_cleaned_up,
                long_lists_come_in_pages,
                run_until_idle_does_all_there_is_to_do,
                a_shutdown_waits_for_what_is_in_flight,
                what_was_not_done_is_done_after_the_next_start,
                a_server_that_is_restarted_loses_nothing,
                a_follower_takes_over_what_a_leader_leaves,
            }
        )*
    };
}

suites! {
    memory = crate::Backend::Memory,
    https = crate::Backend::Https,
    disk = crate::Backend::Disk,
    etcd = crate::Backend::Etcd,
}
