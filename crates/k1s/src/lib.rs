//! k1s: a Kubernetes-compatible control plane small enough to live inside a program.
