//! The HTTP endpoints of a manager: health, readiness, metrics.
