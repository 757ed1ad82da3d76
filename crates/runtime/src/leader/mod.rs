//! Leader election over Leases.
