//! Managed fields of Kubernetes objects.
