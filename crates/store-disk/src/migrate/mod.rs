//! Bringing a store of an older format up to date.

mod engine;
mod first;
mod second;
#[cfg(test)]
mod tests;

pub(crate) use first::records_into_log;
pub(crate) use second::heads_into_memory;
