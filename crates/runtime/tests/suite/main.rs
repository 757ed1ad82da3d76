//! One suite for every control plane: in-process on memory, on disk and on etcd, and over HTTPS on a network
//! that keeps dropping connections. The guarantees for controllers do not depend on the backend.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod plane;
mod proxy;
mod scenarios;

use plane::{Backend, Plane};

/// Runs each scenario on a backend, as a separate test.
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
                objects_are_reconciled_with_their_causes,
                damaged_children_are_repaired,
                a_client_reads_its_own_writes,
                finalizers_hold_objects_until_they_are_cleaned_up,
                long_lists_come_in_pages,
                run_until_idle_does_all_work,
                a_shutdown_waits_for_reconciles_in_flight,
                unfinished_work_is_done_after_a_restart,
                a_server_restart_loses_nothing,
                a_follower_takes_over_from_the_leader,
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
