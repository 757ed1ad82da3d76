mod cluster;
mod core;
mod workloads;
