//! CustomResourceDefinitions: structural schemas, validation, defaulting and pruning. No I/O, no tasks, no clock.
