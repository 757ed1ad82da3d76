//! The metrics of a manager, in a registry of its own, named as in Go's controller-runtime.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::{encoding::text, registry::Registry};

/// A registry of metrics. Clones refer to the same registry; each manager has its own.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

impl Metrics {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Adds metrics: the runtime's own, and a program's.
    pub fn register<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock())
    }

    /// All metrics as text, in the `OpenMetrics` format.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &self.registry.lock());
        out
    }
}
