//! A Kubernetes API server as a tower Service.
