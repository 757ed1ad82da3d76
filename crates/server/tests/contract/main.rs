//! The contract that Kubernetes clients rely on, where recorded conversations cannot cover it: time, limits, tenants,
//! encodings, and the network.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod documents;
mod encodings;
mod fairness;
mod limits;
mod metadata;
mod network;
mod pages;
mod projects;
mod rbac;
mod requests;
mod round_trips;
mod spy;
mod tenants;
mod tenants_api;
mod watches;
